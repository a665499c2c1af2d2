// Finds tokens that stand for themselves in a text: control tokens, and those that the model's
// makers added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/memory.h"
#include "core/status.h"
#include "models/tokenizers/tokenizer.h"
#include "models/tokenizers/vocabulary.h"

namespace mote {

class SpecialMatcher {
 public:
  // spaces: U+2581 reads as a space, in the tokens and in the text (SentencePiece).
  Status open(const Vocabulary& vocabulary, Allocator& allocator, bool spaces);

  struct Match {
    size_t start, end;
    int32_t id;  // -1: none, then start and end are the text's end
  };
  // The leftmost match at or behind `from`, the longest one there. all: control and unknown tokens
  // too, not only user-defined ones. Time: the text passed over, times the depth of common
  // beginnings.
  Match find(std::string_view text, size_t from, bool all, LiteralPlaces literal = {}) const;

 private:
  struct Unit {
    int32_t value;  // a byte, or -1 at the end
    uint32_t length;
  };
  Unit unit(std::string_view text, size_t at) const;
  int32_t unit_of(size_t index, size_t depth) const;
  size_t bound(size_t low, size_t high, size_t depth, int32_t value) const;
  Match longest(std::string_view text, size_t at, bool all) const;

  const Vocabulary* vocabulary_ = nullptr;
  HeapArray<int32_t> sorted_;  // ids in the order of their texts
  uint8_t first_[256] = {};    // first bytes of matches: 1 of user-defined tokens, 2 of others
  bool spaces_ = false;
  bool marks_ = false;  // some token holds U+2581 and spaces_ is set
};

}  // namespace mote
