// Stop strings through the C API: nothing of them leaks, and nothing else is lost or doubled.
#include <gtest/gtest.h>

#include "core/utf8.h"
#include "tests/support/scripted.h"

namespace mote::test {
namespace {

class StopStrings : public testing::Test {
 protected:
  StopStrings()
      : bytes_(TinyModel().bytes()), model_(bytes_), session_(model_, SessionOptions(256, 32, 1)) {}

  Scripted run(const std::vector<int32_t>& script, const std::vector<std::string>& stops) {
    std::vector<mote_text> texts;
    for (const std::string& stop : stops) texts.push_back(text_of(stop));
    GenerateOptions options;
    options.stop = texts.data();
    options.stop_count = static_cast<uint32_t>(texts.size());
    Scripted scripted;
    scripted.script = script;
    scripted.run(session_, prompt_of("Say something:"), options);
    EXPECT_EQ(scripted.status, MOTE_OK) << mote_last_error();
    for (const std::string& piece : scripted.pieces) {
      EXPECT_FALSE(piece.empty());
      for (size_t at = 0; at < piece.size();) {
        const CodePoint point = read_utf8(piece, at);
        EXPECT_TRUE(point.valid) << "a piece of text is no valid UTF-8";
        at += point.length;
      }
    }
    return scripted;
  }

  AlignedBytes bytes_;
  Model model_;
  Session session_;
};

// Where the stop string that ends first begins (of those that end there, the longest); npos: none.
size_t find_stop(const std::string& text, const std::vector<std::string>& stops, size_t* index) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t best = 0;
    for (size_t s = 0; s < stops.size(); ++s) {
      const size_t n = stops[s].size();
      if (n <= end && n > best && text.compare(end - n, n, stops[s]) == 0) best = n, *index = s;
    }
    if (best) return end - best;
  }
  return std::string::npos;
}

TEST_F(StopStrings, AlphabetNeverLeaks) {
  const std::string alphabet = "DEFGHIJKLMNOPQRSTUVWXYZ";
  const Scripted scripted = run(byte_script(alphabet), {"DEFGHIJ"});
  EXPECT_EQ(scripted.text, "");
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_STOP);
  EXPECT_EQ(scripted.result.stop_index, 0u);
  EXPECT_EQ(scripted.result.generated_tokens, 7u);
}

TEST_F(StopStrings, TextBeforeIsKept) {
  const Scripted scripted = run(byte_script("ABC.\nUser: hi"), {"\nUser:"});
  EXPECT_EQ(scripted.text, "ABC.");
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_STOP);
}

TEST_F(StopStrings, FalseAlarmsAreGivenOut) {
  const Scripted scripted = run(byte_script("DEFGHI DEFGH DDEFGHI"), {"DEFGHIJ"});
  EXPECT_EQ(scripted.text, "DEFGHI DEFGH DDEFGHI");
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_END);
}

TEST_F(StopStrings, StopThatOverlapsItself) {
  const Scripted scripted = run(byte_script("aabaabaaaabaac"), {"aabaac"});
  EXPECT_EQ(scripted.text, "aabaabaa");
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_STOP);
}

TEST_F(StopStrings, OneThatEndsFirstWins) {
  // "bc" is complete before "abcd" is, and "b" before both.
  Scripted scripted = run(byte_script("xabcd"), {"abcd", "bc"});
  EXPECT_EQ(scripted.text, "xa");
  EXPECT_EQ(scripted.result.stop_index, 1u);
  scripted = run(byte_script("xabcd"), {"abcd", "bcd"});
  EXPECT_EQ(scripted.text, "x") << "of two that end together, the longer one";
  EXPECT_EQ(scripted.result.stop_index, 0u);
}

TEST_F(StopStrings, StopInsideOneToken) {
  // The token " the" holds the stop "h"; what is behind it in the token is dropped.
  int32_t the = -1;
  const auto tokens = TinyModel::tokens();
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] == "Ġthe") the = static_cast<int32_t>(i);
  ASSERT_GE(the, 0);
  const Scripted scripted =
      run({TinyModel::byte_token('A'), the, TinyModel::byte_token('B')}, {"h"});
  EXPECT_EQ(scripted.text, "A t");
  EXPECT_EQ(scripted.result.generated_tokens, 2u);
}

TEST_F(StopStrings, CharactersAreWhole) {
  const Scripted scripted = run(byte_script("caf\xc3\xa9 \xf0\x9f\x98\xb8!"), {});
  EXPECT_EQ(scripted.text, "caf\xc3\xa9 \xf0\x9f\x98\xb8!");
  for (const std::string& piece : scripted.pieces) EXPECT_NE(piece, "");
  const Scripted stopped =
      run(byte_script("caf\xc3\xa9 \xf0\x9f\x98\xb8!"), {"\xc3\xa9 \xf0\x9f\x98\xb8"});
  EXPECT_EQ(stopped.text, "caf");
  EXPECT_EQ(stopped.result.finish, MOTE_FINISH_STOP);
}

TEST_F(StopStrings, PartOfACharacterNeverCutsOne) {
  for (const char* stop : {"\x9f\x98", "\xa9", "\xc3", "\xf0\x9f"}) {
    const Scripted scripted = run(byte_script("caf\xc3\xa9 \xf0\x9f\x98\xb8!"), {stop});
    EXPECT_TRUE(scripted.result.finish == MOTE_FINISH_END ||
                scripted.result.finish == MOTE_FINISH_STOP);
    EXPECT_EQ(scripted.text.compare(0, 3, "caf"), 0);
  }
}

TEST_F(StopStrings, UnfinishedCharacterAtTheEnd) {
  EXPECT_EQ(run(byte_script("ab\xf0\x9f"), {}).text, "ab\xef\xbf\xbd");
  EXPECT_EQ(run(byte_script("ab\xff"
                            "cd"),
                {})
                .text,
            "ab\xef\xbf\xbd"
            "cd");
  EXPECT_EQ(run(byte_script("ab\xe2\x82"
                            "cd"),
                {"\xef\xbf\xbd"
                 "c"})
                .text,
            "ab");
}

TEST_F(StopStrings, HeldBackTextComesAtEveryEnd) {
  // The tokens end while "DEF" could still become the stop string.
  GenerateOptions options(6);
  const mote_text stop = text_of("DEFGHIJ");
  options.stop = &stop;
  options.stop_count = 1;
  Scripted scripted;
  scripted.script = byte_script("ABCDEFGHIJ");
  scripted.run(session_, prompt_of("x"), options);
  EXPECT_EQ(scripted.text, "ABCDEF");
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_LENGTH);
}

TEST_F(StopStrings, NulTerminatedStopAndStopWithZeroBytes) {
  GenerateOptions options;
  const mote_text stops[2] = {{"cd", MOTE_NUL_TERMINATED}, {"\0x", 2}};
  options.stop = stops;
  options.stop_count = 2;
  Scripted scripted;
  scripted.script = byte_script("abcd");
  scripted.run(session_, prompt_of("x"), options);
  EXPECT_EQ(scripted.text, "ab");
  scripted.script = byte_script(std::string_view("a\0\0xb", 5));
  scripted.run(session_, prompt_of("x"), options);
  EXPECT_EQ(scripted.text, std::string("a\0", 2));
  EXPECT_EQ(scripted.result.stop_index, 1u);
}

// Few letters make many near misses. Every cut into tokens gives the same text.
TEST_F(StopStrings, RandomTextsEqualASearchInTheWholeText) {
  Random random(11);
  const std::vector<std::string> letters = {"t", "h", "e", " ", "\xc3\xa9", "\xf0\x9f\x98\xb8",
                                            "in"};
  const auto random_text = [&](int most, uint32_t kinds) {
    std::string text;
    for (int i = random.between(1, most); i > 0; --i) text += letters[random.below(kinds)];
    return text;
  };
  int stopped = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const uint32_t kinds = trial % 2 ? 3 : 7;
    const std::string text = random_text(40, kinds);
    std::vector<std::string> stops;
    for (int i = random.between(0, 4); i > 0; --i) stops.push_back(random_text(5, kinds));
    size_t index = 0;
    const size_t at = find_stop(text, stops, &index);
    const Scripted scripted = run(random_script(text, random), stops);
    ASSERT_EQ(scripted.text, text.substr(0, at)) << "trial " << trial << " text " << text;
    if (at == std::string::npos) {
      EXPECT_EQ(scripted.result.finish, MOTE_FINISH_END);
    } else {
      ++stopped;
      EXPECT_EQ(scripted.result.finish, MOTE_FINISH_STOP);
      EXPECT_EQ(stops[scripted.result.stop_index], stops[index]);
    }
  }
  EXPECT_GT(stopped, 100);
}

TEST_F(StopStrings, SixteenOf256BytesAndNoMore) {
  std::vector<std::string> stops;
  for (int i = 0; i < 15; ++i) stops.push_back(std::string(256, static_cast<char>('a' + i)));
  stops.push_back("zz");
  const std::string text = std::string(100, 'b') + "zz";
  EXPECT_EQ(run(byte_script(text), stops).text, std::string(100, 'b'));

  const mote_prompt prompt = prompt_of("x");
  const auto refuse = [&](const std::vector<std::string>& bad) {
    std::vector<mote_text> texts;
    for (const std::string& stop : bad) texts.push_back(text_of(stop));
    GenerateOptions options;
    options.stop = texts.data();
    options.stop_count = static_cast<uint32_t>(texts.size());
    return mote_generate(session_, &prompt, &options, nullptr);
  };
  stops.push_back("one more");
  EXPECT_EQ(refuse(stops), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(refuse({std::string(257, 'a')}), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(refuse({""}), MOTE_ERROR_ARGUMENT);
}

}  // namespace
}  // namespace mote::test
