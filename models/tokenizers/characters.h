// Properties of characters that several tokenizers ask for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mote {

// The White_Space property.
bool is_white_space(uint32_t value);
// ASCII punctuation and symbols, and the categories P of other characters: as BERT has it.
bool is_bert_punctuation(uint32_t value);
// The categories Cc, Cf and Co.
bool is_control_or_private(uint32_t value);
bool is_nonspacing_mark(uint32_t value);  // Mn
bool is_mark(uint32_t value);             // Mn, Mc, Me
bool is_word_character(uint32_t value);   // \w: letters, marks, decimal digits, connectors
// Ideographs that BERT puts spaces around (U+2B820 to U+2B91F are not among them upstream either).
bool is_bert_ideograph(uint32_t value);
uint8_t combining_class(uint32_t value);

// Full lower case without context: at most kMaxLower code points, returns how many.
inline constexpr size_t kMaxLower = 2;
size_t to_lower(uint32_t value, uint32_t* out);

// Canonical or compatibility decomposition, not reordered: at most kMaxDecomposed code points,
// returns how many (1: the character itself).
inline constexpr size_t kMaxDecomposed = 18;
size_t decompose(uint32_t value, bool compatibility, uint32_t* out);
// The primary composite of two, 0: there is none.
uint32_t compose(uint32_t first, uint32_t second);

}  // namespace mote
