// The calls of mote.h that understand text, over small encoders with random weights: what they
// return, in any company, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/utf8.h"
#include "tests/support/api.h"
#include "tests/support/text_encoder.h"

namespace mote::test {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kTexts = {
    "the lamp in the kitchen is on",
    "",
    "off!",
    "This  is\tan exampl\xc3\xa9 of   d\xc3\xa9j\xc3\xa0 vu, isn't it?",
    "\xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80 e\xcc\x81 x\xff\xfe y\xc3",
    "switching the lamps on and off and on and off and on again and again until the end of it all",
    "   ",
    "a-b:c 1,234.5",
};

struct TextOptions : mote_text_options {
  TextOptions() : mote_text_options{} { size = sizeof(mote_text_options); }
};

std::vector<mote_input> inputs_of(const std::vector<std::string>& texts) {
  std::vector<mote_input> inputs;
  for (const std::string& text : texts) inputs.push_back({text_of(text), {nullptr, 0}});
  return inputs;
}

class TextCalls : public testing::Test {
 protected:
  Session& open(TextHead head, uint32_t capacity = 64, uint32_t batch = 0, uint32_t threads = 1,
                uint32_t text_bytes = 0) {
    return open(text_encoder(head), capacity, batch, threads, text_bytes);
  }
  Session& open(const GgufBuilder& builder, uint32_t capacity = 64, uint32_t batch = 0,
                uint32_t threads = 1, uint32_t text_bytes = 0) {
    session_.reset();
    model_.reset();
    bytes_ = std::make_unique<AlignedBytes>(builder.build());
    model_ = std::make_unique<Model>(*bytes_);
    SessionOptions options(capacity, batch, threads);
    options.text_bytes = text_bytes;
    session_ = std::make_unique<Session>(*model_, options);
    return *session_;
  }
  const mote_model* model() const { return model_->get(); }

 private:
  std::unique_ptr<AlignedBytes> bytes_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Session> session_;
};

std::vector<mote_label_score> classify(mote_session* session, const std::vector<mote_input>& inputs,
                                       const mote_text_options& options, size_t top,
                                       std::vector<mote_report>* reports = nullptr,
                                       mote_status expected = MOTE_OK) {
  std::vector<mote_label_score> scores(inputs.size() * top);
  if (reports) reports->resize(inputs.size());
  EXPECT_EQ(mote_classify(session, inputs.data(), inputs.size(), &options, scores.data(),
                          scores.size(), reports ? reports->data() : nullptr),
            expected)
      << mote_last_error();
  return scores;
}

template <class T>
void expect_same_bits(const std::vector<T>& a, const std::vector<T>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(T)), 0) << what;
}

TEST_F(TextCalls, ClassifyGivesProbabilitiesBestFirst) {
  mote_session* session = open(TextHead::classify);
  std::vector<mote_report> reports;
  const auto scores = classify(session, inputs_of(kTexts), TextOptions(), 3, &reports);
  for (size_t i = 0; i < kTexts.size(); ++i) {
    float sum = 0;
    for (size_t k = 0; k < 3; ++k) {
      sum += scores[i * 3 + k].score;
      if (k) {
        EXPECT_GE(scores[i * 3 + k - 1].score, scores[i * 3 + k].score);
      }
    }
    EXPECT_NEAR(sum, 1.0f, 1e-5);
    EXPECT_EQ(reports[i].status, MOTE_OK);
    EXPECT_EQ(reports[i].windows, 1u);
  }
  EXPECT_EQ(reports[1].tokens, 2u);  // [CLS] [SEP]
  EXPECT_EQ(reports[6].tokens, 2u);
  EXPECT_EQ(reports[0].tokens, 9u);
  // The same through raw logits.
  TextOptions raw;
  raw.raw = 1;
  const auto logits = classify(session, inputs_of(kTexts), raw, 3);
  for (size_t i = 0; i < kTexts.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < 3; ++k) sum += std::exp(double(logits[i * 3 + k].score));
    for (size_t k = 0; k < 3; ++k)
      EXPECT_NEAR(std::exp(double(logits[i * 3 + k].score)) / sum, scores[i * 3 + k].score, 1e-6);
  }
  TextOptions best;
  best.top = 1;
  const auto firsts = classify(session, inputs_of(kTexts), best, 1);
  for (size_t i = 0; i < kTexts.size(); ++i) EXPECT_EQ(firsts[i].label, scores[i * 3].label);
}

TEST_F(TextCalls, TheSameBitsInAnyCompany) {
  std::vector<mote_label_score> expected;
  {
    mote_session* session = open(TextHead::classify);
    for (const std::string& text : kTexts) {
      const auto alone = classify(session, inputs_of({text}), TextOptions(), 3);
      expected.insert(expected.end(), alone.begin(), alone.end());
    }
  }
  for (const uint32_t batch : {64u, 70u, 500u})
    for (const uint32_t threads : {1u, 2u, 3u}) {
      mote_session* session = open(TextHead::classify, 64, batch, threads);
      const std::string what = std::to_string(batch) + " tokens, " + std::to_string(threads);
      expect_same_bits(classify(session, inputs_of(kTexts), TextOptions(), 3), expected, what);
      std::vector<std::string> turned(kTexts.rbegin(), kTexts.rend());
      auto scores = classify(session, inputs_of(turned), TextOptions(), 3);
      std::vector<mote_label_score> back;
      for (size_t i = kTexts.size(); i-- > 0;)
        back.insert(back.end(), scores.begin() + static_cast<ptrdiff_t>(i * 3),
                    scores.begin() + static_cast<ptrdiff_t>(i * 3 + 3));
      expect_same_bits(back, expected, what + ", turned");
    }
}

TEST_F(TextCalls, LongTexts) {
  mote_session* session = open(TextHead::classify, 16);
  std::vector<mote_report> reports;
  classify(session, inputs_of(kTexts), TextOptions(), 3, &reports);
  EXPECT_EQ(reports[5].truncated, 1u);
  EXPECT_GT(reports[5].tokens, 16u);
  EXPECT_EQ(reports[0].truncated, 0u);

  TextOptions strict;
  strict.too_long = MOTE_LONG_ERROR;
  auto scores = classify(session, inputs_of(kTexts), strict, 3, &reports);
  EXPECT_EQ(reports[5].status, MOTE_ERROR_CONTEXT);
  EXPECT_GT(reports[5].tokens, 16u);
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(scores[15 + k].score, 0.0f);
  EXPECT_EQ(reports[7].status, MOTE_OK);  // the others go on
  EXPECT_GT(scores[21].score, 0.0f);
  classify(session, inputs_of(kTexts), strict, 3, nullptr, MOTE_ERROR_CONTEXT);
  EXPECT_THAT(mote_last_error(), HasSubstr("expected at most 16 tokens"));

  // Windows: the mean of their logits, by their tokens.
  TextOptions windows;
  windows.too_long = MOTE_LONG_WINDOWS;
  windows.window_stride = 4;
  windows.raw = 1;
  const std::string letters =
      "a b c d e f g h i j k l m n o p q r s t";  // 20 tokens, 14 in a window
  scores = classify(session, inputs_of({letters}), windows, 3, &reports);
  EXPECT_EQ(reports[0].windows, 2u);
  EXPECT_EQ(reports[0].truncated, 0u);
  const auto parts = classify(
      session, inputs_of({"a b c d e f g h i j k l m n", "k l m n o p q r s t"}), windows, 3);
  std::vector<float> mean(3, 0.0f);
  for (size_t k = 0; k < 3; ++k) {
    mean[parts[k].label] += parts[k].score * 14 / 24;
    mean[parts[3 + k].label] += parts[3 + k].score * 10 / 24;
  }
  for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(scores[k].score, mean[scores[k].label], 1e-5);

  windows.window_stride = 14;  // no room for anything new
  classify(session, inputs_of({letters}), windows, 3, nullptr, MOTE_ERROR_ARGUMENT);
  EXPECT_THAT(mote_last_error(), HasSubstr("stride"));
}

TEST_F(TextCalls, RelevanceOfPairs) {
  mote_session* session = open(TextHead::relevance, 32);
  std::vector<mote_input> pairs;
  for (const std::string& text : kTexts) pairs.push_back({text_of("the lamp"), text_of(text)});
  std::vector<mote_report> reports;
  const auto scores = classify(session, pairs, TextOptions(), 1, &reports);
  TextOptions raw;
  raw.raw = 1;
  const auto logits = classify(session, pairs, raw, 1);
  for (size_t i = 0; i < pairs.size(); ++i)
    EXPECT_NEAR(scores[i].score, 1 / (1 + std::exp(-logits[i].score)), 1e-6);
  EXPECT_EQ(reports[0].tokens, 3u + 2 + 7);
  EXPECT_EQ(reports[1].tokens, 4u);  // an empty second text is none
  EXPECT_EQ(reports[6].tokens, 5u);  // one of spaces is one
  EXPECT_EQ(reports[5].truncated, 1u);
}

struct Tagged {
  std::vector<mote_span> spans;
  std::vector<size_t> counts;
  std::vector<mote_report> reports;
};
Tagged tag(mote_session* session, const std::vector<std::string>& texts,
           const mote_text_options& options) {
  Tagged out;
  out.spans.resize(1000);
  out.counts.resize(texts.size());
  out.reports.resize(texts.size());
  const auto inputs = inputs_of(texts);
  EXPECT_EQ(mote_tag_batch(session, inputs.data(), inputs.size(), &options, out.spans.data(),
                           out.spans.size(), out.counts.data(), out.reports.data()),
            MOTE_OK)
      << mote_last_error();
  size_t all = 0;
  for (const size_t count : out.counts) all += count;
  out.spans.resize(all);
  return out;
}

// Offsets lie on characters, in bytes and code points alike.
void expect_places(const mote_span& span, const std::string& text) {
  ASSERT_LE(span.byte_start, span.byte_end);
  ASSERT_LE(span.byte_end, text.size());
  size_t points = 0;
  bool start = false, end = false;
  for (size_t at = 0; at <= text.size(); ++points) {
    start |= at == span.byte_start && points == span.character_start;
    end |= at == span.byte_end && points == span.character_end;
    if (at == text.size()) break;
    at += read_utf8(text, at).length;
  }
  EXPECT_TRUE(start && end) << text << " [" << span.byte_start << ", " << span.byte_end << ")";
}

TEST_F(TextCalls, TagsAloneAndInCompany) {
  for (const uint32_t grouping :
       {MOTE_GROUP_ENTITY, MOTE_GROUP_FIRST, MOTE_GROUP_MAX, MOTE_GROUP_AVERAGE, MOTE_GROUP_NONE})
    for (const uint32_t too_long : {MOTE_LONG_TRUNCATE, MOTE_LONG_WINDOWS}) {
      mote_session* session = open(TextHead::tag, 16);
      TextOptions options;
      options.grouping = grouping;
      options.too_long = too_long;
      options.window_stride = 5;
      const Tagged all = tag(session, kTexts, options);
      size_t first = 0, found = 0;
      for (size_t i = 0; i < kTexts.size(); ++i) {
        std::vector<mote_span> spans(200);
        size_t count = 0;
        mote_report report{};
        ASSERT_EQ(mote_tag(session, text_of(kTexts[i]), &options, spans.data(), spans.size(),
                           &count, &report),
                  MOTE_OK);
        ASSERT_EQ(count, all.counts[i]);
        EXPECT_EQ(report.windows, all.reports[i].windows);
        EXPECT_EQ(std::memcmp(spans.data(), all.spans.data() + first, count * sizeof(mote_span)),
                  0);
        for (size_t k = 0; k < count; ++k) {
          expect_places(spans[k], kTexts[i]);
          const std::string name(spans[k].name.data, spans[k].name.length);
          mote_text label{};
          ASSERT_EQ(mote_model_label(model(), spans[k].label, &label), MOTE_OK);
          const std::string full(label.data, label.length);
          EXPECT_EQ(name, grouping == MOTE_GROUP_NONE ? full : full.substr(2));
        }
        first += count;
        found += count;
      }
      EXPECT_GT(found, 3u);
      EXPECT_EQ(all.counts[1], 0u);  // the empty text
    }
}

TEST_F(TextCalls, TagsBeyondTheBufferAreCounted) {
  mote_session* session = open(TextHead::tag);
  const Tagged all = tag(session, kTexts, TextOptions());
  ASSERT_GT(all.spans.size(), 3u);
  std::vector<mote_span> spans(all.spans.size() - 1);
  std::vector<size_t> counts(kTexts.size());
  const auto inputs = inputs_of(kTexts);
  EXPECT_EQ(mote_tag_batch(session, inputs.data(), inputs.size(), nullptr, spans.data(),
                           spans.size(), counts.data(), nullptr),
            MOTE_ERROR_BUFFER);
  EXPECT_EQ(counts, all.counts);
  size_t count = 0;
  EXPECT_EQ(mote_tag(session, text_of(kTexts[0]), nullptr, nullptr, 0, &count, nullptr),
            all.counts[0] ? MOTE_ERROR_BUFFER : MOTE_OK);
  EXPECT_EQ(count, all.counts[0]);
}

TEST_F(TextCalls, AnswersAloneAndInCompany) {
  const std::string question = "is the lamp on?";
  mote_session* session = open(TextHead::answer, 32);
  std::vector<mote_input> inputs;
  for (const std::string& text : kTexts) inputs.push_back({text_of(question), text_of(text)});
  TextOptions options;
  options.top = 3;
  options.must_answer = 1;
  options.too_long = MOTE_LONG_WINDOWS;
  std::vector<mote_span> spans(inputs.size() * 3);
  std::vector<size_t> counts(inputs.size());
  std::vector<float> none(inputs.size());
  std::vector<mote_report> reports(inputs.size());
  ASSERT_EQ(mote_answer_batch(session, inputs.data(), inputs.size(), &options, spans.data(),
                              spans.size(), counts.data(), none.data(), reports.data()),
            MOTE_OK)
      << mote_last_error();
  EXPECT_EQ(reports[1].status, MOTE_ERROR_ARGUMENT);  // an empty passage
  EXPECT_GT(reports[5].windows, 1u);
  EXPECT_EQ(counts[6], 0u);  // of spaces
  for (size_t i = 0; i < kTexts.size(); ++i) {
    if (reports[i].status != MOTE_OK) continue;
    std::vector<mote_span> alone(3);
    size_t count = 0;
    float no_answer = 0;
    ASSERT_EQ(mote_answer(session, text_of(question), text_of(kTexts[i]), &options, alone.data(), 3,
                          &count, &no_answer),
              MOTE_OK);
    EXPECT_EQ(count, counts[i]);
    EXPECT_EQ(no_answer, none[i]);
    EXPECT_EQ(std::memcmp(alone.data(), spans.data() + i * 3, 3 * sizeof(mote_span)), 0);
    for (size_t k = 0; k < count; ++k) {
      expect_places(alone[k], kTexts[i]);
      EXPECT_GT(alone[k].byte_end, alone[k].byte_start);
      if (k) {
        EXPECT_GE(alone[k - 1].score, alone[k].score);
      }
    }
    // Without must_answer: none where no answer scores higher.
    TextOptions plain = options;
    plain.must_answer = 0;
    ASSERT_EQ(mote_answer(session, text_of(question), text_of(kTexts[i]), &plain, alone.data(), 3,
                          &count, nullptr),
              MOTE_OK);
    EXPECT_EQ(count, counts[i] && none[i] > spans[i * 3].score ? 0 : counts[i]);
  }
}

TEST_F(TextCalls, AQuestionWithoutRoom) {
  mote_session* session = open(TextHead::answer, 12);
  const std::string question = "a b c d e f g h i j k l m n";
  mote_span span;
  size_t count = 7;
  for (const uint32_t too_long : {MOTE_LONG_WINDOWS, MOTE_LONG_TRUNCATE}) {
    TextOptions options;
    options.too_long = too_long;
    EXPECT_EQ(
        mote_answer(session, text_of(question), text_of("x"), &options, &span, 1, &count, nullptr),
        MOTE_ERROR_ARGUMENT);
    EXPECT_EQ(count, 0u);
    EXPECT_THAT(mote_last_error(), HasSubstr("too long"));
  }
}

std::vector<float> embed(mote_session* session, const std::vector<std::string>& texts,
                         const mote_text_options& options, size_t width) {
  std::vector<float> vectors(texts.size() * width);
  const auto inputs = inputs_of(texts);
  EXPECT_EQ(mote_embed(session, inputs.data(), inputs.size(), &options, vectors.data(),
                       vectors.size(), nullptr),
            MOTE_OK)
      << mote_last_error();
  return vectors;
}

TEST_F(TextCalls, Embeddings) {
  mote_session* session = open(TextHead::embed);
  const size_t hidden = 32;
  std::vector<std::vector<float>> of_poolings;
  for (const uint32_t pooling :
       {MOTE_POOL_MODEL, MOTE_POOL_MEAN, MOTE_POOL_CLS, MOTE_POOL_MAX, MOTE_POOL_LAST}) {
    TextOptions options;
    options.pooling = pooling;
    const auto unit = embed(session, kTexts, options, hidden);
    options.raw = 1;
    const auto raw = embed(session, kTexts, options, hidden);
    options.raw = 0;
    options.dimensions = 8;
    const auto cut = embed(session, kTexts, options, 8);
    for (size_t i = 0; i < kTexts.size(); ++i) {
      double length = 0, part = 0;
      for (size_t k = 0; k < hidden; ++k)
        length += double(raw[i * hidden + k]) * raw[i * hidden + k];
      for (size_t k = 0; k < 8; ++k) part += double(raw[i * hidden + k]) * raw[i * hidden + k];
      for (size_t k = 0; k < hidden; ++k)
        EXPECT_NEAR(unit[i * hidden + k], raw[i * hidden + k] / std::sqrt(length), 1e-6);
      for (size_t k = 0; k < 8; ++k)
        EXPECT_NEAR(cut[i * 8 + k], raw[i * hidden + k] / std::sqrt(part), 1e-6);
      const auto alone = embed(session, {kTexts[i]}, options, 8);
      expect_same_bits(alone,
                       {cut.begin() + static_cast<ptrdiff_t>(i * 8),
                        cut.begin() + static_cast<ptrdiff_t>(i * 8 + 8)},
                       kTexts[i]);
    }
    of_poolings.push_back(raw);
  }
  for (size_t p = 2; p < of_poolings.size(); ++p) EXPECT_NE(of_poolings[p], of_poolings[p - 1]);
}

TEST_F(TextCalls, Fills) {
  mote_session* session = open(TextHead::fill);
  const std::string text = "the [MASK] in the kitchen [MASK]";
  std::vector<mote_label_score> tokens(10);
  size_t masks = 0;
  mote_report report{};
  ASSERT_EQ(mote_fill(session, text_of(text), nullptr, tokens.data(), 10, &masks, &report), MOTE_OK)
      << mote_last_error();
  EXPECT_EQ(masks, 2u);
  EXPECT_EQ(report.tokens, 8u);
  for (size_t i = 1; i < 5; ++i) EXPECT_GE(tokens[i - 1].score, tokens[i].score);
  TextOptions all;
  mote_model_info info{};
  info.size = sizeof info;
  ASSERT_EQ(mote_model_describe(model(), &info), MOTE_OK);
  EXPECT_TRUE(info.tasks & MOTE_TASK_FILL);
  all.top = 99;  // the tokens that have a text; the head's matrix has more rows
  std::vector<mote_label_score> every(all.top * 2);
  ASSERT_EQ(mote_fill(session, text_of(text), &all, every.data(), every.size(), &masks, nullptr),
            MOTE_OK);
  float sum = 0;
  for (size_t i = 0; i < all.top; ++i) sum += every[i].score;
  EXPECT_LT(sum, 1.0f);
  EXPECT_GT(sum, 0.1f);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(every[i].label, tokens[i].label);

  EXPECT_EQ(mote_fill(session, text_of(text), nullptr, tokens.data(), 9, &masks, nullptr),
            MOTE_ERROR_BUFFER);
  EXPECT_EQ(masks, 2u);
  EXPECT_EQ(mote_fill(session, text_of("no such"), nullptr, tokens.data(), 9, &masks, nullptr),
            MOTE_ERROR_ARGUMENT);
  EXPECT_THAT(mote_last_error(), HasSubstr("[MASK]"));
}

// Also those that the caller has used before.
TEST_F(TextCalls, ReportsOfCallsThatFail) {
  const auto inputs = inputs_of({"on", "the lamp"});
  std::vector<mote_report> reports(2);
  const auto expect_all = [&](mote_status status, mote_status expected) {
    EXPECT_EQ(status, expected);
    for (mote_report& report : reports) {
      EXPECT_EQ(report.status, expected);
      report = {};
    }
  };
  float number = 0;
  mote_label_score score{};
  mote_span span{};
  size_t counts[2];
  mote_session* session = open(TextHead::embed);
  expect_all(mote_embed(session, inputs.data(), 2, nullptr, &number, 1, reports.data()),
             MOTE_ERROR_BUFFER);
  expect_all(mote_tag_batch(session, inputs.data(), 2, nullptr, &span, 1, counts, reports.data()),
             MOTE_ERROR_TASK);
  expect_all(mote_embed(nullptr, inputs.data(), 2, nullptr, &number, 1, reports.data()),
             MOTE_ERROR_ARGUMENT);
  session = open(TextHead::classify);
  expect_all(mote_classify(session, inputs.data(), 2, nullptr, &score, 1, reports.data()),
             MOTE_ERROR_BUFFER);
  session = open(TextHead::answer);
  expect_all(mote_answer_batch(session, inputs.data(), 2, nullptr, &span, 1, counts, nullptr,
                               reports.data()),
             MOTE_ERROR_BUFFER);
}

TEST_F(TextCalls, NamesOfSpecialTokens) {
  mote_session* session = open(TextHead::classify);
  std::vector<mote_report> reports;
  TextOptions options;
  classify(session, inputs_of({"on [SEP] off"}), options, 3, &reports);
  EXPECT_EQ(reports[0].tokens, 5u);
  options.literal = 1;
  classify(session, inputs_of({"on [SEP] off"}), options, 3, &reports);
  EXPECT_GT(reports[0].tokens, 5u);
}

TEST_F(TextCalls, CandidatesByEntailment) {
  mote_session* session = open(TextHead::entail);
  const mote_text candidates[] = {text_of("lamp"), text_of("kitchen"), text_of("off")};
  TextOptions options;
  options.candidates = candidates;
  options.candidate_count = 3;
  const auto scores = classify(session, inputs_of(kTexts), options, 3);
  // The same from pairs with the sentence written out.
  const std::vector<std::string> sentences = {"This example is lamp.", "This example is kitchen.",
                                              "This example is off."};
  TextOptions raw;
  raw.raw = 1;
  for (size_t i = 0; i < kTexts.size(); ++i) {
    std::vector<double> entails, against;
    for (const std::string& sentence : sentences) {
      const auto logits = classify(session, {{text_of(kTexts[i]), text_of(sentence)}}, raw, 3);
      for (const auto& logit : logits) {
        if (logit.label == 2) entails.push_back(logit.score);
        if (logit.label == 0) against.push_back(logit.score);
      }
    }
    double sum = 0;
    for (const double logit : entails) sum += std::exp(logit);
    for (size_t k = 0; k < 3; ++k)
      EXPECT_NEAR(scores[i * 3 + k].score, std::exp(entails[scores[i * 3 + k].label]) / sum, 1e-5);
    TextOptions alone = options;
    alone.multi_label = 1;
    const auto each = classify(session, inputs_of({kTexts[i]}), alone, 3);
    for (const auto& score : each)
      EXPECT_NEAR(score.score, 1 / (1 + std::exp(against[score.label] - entails[score.label])),
                  1e-5);
  }
  options.hypothesis = text_of("no place");
  classify(session, inputs_of(kTexts), options, 3, nullptr, MOTE_ERROR_ARGUMENT);
  session = open(TextHead::classify);
  options.hypothesis = {nullptr, 0};
  classify(session, inputs_of(kTexts), options, 3, nullptr, MOTE_ERROR_TASK);
  EXPECT_THAT(mote_last_error(), HasSubstr("entail"));
}

TEST(Candidates, ByLikelihood) {
  const AlignedBytes bytes(TinyModel().bytes());
  const Model model(bytes);
  Session session(model, SessionOptions(256, 16, 1, MOTE_KV_F32));
  Session reference(model, SessionOptions(256, 16, 1, MOTE_KV_F32));
  const std::vector<std::string> texts = {"The thing is", "On and on", "The thing is on"};
  const std::vector<std::string> labels = {" the one", " in", " forests and oceans of these"};
  std::vector<mote_text> candidates;
  for (const std::string& label : labels) candidates.push_back(text_of(label));
  TextOptions options;
  options.candidates = candidates.data();
  options.candidate_count = candidates.size();
  options.raw = 1;
  std::vector<mote_report> reports;
  const auto scores = classify(session, inputs_of(texts), options, 3, &reports);
  options.raw = 0;
  const auto shares = classify(session, inputs_of(texts), options, 3);
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t length = tokenize(reference, texts[i]).size();
    EXPECT_EQ(reports[i].tokens, length);
    double sum = 0;
    for (size_t k = 0; k < 3; ++k) {
      const std::vector<int32_t> ids =
          tokenize(reference, texts[i] + labels[scores[i * 3 + k].label]);
      std::vector<float> nll(ids.size());
      ASSERT_EQ(mote_score(reference, ids.data(), ids.size(), nll.data()), MOTE_OK);
      double mean = 0;
      for (size_t t = length; t < ids.size(); ++t) mean -= nll[t - 1] / double(ids.size() - length);
      EXPECT_NEAR(scores[i * 3 + k].score, mean, 1e-4);
      sum += std::exp(double(scores[i * 3 + k].score));
    }
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(shares[i * 3 + k].label, scores[i * 3 + k].label);
      EXPECT_NEAR(shares[i * 3 + k].score, std::exp(double(scores[i * 3 + k].score)) / sum, 1e-5);
    }
  }
  classify(session, inputs_of(texts), TextOptions(), 3, nullptr, MOTE_ERROR_TASK);
  EXPECT_THAT(mote_last_error(), HasSubstr("candidates"));
}

TEST_F(TextCalls, WhatTheModelHasNoHeadFor) {
  mote_session* session = open(TextHead::embed);
  const mote_input input = {text_of("x"), {nullptr, 0}};
  mote_label_score score;
  mote_span span;
  size_t count = 5;
  float vector[32];
  EXPECT_EQ(mote_classify(session, &input, 1, nullptr, &score, 1, nullptr), MOTE_ERROR_TASK);
  EXPECT_EQ(mote_tag(session, input.text, nullptr, &span, 1, &count, nullptr), MOTE_ERROR_TASK);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(mote_answer(session, input.text, input.text, nullptr, &span, 1, &count, nullptr),
            MOTE_ERROR_TASK);
  EXPECT_EQ(mote_fill(session, input.text, nullptr, &score, 1, &count, nullptr), MOTE_ERROR_TASK);
  EXPECT_EQ(mote_embed(session, &input, 1, nullptr, vector, 32, nullptr), MOTE_OK);

  GgufBuilder mute = text_encoder(TextHead::classify);
  std::vector<std::string> keys;
  for (const auto& key : mute.keys)
    if (key.name.rfind("tokenizer.", 0) == 0) keys.push_back(key.name);
  for (const std::string& key : keys) mute.remove_key(key);
  session = open(mute);
  EXPECT_EQ(mote_classify(session, &input, 1, nullptr, &score, 1, nullptr), MOTE_ERROR_TASK);
  EXPECT_THAT(mote_last_error(), HasSubstr("no tokenizer"));

  const AlignedBytes bytes(TinyModel().bytes());
  const Model generator(bytes);
  Session its(generator, SessionOptions(16, 16, 1));
  EXPECT_EQ(mote_embed(its, &input, 1, nullptr, vector, 32, nullptr), MOTE_ERROR_TASK);
}

TEST_F(TextCalls, ArgumentsOutOfRange) {
  mote_session* session = open(TextHead::classify);
  const mote_input input = {text_of("x"), {nullptr, 0}};
  mote_label_score scores[3];
  const auto refused = [&](const char* field, void (*change)(mote_text_options&)) {
    TextOptions options;
    change(options);
    EXPECT_EQ(mote_classify(session, &input, 1, &options, scores, 3, nullptr), MOTE_ERROR_ARGUMENT);
    EXPECT_THAT(mote_last_error(), HasSubstr(field));
  };
  refused("too_long", [](mote_text_options& o) { o.too_long = 3; });
  refused("top", [](mote_text_options& o) { o.top = 4; });
  refused("pooling", [](mote_text_options& o) { o.pooling = 5; });
  refused("grouping", [](mote_text_options& o) { o.grouping = 5; });
  refused("raw", [](mote_text_options& o) { o.raw = 2; });
  refused("candidate", [](mote_text_options& o) { o.candidate_count = 2; });
  refused("size", [](mote_text_options& o) { o.size = 0; });
  EXPECT_EQ(mote_classify(session, &input, 1, nullptr, scores, 2, nullptr), MOTE_ERROR_BUFFER);
  EXPECT_EQ(mote_classify(session, nullptr, 1, nullptr, scores, 3, nullptr), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(mote_classify(session, &input, 1, nullptr, nullptr, 3, nullptr), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(mote_classify(nullptr, &input, 1, nullptr, scores, 3, nullptr), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(mote_classify(session, nullptr, 0, nullptr, nullptr, 0, nullptr), MOTE_OK);
  const mote_input null = {{nullptr, 4}, {nullptr, 0}};
  EXPECT_EQ(mote_classify(session, &null, 1, nullptr, scores, 3, nullptr), MOTE_ERROR_ARGUMENT);
  const mote_input ended = {{"the lamp", MOTE_NUL_TERMINATED}, {nullptr, 0}};
  mote_report report{};
  EXPECT_EQ(mote_classify(session, &ended, 1, nullptr, scores, 3, &report), MOTE_OK);
  EXPECT_EQ(report.tokens, 4u);
}

TEST_F(TextCalls, TextsThatAreNone) {
  mote_session* session = open(TextHead::tag, 64, 0, 1, 3 << 20);
  const std::string zeros("on\0off\0", 7), broken = "\xff\xfe on \xc3";
  const std::string word(1 << 20, 'a'), spaced = [] {
    std::string text;
    for (int i = 0; i < 200000; ++i) text += "off ";
    return text;
  }();
  for (const std::string& text : {zeros, broken, word, spaced})
    for (const uint32_t too_long : {MOTE_LONG_TRUNCATE, MOTE_LONG_WINDOWS}) {
      if (too_long == MOTE_LONG_WINDOWS && text.size() > 1000) continue;
      TextOptions options;
      options.too_long = too_long;
      const Tagged found = tag(session, {text}, options);
      EXPECT_EQ(found.reports[0].status, MOTE_OK);
      for (const mote_span& span : found.spans) expect_places(span, text);
    }
  EXPECT_EQ(tag(session, {word}, TextOptions()).reports[0].tokens, 3u);  // one [UNK]
  EXPECT_EQ(tag(session, {spaced}, TextOptions()).reports[0].tokens, 200002u);
  session = open(TextHead::tag, 64, 0, 1, 1000);
  size_t count = 0;
  EXPECT_EQ(mote_tag(session, text_of(word), nullptr, nullptr, 0, &count, nullptr),
            MOTE_ERROR_CAPACITY);
  EXPECT_THAT(mote_last_error(), HasSubstr("text_bytes is 1000"));
}

// Each byte of such a text may become three tokens.
TEST_F(TextCalls, TextsThatAreNoUtf8FitWhateverTheirTokens) {
  mote_session* session = open(tiny_internal::small_modern_bert(), 64, 0, 1, 200);
  const std::string text(200, '\xff');
  const mote_input input = {text_of(text), {nullptr, 0}};
  std::vector<float> vector(32);
  mote_report report{};
  EXPECT_EQ(mote_embed(session, &input, 1, nullptr, vector.data(), vector.size(), &report), MOTE_OK)
      << mote_last_error();
  EXPECT_EQ(report.status, MOTE_OK);
  EXPECT_GE(report.tokens, 600u);
}

TEST_F(TextCalls, AnswersBeyondTheBufferAreCounted) {
  mote_session* session = open(TextHead::answer, 32);
  TextOptions options;
  options.top = 3;
  mote_span spans[2];
  size_t count = 0;
  EXPECT_EQ(mote_answer(session, text_of("is it on?"), text_of(kTexts[0]), &options, spans, 2,
                        &count, nullptr),
            MOTE_ERROR_BUFFER);
  EXPECT_EQ(count, 3u);
}

// Without reports a call that fails leaves nothing.
TEST_F(TextCalls, AFailureWithoutReportsLeavesZeros) {
  mote_session* session = open(TextHead::classify, 64, 64);
  std::vector<std::string> texts(40, kTexts[0]);
  const auto inputs = inputs_of(texts);
  TextOptions options;
  options.user = session;
  options.on_progress = [](void* user, size_t done, size_t) {
    if (done > 10) mote_session_cancel(static_cast<mote_session*>(user));
  };
  std::vector<mote_label_score> scores(inputs.size() * 3, mote_label_score{7, 7.0f});
  EXPECT_EQ(mote_classify(session, inputs.data(), inputs.size(), &options, scores.data(),
                          scores.size(), nullptr),
            MOTE_ERROR_CANCELLED);
  for (const mote_label_score& score : scores) EXPECT_EQ(score.score, 0.0f);
}

// The callback of a pass cancels: what was done until then stays.
TEST_F(TextCalls, CancelAndDeadline) {
  mote_session* session = open(TextHead::classify, 64, 64);
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.push_back(kTexts[static_cast<size_t>(i) % kTexts.size()]);
  const auto whole = classify(session, inputs_of(texts), TextOptions(), 3);
  TextOptions options;
  options.user = session;
  options.on_progress = [](void* user, size_t done, size_t total) {
    EXPECT_EQ(total, 40u);
    if (done > 10) mote_session_cancel(static_cast<mote_session*>(user));
  };
  std::vector<mote_report> reports;
  auto scores = classify(session, inputs_of(texts), options, 3, &reports, MOTE_ERROR_CANCELLED);
  size_t done = 0;
  while (done < 40 && reports[done].status == MOTE_OK) ++done;
  EXPECT_GT(done, 10u);
  EXPECT_LT(done, 40u);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(reports[i].status, i < done ? MOTE_OK : MOTE_ERROR_CANCELLED);
    for (size_t k = 0; k < 3; ++k)
      EXPECT_EQ(scores[i * 3 + k].score, i < done ? whole[i * 3 + k].score : 0.0f);
  }
  // The next call starts clear.
  expect_same_bits(classify(session, inputs_of(texts), TextOptions(), 3), whole, "after");

  TextOptions late;
  late.deadline_ms = 1;
  late.on_progress = [](void*, size_t, size_t) {
    const timespec pause = {0, 2000000};
    nanosleep(&pause, nullptr);
  };
  classify(session, inputs_of(texts), late, 3, &reports, MOTE_ERROR_DEADLINE);
  EXPECT_EQ(reports[39].status, MOTE_ERROR_DEADLINE);
}

}  // namespace
}  // namespace mote::test
