// Where the tokens of a text go while they are found.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mote.h"

namespace mote {

// Two kinds of offsets: put() makes tokens that partition the text (each ends where the next one
// starts, the last one at the text's end, and the first starts at 0, so bytes that have no token
// belong to the one before them); put_range() says what a token covers.
class TokenSink {
 public:
  // word_starts: [capacity] or null. The first `skipped` tokens are counted and not kept.
  TokenSink(mote_token* tokens, size_t capacity, uint8_t* word_starts, size_t skipped)
      : tokens_(tokens), word_starts_(word_starts), capacity_(capacity), skipped_(skipped) {}

  // A token that covers nothing, at the very beginning or after finish().
  void put_frame(int32_t id, size_t at) {
    begin_word();
    append(id, at, at);
    if (!open_) first_ = count_;
  }
  void put(int32_t id, size_t start) {
    if (!open_) start = 0;
    end_last(start);
    append(id, start, 0);
    open_ = true;
  }
  void put_range(int32_t id, size_t start, size_t end) { append(id, start, end); }
  // The next token begins a word.
  void begin_word() { word_begins_ = true; }
  // After put(): the text ends here.
  void finish(size_t end) {
    if (open_) end_last(end);
  }
  size_t count() const { return count_; }

 private:
  bool is_kept(size_t index) const { return index >= skipped_ && index - skipped_ < capacity_; }
  void append(int32_t id, size_t start, size_t end) {
    if (is_kept(count_)) {
      tokens_[count_ - skipped_] = {id, static_cast<uint32_t>(start), static_cast<uint32_t>(end)};
      if (word_starts_) word_starts_[count_ - skipped_] = word_begins_;
    }
    ++count_;
    word_begins_ = false;
  }
  void end_last(size_t at) {
    if (count_ > first_ && is_kept(count_ - 1))
      tokens_[count_ - 1 - skipped_].byte_end = static_cast<uint32_t>(at);
  }

  mote_token* tokens_;
  uint8_t* word_starts_;
  size_t capacity_, skipped_;
  size_t count_ = 0, first_ = 0;  // first_: tokens of the frame in front
  bool open_ = false;             // one of the text is there, by put()
  bool word_begins_ = false;
};

}  // namespace mote
