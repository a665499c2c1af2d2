// What is done to a text before it is cut into tokens, step by step as tokenizer.json lists it, for
// the tokenizers that leave that to the file. Where each character comes from is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/gguf.h"
#include "core/status.h"
#include "models/tokenizers/charsmap.h"

namespace mote {

// A character of a normalized text.
struct NormalCharacter {
  uint32_t value;   // code point
  uint32_t source;  // byte in the text as given where the character begins that it comes from
};

class Normalizer {
 public:
  // Both hold `capacity` characters. run() leaves its result in the first and is done with the
  // second.
  struct Scratch {
    NormalCharacter *characters, *other;
    size_t capacity;
  };

  // Reads mote.normalizer, an array of texts, each a step: nfc, nfd, nfkc, nfkd, lowercase,
  // strip_accents (marks of all kinds), strip_left, strip_right, collapse_spaces (two and more
  // become one), precompiled (tokenizer.ggml.precompiled_charsmap), or "replace" with two more
  // texts: what, by what. Without that key: precompiled where there is such a map, else nothing.
  // An unknown step is MOTE_ERROR_UNSUPPORTED and shows it.
  Status open(const GgufFile& file);
  bool empty() const { return step_count_ == 0; }
  // NFC alone does nothing to a text of characters below U+0300.
  bool only_nfc() const { return step_count_ == 1 && steps_[0].kind == StepKind::nfc; }

  // Room for any text of up to text_bytes: as many characters, times what the step that lets a text
  // grow most makes of one byte (NFC and NFD 1.5, NFKC and NFKD 6, the map: as it is; XLM-R's: 6).
  void plan(Arena& arena, size_t text_bytes, Scratch* scratch) const;
  // How many characters the result has at most, text_bytes being even.
  size_t most_characters(size_t text_bytes) const { return half_growth_ * (text_bytes / 2); }
  // How long the UTF-8 of the result gets.
  size_t longest_result(size_t text_bytes) const { return byte_growth_ * text_bytes; }
  // Fills scratch.characters; returns false if several steps together make more of the text than
  // there is room for.
  bool run(std::string_view text, Scratch& scratch, size_t* count) const;

 private:
  enum class StepKind : uint8_t {
    nfc,
    nfd,
    nfkc,
    nfkd,
    lowercase,
    strip_accents,
    strip_left,
    strip_right,
    collapse_spaces,
    precompiled,
    replace
  };
  struct Step {
    StepKind kind;
    std::string_view from, to;  // of replace
  };
  class Output;
  static constexpr size_t kMaxSteps = 16;

  Status read_steps(const GgufFile& file);
  void run_step(const Step& step, Output& out) const;
  void run_charsmap(Output& out) const;

  Step steps_[kMaxSteps] = {};
  size_t step_count_ = 0;
  size_t half_growth_ = 2;  // characters that two bytes become at most
  size_t byte_growth_ = 3;  // bytes that one byte becomes: U+FFFD for a bad one
  Charsmap charsmap_;
};

}  // namespace mote
