// Pre-tokenizers: what each pattern makes of a text, by hand from its regular expression.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/tokenizers/scanners.h"

namespace mote {
namespace {

using Pieces = std::vector<std::string>;

Pieces cut(Pattern pattern, std::string_view text) {
  Pieces pieces;
  std::string_view piece;
  for (PieceScanner scanner(pattern, text); scanner.next(&piece);) {
    EXPECT_FALSE(piece.empty());
    pieces.emplace_back(piece);
    if (pieces.size() > text.size()) break;
  }
  return pieces;
}

TEST(Scanner, EmptyTextHasNoPieces) {
  for (Pattern pattern : {Pattern::gpt2, Pattern::digits_gpt2, Pattern::llama3, Pattern::qwen2,
                          Pattern::punctuation_gpt2})
    EXPECT_EQ(cut(pattern, ""), Pieces{});
}

TEST(Scanner, Gpt2) {
  const Pattern p = Pattern::gpt2;
  EXPECT_EQ(cut(p, "Hello world"), (Pieces{"Hello", " world"}));
  EXPECT_EQ(cut(p, "a  b   "), (Pieces{"a", " ", " b", "   "}));
  EXPECT_EQ(cut(p, "a\t\tb"), (Pieces{"a", "\t", "\t", "b"}));
  EXPECT_EQ(cut(p, "a\n b"), (Pieces{"a", "\n", " b"}));
  EXPECT_EQ(cut(p, "it's we'll I'M"), (Pieces{"it", "'s", " we", "'ll", " I", "'", "M"}));
  EXPECT_EQ(cut(p, "''s"), (Pieces{"''", "s"}));
  EXPECT_EQ(cut(p, "x 123abc!? 4"), (Pieces{"x", " 123", "abc", "!?", " 4"}));
  EXPECT_EQ(cut(p, "a\xc2\xa0 b"), (Pieces{"a", "\xc2\xa0", " b"}));  // U+00A0 is white space
  EXPECT_EQ(cut(p, "e\xcc\x81x"), (Pieces{"e", "\xcc\x81", "x"}));    // a mark is no letter
}

TEST(Scanner, DigitsFirst) {
  const Pattern p = Pattern::digits_gpt2;
  EXPECT_EQ(cut(p, "x 123abc"), (Pieces{"x", " ", "1", "2", "3", "abc"}));
  EXPECT_EQ(cut(p, "a   1"), (Pieces{"a", "   ", "1"}));  // the part before the digit ends there
  EXPECT_EQ(cut(p, "\xc2\xbd\xe2\x85\xa7"), (Pieces{"\xc2\xbd", "\xe2\x85\xa7"}));  // ½ Ⅷ
}

TEST(Scanner, Llama3) {
  const Pattern p = Pattern::llama3;
  EXPECT_EQ(cut(p, "12345 6"), (Pieces{"123", "45", " ", "6"}));
  EXPECT_EQ(cut(p, "I'M x'Ll"), (Pieces{"I", "'M", " x", "'Ll"}));
  EXPECT_EQ(cut(p, "x'\xc5\xbfy"), (Pieces{"x", "'\xc5\xbf", "y"}));  // long s
  EXPECT_EQ(cut(p, "(abc)\n\nd"), (Pieces{"(abc", ")\n\n", "d"}));
  EXPECT_EQ(cut(p, "a \n \n  b"), (Pieces{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(cut(p, "\tx \t!"), (Pieces{"\tx", " ", "\t", "!"}));
  EXPECT_EQ(cut(p, " !\r\nx  "), (Pieces{" !\r\n", "x", "  "}));
}

TEST(Scanner, Qwen2CutsEveryDigit) {
  EXPECT_EQ(cut(Pattern::qwen2, "a123 (b"), (Pieces{"a", "1", "2", "3", " (", "b"}));
}

TEST(Scanner, PunctuationFirst) {
  const Pattern p = Pattern::punctuation_gpt2;
  EXPECT_EQ(cut(p, "it's a+b"), (Pieces{"it", "'", "s", " a", "+", "b"}));
  EXPECT_EQ(cut(p, "x 12345"), (Pieces{"x", " ", "123", "45"}));
  EXPECT_EQ(cut(p,
                "\xc2\xbd"
                "1234"),
            (Pieces{"\xc2\xbd", "123", "4"}));
  EXPECT_EQ(cut(p, "a !b"), (Pieces{"a", " ", "!", "b"}));
  EXPECT_EQ(cut(p, "`x"), (Pieces{"`", "x"}));  // ` is a symbol, not among the listed ones
}

TEST(Scanner, BadBytesAreCharacters) {
  EXPECT_EQ(cut(Pattern::gpt2, "ab\xff\xfe c"), (Pieces{"ab", "\xff\xfe", " c"}));
  EXPECT_EQ(cut(Pattern::llama3,
                "\xe2\x82"
                "ab"),
            (Pieces{"\xe2\x82"
                    "ab"}));
  EXPECT_EQ(cut(Pattern::gpt2, std::string_view("a\0b", 3)),
            (Pieces{"a", std::string(1, '\0'), "b"}));
}

TEST(Scanner, KnowsNames) {
  const struct {
    const char* name;
    Pattern pattern;
  } expected[] = {{"gpt-2", Pattern::gpt2},       {"smollm", Pattern::digits_gpt2},
                  {"llama-bpe", Pattern::llama3}, {"qwen2", Pattern::qwen2},
                  {"dbrx", Pattern::llama3},      {"default", Pattern::punctuation_gpt2}};
  for (const auto& [name, pattern] : expected) {
    const PreTokenizer* found = find_pre_tokenizer(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->pattern, pattern) << name;
  }
  EXPECT_EQ(find_pre_tokenizer("gpt-3"), nullptr);
  EXPECT_EQ(find_pre_tokenizer(""), nullptr);
}

}  // namespace
}  // namespace mote
