// Bytes of tokens come out in whole characters, however they are cut up.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/utf8.h"
#include "tests/models/tokenizer_support.h"

namespace mote::test {
namespace {

std::string stream(const std::vector<std::string>& parts,
                   std::vector<std::string>* outputs = nullptr) {
  CharacterStream characters;
  std::string all;
  for (const std::string& part : parts) {
    std::string out(part.size() * 3 + 12, '\0');
    out.resize(characters.push(part, out.data()));
    if (outputs) outputs->push_back(out);
    all += out;
  }
  std::string rest(12, '\0');
  rest.resize(characters.finish(rest.data()));
  if (outputs) outputs->push_back(rest);
  return all + rest;
}

// Each maximal bad sequence replaced once.
std::string replaced(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = read_utf8(text, at);
    char character[4];
    out.append(character, write_utf8(point.value, character));
    at += point.length;
  }
  return out;
}

const std::vector<std::string> kTexts = {"",
                                         "plain",
                                         "é漢😀",
                                         std::string("zero\0byte", 9),
                                         "\xff\xfe",
                                         "a\xc3",
                                         "\xe2\x82",
                                         "\xe2\x82\xe2\x82\xac",
                                         "\xf0\x9f\x98\xf0\x9f\x98\x80",
                                         "\xed\xa0\x80x",
                                         "\xc0\xaf\xe0\x80\xaf",
                                         "\xf4\x90\x80\x80",
                                         "\x80\x80\x80\x80\x80",
                                         "\xf0\x9f\x98",
                                         "x\xf0\x9f\x98y\xf0z"};

TEST(CharacterStream, EverySplitGivesTheSame) {
  for (const std::string& text : kTexts) {
    const std::string expected = replaced(text);
    for (size_t i = 0; i <= text.size(); ++i)
      for (size_t j = i; j <= text.size(); ++j)
        EXPECT_EQ(stream({text.substr(0, i), text.substr(i, j - i), text.substr(j)}), expected);
    std::vector<std::string> bytes;
    for (char c : text) bytes.emplace_back(1, c);
    EXPECT_EQ(stream(bytes), expected);
  }
}

TEST(CharacterStream, UnfinishedCharactersWait) {
  std::vector<std::string> outputs;
  stream({"\xf0\x9f\x98", "\xb8"}, &outputs);
  EXPECT_EQ(outputs, (std::vector<std::string>{"", "\xf0\x9f\x98\xb8", ""}));
  outputs.clear();
  stream({"a\xf0\x9f"}, &outputs);
  EXPECT_EQ(outputs, (std::vector<std::string>{"a", "\xef\xbf\xbd"}));
}

TEST(CharacterStream, BadBytesDoNotHoldTextBack) {
  std::vector<std::string> outputs;
  stream({"\xff", "\xc3", "(", "\x80"}, &outputs);
  EXPECT_EQ(outputs,
            (std::vector<std::string>{"\xef\xbf\xbd", "", "\xef\xbf\xbd(", "\xef\xbf\xbd", ""}));
}

TEST(CharacterStream, StartsAnewAfterFinish) {
  CharacterStream characters;
  char out[24];
  EXPECT_EQ(characters.push("\xf0\x9f", out), 0u);
  EXPECT_EQ(characters.finish(out), 3u);
  EXPECT_EQ(characters.finish(out), 0u);
  EXPECT_EQ(characters.push("\x98", out), 3u);
}

// Tokens of a byte-level vocabulary cut characters anywhere.
TEST(CharacterStream, TokensOfCharacters) {
  TokenizerFile file(SmallVocabulary().builder("gpt-2"));
  ASSERT_TRUE(file.open().ok()) << last_error();
  for (const std::string& text : kTexts)
    EXPECT_EQ(decode(file.tokenizer, encode_ids(file.tokenizer, text, 0), false), replaced(text));
}

}  // namespace
}  // namespace mote::test
