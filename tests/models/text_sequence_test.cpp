// Frames, truncation and windows, against what the rules say word by word.
#include <gtest/gtest.h>

#include "models/text_sequence.h"

namespace mote::test {
namespace {

Frame single() {
  Frame frame;
  frame.add(101, 0);
  frame.add(Frame::kFirst, 0);
  frame.add(102, 0);
  return frame;
}
Frame pair() {
  Frame frame = single();
  frame.add(Frame::kSecond, 1);
  frame.add(102, 1);
  return frame;
}

struct Cut {
  size_t first, second;
  bool truncated;
};
Cut cut(size_t first, size_t second, size_t max, Truncation truncation) {
  TextWindow window;
  bool truncated = false;
  const Status status =
      truncate(pair(), {first, second, true}, max, truncation, &window, &truncated);
  EXPECT_TRUE(status.ok()) << last_error();
  EXPECT_EQ(window.begin[0], 0u);
  EXPECT_EQ(window.begin[1], 0u);
  return {window.count(0), window.count(1), truncated};
}

// Token by token: the longer text loses its last one; of equal ones the first does.
TEST(TextSequence, LongestFirstTakesFromTheLonger) {
  for (size_t room = 1; room < 12; ++room)
    for (size_t a = 0; a < 16; ++a)
      for (size_t b = 0; b < 16; ++b) {
        size_t first = a, second = b;
        while (first + second > room) (first >= second ? first : second)--;
        // Upstream's odd token: of two that are both cut the longer one has it.
        if (a > room / 2 && b > room / 2 && a + b > room && room % 2)
          first = room / 2 + (a > b), second = room - first;
        const Cut found = cut(a, b, room + 3, Truncation::longest_first);
        EXPECT_EQ(found.first, first) << a << "+" << b << " in " << room;
        EXPECT_EQ(found.second, second) << a << "+" << b << " in " << room;
        EXPECT_EQ(found.truncated, a + b > room);
      }
}

TEST(TextSequence, OneTextGivesWay) {
  EXPECT_EQ(cut(10, 5, 13, Truncation::only_first).first, 5u);
  EXPECT_EQ(cut(10, 5, 14, Truncation::only_second).second, 1u);
  EXPECT_FALSE(cut(5, 5, 13, Truncation::only_first).truncated);
  TextWindow window;
  bool truncated = false;
  const auto refused = [&](const TextLengths& lengths, size_t max, Truncation truncation) {
    const Frame frame = lengths.pair ? pair() : single();
    return truncate(frame, lengths, max, truncation, &window, &truncated).code();
  };
  EXPECT_EQ(refused({10, 5, true}, 13, Truncation::only_second), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(refused({10, 0, false}, 8, Truncation::only_second), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(refused({10, 0, false}, 2, Truncation::longest_first), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(refused({10, 0, false}, 0, Truncation::longest_first), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(refused({0, 0, false}, 2, Truncation::longest_first), MOTE_OK);
  EXPECT_EQ(refused({10, 0, false}, 3, Truncation::longest_first), MOTE_OK);
  EXPECT_EQ(window.count(0), 1u);
}

TEST(TextSequence, WindowsCoverTheTextAndOverlap) {
  for (size_t max : {8u, 9u, 16u})
    for (size_t stride = 0; stride < 5; ++stride)
      for (size_t length = 0; length < 60; ++length) {
        TextWindows windows;
        const Status status = windows.open(pair(), {2, length, true}, max, stride, 1);
        const size_t room = max - 5;
        if (length > room && stride >= room) {
          EXPECT_EQ(status.code(), MOTE_ERROR_ARGUMENT);
          EXPECT_NE(std::string(last_error()).find("stride"), std::string::npos);
          continue;
        }
        ASSERT_TRUE(status.ok()) << last_error();
        size_t covered = 0;
        for (size_t i = 0; i < windows.count(); ++i) {
          const TextWindow window = windows.window(i);
          EXPECT_EQ(window.count(0), 2u);
          EXPECT_LE(sequence_tokens(pair(), window), max);
          EXPECT_EQ(window.begin[1], i ? covered - stride : 0);
          EXPECT_GE(window.end[1], covered);
          if (i + 1 < windows.count()) {
            EXPECT_EQ(window.count(1), room);
            EXPECT_LT(window.end[1], length);
          }
          covered = window.end[1];
        }
        EXPECT_EQ(covered, length);
      }
  TextWindows windows;
  EXPECT_EQ(windows.open(pair(), {20, 9, true}, 16, 0, 1).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_NE(std::string(last_error()).find("question too long"), std::string::npos);
  ASSERT_TRUE(windows.open(single(), {20, 0, false}, 10, 2, 0).ok());
  EXPECT_EQ(windows.count(), 3u);
  EXPECT_EQ(windows.window(2).end[0], 20u);
}

TEST(TextSequence, PlacesAndTypes) {
  const mote_token first[] = {{7, 0, 1}, {8, 1, 2}, {9, 2, 3}};
  const mote_token second[] = {{20, 0, 1}, {21, 1, 2}};
  TextWindow window;
  window.begin[0] = 1, window.end[0] = 3, window.end[1] = 2;
  int32_t ids[7];
  uint8_t types[7];
  ASSERT_EQ(sequence_tokens(pair(), window), 7u);
  write_sequence(pair(), window, first, second, ids, types);
  EXPECT_EQ(std::vector<int32_t>(ids, ids + 7),
            (std::vector<int32_t>{101, 8, 9, 102, 20, 21, 102}));
  EXPECT_EQ(std::vector<uint8_t>(types, types + 7), (std::vector<uint8_t>{0, 0, 0, 0, 1, 1, 1}));
  for (size_t position = 0; position < 7; ++position) {
    const SequencePlace place = place_of(pair(), window, position);
    if (place.text < 0) {
      EXPECT_GE(ids[position], 101);
      continue;
    }
    EXPECT_EQ(ids[position], (place.text == 0 ? first : second)[place.token].id);
    const size_t text = static_cast<size_t>(place.text);
    EXPECT_EQ(position_of(pair(), window, text) + place.token - window.begin[text], position);
  }
}

}  // namespace
}  // namespace mote::test
