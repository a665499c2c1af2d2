// Finds tokens that stand for themselves in a text: control tokens, and those that the model's
// makers added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/gguf.h"
#include "core/memory.h"
#include "core/status.h"
#include "models/tokenizers/tokenizer.h"
#include "models/tokenizers/vocabulary.h"

namespace mote {

class SpecialMatcher {
 public:
  // spaces: U+2581 reads as a space, in the tokens and in the text (SentencePiece).
  // Reads mote.added_tokens.lstrip, .rstrip and .single_word: ids of tokens that take the white
  // space before or behind them with them, or that no letter may touch; and .late: ids of
  // user-defined tokens that are looked for in what the others leave (upstream: those that are
  // matched after normalization). left_strip: an id that is one of the first where the file does
  // not say, -1: none.
  Status open(const GgufFile& file, const Vocabulary& vocabulary, Allocator& allocator, bool spaces,
              int32_t left_strip);

  struct Match {
    size_t start, end;
    size_t name;  // where the token's own text begins
    size_t next;  // where the search goes on: the white space behind may hold tokens, as upstream
    int32_t id;   // -1: none, then start and end are the text's end
  };
  enum class Pass : uint8_t { first, late };
  bool has_late() const { return has_late_; }
  // The leftmost match at or behind `from`, the longest one there, with the white space that
  // belongs to it, as far as it lies behind `taken`. all: control and unknown tokens too, not only
  // user-defined ones. Time: the text passed over, times the depth of common beginnings.
  Match find(std::string_view text, size_t from, size_t taken, Pass pass, bool all,
             LiteralPlaces literal = {}) const;

 private:
  struct Unit {
    int32_t value;  // a byte, or -1 at the end
    uint32_t length;
  };
  Unit unit(std::string_view text, size_t at) const;
  int32_t unit_of(size_t index, size_t depth) const;
  size_t bound(size_t low, size_t high, size_t depth, int32_t value) const;
  Match longest(std::string_view text, size_t at, Pass pass, bool all, size_t* index) const;
  static uint8_t kind_bit(Pass pass, bool is_user_defined);
  void note_first_bytes();
  Status read_flags(const GgufFile& file, const char* key, uint8_t flag);
  bool stretch(std::string_view text, size_t taken, uint8_t flags, Match* match) const;

  const Vocabulary* vocabulary_ = nullptr;
  enum Flag : uint8_t { kLeftStrip = 1, kRightStrip = 2, kSingleWord = 4, kLate = 8 };
  HeapArray<int32_t> sorted_;  // ids in the order of their texts
  HeapArray<uint8_t> flags_;   // of each of these
  uint8_t first_[256] = {};    // first bytes of matches: kind_bit() of what begins with them
  bool spaces_ = false, has_late_ = false;
  bool marks_ = false;  // some token holds U+2581 and spaces_ is set
};

}  // namespace mote
