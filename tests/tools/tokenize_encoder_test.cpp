// tokenize and detokenize with an encoder's tokenizer: frames, offsets, windows over pairs.
#include <fstream>

#include "tests/tools/tool_support.h"

namespace mote::test {
namespace {

class TokenizeEncoder : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_TOOL(); }

  static std::string data(const char* name) {
    return std::string(MOTE_TEST_DATA) + "/tokenizers/" + name;
  }
  static std::vector<Json> golden(const char* name) {
    return ToolResult{0, read_all(data(name)), ""}.json_lines();
  }
  ToolResult run(Words words) {
    words.insert(words.begin() + 1, {"-m", data("minilm.gguf")});
    return run_tool(words);
  }
};

TEST_F(TokenizeEncoder, FrameOffsetsAndPieces) {
  const Json found = run({"tokenize", "--json", "H\xc3\xa9llo, tokenizing"}).json();
  EXPECT_EQ(found["ids"], Json({101, 7592, 1010, 19204, 6026, 102}));
  EXPECT_EQ(found["offsets"], Json({{0, 0}, {0, 5}, {5, 6}, {7, 12}, {12, 17}, {0, 0}}));
  EXPECT_EQ(run({"detokenize", "--ids", "101,7592,1010,19204,6026,102"}).out,
            "[CLS] hello, tokenizing [SEP]\n");
  EXPECT_EQ(run({"detokenize", "--skip-special", "--ids", "101,7592,1010,19204,6026,102"}).out,
            "hello, tokenizing\n");
}

// Every line of the golden, in the order of the file, an error in its place.
TEST_F(TokenizeEncoder, WindowsOverPairs) {
  const std::vector<Json> expected = golden("minilm.pairs.jsonl");
  const ToolResult result = run({"tokenize", "--special", "--jsonl", data("minilm.pairs.jsonl")});
  const std::vector<Json> found = result.json_lines();
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(result.status, 1);  // some lines fail
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(expected[i]["id"].dump());
    if (expected[i].contains("error")) {
      EXPECT_TRUE(found[i].contains("error"));
      continue;
    }
    ASSERT_EQ(found[i]["windows"].size(), expected[i]["windows"].size());
    for (size_t w = 0; w < found[i]["windows"].size(); ++w)
      for (const auto& [key, value] : found[i]["windows"][w].items())
        EXPECT_EQ(value, expected[i]["windows"][w][key]) << key;
  }
}

TEST_F(TokenizeEncoder, BadPairsAreErrorsInTheirPlace) {
  const TemporaryFolder folder;
  const std::string path = folder.path("pairs.jsonl");
  std::ofstream(path) << R"({"question": "a"})"
                      << "\n"
                      << R"({"question": "a", "context": 1})"
                      << "\n"
                      << R"({"question": "a", "context": "b", "max_length": -1})"
                      << "\n"
                      << R"({"question": "a", "context": "b", "max_length": 3})"
                      << "\n"
                      << R"({"question": "a", "context": "b"})"
                      << "\n";
  const ToolResult result = run({"tokenize", "--jsonl", path});
  EXPECT_EQ(result.status, 1);
  const std::vector<Json> lines = result.json_lines();
  ASSERT_EQ(lines.size(), 5u);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(lines[i].contains("error")) << lines[i];
  EXPECT_EQ(lines[4]["windows"][0]["ids"], Json({101, 1037, 102, 1038, 102}));
}

TEST_F(TokenizeEncoder, OneWordOfAMegabyte) {
  const TemporaryFolder folder;
  const std::string path = folder.path("long.txt");
  std::ofstream(path) << std::string(size_t{1} << 20, 'x');
  const Json found = run({"tokenize", "--json", "--file", path}).json();
  EXPECT_EQ(found["ids"], Json({101, 100, 102}));
  EXPECT_EQ(found["offsets"][1], Json({0, 1 << 20}));
}

}  // namespace
}  // namespace mote::test
