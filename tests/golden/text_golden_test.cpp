// Trained models with what Hugging Face's pipelines give for texts of every kind: token counts,
// logits, scores, rankings, entities under each grouping and over windows, answers, relevance.
// MOTE_SHARED_DIR names a folder with goldens/text.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/api.h"
#include "tests/support/tiny_folder.h"

namespace mote::test {
namespace {

using Json = nlohmann::json;

struct TextOptions : mote_text_options {
  TextOptions() : mote_text_options{} { size = sizeof(mote_text_options); }
};

// f32: everything within rounding. q8_0: what a user sees of it, for nearly all texts; q8_row: for
// one or two fewer.
class TextGolden : public testing::TestWithParam<const char*> {
 protected:
  bool exact() const { return std::string(GetParam()) == "f32"; }

  // Empty-handed (and skipped) without the goldens.
  bool open(const std::string& name) {
    const char* shared = std::getenv("MOTE_SHARED_DIR");
    const std::string folder = std::string(shared ? shared : "") + "/goldens/text/" + name;
    if (!shared || !std::filesystem::exists(folder + "/golden.jsonl") ||
        !std::filesystem::exists(tool_path()))
      return false;
    file_ = testing::TempDir() + "mote_" + name + "_" + GetParam() + std::to_string(::getpid());
    const std::string command = run_tool() + " convert " + shell_word(folder) + " -o " +
                                shell_word(file_) + " --type " + GetParam() + " 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream lines(folder + "/golden.jsonl", std::ios::binary);
    for (std::string line; std::getline(lines, line);) lines_.push_back(Json::parse(line));
    EXPECT_EQ(lines_.size(), 80u);
    model_ = Model(file_);
    return true;
  }
  // Of so many texts so many give what the reference gives; --gtest_output=json has the counts.
  void expect_same(const std::string& what, size_t same, size_t compared, size_t least) const {
    const bool one_scale = std::string(GetParam()) == "q8_row";
    EXPECT_GE(same, exact() ? compared : least - (one_scale ? 2 : 0))
        << what << ", of " << compared;
    RecordProperty(what, std::to_string(same) + " of " + std::to_string(compared));
  }

  void TearDown() override {
    if (!file_.empty()) std::remove(file_.c_str());
  }
  std::string label(uint32_t index) const {
    mote_text name{};
    EXPECT_EQ(mote_model_label(model_, index, &name), MOTE_OK) << mote_last_error();
    return {name.data, name.length};
  }
  std::vector<mote_input> inputs(const char* text, const char* pair = nullptr) const {
    std::vector<mote_input> all;
    for (const Json& line : lines_) {
      all.push_back({text_of(line[text].get_ref<const std::string&>()), {nullptr, 0}});
      if (pair) all.back().pair = text_of(line[pair].get_ref<const std::string&>());
    }
    return all;
  }

  void check_labels(const std::string& name, bool multi_label);

  std::string file_;
  std::vector<Json> lines_;
  Model model_;
};

// For texts longer than most.
SessionOptions session_of(uint32_t capacity) {
  SessionOptions options(capacity, 0, 2);
  options.text_bytes = 1 << 16;
  return options;
}
#define OPEN_OR_SKIP(name) \
  if (!open(name)) GTEST_SKIP() << "MOTE_SHARED_DIR names no folder with goldens/text"

std::vector<mote_label_score> classify(mote_session* session, const std::vector<mote_input>& inputs,
                                       size_t top, bool raw, std::vector<mote_report>* reports) {
  TextOptions options;
  options.raw = raw;
  std::vector<mote_label_score> scores(inputs.size() * top);
  reports->resize(inputs.size());
  EXPECT_EQ(mote_classify(session, inputs.data(), inputs.size(), &options, scores.data(),
                          scores.size(), reports->data()),
            MOTE_OK)
      << mote_last_error();
  return scores;
}

void TextGolden::check_labels(const std::string& name, bool multi_label) {
  OPEN_OR_SKIP(name);
  mote_model_info info{};
  info.size = sizeof info;
  ASSERT_EQ(mote_model_describe(model_, &info), MOTE_OK);
  ASSERT_EQ(info.label_count, lines_[0]["logits"].size());
  EXPECT_EQ(info.multi_label, multi_label ? 1u : 0u);
  const size_t labels = info.label_count;
  Session session(model_, session_of(0));
  std::vector<mote_report> reports;
  const auto scores = classify(session, inputs("text"), labels, false, &reports);
  const auto logits = classify(session, inputs("text"), labels, true, &reports);
  size_t same = 0;
  for (size_t i = 0; i < lines_.size(); ++i) {
    const Json& line = lines_[i];
    SCOPED_TRACE(line["id"].get<std::string>());
    EXPECT_EQ(reports[i].tokens, line["tokens"].get<uint32_t>());
    EXPECT_EQ(reports[i].truncated, line["tokens"].get<size_t>() > line["ids"].size());
    const mote_label_score* own = scores.data() + i * labels;
    if (multi_label) {
      bool agrees = true;
      for (size_t k = 0; k < labels; ++k)
        agrees &=
            (own[k].score > 0.5f) == (line["probabilities"][own[k].label].get<float>() > 0.5f);
      same += agrees;
    } else {
      same += label(own[0].label) == line["ranking"][0].get<std::string>();
    }
    if (!exact()) continue;
    for (size_t k = 0; k < labels; ++k) {
      EXPECT_NEAR(own[k].score, line["probabilities"][own[k].label].get<float>(), 1e-5);
      const mote_label_score& logit = logits[i * labels + k];
      const float expected = line["logits"][logit.label];
      EXPECT_NEAR(logit.score, expected, 1e-4 * std::max(1.0f, std::fabs(expected)));
      EXPECT_EQ(label(own[k].label), line["ranking"][k].get<std::string>()) << k;
    }
  }
  expect_same("same", same, lines_.size(), 79);
}

TEST_P(TextGolden, Intents) { check_labels("text-intents", false); }
TEST_P(TextGolden, ModernBertIntents) { check_labels("text-modernbert-intents", false); }
TEST_P(TextGolden, MultiLabelTopics) { check_labels("text-topics-multilabel", true); }

TEST_P(TextGolden, Relevance) {
  OPEN_OR_SKIP("text-rerank");
  size_t same = 0;
  for (const uint32_t length : {384u, 64u}) {
    Session session(model_, session_of(length));
    std::vector<mote_report> reports;
    const auto scores = classify(session, inputs("query", "passage"), 1, false, &reports);
    const auto logits = classify(session, inputs("query", "passage"), 1, true, &reports);
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Json& expected = lines_[i]["max_length_" + std::to_string(length)];
      SCOPED_TRACE(lines_[i]["id"].get<std::string>() + " " + std::to_string(length));
      EXPECT_EQ(reports[i].tokens, lines_[i]["tokens"].get<uint32_t>());
      const float score = expected["score"], logit = expected["logit"];
      same += (scores[i].score > 0.5f) == (score > 0.5f);
      if (!exact()) continue;
      EXPECT_NEAR(scores[i].score, score, 1e-5);
      EXPECT_NEAR(logits[i].score, logit, 1e-4 * std::max(1.0f, std::fabs(logit)));
    }
  }
  expect_same("same", same, 2 * lines_.size(), 158);
}

struct Strategy {
  const char* name;
  uint32_t grouping, stride;
};

TEST_P(TextGolden, Entities) {
  OPEN_OR_SKIP("text-ner");
  Session session(model_, session_of(0));
  for (const Strategy& strategy :
       {Strategy{"none", MOTE_GROUP_NONE, 0}, Strategy{"simple", MOTE_GROUP_ENTITY, 0},
        Strategy{"first", MOTE_GROUP_FIRST, 0}, Strategy{"max", MOTE_GROUP_MAX, 0},
        Strategy{"average", MOTE_GROUP_AVERAGE, 0},
        Strategy{"stride_32_simple", MOTE_GROUP_ENTITY, 32},
        Strategy{"stride_32_first", MOTE_GROUP_FIRST, 32},
        Strategy{"stride_32_max", MOTE_GROUP_MAX, 32},
        Strategy{"stride_32_average", MOTE_GROUP_AVERAGE, 32}}) {
    TextOptions options;
    options.grouping = strategy.grouping;
    options.too_long = strategy.stride ? MOTE_LONG_WINDOWS : MOTE_LONG_TRUNCATE;
    options.window_stride = strategy.stride;
    std::vector<mote_span> spans(20000);
    std::vector<size_t> counts(lines_.size());
    std::vector<mote_report> reports(lines_.size());
    const auto texts = inputs("text");
    ASSERT_EQ(mote_tag_batch(session, texts.data(), texts.size(), &options, spans.data(),
                             spans.size(), counts.data(), reports.data()),
              MOTE_OK)
        << mote_last_error();
    size_t first = 0, compared = 0, same = 0;
    for (size_t i = 0; i < lines_.size(); first += counts[i++]) {
      const Json& line = lines_[i];
      if (!line.contains(strategy.name)) continue;
      SCOPED_TRACE(line["id"].get<std::string>() + " " + strategy.name);
      const std::string& text = line["text"].get_ref<const std::string&>();
      const Json& expected = line[strategy.name];
      const char* key = strategy.grouping == MOTE_GROUP_NONE ? "entity" : "entity_group";
      bool equal = counts[i] == expected.size();
      for (size_t k = 0; equal && k < counts[i]; ++k) {
        const mote_span& span = spans[first + k];
        equal = std::string(span.name.data, span.name.length) == expected[k][key] &&
                span.character_start == expected[k]["start"] &&
                span.character_end == expected[k]["end"];
        if (exact()) {
          EXPECT_NEAR(span.score, expected[k]["score"].get<float>(), 1e-5);
        }
      }
      if (exact()) {
        EXPECT_TRUE(equal) << text;
      }
      ++compared;
      same += equal;
    }
    // Hundreds of entities in texts of every kind; some hang by a thread.
    expect_same(strategy.name, same, compared, compared - 2);
  }
}

TEST_P(TextGolden, Answers) {
  OPEN_OR_SKIP("text-qa");
  size_t lists = 0, same = 0, best = 0, bests = 0;
  for (const char* name : {"case_384", "case_64"})
    for (const uint32_t top : {1u, 3u}) {
      const Json& settings = lines_[0][name];
      Session session(model_, session_of(settings["max_seq_len"]));
      TextOptions options;
      options.too_long = MOTE_LONG_WINDOWS;
      options.window_stride = settings["doc_stride"];
      options.max_answer_tokens = 15;
      options.top = top;
      options.must_answer = 1;
      const auto pairs = inputs("question", "context");
      std::vector<mote_span> spans(pairs.size() * top);
      std::vector<size_t> counts(pairs.size());
      std::vector<float> none(pairs.size());
      std::vector<mote_report> reports(pairs.size());
      ASSERT_EQ(mote_answer_batch(session, pairs.data(), pairs.size(), &options, spans.data(),
                                  spans.size(), counts.data(), none.data(), reports.data()),
                MOTE_OK)
          << mote_last_error();
      for (size_t i = 0; i < lines_.size(); ++i) {
        const Json& given = lines_[i][name];
        const std::string id = lines_[i]["id"].get<std::string>() + " " + name;
        if (given.contains("error")) {
          EXPECT_EQ(reports[i].status, MOTE_ERROR_ARGUMENT) << id;
          continue;
        }
        EXPECT_EQ(reports[i].status, MOTE_OK) << id;
        EXPECT_EQ(reports[i].windows, given["windows"].size()) << id;
        for (const bool impossible : {false, true}) {
          SCOPED_TRACE(id + " top " + std::to_string(top) + (impossible ? " or none" : ""));
          std::vector<mote_span> own(spans.begin() + static_cast<ptrdiff_t>(i * top),
                                     spans.begin() + static_cast<ptrdiff_t>(i * top + counts[i]));
          if (impossible) {  // it stands behind those of the same score
            mote_span nothing{};
            nothing.score = none[i];
            size_t at = 0;
            while (at < own.size() && own[at].score >= nothing.score) ++at;
            own.insert(own.begin() + static_cast<ptrdiff_t>(at), nothing);
            if (own.size() > top) own.pop_back();
          }
          const Json& expected = given["top_" + std::to_string(top) + "_impossible_" +
                                       (impossible ? "true" : "false")];
          bool equal = own.size() == expected.size();
          const auto place = [&](size_t k) {
            return own[k].character_start == expected[k]["start"] &&
                   own[k].character_end == expected[k]["end"];
          };
          for (size_t k = 0; equal && k < own.size(); ++k) {
            equal = place(k);
            if (exact()) {
              EXPECT_NEAR(own[k].score, expected[k]["score"].get<float>(), 1e-5);
            }
          }
          if (exact()) {
            EXPECT_TRUE(equal) << expected.dump();
          }
          ++lists;
          same += equal;
          ++bests;
          best += own.empty() ? expected.empty() : !expected.empty() && place(0);
        }
      }
    }
  EXPECT_GE(lists, 600u);
  if (exact()) {
    EXPECT_EQ(same, lists);
  }
  expect_same("best span", best, bests, (99 * bests + 99) / 100);
}

INSTANTIATE_TEST_SUITE_P(Types, TextGolden, testing::Values("f32", "q8_0", "q8_row"));

}  // namespace
}  // namespace mote::test
