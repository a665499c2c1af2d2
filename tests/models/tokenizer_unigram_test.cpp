// Unigram on small vocabularies: best paths, unknown characters, spaces, the character map.
#include <gtest/gtest.h>

#include "models/tokenizers/charsmap.h"
#include "models/tokenizers/unigram.h"
#include "tests/models/tokenizer_support.h"

namespace mote::test {
namespace {

using Pieces = std::vector<std::string>;

const std::string kMark = "\xe2\x96\x81";

// A double-array trie with one key of up to two ASCII letters each: children of the root lie at 256
// on, of a key's first letter at 512 on, and so forth; no two share a block.
class TrieBuilder {
 public:
  TrieBuilder() : units_(256 * 8, 0) { units_[0] = offset(256); }
  void add(const std::string& key, const std::string& value) {
    size_t node = 256;
    for (size_t i = 0; i < key.size(); ++i) {
      const uint8_t label = static_cast<uint8_t>(key[i]);
      const size_t at = node ^ label;
      if (!units_[at]) {
        const size_t children = 256 * next_++;
        units_[at] = label | offset(at ^ children);
      }
      if (i + 1 == key.size()) {
        units_[at] |= 1u << 8;
        units_[child(at)] = 0x80000000u | static_cast<uint32_t>(texts_.size());
      }
      node = child(at);
    }
    texts_ += value + '\0';
  }
  std::vector<uint8_t> bytes() const {
    const uint32_t size = static_cast<uint32_t>(units_.size() * 4);
    std::vector<uint8_t> out(4 + size);
    std::memcpy(out.data(), &size, 4);
    std::memcpy(out.data() + 4, units_.data(), size);
    out.insert(out.end(), texts_.begin(), texts_.end());
    return out;
  }
  uint32_t& unit(size_t at) { return units_[at]; }

 private:
  static uint32_t offset(size_t value) { return static_cast<uint32_t>(value) << 10; }
  size_t child(size_t at) const { return at ^ units_[at] >> 10; }

  std::vector<uint32_t> units_;
  std::string texts_;
  size_t next_ = 2;
};

class UnigramTest : public testing::Test {
 public:
  UnigramTest() {
    for (const char* token : {"<unk>", "<s>", "</s>"}) add(token, 0);
  }
  UnigramTest& add(const std::string& token, float score) {
    tokens_.push_back(token);
    scores_.push_back(score);
    return *this;
  }
  GgufBuilder builder() const {
    GgufBuilder builder;
    std::vector<int32_t> types(tokens_.size(), 1);
    types[0] = 2, types[1] = types[2] = 3;
    builder.text("tokenizer.ggml.model", "t5");
    builder.texts("tokenizer.ggml.tokens", tokens_);
    builder.array("tokenizer.ggml.token_type", GgufType::i32, types);
    builder.array("tokenizer.ggml.scores", GgufType::f32, scores_);
    builder.u32("tokenizer.ggml.bos_token_id", 1);
    builder.u32("tokenizer.ggml.eos_token_id", 2);
    builder.u32("tokenizer.ggml.unknown_token_id", 0);
    return builder;
  }
  Pieces pieces(std::string_view text, const GgufBuilder& builder) {
    file_ = std::make_unique<TokenizerFile>(builder);
    EXPECT_TRUE(file_->open().ok()) << last_error();
    Pieces out;
    tokens_found_ = encode(file_->tokenizer, text, 0);
    for (const mote_token& token : tokens_found_)
      out.emplace_back(file_->tokenizer.stored_text(token.id));
    return out;
  }
  Pieces pieces(std::string_view text) { return pieces(text, builder()); }

  Pieces tokens_;
  std::vector<float> scores_;
  std::vector<mote_token> tokens_found_;
  std::unique_ptr<TokenizerFile> file_;
};

TEST_F(UnigramTest, BestSumOfScores) {
  add(kMark, -2).add("a", -2).add("b", -2).add("ab", -5).add(kMark + "a", -3).add("ba", -3);
  EXPECT_EQ(pieces("ab"), (Pieces{kMark + "a", "b"}));           // -5 against -6 and -7
  EXPECT_EQ(pieces("aba"), (Pieces{kMark + "a", "ba"}));         // -6
  EXPECT_EQ(pieces("a a"), (Pieces{kMark + "a", kMark + "a"}));  // words stand alone
}

// Of equal sums the way found first stays: the one over the earlier last piece.
TEST_F(UnigramTest, EqualSums) {
  add(kMark, -1).add("a", -1).add("aa", -2);
  EXPECT_EQ(pieces("aaa"), (Pieces{kMark, "a", "aa"}));
}

TEST_F(UnigramTest, UnknownCharactersAreOneToken) {
  add(kMark, -1).add("a", -1);
  EXPECT_EQ(pieces("axyza"), (Pieces{kMark, "a", "<unk>", "a"}));
  EXPECT_EQ(tokens_found_[2].byte_start, 1u);
  EXPECT_EQ(tokens_found_[2].byte_end, 4u);
  EXPECT_EQ(pieces("<s>").back(), "<unk>");  // a control token's name is text
}

TEST_F(UnigramTest, OffsetsAreThoseOfTheTextAsGiven) {
  add(kMark, -9).add(kMark + "a", -1).add("a", -1);
  pieces(" a\n a");
  ASSERT_EQ(tokens_found_.size(), 2u);
  EXPECT_EQ(tokens_found_[0].byte_start, 1u);
  EXPECT_EQ(tokens_found_[1].byte_start, 4u);
  EXPECT_EQ(tokens_found_[1].byte_end, 5u);
}

TEST_F(UnigramTest, WithoutAPrefix) {
  add(kMark, -1).add("a", -1);
  GgufBuilder none = builder();
  none.boolean("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(pieces("a a", none), (Pieces{"a", "a"}));
  none.boolean("mote.unigram.split_white_space", false);
  EXPECT_EQ(pieces("a a", none), (Pieces{"a", kMark, "a"}));
}

TEST_F(UnigramTest, TheMapReplacesTheShortestKey) {
  add(kMark, -1).add("x", -1).add("y", -1).add("c", -1);
  TrieBuilder trie;
  trie.add("a", "x");
  trie.add("b", "yyy");
  trie.add("cc", "x");
  trie.add("d", "");
  GgufBuilder mapped = builder();
  mapped.array("tokenizer.ggml.precompiled_charsmap", GgufType::u8, trie.bytes());
  EXPECT_EQ(pieces("ab", mapped), (Pieces{kMark, "x", "y", "y", "y"}));
  EXPECT_EQ(tokens_found_[4].byte_start, 1u);
  EXPECT_EQ(tokens_found_[4].byte_end, 2u);
  EXPECT_EQ(pieces("cc", mapped), (Pieces{kMark, "c", "c"}));  // two graphemes
  EXPECT_EQ(pieces("adc", mapped), (Pieces{kMark, "x", "c"}));
  EXPECT_EQ(tokens_found_[2].byte_start, 2u);
  const Tokenizer& tokenizer = file_->tokenizer;
  EXPECT_GT(tokenizer.scratch_bytes(1000), 3 * 8 * 2000u);  // "b" grows to three
  EXPECT_EQ(encode_ids(tokenizer, std::string(5000, 'b'), 0).size(), 15001u);
}

TEST_F(UnigramTest, DamagedMapsAreNamed) {
  add(kMark, -1);
  TrieBuilder good;
  good.add("a", "x");
  const auto refuse = [&](std::vector<uint8_t> bytes, const char* what) {
    GgufBuilder builder = this->builder();
    builder.array("tokenizer.ggml.precompiled_charsmap", GgufType::u8, bytes);
    TokenizerFile file(builder);
    EXPECT_EQ(file.open().code(), MOTE_ERROR_BAD_FILE);
    EXPECT_NE(std::string(last_error()).find("precompiled_charsmap"), std::string::npos);
    EXPECT_NE(std::string(last_error()).find(what), std::string::npos) << last_error();
  };
  refuse({1, 2}, "found the end");
  refuse({0, 0, 0, 0}, "found 0 bytes");
  refuse({8, 0, 0, 0, 0, 0, 0, 0}, "found 8 bytes");
  TrieBuilder cycle = good;
  for (uint32_t label = 0; label < 256; ++label)
    cycle.unit(256 ^ label) = label | label << 10;  // whose children are those of the root
  refuse(cycle.bytes(), "more nodes");
  TrieBuilder far = good;
  far.unit(0) = 0xfffffc00u;
  refuse(far.bytes(), "no root");
  TrieBuilder behind = good;
  behind.unit(512) = 0xffffffffu;
  refuse(behind.bytes(), "behind the end");
  TrieBuilder bad;
  bad.add("a", "\xff");
  refuse(bad.bytes(), "UTF-8");
}

TEST_F(UnigramTest, StepsOfNormalization) {
  add(kMark, -1).add("a", -1).add("\xc3\xa9", -1).add("\"", -1);
  GgufBuilder steps = builder();
  steps.texts("mote.normalizer", {"replace", "``", "\"", "nfc", "lowercase"});
  EXPECT_EQ(pieces("A``e\xcc\x81", steps), (Pieces{kMark, "a", "\"", "\xc3\xa9"}));
  // What is composed comes from its first character, as upstream has it.
  EXPECT_EQ(tokens_found_[3].byte_start, 3u);
  EXPECT_EQ(tokens_found_[3].byte_end, 4u);
  for (const std::vector<std::string>& wrong :
       {Pieces{"nfq"}, Pieces{"replace", "a"}, Pieces{"replace", "", "a"}, Pieces{"precompiled"},
        Pieces(20, "nfc")}) {
    GgufBuilder builder = this->builder();
    builder.texts("mote.normalizer", wrong);
    TokenizerFile file(builder);
    EXPECT_FALSE(file.open().ok());
    EXPECT_NE(std::string(last_error()).find("mote.normalizer"), std::string::npos);
  }
}

// Many marks that stand in the wrong order, many that grow, many words: time and room stay linear.
TEST_F(UnigramTest, HostileTexts) {
  add(kMark, -1).add("a", -1);
  GgufBuilder steps = builder();
  steps.texts("mote.normalizer", {"nfc"});
  std::string marks = "a", grow, words;
  for (int i = 0; i < 50000; ++i) {
    marks += i % 2 ? "\xcc\x81" : "\xcc\x96";
    grow += "\xce\x90";
    words += " a";
  }
  EXPECT_EQ(pieces(marks, steps).size(), 2u);
  EXPECT_EQ(pieces(grow, steps).size(), 2u);
  EXPECT_EQ(pieces(words, steps).size(), 100000u);
  steps.texts("mote.normalizer", {"nfkd"});
  std::string ligatures;
  for (int i = 0; i < 10000; ++i) ligatures += "\xef\xb7\xba";
  EXPECT_GT(pieces(ligatures, steps).size(), 10000u);
  // Steps that multiply what the one before made give up instead of writing beyond the room.
  steps.texts("mote.normalizer", {"replace", "a", "aaaa", "replace", "a", "aaaa"});
  file_ = std::make_unique<TokenizerFile>(steps);
  ASSERT_TRUE(file_->open().ok()) << last_error();
  const std::string text(1000, 'a');
  std::vector<mote_token> tokens(64);
  const size_t bytes = file_->tokenizer.scratch_bytes(text.size());
  void* scratch = std::aligned_alloc(64, bytes);
  size_t count = 0;
  EXPECT_EQ(
      file_->tokenizer.encode(text, 0, Arena(scratch, bytes), tokens.data(), tokens.size(), &count)
          .code(),
      MOTE_ERROR_CAPACITY);
  std::free(scratch);
}

TEST_F(UnigramTest, Decoding) {
  add(kMark + "a", -1).add("b", -1).add(kMark, -3);
  pieces("ab ab");
  std::vector<int32_t> ids = {1};
  for (const mote_token& token : tokens_found_) ids.push_back(token.id);
  ids.push_back(2);
  EXPECT_EQ(decode(file_->tokenizer, ids, true), "ab ab");
}

}  // namespace
}  // namespace mote::test
