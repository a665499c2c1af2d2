// Token ids of other programs' tokenizers, exactly.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/utf8.h"
#include "tests/models/tokenizer_support.h"

namespace mote::test {
namespace {

using Ids = std::vector<int32_t>;

// NAME.gguf with NAME.gguf.inp and .out: texts, and the ids of the upstream tokenizers, no special
// tokens.
void check_vocabulary_file(const std::string& path) {
  TokenizerFile opened(read_file(path));
  ASSERT_TRUE(opened.open().ok()) << last_error();
  const std::string separator = "\n__ggml_vocab_test__\n";
  const std::string texts = read_file(path + ".inp");
  const std::vector<std::string> lines = read_lines(path + ".out");
  size_t at = 0, cases = 0;
  for (const std::string& line : lines) {
    const size_t end = texts.find(separator, at);
    ASSERT_NE(end, std::string::npos);
    const std::string text = texts.substr(at, end - at);
    at = end + separator.size();
    Ids expected;
    std::istringstream numbers(line);
    for (int32_t id; numbers >> id;) expected.push_back(id);
    EXPECT_EQ(encode_ids(opened.tokenizer, text, 0), expected) << "text: " << text;
    ++cases;
  }
  EXPECT_GE(cases, 40u);
}

TEST(TokenizerGolden, Gpt2Vocabulary) { check_vocabulary_file(data_file("ggml-vocab-gpt-2.gguf")); }

class SharedVocabulary : public testing::TestWithParam<const char*> {};
TEST_P(SharedVocabulary, GivesUpstreamIds) {
  const std::string path = shared_file(std::string("ggml-vocab-") + GetParam() + ".gguf");
  if (path.empty()) GTEST_SKIP() << "MOTE_SHARED_DIR does not hold goldens/tokenizers";
  check_vocabulary_file(path);
}
INSTANTIATE_TEST_SUITE_P(TokenizerGolden, SharedVocabulary,
                         testing::Values("gpt-2", "llama-bpe", "qwen2", "llama-spm", "bert-bge"));

struct RealModel {
  const char* name;
  const char* file;
};
void PrintTo(const RealModel& model, std::ostream* out) { *out << model.name; }

class RealTokenizer : public testing::TestWithParam<RealModel> {
 protected:
  void SetUp() override {
    const std::string path = model_file(GetParam().file);
    if (path.empty()) GTEST_SKIP() << "MOTE_MODELS_DIR does not hold " << GetParam().file;
    opened_ = TokenizerFile::map(path);
    ASSERT_TRUE(opened_->open().ok()) << last_error();
  }
  // The lines of a golden file, from the tests' own data or the shared folder; skips without.
  std::vector<std::string> lines(const char* what) {
    const std::string name = std::string(GetParam().name) + "." + what;
    std::string path = shared_file(name);
    if (path.empty() && std::ifstream(data_file(name))) path = data_file(name);
    return path.empty() ? std::vector<std::string>() : read_lines(path);
  }
  const Tokenizer& tokenizer() { return opened_->tokenizer; }

  void check_cases(const char* what) {
    const std::vector<std::string> cases = lines(what);
    if (cases.empty())
      GTEST_SKIP() << "MOTE_SHARED_DIR does not hold " << GetParam().name << "." << what;
    for (const std::string& line : cases) {
      const auto json = nlohmann::json::parse(line);
      SCOPED_TRACE(json["id"].get<std::string>());
      const std::string text = json["text"];
      const Ids ids = encode_ids(tokenizer(), text, MOTE_TOKENIZE_SPECIAL);
      EXPECT_EQ(ids, json["ids"].get<Ids>());
      EXPECT_EQ(encode_ids(tokenizer(), text, 0), json["ids_plain"].get<Ids>());
      EXPECT_EQ(decode(tokenizer(), ids, false), json["decoded"].get<std::string>());
      EXPECT_EQ(decode(tokenizer(), ids, true), json["decoded_skip_special"].get<std::string>());
    }
  }

  std::unique_ptr<TokenizerFile> opened_;
};

TEST_P(RealTokenizer, Cases) { check_cases("cases.jsonl"); }
TEST_P(RealTokenizer, Fuzz) { check_cases("fuzz.jsonl"); }

TEST_P(RealTokenizer, InvalidBytes) {
  const std::vector<std::string> cases = lines("invalid.jsonl");
  if (cases.empty()) GTEST_SKIP() << "MOTE_SHARED_DIR does not hold the golden";
  for (const std::string& line : cases) {
    const auto json = nlohmann::json::parse(line);
    SCOPED_TRACE(json["id"].get<std::string>());
    EXPECT_EQ(encode_ids(tokenizer(), decode_base64(json["bytes_b64"].get<std::string>()), 0),
              json["ids_python_replace"].get<Ids>());
  }
}

// "a" + c + "b " + c for half of all code points.
class CodePointSweep : public RealTokenizer {};
TEST_P(CodePointSweep, AllExact) {
  const std::vector<std::string> cases = lines("codepoints.tsv");
  if (cases.empty()) GTEST_SKIP() << "MOTE_SHARED_DIR does not hold the golden";
  size_t wrong = 0;
  for (const std::string& line : cases) {
    std::istringstream in(line);
    uint32_t value = 0;
    in >> std::hex >> value >> std::dec;
    Ids expected;
    for (int32_t id; in >> id;) expected.push_back(id);
    char character[4];
    const std::string c(character, write_utf8(value, character));
    if (encode_ids(tokenizer(), "a" + c + "b " + c, 0) != expected && ++wrong <= 20)
      ADD_FAILURE() << "U+" << std::hex << value;
  }
  EXPECT_EQ(wrong, 0u);
}

constexpr RealModel kSmolLm2 = {"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"};
constexpr RealModel kGemma3 = {"gemma3", "gemma-3-270m-q4_k_m.gguf"};
INSTANTIATE_TEST_SUITE_P(TokenizerGolden, RealTokenizer, testing::Values(kSmolLm2, kGemma3),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(TokenizerGolden, CodePointSweep, testing::Values(kSmolLm2),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mote::test
