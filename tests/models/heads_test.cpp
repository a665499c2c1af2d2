// Heads on inputs made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/heads/embeddings.h"
#include "models/heads/entities.h"
#include "models/heads/labels.h"
#include "models/heads/spans.h"
#include "tests/models/heads_support.h"

namespace mote::test {
namespace {

using testing::ElementsAre;

TEST(Labels, SoftmaxSigmoidAndRegression) {
  float single[] = {0.0f, std::log(3.0f)};
  ASSERT_TRUE(label_scores(Problem::single_label, single, 2));
  EXPECT_FLOAT_EQ(single[0], 0.25f);
  EXPECT_FLOAT_EQ(single[1], 0.75f);
  float multi[] = {0.0f, std::log(3.0f)};
  ASSERT_TRUE(label_scores(Problem::multi_label, multi, 2));
  EXPECT_FLOAT_EQ(multi[0], 0.5f);
  EXPECT_FLOAT_EQ(multi[1], 0.75f);
  float only[] = {std::log(3.0f)};  // one label of any kind is a sigmoid
  ASSERT_TRUE(label_scores(Problem::single_label, only, 1));
  EXPECT_FLOAT_EQ(only[0], 0.75f);
  float real[] = {-3.5f};
  ASSERT_TRUE(label_scores(Problem::regression, real, 1));
  EXPECT_EQ(real[0], -3.5f);
}

TEST(Labels, ExtremeLogitsAndSuchThatAreNone) {
  float far[] = {1000.0f, -1000.0f, 999.0f};
  ASSERT_TRUE(label_scores(Problem::single_label, far, 3));
  EXPECT_NEAR(far[0], 0.7310586f, 1e-6);
  EXPECT_EQ(far[1], 0.0f);
  float sigmoids[] = {1000.0f, -1000.0f};
  ASSERT_TRUE(label_scores(Problem::multi_label, sigmoids, 2));
  EXPECT_THAT(sigmoids, ElementsAre(1.0f, 0.0f));
  float broken[] = {1.0f, NAN};
  EXPECT_FALSE(label_scores(Problem::single_label, broken, 2));
  EXPECT_FALSE(label_scores(Problem::multi_label, broken, 2));
}

std::vector<uint32_t> ranked(const std::vector<float>& scores, size_t top) {
  std::vector<mote_label_score> best(top);
  rank_labels(scores.data(), scores.size(), best.data(), top);
  std::vector<uint32_t> labels;
  for (const auto& entry : best) {
    EXPECT_EQ(entry.score, scores[entry.label]);
    labels.push_back(entry.label);
  }
  return labels;
}

TEST(Labels, RankingIsStable) {
  const std::vector<float> scores = {0.1f, 0.5f, 0.3f, 0.5f, 0.1f, 0.5f};
  EXPECT_THAT(ranked(scores, 6), ElementsAre(1, 3, 5, 2, 0, 4));
  EXPECT_THAT(ranked(scores, 2), ElementsAre(1, 3));
  EXPECT_THAT(ranked(scores, 5), ElementsAre(1, 3, 5, 2, 0));
}

TEST(Embeddings, NormalizedToLengthOne) {
  float x[] = {3.0f, -4.0f};
  normalize_vector(x, 2);
  EXPECT_FLOAT_EQ(x[0], 0.6f);
  EXPECT_FLOAT_EQ(x[1], -0.8f);
  float zeros[] = {0.0f, 0.0f};
  normalize_vector(zeros, 2);
  EXPECT_THAT(zeros, ElementsAre(0.0f, 0.0f));
}

// A text of tokens that are single letters, all words of their own but those in capitals, which
// belong to the word before.
struct Letters {
  std::string text;
  std::vector<mote_token> tokens;
  std::vector<uint8_t> starts, subwords;

  explicit Letters(const std::string& letters) : text(letters) {
    for (uint32_t i = 0; i < text.size(); ++i) {
      tokens.push_back({0, i, i + 1});
      starts.push_back(text[i] > 'Z');
      subwords.push_back(text[i] <= 'Z');
    }
  }
};

struct FoundSpan {
  std::string text;
  float score;
};

// logits: of [CLS] and then of each letter from `first` on, start and end.
std::vector<FoundSpan> answers(const Letters& letters, const std::vector<size_t>& firsts,
                               const std::vector<std::vector<float>>& windows, size_t top,
                               size_t longest, bool raw, float* none) {
  Planned<SpanFinder> finder(16u, 64u);
  finder.get().start(letters.text, top, longest, raw);
  for (size_t w = 0; w < windows.size(); ++w) {
    const Status status =
        finder.get().add({windows[w].data(), 0, 1, windows[w].size() / 2 - 1,
                          letters.tokens.data() + firsts[w], letters.starts.data() + firsts[w]});
    EXPECT_TRUE(status.ok()) << last_error();
  }
  std::vector<mote_span> spans(top);
  spans.resize(finder.get().finish(spans.data()));
  *none = finder.get().no_answer_score();
  std::vector<FoundSpan> found;
  for (const mote_span& span : spans)
    found.push_back(
        {letters.text.substr(span.byte_start, span.byte_end - span.byte_start), span.score});
  return found;
}

TEST(Spans, ProductsOfProbabilities) {
  const float log3 = std::log(3.0f);
  float none = 0;
  // start: [CLS] 1/5, a 3/5, b 1/5; end: 1/5, 1/5, 3/5.
  const auto found = answers(Letters("ab"), {0}, {{0, 0, log3, 0, 0, log3}}, 3, 30, false, &none);
  EXPECT_NEAR(none, 0.04f, 1e-6);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].text, "ab");
  EXPECT_NEAR(found[0].score, 0.36f, 1e-6);
  EXPECT_EQ(found[1].text, "a");  // as good as "b", and before it
  EXPECT_NEAR(found[1].score, 0.12f, 1e-6);
  EXPECT_EQ(found[2].text, "b");
}

TEST(Spans, LongestAnswer) {
  const float log3 = std::log(3.0f);
  float none = 0;
  const auto found = answers(Letters("ab"), {0}, {{0, 0, log3, 0, 0, log3}}, 1, 1, false, &none);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text, "a");
}

TEST(Spans, WholeWordsAndTheSameTextInAnyCaseAddUp) {
  float none = 0;
  // "aB" is one word; the window over "cd" ends there. Text "ab" does not come; "aB" comes from
  // three pairs.
  const auto one =
      answers(Letters("aBc"), {0}, {{-9, -9, 2, 2, 2, 2, -9, -9}}, 1, 30, false, &none);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].text, "aB");
  EXPECT_NEAR(one[0].score, 0.75f, 1e-3);  // a-a, a-B, B-B of a quarter each
  // Two windows over the same letter: more than 1.
  const auto two =
      answers(Letters("x"), {0, 0}, {{-9, -9, 9, 9}, {-9, -9, 9, 9}}, 1, 30, false, &none);
  ASSERT_EQ(two.size(), 1u);
  EXPECT_NEAR(two[0].score, 2.0f, 1e-3);
}

TEST(Spans, RawScoresAreSumsOfLogits) {
  float none = 0;
  const auto found =
      answers(Letters("ab"), {0, 0}, {{1, 2, 5, 1, 0, 4}, {0, 1, 6, 1, 0, 4}}, 1, 30, true, &none);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text, "ab");
  EXPECT_FLOAT_EQ(found[0].score, 10.0f);
  EXPECT_FLOAT_EQ(none, 1.0f);
}

TEST(Spans, ErrorsOfLogitsAndCapacity) {
  const Letters letters("abc");
  Planned<SpanFinder> finder(16u, 2u);
  finder.get().start(letters.text, 3, 30, false);
  const float broken[] = {0, 0, NAN, 0, 0, 0, 0, 0};
  const auto window = [&](const float* logits) {
    return SpanWindow{logits, 0, 1, 3, letters.tokens.data(), letters.starts.data()};
  };
  EXPECT_EQ(finder.get().add(window(broken)).code(), MOTE_ERROR_BAD_FILE);
  const float even[8] = {};
  EXPECT_EQ(finder.get().add(window(even)).code(), MOTE_ERROR_CAPACITY);
  // A passage without tokens has no answer.
  finder.get().start("", 3, 30, false);
  EXPECT_TRUE(finder.get().add({even, 0, 1, 0, nullptr, nullptr}).ok());
  mote_span spans[3];
  EXPECT_EQ(finder.get().finish(spans), 0u);
  EXPECT_FLOAT_EQ(finder.get().no_answer_score(), 1.0f);
}

// Python: "ΑΣ".lower() == "ας", "İ".lower() == "i̇".
TEST(Spans, LowerCaseAsInPython) {
  const std::string text = "ΑΣ ας i\xcc\x87 İ";
  Planned<SpanFinder> finder(16u, 8u);
  finder.get().start(text, 4, 1, false);
  const std::vector<mote_token> tokens = {{0, 0, 4}, {0, 5, 9}, {0, 10, 13}, {0, 14, 16}};
  const uint8_t starts[] = {1, 1, 1, 1};
  const float even[10] = {};
  ASSERT_TRUE(finder.get().add({even, 0, 1, 4, tokens.data(), starts}).ok()) << last_error();
  mote_span spans[4];
  ASSERT_EQ(finder.get().finish(spans), 2u);
  EXPECT_EQ(spans[0].byte_start, 0u);
  EXPECT_EQ(spans[1].byte_start, 10u);
  EXPECT_NEAR(spans[0].score, 0.08f, 1e-6);
}

struct FoundEntity {
  std::string name, text;
  float score;
};
bool operator==(const FoundEntity& a, const FoundEntity& b) {
  return a.name == b.name && a.text == b.text && std::fabs(a.score - b.score) < 1e-5f;
}
std::ostream& operator<<(std::ostream& out, const FoundEntity& e) {
  return out << e.name << " \"" << e.text << "\" " << e.score;
}

struct TagCase {
  std::vector<std::string_view> labels;
  Letters letters;
  // Per window: the first letter, and for each letter its label and that label's probability.
  struct Window {
    size_t first;
    std::vector<std::pair<size_t, float>> tags;
  };
  std::vector<Window> windows;

  std::vector<FoundEntity> found(uint32_t grouping, size_t room = 32) const {
    Planned<EntityFinder> finder(labels.size(), 16u);
    std::vector<mote_span> spans(32);
    finder.get().start(letters.text, {labels.data(), labels.size()}, grouping, windows.size(),
                       spans.data(), room);
    for (const Window& window : windows) {
      std::vector<float> logits;
      for (const auto& [label, p] : window.tags)
        for (size_t i = 0; i < labels.size(); ++i)
          logits.push_back(
              std::log(i == label ? p : (1 - p) / static_cast<float>(labels.size() - 1)));
      const Status status =
          finder.get().add({logits.data(), letters.tokens.data() + window.first,
                            letters.subwords.data() + window.first, window.tags.size()});
      EXPECT_TRUE(status.ok()) << last_error();
    }
    const size_t count = finder.get().finish();
    std::vector<FoundEntity> all;
    for (size_t i = 0; i < std::min(count, room); ++i)
      all.push_back(
          {std::string(spans[i].name.data, spans[i].name.length),
           letters.text.substr(spans[i].byte_start, spans[i].byte_end - spans[i].byte_start),
           spans[i].score});
    EXPECT_LE(all.size(), count);
    return all;
  }
};

const std::vector<std::string_view> kBio = {"O", "B-X", "I-X", "B-Y", "I-Y"};

TEST(Entities, BeginningsAndContinuations) {
  // I-X begins where nothing of X is before; B-X always; another kind ends it; O separates.
  const TagCase tags = {
      kBio,
      Letters("abcdefgh"),
      {{0,
        {{2, 0.9f}, {2, 0.7f}, {1, 0.8f}, {4, 0.6f}, {0, 0.9f}, {4, 0.5f}, {3, 0.5f}, {4, 0.7f}}}}};
  EXPECT_THAT(tags.found(MOTE_GROUP_ENTITY),
              ElementsAre(FoundEntity{"X", "ab", 0.8f}, FoundEntity{"X", "c", 0.8f},
                          FoundEntity{"Y", "d", 0.6f}, FoundEntity{"Y", "f", 0.5f},
                          FoundEntity{"Y", "gh", 0.6f}));
  EXPECT_EQ(tags.found(MOTE_GROUP_NONE).size(), 7u);
  EXPECT_EQ(tags.found(MOTE_GROUP_NONE)[0].name, "I-X");
  EXPECT_EQ(tags.found(MOTE_GROUP_ENTITY, 2).size(), 2u);  // the others are counted
}

TEST(Entities, WordsTakeOneLabel) {
  // One word of three tokens: B-X 0.5, O 0.8, B-X 0.6.
  const TagCase tags = {kBio, Letters("aBC"), {{0, {{1, 0.5f}, {0, 0.8f}, {1, 0.6f}}}}};
  EXPECT_THAT(tags.found(MOTE_GROUP_FIRST), ElementsAre(FoundEntity{"X", "aBC", 0.5f}));
  EXPECT_THAT(tags.found(MOTE_GROUP_MAX), ElementsAre());
  const float mean = (0.5f + 0.05f + 0.6f) / 3;  // of O: (0.125 + 0.8 + 0.1) / 3
  EXPECT_THAT(tags.found(MOTE_GROUP_AVERAGE), ElementsAre(FoundEntity{"X", "aBC", mean}));
  EXPECT_THAT(tags.found(MOTE_GROUP_ENTITY),
              ElementsAre(FoundEntity{"X", "a", 0.5f}, FoundEntity{"X", "C", 0.6f}));
}

TEST(Entities, EndsAndSingles) {
  const std::vector<std::string_view> bioes = {"O", "B-X", "I-X", "E-X", "S-X", "E-mail"};
  const TagCase tags = {
      bioes,
      Letters("abcdefg"),
      {{0, {{1, 0.9f}, {3, 0.9f}, {2, 0.9f}, {4, 0.9f}, {4, 0.9f}, {2, 0.9f}, {5, 0.9f}}}}};
  EXPECT_THAT(tags.found(MOTE_GROUP_ENTITY),
              ElementsAre(FoundEntity{"X", "ab", 0.9f}, FoundEntity{"X", "c", 0.9f},
                          FoundEntity{"X", "d", 0.9f}, FoundEntity{"X", "e", 0.9f},
                          FoundEntity{"X", "f", 0.9f}, FoundEntity{"mail", "g", 0.9f}));
}

TEST(Entities, WindowsThatOverlap) {
  // The longer one wins, of equal ones the one of higher score; what only touches stays.
  const TagCase tags = {
      kBio,
      Letters("abcdefghij"),
      {{0, {{1, 0.9f}, {0, 0.9f}, {0, 0.9f}, {1, 0.9f}, {0, 0.9f}, {1, 0.6f}}},
       {3, {{1, 0.7f}, {2, 0.7f}, {3, 0.8f}, {1, 0.9f}, {2, 0.9f}, {0, 0.9f}, {0, 0.9f}}}}};
  EXPECT_THAT(tags.found(MOTE_GROUP_ENTITY),
              ElementsAre(FoundEntity{"X", "a", 0.9f}, FoundEntity{"X", "de", 0.7f},
                          FoundEntity{"Y", "f", 0.8f}, FoundEntity{"X", "gh", 0.9f}));
}

TEST(Entities, ErrorsOfLogits) {
  Planned<EntityFinder> finder(kBio.size(), 4u);
  mote_span span;
  finder.get().start("a", {kBio.data(), kBio.size()}, MOTE_GROUP_ENTITY, 1, &span, 1);
  const float broken[] = {0, INFINITY, 0, 0, 0};
  const mote_token token = {0, 0, 1};
  const uint8_t subword = 0;
  EXPECT_EQ(finder.get().add({broken, &token, &subword, 1}).code(), MOTE_ERROR_BAD_FILE);
}

TEST(Entities, Subwords) {
  const std::string text = "ab cd e\xcc\x81";
  const auto token = [](uint32_t start, uint32_t end) { return mote_token{0, start, end}; };
  EXPECT_FALSE(is_subword(text, token(0, 2), true, 2, false));
  EXPECT_TRUE(is_subword(text, token(1, 2), true, 3, false));  // "##b"
  EXPECT_TRUE(is_subword(text, token(6, 9), true, 1, false));  // "e" for two code points
  EXPECT_FALSE(is_subword(text, token(6, 9), true, 5, true));  // [UNK]
  EXPECT_FALSE(is_subword(text, token(0, 2), false, 0, false));
  EXPECT_FALSE(is_subword(text, token(3, 5), false, 0, false));
  EXPECT_TRUE(is_subword(text, token(4, 5), false, 0, false));
}

}  // namespace
}  // namespace mote::test
