// UTF-8 as texts come: each maximal bad sequence reads as one U+FFFD (WHATWG, as Python's
// "replace").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mote {

struct CodePoint {
  uint32_t value;   // U+FFFD for a bad sequence
  uint32_t length;  // bytes read, >= 1
  bool valid;
};
// Reads the one at text[at], at < text.size().
CodePoint read_utf8(std::string_view text, size_t at);
// Writes 1..4 bytes, returns how many. value is a Unicode scalar value.
size_t write_utf8(uint32_t value, char* out);
// How many bytes at the end of text are a beginning of a character that more bytes could complete
// (0..3).
size_t incomplete_utf8_tail(std::string_view text);

}  // namespace mote
