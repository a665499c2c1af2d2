// SentencePiece BPE on a small vocabulary: scores, byte fallback, user-defined tokens, the space in
// front.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/models/tokenizer_support.h"

namespace mote::test {
namespace {

using Ids = std::vector<int32_t>;

constexpr char kSpace[] = "\xe2\x96\x81";

struct Vocabulary {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};
  std::vector<float> scores = {0, 0, 0};

  Vocabulary& add(const std::string& text, float score, TokenType type = TokenType::normal) {
    tokens.push_back(text);
    scores.push_back(score);
    types.push_back(static_cast<int32_t>(type));
    return *this;
  }
  Vocabulary& add_bytes() {
    for (int byte = 0; byte < 256; ++byte) {
      char text[8];
      std::snprintf(text, sizeof text, "<0x%02X>", byte);
      add(text, 0, TokenType::byte);
    }
    return *this;
  }
  GgufBuilder builder() const {
    GgufBuilder builder;
    builder.text("tokenizer.ggml.model", "llama");
    builder.texts("tokenizer.ggml.tokens", tokens);
    builder.array("tokenizer.ggml.token_type", GgufType::i32, types);
    builder.array("tokenizer.ggml.scores", GgufType::f32, scores);
    return builder;
  }
};

class SentencePieceTest : public testing::Test {
 protected:
  const Tokenizer& open(const GgufBuilder& builder) {
    file_ = std::make_unique<TokenizerFile>(builder);
    EXPECT_TRUE(file_->open().ok()) << last_error();
    return file_->tokenizer;
  }
  // Stored texts of the tokens.
  std::vector<std::string> pieces(std::string_view text, uint32_t flags = 0) {
    std::vector<std::string> out;
    for (int32_t id : encode_ids(file_->tokenizer, text, flags))
      out.emplace_back(file_->tokenizer.stored_text(id));
    return out;
  }
  std::unique_ptr<TokenizerFile> file_;
};

using Pieces = std::vector<std::string>;
const std::string kSpaceA = std::string(kSpace) + "a";

TEST_F(SentencePieceTest, HighestScoreFirstThenLeftmost) {
  Vocabulary v;
  v.add("a", -9).add("b", -9).add("ab", -2).add("bb", -1).add("aa", -3).add(kSpace, -9);
  GgufBuilder builder = v.builder();
  builder.boolean("tokenizer.ggml.add_space_prefix", false);
  open(builder);
  EXPECT_EQ(pieces("abb"), (Pieces{"a", "bb"}));
  EXPECT_EQ(pieces("aaa"), (Pieces{"aa", "a"}));
  EXPECT_EQ(pieces("aab"), (Pieces{"a", "ab"}));
}

TEST_F(SentencePieceTest, SpaceInFront) {
  Vocabulary v;
  v.add("a", -9).add(kSpace, -9).add(kSpaceA, -1);
  GgufBuilder builder = v.builder();
  const Tokenizer& t = open(builder);
  EXPECT_TRUE(t.adds_bos());
  EXPECT_EQ(pieces("a a", MOTE_TOKENIZE_FRAME), (Pieces{"<s>", kSpaceA, kSpaceA}));
  EXPECT_EQ(pieces(" a"), (Pieces{kSpace, kSpaceA}));
  EXPECT_EQ(pieces("</s>a", MOTE_TOKENIZE_SPECIAL), (Pieces{"</s>", kSpaceA}));
  EXPECT_EQ(pieces(""), Pieces{});
  EXPECT_EQ(decode(t, encode_ids(t, "a a", 0), false), "a a");
  builder.boolean("tokenizer.ggml.add_space_prefix", false);
  const Tokenizer& without = open(builder);
  EXPECT_EQ(pieces("a a"), (Pieces{"a", kSpaceA}));
  EXPECT_EQ(decode(without, encode_ids(without, " a", 0), false), " a");
}

TEST_F(SentencePieceTest, BytesOrUnknown) {
  Vocabulary v;
  v.add("a", -9).add(kSpace, -9);
  GgufBuilder builder = v.builder();
  builder.boolean("tokenizer.ggml.add_space_prefix", false);
  open(builder);
  EXPECT_EQ(pieces("aé"), (Pieces{"a", "<unk>"}));
  v.add_bytes();
  builder = v.builder();
  builder.boolean("tokenizer.ggml.add_space_prefix", false);
  const Tokenizer& t = open(builder);
  EXPECT_EQ(pieces("aé"), (Pieces{"a", "<0xC3>", "<0xA9>"}));
  EXPECT_EQ(pieces("\xff"), (Pieces{"<0xEF>", "<0xBF>", "<0xBD>"}));
  EXPECT_EQ(pieces("<0xC3>"), (Pieces{"<0x3C>", "<0x30>", "<0x78>", "<0x43>", "<0x33>", "<0x3E>"}));
  EXPECT_EQ(decode(t, encode_ids(t, "aé\n", 0), false), "aé\n");
}

TEST_F(SentencePieceTest, UserDefinedBeforeMerging) {
  Vocabulary v;
  v.add("a", -9).add("b", -9).add(kSpace, -9).add(std::string(kSpace) + "b", -1);
  v.add("  ", -1000, TokenType::user_defined).add("ab", 5, TokenType::user_defined);
  v.add("a  a", 0, TokenType::user_defined);
  GgufBuilder builder = v.builder();
  builder.boolean("tokenizer.ggml.add_space_prefix", false);
  open(builder);
  EXPECT_EQ(pieces("b  b"), (Pieces{"b", "  ", "b"}));
  EXPECT_EQ(pieces("b b"), (Pieces{"b", std::string(kSpace) + "b"}));
  EXPECT_EQ(pieces("aab"), (Pieces{"a", "ab"}));
  EXPECT_EQ(pieces("a  ab"), (Pieces{"a  a", "b"}));
  const std::string marks = std::string("b") + kSpace + " " + "b";  // U+2581 is the same as a space
  EXPECT_EQ(pieces(marks), (Pieces{"b", "  ", "b"}));
}

TEST_F(SentencePieceTest, UserDefinedStoredWithMarks) {
  Vocabulary v;
  v.add("a", -9).add(kSpace, -9).add(std::string(kSpace) + kSpace, 0, TokenType::user_defined);
  GgufBuilder builder = v.builder();
  builder.boolean("tokenizer.ggml.add_space_prefix", false);
  open(builder);
  EXPECT_EQ(pieces("a  a"), (Pieces{"a", std::string(kSpace) + kSpace, "a"}));
}

TEST_F(SentencePieceTest, ExtraSpacesRemoved) {
  Vocabulary v;
  v.add("a", -9).add(kSpace, -9).add(kSpaceA, -1);
  GgufBuilder builder = v.builder();
  builder.boolean("tokenizer.ggml.remove_extra_whitespaces", true);
  open(builder);
  EXPECT_EQ(pieces("  a   a  "), (Pieces{kSpaceA, kSpaceA}));
  EXPECT_EQ(pieces("   "), Pieces{});
}

TEST_F(SentencePieceTest, LongTexts) {
  Vocabulary v;
  std::string piece = "a";
  v.add("a", -20).add(kSpace, -20);
  for (int i = 1; i <= 5; ++i) v.add(piece += piece, static_cast<float>(-i));
  v.add_bytes();
  GgufBuilder builder = v.builder();
  builder.boolean("tokenizer.ggml.add_space_prefix", false);
  const Tokenizer& t = open(builder);
  const size_t n = size_t{1} << 20;
  EXPECT_EQ(encode_ids(t, std::string(n, 'a'), 0), Ids(n / 32, t.find(piece)));
  EXPECT_EQ(encode_ids(t, std::string(n, '\xff'), 0).size(), 3 * n);
  EXPECT_LE(t.scratch_bytes(n), 20 * n);
}

}  // namespace
}  // namespace mote::test
