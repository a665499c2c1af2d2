#include "core/utf8.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace mote {
namespace {

// The bytes of a scalar value, by the definition's bit patterns.
std::string encode(uint32_t value) {
  const auto byte = [](uint32_t b) { return static_cast<char>(b); };
  if (value < 0x80) return {byte(value)};
  if (value < 0x800) return {byte(0xc0 + value / 64), byte(0x80 + value % 64)};
  if (value < 0x10000)
    return {byte(0xe0 + value / 4096), byte(0x80 + value / 64 % 64), byte(0x80 + value % 64)};
  return {byte(0xf0 + value / 262144), byte(0x80 + value / 4096 % 64), byte(0x80 + value / 64 % 64),
          byte(0x80 + value % 64)};
}

bool is_scalar(uint32_t value) { return value < 0xd800 || (value >= 0xe000 && value < 0x110000); }

// Is this a beginning of some character, 1 to 3 bytes, and not all of it? Found out by encoding all
// characters: the definition of "could be completed", without any byte ranges.
bool is_proper_beginning(std::string_view text) {
  const auto index = [](std::string_view bytes) {
    size_t packed = bytes.size();
    for (const char byte : bytes) packed = packed * 256 + static_cast<uint8_t>(byte);
    return packed;
  };
  static const std::vector<bool> all = [&] {
    std::vector<bool> beginnings(size_t{4} << 24);
    for (uint32_t value = 0x80; value < 0x110000; ++value) {
      if (!is_scalar(value)) continue;
      const std::string bytes = encode(value);
      for (size_t length = 1; length < bytes.size(); ++length)
        beginnings[index(bytes.substr(0, length))] = true;
    }
    return beginnings;
  }();
  return !text.empty() && text.size() < 4 && all[index(text)];
}

// A whole character if one stands here, else the longest beginning of one, else one byte.
CodePoint reference_read(std::string_view text) {
  for (uint32_t length = 1; length <= 4 && length <= text.size(); ++length) {
    const std::string bytes(text.substr(0, length));
    uint32_t value = static_cast<uint8_t>(bytes[0]);
    if (length > 1) {
      value &= 0x7fu >> length;
      for (size_t i = 1; i < length; ++i)
        value = value * 64 + (static_cast<uint8_t>(bytes[i]) & 63u);
    }
    if (is_scalar(value) && encode(value) == bytes) return {value, length, true};
  }
  uint32_t longest = 1;
  for (uint32_t length = 1; length < 4 && length <= text.size(); ++length)
    if (is_proper_beginning(text.substr(0, length))) longest = length;
  return {0xfffd, longest, false};
}

void expect_same(std::string_view text, size_t at) {
  const CodePoint read = read_utf8(text, at), expected = reference_read(text.substr(at));
  ASSERT_EQ(read.value, expected.value)
      << testing::PrintToString(std::string(text)) << " at " << at;
  ASSERT_EQ(read.length, expected.length)
      << testing::PrintToString(std::string(text)) << " at " << at;
  ASSERT_EQ(read.valid, expected.valid)
      << testing::PrintToString(std::string(text)) << " at " << at;
}

TEST(Utf8, EveryScalarValueGoesThereAndBack) {
  for (uint32_t value = 0; value < 0x110000; ++value) {
    if (!is_scalar(value)) continue;
    char bytes[4];
    const size_t length = write_utf8(value, bytes);
    const std::string_view text(bytes, length);
    ASSERT_EQ(text, encode(value)) << value;
    const CodePoint point = read_utf8(text, 0);
    ASSERT_TRUE(point.valid && point.value == value && point.length == length) << value;
    ASSERT_EQ(incomplete_utf8_tail(text), 0u) << value;
  }
}

// Bytes at the edges of every range that the definition has.
constexpr std::array<uint8_t, 35> kEdges = {0x00, 0x41, 0x7f, 0x80, 0x81, 0x8f, 0x90, 0x9f, 0xa0,
                                            0xbe, 0xbf, 0xc0, 0xc1, 0xc2, 0xd0, 0xdf, 0xe0, 0xe1,
                                            0xe9, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf2, 0xf3,
                                            0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xfb, 0xfc, 0xff};

TEST(Utf8, ShortSequencesMatchTheDefinition) {
  for (uint32_t a = 0; a < 256; ++a) {
    for (uint32_t b = 0; b < 256; ++b) {
      const char two[] = {static_cast<char>(a), static_cast<char>(b)};
      expect_same({two, 2}, 0);
      expect_same({two, 1}, 0);
      if (HasFatalFailure()) return;
    }
  }
  for (const uint8_t a : kEdges)
    for (const uint8_t b : kEdges)
      for (const uint8_t c : kEdges)
        for (const uint8_t d : {0x00, 0x7f, 0x80, 0xbf, 0xc2, 0xff}) {
          const char four[] = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c),
                               static_cast<char>(d)};
          expect_same({four, 4}, 0);
          expect_same({four, 3}, 0);
          if (HasFatalFailure()) return;
        }
}

TEST(Utf8, TailMatchesTheDefinition) {
  for (const uint8_t a : kEdges)
    for (const uint8_t b : kEdges)
      for (const uint8_t c : kEdges)
        for (const uint8_t d : kEdges) {
          const std::string text = {static_cast<char>(a), static_cast<char>(b),
                                    static_cast<char>(c), static_cast<char>(d)};
          for (size_t length = 0; length <= 4; ++length) {
            // Read from the front, as a decoder would: what remains unfinished at the end?
            const std::string_view part = std::string_view(text).substr(4 - length);
            size_t expected = 0;
            for (size_t at = 0; at < part.size();) {
              const CodePoint point = reference_read(part.substr(at));
              if (!point.valid && at + point.length == part.size() &&
                  is_proper_beginning(part.substr(at)))
                expected = point.length;
              at += point.length;
            }
            ASSERT_EQ(incomplete_utf8_tail(part), expected)
                << testing::PrintToString(std::string(part));
          }
        }
}

TEST(Utf8, RandomBytesMatchTheDefinition) {
  test::Random random(8);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += static_cast<char>(kEdges[random.below(kEdges.size())]);
    for (size_t at = 0; at < text.size(); at += read_utf8(text, at).length) expect_same(text, at);
    if (HasFatalFailure()) return;
  }
}

TEST(Utf8, KnownBadSequences) {  // the Unicode standard's own examples, table 3-8 and following
  const auto replaced = [](std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = read_utf8(text, at);
      char bytes[4];
      out.append(bytes, write_utf8(point.value, bytes));
      at += point.length;
    }
    return out;
  };
  const std::string bad = "\ufffd";
  EXPECT_EQ(replaced("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"),
            bad + bad + bad + bad + bad + bad + bad + bad + "A");
  EXPECT_EQ(replaced("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"),
            bad + bad + bad + bad + bad + bad + bad + bad + "A");
  EXPECT_EQ(replaced("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"),
            bad + bad + bad + bad + bad + "A" + bad + bad + "B");
  EXPECT_EQ(replaced("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), bad + bad + bad + bad + "A");
}

}  // namespace
}  // namespace mote
