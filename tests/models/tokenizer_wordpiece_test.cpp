// WordPiece on a small vocabulary: flags, words, marks, bad and long texts.
#include <gtest/gtest.h>

#include "models/tokenizers/wordpiece.h"
#include "tests/models/tokenizer_support.h"

namespace mote::test {
namespace {

using Pieces = std::vector<std::string>;

const std::string kMark = "\xe2\x96\x81";

class WordPieceTest : public testing::Test {
 protected:
  WordPieceTest() {
    tokens_ = {"[UNK]",     "[CLS]",
               "[SEP]",     kMark + "un",
               "aff",       "able",
               kMark + "a", kMark + "!",
               kMark + "b", "b",
               "a",         kMark + "\xe4\xb8\xad",
               kMark + "A", kMark + "\xc3\xa9",
               kMark + "e", kMark + "'",
               kMark + "s", kMark + "i",
               kMark + ",", "!"};
    types_.assign(tokens_.size(), 1);
    types_[0] = 2, types_[1] = types_[2] = 3;
  }
  GgufBuilder builder() const {
    GgufBuilder builder;
    builder.text("tokenizer.ggml.model", "bert");
    builder.texts("tokenizer.ggml.tokens", tokens_);
    builder.array("tokenizer.ggml.token_type", GgufType::i32, types_);
    builder.u32("tokenizer.ggml.unknown_token_id", 0);
    builder.u32("tokenizer.ggml.cls_token_id", 1);
    builder.u32("tokenizer.ggml.seperator_token_id", 2);
    builder.boolean("tokenizer.ggml.normalizer.lowercase", lowercase_);
    if (set_strip_) builder.boolean("tokenizer.ggml.normalizer.strip_accents", strip_);
    builder.boolean("mote.wordpiece.clean_text", clean_);
    builder.boolean("mote.wordpiece.chinese_spaces", chinese_);
    builder.u32("mote.wordpiece.max_characters", max_characters_);
    return builder;
  }
  const Tokenizer& open() {
    file_ = std::make_unique<TokenizerFile>(builder());
    EXPECT_TRUE(file_->open().ok()) << last_error();
    return file_->tokenizer;
  }
  Pieces pieces(std::string_view text, uint32_t flags = 0) {
    Pieces out;
    for (int32_t id : encode_ids(open(), text, flags))
      out.emplace_back(file_->tokenizer.stored_text(id));
    return out;
  }

  Pieces tokens_;
  std::vector<int32_t> types_;
  bool lowercase_ = true, set_strip_ = false, strip_ = true, clean_ = true, chinese_ = true;
  uint32_t max_characters_ = 100;
  std::unique_ptr<TokenizerFile> file_;
};

TEST_F(WordPieceTest, LongestPiecesFromTheLeft) {
  EXPECT_EQ(pieces("unaffable"), (Pieces{kMark + "un", "aff", "able"}));
  EXPECT_EQ(pieces("UNaffable!"), (Pieces{kMark + "un", "aff", "able", kMark + "!"}));
  EXPECT_EQ(pieces("affable"), (Pieces{"[UNK]"}));     // nothing that begins a word fits
  EXPECT_EQ(pieces("unaffablex"), (Pieces{"[UNK]"}));  // all of the word or nothing
  EXPECT_EQ(pieces("un aff a"), (Pieces{kMark + "un", "[UNK]", kMark + "a"}));
}

TEST_F(WordPieceTest, FrameAndWords) {
  std::vector<uint8_t> starts;
  const auto tokens = encode(open(), "unaff b!", MOTE_TOKENIZE_FRAME, &starts);
  ASSERT_EQ(tokens.size(), 6u);
  EXPECT_EQ(tokens[0].id, 1);
  EXPECT_EQ(tokens[5].id, 2);
  EXPECT_EQ(tokens[0].byte_end, 0u);
  EXPECT_EQ(tokens[5].byte_end, 0u);
  EXPECT_EQ(starts, (std::vector<uint8_t>{1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(tokens[3].byte_start, 6u);
  EXPECT_EQ(tokens[3].byte_end, 7u);
  EXPECT_EQ(encode_ids(open(), "", MOTE_TOKENIZE_FRAME), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(encode_ids(open(), " \n ", MOTE_TOKENIZE_FRAME), (std::vector<int32_t>{1, 2}));
}

TEST_F(WordPieceTest, FlagsOfTheFile) {
  EXPECT_EQ(pieces("\xc3\x89"), (Pieces{kMark + "e"}));
  lowercase_ = false;  // accents follow
  EXPECT_EQ(pieces("\xc3\xa9 A"), (Pieces{kMark + "\xc3\xa9", kMark + "A"}));
  set_strip_ = true;
  EXPECT_EQ(pieces("\xc3\xa9"), (Pieces{kMark + "e"}));
  lowercase_ = true, strip_ = false;
  EXPECT_EQ(pieces("\xc3\x89"), (Pieces{kMark + "\xc3\xa9"}));
  EXPECT_EQ(pieces("\xe4\xb8\xad\xe4\xb8\xad").size(), 2u);
  chinese_ = false;
  EXPECT_EQ(pieces("\xe4\xb8\xad\xe4\xb8\xad"), (Pieces{"[UNK]"}));
  EXPECT_EQ(pieces("a\x0b"
                   "b\x01"
                   "b"),
            (Pieces{kMark + "a", "b", "b"}));
  clean_ = false;  // the tab of lines is white space, the other control a letter
  EXPECT_EQ(pieces("a\x0b"
                   "b\x01"
                   "b"),
            (Pieces{kMark + "a", "[UNK]"}));
  max_characters_ = 8;
  EXPECT_EQ(pieces("unaffabl unaffable"), (Pieces{"[UNK]", "[UNK]"}));
  max_characters_ = 9;
  EXPECT_EQ(pieces("unaffable").size(), 3u);
}

TEST_F(WordPieceTest, AMarkInTheTextBeginsNoWord) {
  EXPECT_EQ(pieces("a" + kMark + "b"), (Pieces{"[UNK]"}));
  EXPECT_EQ(pieces(kMark + "b"), (Pieces{"[UNK]"}));
}

TEST_F(WordPieceTest, SpecialTokensStayTextUnlessAsked) {
  EXPECT_EQ(pieces("a[SEP]b").size(), 5u);
  EXPECT_EQ(pieces("a[SEP]b", MOTE_TOKENIZE_SPECIAL), (Pieces{kMark + "a", "[SEP]", kMark + "b"}));
}

TEST_F(WordPieceTest, ZeroAndBadBytesAreNothing) {
  const std::string text(
      "a\0\xff\xfe"
      "b",
      5);
  const auto tokens = encode(open(), text, 0);
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0].byte_end, 1u);
  EXPECT_EQ(tokens[1].byte_start, 4u);
}

TEST_F(WordPieceTest, ScratchDoesNotGrowWithTheText) {
  const Tokenizer& tokenizer = open();
  EXPECT_EQ(tokenizer.scratch_bytes(1000), tokenizer.scratch_bytes(size_t{1} << 20));
  EXPECT_LT(tokenizer.scratch_bytes(size_t{1} << 20), 8192u);
}

TEST_F(WordPieceTest, LongWords) {
  const std::string longest(99, 'b');
  EXPECT_EQ(pieces("a" + longest).size(), 100u);
  EXPECT_EQ(pieces("ab" + longest), (Pieces{"[UNK]"}));
  const std::string word(size_t{1} << 20, 'b');
  const auto tokens = encode(open(), word + " a", 0);
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0].byte_end, word.size());
  std::string marks = "a";
  for (int i = 0; i < 200000; ++i) marks += "\xcc\x81";
  EXPECT_EQ(pieces(marks), (Pieces{kMark + "a"}));
}

TEST_F(WordPieceTest, DecodingCleansUpSpaces) {
  const Tokenizer& t = open();
  const auto ids = [&](std::string_view text) { return encode_ids(t, text, MOTE_TOKENIZE_FRAME); };
  EXPECT_EQ(decode(t, ids("unaffable b!"), false), "[CLS] unaffable b! [SEP]");
  EXPECT_EQ(decode(t, ids("unaffable b!"), true), "unaffable b!");
  EXPECT_EQ(decode(t, ids("a , b ' s"), true), "a, b ' s");
}

// Files of other converters lack the flags: the usual ones, and it is said.
TEST_F(WordPieceTest, MissingFlagsAreSaid) {
  GgufBuilder builder = this->builder();
  builder.remove_key("mote.wordpiece.clean_text");
  TokenizerFile file(builder);
  ASSERT_TRUE(file.open().ok()) << last_error();
  ASSERT_EQ(file.messages.size(), 1u);
  EXPECT_NE(file.messages[0].find("mote.wordpiece.clean_text"), std::string::npos);
}

}  // namespace
}  // namespace mote::test
