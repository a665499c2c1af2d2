// From the logits that a reference computed to its answers and entities: tests/data/text holds
// texts, offsets, logits and what Hugging Face's pipelines make of them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/arena.h"
#include "models/heads/entities.h"
#include "models/heads/spans.h"
#include "tests/models/heads_support.h"

namespace mote::test {
namespace {

using Json = nlohmann::json;

std::vector<Json> lines_of(const std::string& name) {
  std::vector<Json> lines;
  for (const std::string& line : read_lines(MOTE_TEST_DATA "/text/" + name))
    lines.push_back(Json::parse(line));
  return lines;
}

struct Passage {
  std::vector<mote_token> tokens;
  std::vector<uint8_t> word_starts;
};

Passage passage_of(const Json& window, const std::string& text) {
  Passage passage;
  passage.tokens = tokens_at(text, window["offsets"]);
  int last = -1;
  for (const int word : window["words"]) {
    passage.word_starts.push_back(word != last);
    last = word;
  }
  return passage;
}

std::vector<float> pairs_of(const Json& window) {
  std::vector<float> logits;
  for (size_t i = 0; i < window["start_logits"].size(); ++i) {
    logits.push_back(window["start_logits"][i]);
    logits.push_back(window["end_logits"][i]);
  }
  return logits;
}

// The spans of a case, as the reference lists them.
void check_answers(SpanFinder& finder, const std::string& text, const Json& expected, size_t top,
                   bool impossible, const Json& windows) {
  finder.start(text, top, 15, false);
  for (const Json& window : windows) {
    const Passage passage = passage_of(window, text);
    const std::vector<float> logits = pairs_of(window);
    const Status status = finder.add({logits.data(), 0, window["first"], passage.tokens.size(),
                                      passage.tokens.data(), passage.word_starts.data()});
    ASSERT_TRUE(status.ok()) << last_error();
  }
  std::vector<mote_span> spans(top);
  spans.resize(finder.finish(spans.data()));
  if (impossible) {  // stands behind those of the same score
    mote_span none{};
    none.score = finder.no_answer_score();
    size_t at = 0;
    while (at < spans.size() && spans[at].score >= none.score) ++at;
    spans.insert(spans.begin() + static_cast<ptrdiff_t>(at), none);
    if (spans.size() > top) spans.pop_back();
  }
  ASSERT_EQ(spans.size(), expected.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_NEAR(spans[i].score, expected[i]["score"].get<float>(), 2e-6) << i;
    EXPECT_EQ(spans[i].character_start, expected[i]["start"].get<size_t>()) << i;
    EXPECT_EQ(spans[i].character_end, expected[i]["end"].get<size_t>()) << i;
    EXPECT_EQ(text.substr(spans[i].byte_start, spans[i].byte_end - spans[i].byte_start),
              expected[i]["answer"].get<std::string>());
  }
}

TEST(HeadsGolden, Answers) {
  Planned<SpanFinder> finder(512u, 4096u);
  size_t lists = 0;
  for (const Json& line : lines_of("qa_heads.jsonl")) {
    const std::string text = line["context"];
    for (const char* name : {"case_384", "case_64"}) {
      const Json& given = line[name];
      if (given.contains("error")) continue;
      for (const size_t top : {1, 3})
        for (const bool impossible : {false, true}) {
          const std::string key =
              "top_" + std::to_string(top) + "_impossible_" + (impossible ? "true" : "false");
          SCOPED_TRACE(line["id"].get<std::string>() + " " + name + " " + key);
          check_answers(finder.get(), text, given[key], top, impossible, given["windows"]);
          ++lists;
        }
    }
  }
  EXPECT_GE(lists, 64u);
}

const std::vector<std::string_view> kLabels = {"O",        "B-PER",  "I-PER", "B-LOC",
                                               "I-LOC",    "B-ORG",  "I-ORG", "B-DEVICE",
                                               "I-DEVICE", "B-TIME", "I-TIME"};

struct Strategy {
  const char* name;
  uint32_t grouping;
};
constexpr Strategy kStrategies[] = {{"none", MOTE_GROUP_NONE},
                                    {"simple", MOTE_GROUP_ENTITY},
                                    {"first", MOTE_GROUP_FIRST},
                                    {"max", MOTE_GROUP_MAX},
                                    {"average", MOTE_GROUP_AVERAGE}};

TEST(HeadsGolden, Entities) {
  Planned<EntityFinder> finder(kLabels.size(), 512u);
  size_t found = 0;
  for (const Json& line : lines_of("ner_heads.jsonl")) {
    const std::string text = line["text"];
    if (line["tokens"].get<size_t>() > line["pieces"].size()) continue;  // cut
    const std::vector<mote_token> all = tokens_at(text, line["offsets"]);
    const std::vector<mote_token> tokens(all.begin() + 1, all.end() - 1);  // no frame
    std::vector<uint8_t> subwords;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string piece = line["pieces"][i + 1];
      subwords.push_back(
          is_subword(text, tokens[i], true, count_code_points(piece), piece == "[UNK]"));
    }
    std::vector<float> logits;
    for (const Json& row : line["logits"])
      for (const float value : row) logits.push_back(value);
    for (const Strategy& strategy : kStrategies) {
      SCOPED_TRACE(line["id"].get<std::string>() + " " + strategy.name);
      std::vector<mote_span> spans(128);
      finder.get().start(text, {kLabels.data(), kLabels.size()}, strategy.grouping, 1, spans.data(),
                         spans.size());
      const Status status = finder.get().add(
          {logits.data() + kLabels.size(), tokens.data(), subwords.data(), tokens.size()});
      ASSERT_TRUE(status.ok()) << last_error();
      spans.resize(finder.get().finish());
      const Json& expected = line[strategy.name];
      ASSERT_EQ(spans.size(), expected.size());
      for (size_t i = 0; i < spans.size(); ++i, ++found) {
        const char* key = strategy.grouping == MOTE_GROUP_NONE ? "entity" : "entity_group";
        EXPECT_EQ(std::string(spans[i].name.data, spans[i].name.length),
                  expected[i][key].get<std::string>());
        EXPECT_NEAR(spans[i].score, expected[i]["score"].get<float>(), 2e-6);
        EXPECT_EQ(spans[i].character_start, expected[i]["start"].get<size_t>());
        EXPECT_EQ(spans[i].character_end, expected[i]["end"].get<size_t>());
      }
    }
  }
  EXPECT_GE(found, 100u);
}

}  // namespace
}  // namespace mote::test
