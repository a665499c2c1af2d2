// Where the tokens of a text go while they are found.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mote.h"

namespace mote {

// Tokens come in the order of the text. A token ends where the next one starts, the last one at the
// text's end, and the first starts at 0: so they partition the text, and bytes that have no token
// belong to the one before them.
class TokenSink {
 public:
  TokenSink(mote_token* tokens, size_t capacity) : tokens_(tokens), capacity_(capacity) {}

  // A token that covers nothing, at the very beginning or after finish().
  void put_frame(int32_t id, size_t at) {
    if (count_ < capacity_)
      tokens_[count_] = {id, static_cast<uint32_t>(at), static_cast<uint32_t>(at)};
    ++count_;
    if (!open_) first_ = count_;
  }
  void put(int32_t id, size_t start) {
    if (!open_) start = 0;
    end_last(start);
    if (count_ < capacity_) tokens_[count_] = {id, static_cast<uint32_t>(start), 0};
    ++count_;
    open_ = true;
  }
  void finish(size_t end) { end_last(end); }
  size_t count() const { return count_; }

 private:
  void end_last(size_t at) {
    if (count_ > first_ && count_ <= capacity_)
      tokens_[count_ - 1].byte_end = static_cast<uint32_t>(at);
  }

  mote_token* tokens_;
  size_t capacity_;
  size_t count_ = 0, first_ = 0;  // first_: tokens of the frame in front
  bool open_ = false;             // one of the text is there
};

}  // namespace mote
