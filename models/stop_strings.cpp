#include "models/stop_strings.h"

#include <algorithm>
#include <cstring>

namespace mote {
namespace {

// The text consists of whole characters; a stop string with a part of one must not cut it.
bool begins_character(char byte) { return (byte & 0xc0) != 0x80; }

}  // namespace

void StopStrings::plan(Arena& arena, size_t longest_piece) {
  held_ = arena.take<char>(kMaxBytes + longest_piece);
}

void StopStrings::start(const mote_text* stops, size_t count) {
  stops_ = stops;
  count_ = count;
  held_length_ = shown_ = 0;
}

size_t StopStrings::tail(size_t length) const {
  size_t longest = 0;
  for (size_t s = 0; s < count_; ++s)
    for (size_t n = std::min(stops_[s].length - 1, length); n > longest; --n)
      if (std::memcmp(held_ + length - n, stops_[s].data, n) == 0 &&
          begins_character(held_[length - n]))
        longest = n;
  return longest;
}

StopStrings::Output StopStrings::push(const char* text, size_t length) {
  std::memmove(held_, held_ + shown_, held_length_ - shown_);
  held_length_ -= shown_;
  shown_ = 0;
  const size_t before = held_length_;
  std::memcpy(held_ + held_length_, text, length);
  held_length_ += length;
  for (size_t end = before + 1; end <= held_length_; ++end) {
    size_t best = 0, index = 0;
    for (size_t s = 0; s < count_; ++s) {
      const size_t n = stops_[s].length;
      if (n > best && n <= end && std::memcmp(held_ + end - n, stops_[s].data, n) == 0 &&
          begins_character(held_[end - n]) && (end == held_length_ || begins_character(held_[end])))
        best = n, index = s;
    }
    if (best) {
      held_length_ = shown_ = 0;
      return {held_, end - best, true, uint32_t(index)};
    }
  }
  shown_ = held_length_ - tail(held_length_);
  return {held_, shown_, false, 0};
}

StopStrings::Output StopStrings::finish() {
  const Output output = {held_ + shown_, held_length_ - shown_, false, 0};
  held_length_ = shown_ = 0;
  return output;
}

}  // namespace mote
