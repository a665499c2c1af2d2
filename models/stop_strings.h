// Finds stop strings in text that arrives in pieces; what could begin one is held back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena.h"
#include "mote.h"

namespace mote {

class StopStrings {
 public:
  static constexpr size_t kMaxCount = 16, kMaxBytes = 256;

  // longest_piece: of the texts given to push().
  void plan(Arena& arena, size_t longest_piece);
  // stops: kept until the next start(); counts and sizes are checked by the caller.
  void start(const mote_text* stops, size_t count);

  struct Output {
    const char* text;  // to be shown, valid until the next call
    size_t length;
    bool stopped;    // a stop string is complete: it and all behind it is dropped
    uint32_t index;  // which
  };
  // The result does not depend on how the text is cut: the stop string that ends first wins, of
  // those the longest.
  Output push(const char* text, size_t length);
  // Whatever is still held back: it did not become a stop string.
  Output finish();

 private:
  // Longest beginning of a stop string that held_[0, length) ends with, in bytes.
  size_t tail(size_t length) const;

  const mote_text* stops_ = nullptr;
  size_t count_ = 0;
  char* held_ = nullptr;  // [kMaxBytes + longest piece]
  size_t held_length_ = 0, shown_ = 0;
};

}  // namespace mote
