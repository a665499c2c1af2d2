// Byte-level BPE on small vocabularies: merging, special tokens, frames, bytes without a token,
// long texts.
#include <gtest/gtest.h>

#include <memory>

#include <algorithm>
#include <map>

#include "models/tokenizers/symbol_merger.h"
#include "tests/models/tokenizer_support.h"

namespace mote::test {
namespace {

using Ids = std::vector<int32_t>;

int32_t id(const Tokenizer& tokenizer, std::string_view text) {
  const int32_t found = tokenizer.find(text);
  EXPECT_GE(found, 0) << text;
  return found;
}

// The definition: merge the leftmost pair of the lowest rank until there is none.
std::vector<uint32_t> merge_slowly(std::vector<uint32_t> symbols,
                                   const std::map<std::pair<uint32_t, uint32_t>, uint32_t>& ranks,
                                   uint32_t first_merged) {
  while (true) {
    size_t best = 0;
    uint32_t best_rank = SymbolMerger::kNone;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found != ranks.end() && found->second < best_rank) best = i, best_rank = found->second;
    }
    if (best_rank == SymbolMerger::kNone) return symbols;
    symbols[best] = first_merged + best_rank;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

TEST(SymbolMerger, EqualsDefinition) {
  uint32_t random = 12345;
  const auto next = [&](uint32_t below) {
    random = random * 1664525 + 1013904223;
    return (random >> 16) % below;
  };
  constexpr uint32_t kLetters = 3, kMerges = 40;
  for (size_t count = 0; count < 700; count += 1 + count / 8) {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> ranks;
    for (uint32_t rank = 0; rank < kMerges; ++rank)
      ranks.emplace(std::pair{next(kLetters + rank), next(kLetters + rank)}, rank);
    std::vector<uint32_t> symbols(count);
    for (uint32_t& symbol : symbols) symbol = next(kLetters);
    Arena measure;
    SymbolMerger merger;
    merger.plan(measure, count);
    std::vector<uint8_t> block(measure.used() + 64);
    Arena arena(block.data() + (64 - reinterpret_cast<uintptr_t>(block.data()) % 64),
                measure.used());
    merger.plan(arena, count);
    for (size_t i = 0; i < count; ++i) merger.set(i, symbols[i]);
    merger.run(
        count,
        [&](size_t left, size_t right) {
          const auto found = ranks.find({merger.id(left), merger.id(right)});
          return found == ranks.end() ? SymbolMerger::kNone : found->second;
        },
        [&](size_t, size_t, uint32_t rank) { return kLetters + rank; });
    std::vector<uint32_t> merged;
    for (size_t at = 0; at < count; at += merger.length(at, count)) merged.push_back(merger.id(at));
    EXPECT_EQ(merged, merge_slowly(symbols, ranks, kLetters)) << count << " symbols";
  }
}

class BpeTest : public testing::Test {
 protected:
  const Tokenizer& open(const GgufBuilder& builder) {
    file_ = std::make_unique<TokenizerFile>(builder);
    EXPECT_TRUE(file_->open().ok()) << last_error();
    return file_->tokenizer;
  }
  std::unique_ptr<TokenizerFile> file_;
};

TEST_F(BpeTest, RanksDecide) {
  SmallVocabulary vocabulary;
  vocabulary.merge("b", "c").merge("a", "b").merge("a", "bc");
  const Tokenizer& t = open(vocabulary.builder("gpt-2"));
  EXPECT_EQ(encode_ids(t, "abc", 0), Ids{id(t, "abc")});
  EXPECT_EQ(encode_ids(t, "abab", 0), (Ids{id(t, "ab"), id(t, "ab")}));
}

TEST_F(BpeTest, LeftmostOfEqualRanksFirst) {
  SmallVocabulary vocabulary;
  vocabulary.merge("a", "a");
  const Tokenizer& t = open(vocabulary.builder("gpt-2"));
  EXPECT_EQ(encode_ids(t, "aaaaa", 0), (Ids{id(t, "aa"), id(t, "aa"), id(t, "a")}));
}

TEST_F(BpeTest, WholeWordsOnlyWhereThePatternSaysSo) {
  SmallVocabulary vocabulary;
  vocabulary.token("abc", TokenType::normal).token("xyz", TokenType::control);
  const Tokenizer& llama = open(vocabulary.builder("llama-bpe"));
  EXPECT_EQ(encode_ids(llama, "abc", 0), Ids{id(llama, "abc")});
  EXPECT_EQ(encode_ids(llama, "xyz", 0), (Ids{'x', 'y', 'z'}));  // never a control token
  const Tokenizer& qwen = open(vocabulary.builder("qwen2"));
  EXPECT_EQ(encode_ids(qwen, "abc", 0), (Ids{id(qwen, "a"), id(qwen, "b"), id(qwen, "c")}));
}

TEST_F(BpeTest, SpecialTokensOnlyWhereAskedFor) {
  SmallVocabulary vocabulary;
  vocabulary.token("<|x|>", TokenType::control).token("<|x|>>", TokenType::control);
  vocabulary.token("[user]", TokenType::user_defined).token("<|", TokenType::user_defined);
  const Tokenizer& t = open(vocabulary.builder("gpt-2"));
  const int32_t x = id(t, "<|x|>"), longer = id(t, "<|x|>>"), user = id(t, "[user]"),
                bar = id(t, "<|");
  const auto plain = [&](const char* text) { return encode_ids(t, text, 0); };
  const auto special = [&](const char* text) { return encode_ids(t, text, MOTE_TOKENIZE_SPECIAL); };
  EXPECT_EQ(special("a<|x|>b"), (Ids{id(t, "a"), x, id(t, "b")}));
  EXPECT_EQ(special("<|x|>>"), Ids{longer});
  EXPECT_EQ(special("<|x|"), (Ids{bar, id(t, "x"), id(t, "|")}));
  EXPECT_EQ(plain("<|x|>"), (Ids{bar, id(t, "x"), id(t, "|"), id(t, ">")}));
  EXPECT_EQ(plain("[user]"), Ids{user});
  EXPECT_EQ(decode(t, {x, user}, true), "[user]");
  EXPECT_EQ(decode(t, {x, user}, false), "<|x|>[user]");
}

TEST_F(BpeTest, NamedEndTokensAreControlTokens) {
  SmallVocabulary vocabulary;
  vocabulary.token("<|im_end|>", TokenType::user_defined).token("<eos>", TokenType::control);
  GgufBuilder builder = vocabulary.builder("gpt-2");
  builder.u32("tokenizer.ggml.eos_token_id", 257);
  const Tokenizer& t = open(builder);
  EXPECT_EQ(t.type(256), TokenType::control);
  EXPECT_TRUE(t.is_end(256));
  EXPECT_TRUE(t.is_end(257));
  EXPECT_FALSE(t.is_end(255));
  EXPECT_FALSE(t.is_end(-1));
  EXPECT_EQ(encode_ids(t, "<|im_end|>", 0).size(), 10u);
}

TEST_F(BpeTest, Frame) {
  SmallVocabulary vocabulary;
  vocabulary.token("<s>", TokenType::control).token("</s>", TokenType::control);
  GgufBuilder builder = vocabulary.builder("gpt-2");
  builder.u32("tokenizer.ggml.bos_token_id", 256);
  builder.u32("tokenizer.ggml.eos_token_id", 257);
  EXPECT_FALSE(open(builder).adds_bos());
  builder.text("tokenizer.ggml.pre", "llama-bpe");
  EXPECT_TRUE(open(builder).adds_bos());
  builder.boolean("tokenizer.ggml.add_bos_token", false);
  EXPECT_FALSE(open(builder).adds_bos());
  builder.boolean("tokenizer.ggml.add_bos_token", true);
  builder.boolean("tokenizer.ggml.add_eos_token", true);
  const Tokenizer& t = open(builder);
  const std::vector<mote_token> tokens = encode(t, "hi", MOTE_TOKENIZE_FRAME);
  ASSERT_EQ(tokens.size(), 4u);
  EXPECT_EQ(tokens[0].id, 256);
  EXPECT_EQ(tokens[0].byte_end, 0u);
  EXPECT_EQ(tokens[2].byte_end, 2u);
  EXPECT_EQ(tokens[3].id, 257);
  EXPECT_EQ(tokens[3].byte_start, 2u);
  EXPECT_EQ(encode_ids(t, "", MOTE_TOKENIZE_FRAME), (Ids{256, 257}));
  EXPECT_EQ(encode_ids(t, "", 0), Ids{});
}

TEST_F(BpeTest, BytesWithoutATokenAreLeftOut) {
  SmallVocabulary vocabulary;
  vocabulary.merge("!", "!");
  vocabulary.tokens['"'] = "no longer a byte";
  const Tokenizer& t = open(vocabulary.builder("gpt-2"));
  const std::vector<mote_token> tokens = encode(t, "\"!\"!\"", 0);
  ASSERT_EQ(tokens.size(), 1u);  // the two left merge
  EXPECT_EQ(tokens[0].id, id(t, "!!"));
  EXPECT_EQ(tokens[0].byte_start, 0u);
  EXPECT_EQ(tokens[0].byte_end, 5u);
  EXPECT_TRUE(encode(t, "\"\"", 0).empty());
}

TEST_F(BpeTest, BadBytesBecomeReplacementCharacters) {
  SmallVocabulary vocabulary;
  const Tokenizer& t = open(vocabulary.builder("gpt-2"));
  EXPECT_EQ(encode_ids(t, "\xff", 0), encode_ids(t, "\xef\xbf\xbd", 0));
  EXPECT_EQ(encode_ids(t, "\xe2\x82|\xc3", 0), encode_ids(t, "\xef\xbf\xbd|\xef\xbf\xbd", 0));
  EXPECT_EQ(decode(t, encode_ids(t, "a\xf0\x9f\x98", 0), false), "a\xef\xbf\xbd");
}

TEST_F(BpeTest, EveryByteComesBack) {
  SmallVocabulary vocabulary;
  const Tokenizer& t = open(vocabulary.builder("gpt-2"));
  std::string text;
  for (int c = 0; c < 128; ++c) text.push_back(static_cast<char>(c));
  text += "é漢😀";
  const Ids ids = encode_ids(t, text, 0);
  EXPECT_EQ(ids.size(), text.size());
  EXPECT_EQ(decode(t, ids, false), text);
}

TEST_F(BpeTest, TokensAddedAsPlainTextDecodeAsTheyAre) {
  SmallVocabulary vocabulary;
  vocabulary.token("漢 字", TokenType::normal).token("ĠA", TokenType::user_defined);
  const Tokenizer& t = open(vocabulary.builder("gpt-2"));
  EXPECT_EQ(decode(t, {256, 257}, false), "漢 字ĠA");
  EXPECT_EQ(decode(t, {-1, 258, 1 << 30}, false), "");
  char small[2];
  EXPECT_EQ(t.decode(256, false, false, small, sizeof small), 7u);  // the full length
}

TEST_F(BpeTest, CountsTokensThatDoNotFit) {
  SmallVocabulary vocabulary;
  const Tokenizer& t = open(vocabulary.builder("gpt-2"));
  std::vector<uint8_t> block(t.scratch_bytes(5) + 64);
  Arena scratch(block.data() + (64 - reinterpret_cast<uintptr_t>(block.data()) % 64),
                t.scratch_bytes(5));
  mote_token tokens[3] = {{}, {}, {-7, 8, 9}};
  size_t count = 0;
  EXPECT_EQ(t.encode("abcde", 0, scratch, tokens, 2, &count).code(), MOTE_ERROR_BUFFER);
  EXPECT_EQ(count, 5u);
  EXPECT_EQ(tokens[2].id, -7);
  EXPECT_EQ(t.encode("abcde", 0, scratch, nullptr, 0, &count).code(), MOTE_ERROR_BUFFER);
  EXPECT_EQ(count, 5u);
}

TEST_F(BpeTest, ScratchIsExactAndGrows) {
  SmallVocabulary vocabulary;
  const Tokenizer& t = open(vocabulary.builder("gpt-2"));
  size_t before = 0;
  for (size_t n = 0; n < 5000; n += 1 + n / 3) {
    const size_t bytes = t.scratch_bytes(n);
    EXPECT_GE(bytes, before);
    EXPECT_LE(bytes, 25 * n + 2048);
    before = bytes;
    if (n == 0) continue;
    std::vector<uint8_t> block(bytes + 64);
    uint8_t* base = block.data() + (64 - reinterpret_cast<uintptr_t>(block.data()) % 64);
    std::vector<mote_token> tokens(n);
    size_t count;
    const std::string text(n, 'x');
    EXPECT_TRUE(t.encode(text, 0, Arena(base, bytes), tokens.data(), n, &count).ok())
        << last_error();
    EXPECT_EQ(count, n);
    EXPECT_EQ(t.encode(text, 0, Arena(base, bytes - 64), tokens.data(), n, &count).code(),
              MOTE_ERROR_MEMORY);
  }
}

// Quadratic merging would take minutes on these.
TEST_F(BpeTest, LongWords) {
  SmallVocabulary vocabulary;
  std::string piece = "a";
  for (int i = 0; i < 6; ++i, piece += piece) vocabulary.merge(piece, piece);
  vocabulary.merge("a", "b").merge("ab", "ab").merge("Ġ", "Ġ").merge("ĠĠ", "ĠĠ");
  vocabulary.token("[user]", TokenType::user_defined);
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2", "default"}) {
    const size_t n = size_t{1} << (std::string_view(pre) == "llama-bpe" ? 20 : 17);
    const Tokenizer& t = open(vocabulary.builder(pre));
    EXPECT_EQ(encode_ids(t, std::string(n, 'a'), 0), Ids(n / 64, id(t, std::string(64, 'a'))))
        << pre;
    std::string text;
    while (text.size() < n) text += "ab";
    EXPECT_EQ(encode_ids(t, text, 0), Ids(n / 4, id(t, "abab"))) << pre;
    EXPECT_EQ(encode_ids(t, std::string(n, ' '), 0), Ids(n / 4, id(t, "ĠĠĠĠ"))) << pre;
    EXPECT_EQ(encode_ids(t, std::string(n, '\xff'), 0).size(), 3 * n) << pre;
    EXPECT_EQ(encode_ids(t, std::string(n, '['), 0).size(), n) << pre;
    EXPECT_EQ(encode_ids(t, std::string(n, '1'), 0).size(), n) << pre;
    EXPECT_EQ(encode_ids(t, std::string(n, '\n'), 0).size(), n) << pre;
  }
}

// White space that belongs to a token is part of it, for a generator too; where names of control
// tokens are looked for, the name alone counts, so that it can be told from a text's.
TEST_F(BpeTest, WhiteSpaceOfSpecialTokens) {
  SmallVocabulary vocabulary;
  vocabulary.token("<m>", TokenType::control)
      .token("<r>", TokenType::control)
      .token("Foo", TokenType::user_defined)
      .token("  ", TokenType::user_defined);
  GgufBuilder builder = vocabulary.builder("gpt-2");
  builder.array<int32_t>("mote.added_tokens.lstrip", GgufType::i32, {256});
  builder.array<int32_t>("mote.added_tokens.rstrip", GgufType::i32, {257});
  builder.array<int32_t>("mote.added_tokens.single_word", GgufType::i32, {258});
  builder.array<int32_t>("mote.added_tokens.late", GgufType::i32, {258, 259});
  const Tokenizer& t = open(builder);
  const auto tokens = encode(t, "a   <m>\t<r> \n b", MOTE_TOKENIZE_SPECIAL);
  ASSERT_EQ(tokens.size(), 5u);
  EXPECT_EQ(tokens[1].id, 256);
  EXPECT_EQ(tokens[1].byte_start, 1u);
  EXPECT_EQ(tokens[3].id, 257);
  EXPECT_EQ(tokens[3].byte_end, 14u);
  size_t end = 0;
  EXPECT_EQ(t.find_control("a   <m>\t", 0, &end), 4u);
  EXPECT_EQ(end, 7u);
  const uint32_t place = 4;
  size_t count = 0;
  mote_token out[16];
  std::vector<uint8_t> scratch(t.scratch_bytes(16) + 64);
  void* base = scratch.data();
  size_t room = scratch.size();
  std::align(64, t.scratch_bytes(16), base, room);
  ASSERT_TRUE(
      t.encode("a   <m>", MOTE_TOKENIZE_SPECIAL, Arena(base, room), out, 16, &count, {&place, 1})
          .ok());
  for (size_t i = 0; i < count; ++i) EXPECT_NE(out[i].id, 256);
  // One word alone, and the later tokens in what the others leave.
  EXPECT_EQ(encode_ids(t, "Foo", 0), Ids{258});
  EXPECT_EQ(encode_ids(t, "Foos", 0).size(), 4u);
  EXPECT_EQ(encode_ids(t, "  <m>", 0).front(), 259);
  EXPECT_EQ(encode_ids(t, "  <m>", MOTE_TOKENIZE_SPECIAL), Ids{256});
}

}  // namespace
}  // namespace mote::test
