// What an encoder is given: the tokens of one text or two within the model's frame, cut to its
// length or spread over windows. Nothing is stored: a TextWindow says which tokens are in, the
// functions below write it out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "models/tokenizers/frame.h"
#include "mote.h"

namespace mote {

// Which text gives way where there are too many tokens.
enum class Truncation : uint8_t {
  longest_first,  // a text of at most half the room stays whole; of two longer ones each gets half,
                  // and an odd token goes to the longer one (to the second of two equally long
                  // ones)
  only_first,
  only_second
};

// How many tokens the texts have, frame not counted. pair: there is a second text, be it one
// without tokens. A caller's empty second text (no bytes) is none.
struct TextLengths {
  size_t first = 0, second = 0;
  bool pair = false;
};

// Tokens [begin[i], end[i]) of text i.
struct TextWindow {
  uint32_t begin[2] = {0, 0}, end[2] = {0, 0};

  size_t count(size_t text) const { return end[text] - begin[text]; }
};

// Tokens of the sequence that a window makes in this frame.
inline size_t sequence_tokens(const Frame& frame, const TextWindow& window) {
  return frame.added() + window.count(0) + window.count(1);
}

// The one window that keeps the beginnings of the texts: at most max_tokens with the frame.
// frame is the tokenizer's for one text or for two, as lengths.pair says. *truncated: whether
// something is left out. MOTE_ERROR_ARGUMENT: the frame alone is longer than max_tokens (or as
// long, and there is a text), or the text that is to give way is not long enough for it
// (only_first, only_second), or there is no second text to cut.
Status truncate(const Frame& frame, const TextLengths& lengths, size_t max_tokens,
                Truncation truncation, TextWindow* window, bool* truncated);

// Windows over one of the texts: each has all of the other one and max_tokens in all, but for the
// last, and shares `stride` tokens with the one before. A text that fits is one window.
class TextWindows {
 public:
  // windowed: 0 or 1, the text that is spread. MOTE_ERROR_ARGUMENT: max_tokens leaves it no room
  // ("question too long"), or `stride` is not less than the room there is.
  Status open(const Frame& frame, const TextLengths& lengths, size_t max_tokens, size_t stride,
              size_t windowed);

  size_t count() const { return count_; }
  TextWindow window(size_t index) const;

 private:
  size_t lengths_[2] = {0, 0};
  size_t windowed_ = 0, room_ = 0, step_ = 0, count_ = 0;
};

// Writes sequence_tokens(frame, window) ids and token types (type_ids may be null).
void write_sequence(const Frame& frame, const TextWindow& window, const mote_token* first,
                    const mote_token* second, int32_t* ids, uint8_t* type_ids);

// What stands at a position of a sequence.
struct SequencePlace {
  int32_t text;    // 0, 1, or -1: a token of the frame
  uint32_t token;  // of that text
};
SequencePlace place_of(const Frame& frame, const TextWindow& window, size_t position);
// The other way: position of the first token of a text within a sequence.
size_t position_of(const Frame& frame, const TextWindow& window, size_t text);

}  // namespace mote
