// Drafts: which place they continue, how long they are, what is learned from tokens and times.
#include "models/drafter.h"

#include <gtest/gtest.h>

#include <vector>

namespace mote {
namespace {

// The draft for a text; what stands behind it in the array must not matter.
std::vector<int32_t> draft(Drafter& drafter, const std::vector<int32_t>& text, size_t room) {
  std::vector<int32_t> array = text;
  array.resize(text.size() + room + 1, -5);
  const size_t length = drafter.draft(array.data(), text.size(), room);
  EXPECT_LE(length, room);
  EXPECT_EQ(std::vector<int32_t>(array.begin(), array.begin() + ptrdiff_t(text.size())), text);
  EXPECT_EQ(array.back(), -5);
  return {array.begin() + ptrdiff_t(text.size()), array.begin() + ptrdiff_t(text.size() + length)};
}

std::vector<int32_t> always(const std::vector<int32_t>& text, size_t most, size_t room = 20) {
  Drafter drafter;
  drafter.start(most, true);
  return draft(drafter, text, room);
}

using Ids = std::vector<int32_t>;

TEST(Drafter, ContinuesTheLongestAgreement) {
  EXPECT_EQ(always({1, 2, 3, 50, 9, 3, 60, 1, 2, 3}, 2), (Ids{50, 9}));
  EXPECT_EQ(always({9, 2, 3, 50, 9, 1, 2, 3, 60, 70, 1, 2, 3}, 2), (Ids{60, 70}));
}

TEST(Drafter, OfEqualAgreementsTheLatest) {
  EXPECT_EQ(always({1, 2, 50, 7, 1, 2, 60, 8, 1, 2}, 2), (Ids{60, 8}));
  // Beyond eight tokens all agreements are equal.
  Ids text;
  for (int32_t copy = 0; copy < 3; ++copy) {
    for (int32_t i = 0; i < 10; ++i) text.push_back(i + (i == 0 && copy == 1 ? 100 : 0));
    if (copy < 2) text.push_back(50 + copy);
  }
  EXPECT_EQ(always(text, 1), (Ids{51}));
}

TEST(Drafter, GoesRoundInCircles) {
  EXPECT_EQ(always({4, 4}, 5), (Ids{4, 4, 4, 4, 4}));
  EXPECT_EQ(always({1, 2, 3, 1, 2, 3}, 7), (Ids{1, 2, 3, 1, 2, 3, 1}));
}

TEST(Drafter, NothingToSay) {
  EXPECT_EQ(always({}, 7), Ids{});
  EXPECT_EQ(always({1}, 7), Ids{});
  EXPECT_EQ(always({1, 2, 3, 4}, 7), Ids{});
  EXPECT_EQ(always({4, 4}, 7, 0), Ids{});
  EXPECT_EQ(always({4, 4}, 7, 3), (Ids{4, 4, 4}));
  EXPECT_EQ(always({4, 4}, 0), Ids{});
}

// Says the text's tokens one after the other, as a generation without any draft would.
void read(Drafter& drafter, const Ids& text, size_t from) {
  for (size_t count = from; count < text.size(); ++count)
    drafter.learn(text.data(), count, text[count]);
}

Ids repeated(const Ids& part, size_t times) {
  Ids text;
  for (size_t i = 0; i < times; ++i) text.insert(text.end(), part.begin(), part.end());
  return text;
}

TEST(Drafter, LearnsFromTokensThatWereNotDrafted) {
  Drafter drafter;
  drafter.start(7, false);
  // 5 is followed by something else each time: such guesses end.
  Ids text = {5};
  for (int32_t i = 0; i < 40; ++i) text.insert(text.end(), {100 + i, 5});
  read(drafter, text, 1);
  EXPECT_EQ(draft(drafter, text, 7), Ids{});
  // What repeats itself is noticed.
  const Ids copy = repeated({1, 2, 3, 4, 5, 6}, 8);
  text.insert(text.end(), copy.begin(), copy.end());
  read(drafter, text, text.size() - copy.size());
  EXPECT_EQ(draft(drafter, text, 7), (Ids{1, 2, 3, 4, 5, 6, 1}));
  // And longer drafts where guesses are better.
  drafter.start(7, false);
  const size_t before = draft(drafter, text, 7).size();
  for (int32_t i = 0; i < 4; ++i) {
    const int32_t wrong = 200 + i;
    drafter.learn(text.data(), text.size(), wrong);
    text.push_back(wrong);
    text.insert(text.end(), copy.begin(), copy.begin() + 12);
  }
  EXPECT_LT(draft(drafter, text, 7).size(), before);
}

TEST(Drafter, WeighsWhatATokenCosts) {
  const Ids text = repeated({1, 2, 3, 4, 5, 6}, 3);
  Drafter drafter;
  drafter.start(7, false);
  const size_t usual = draft(drafter, text, 7).size();
  EXPECT_GT(usual, 2u);
  for (int i = 0; i < 20; ++i) {
    drafter.measure(0, 1000000);
    drafter.measure(7, 8000000);
  }
  EXPECT_EQ(draft(drafter, text, 7).size(), 0u) << "a token of a draft costs a pass";
  for (int i = 0; i < 1000; ++i) drafter.measure(0, 1000000);
  EXPECT_GT(draft(drafter, text, 7).size(), 0u) << "it is tried again";
  for (int i = 0; i < 50; ++i) drafter.measure(7, 1000000);
  EXPECT_EQ(draft(drafter, text, 7).size(), 7u) << "it costs nothing";
}

TEST(Drafter, StartsAnew) {
  const Ids text = repeated({1, 2, 3, 4, 5, 6}, 3);
  Drafter drafter;
  drafter.start(7, false);
  const Ids first = draft(drafter, text, 7);
  for (int i = 0; i < 20; ++i) drafter.measure(i % 2 ? 7 : 0, i % 2 ? 9000 : 1000);
  EXPECT_NE(draft(drafter, text, 7), first);
  drafter.start(7, false);
  EXPECT_EQ(draft(drafter, text, 7), first);
}

}  // namespace
}  // namespace mote
