// Text of Unicode code points in UTF-8, with Python's ideas of spaces, cases and printing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/status.h"
#include "models/chat/value.h"

namespace mote::chat {

size_t code_points(std::string_view text);
// Byte offset of the code point at index; text.size() beyond the end.
size_t byte_offset(std::string_view text, size_t index);

bool is_space(uint32_t code_point);
std::string_view strip_start(std::string_view text);
std::string_view strip_end(std::string_view text);
inline std::string_view strip(std::string_view text) { return strip_start(strip_end(text)); }
// Strips every code point that occurs in characters.
std::string_view strip_start(std::string_view text, std::string_view characters);
std::string_view strip_end(std::string_view text, std::string_view characters);

// Appends to memory that it takes from the front of a heap; finish() gives the text and keeps just
// that. Everything after a failed append is ignored, and finish() fails.
class TextBuilder {
 public:
  explicit TextBuilder(Heap& heap) : heap_(heap) {}
  void append(std::string_view text);
  void append(char byte) { append(std::string_view(&byte, 1)); }
  void append_code_point(uint32_t code_point);
  void append_integer(int64_t value);
  void repeat(std::string_view text, size_t times);
  Status finish(Value* text);
  Status finish(std::string_view* text);
  size_t size() const { return size_; }

 private:
  Heap& heap_;
  char* begin_ = nullptr;
  size_t size_ = 0;
  bool failed_ = false;
};
Status out_of_memory(const Heap& heap, size_t bytes);
// Copies of two texts joined; grows left in place where it can.
Status concatenate(Heap& heap, std::string_view left, std::string_view right, Value* text);

// str.replace: the first `count` places, all if it is negative.
Status replace_text(Heap& heap, std::string_view text, std::string_view old, std::string_view with,
                    int64_t count, Value* result);
enum class Align : uint8_t { left, right, center };
// str.ljust, rjust and center to a width in code points.
Status pad_text(Heap& heap, std::string_view text, int64_t width, std::string_view fill,
                Align align, Value* result);

enum class Case : uint8_t { upper, lower, title, capital, swapped };
// str.upper, .lower, .title, .capitalize, .swapcase with full case mappings.
Status change_case(Heap& heap, std::string_view text, Case to, Value* result);
// str.lower of the code point c that stands at text[at]: one or two of them (second: 0 for none).
struct Lowered {
  uint32_t first, second;
};
Lowered lower_case(std::string_view text, size_t at, uint32_t c);
enum class Class : uint8_t {
  space,
  digit,
  alpha,
  alphanumeric,
  upper,
  lower,
  title,
  identifier,
  ascii
};
// str.isspace, .isdigit, ...
bool is_class(std::string_view text, Class what);

// Python's str() and repr().
Status to_string(Heap& heap, const Value& value, std::string_view* text, Work& work);
void append_string(TextBuilder& out, const Value& value, Work& work, int depth = 0);
void append_repr(TextBuilder& out, const Value& value, Work& work, int depth = 0);
// Python's repr(float): the shortest digits that read back as the same value.
void append_real(TextBuilder& out, double value);

// Python's round(); of an integer it is one.
Status round_real(double value, int64_t precision, bool integer, Value* result);

struct JsonStyle {
  bool ascii = false, sort_keys = false;
  bool has_indent = false;
  std::string_view indent;  // text of one level
  std::string_view item_separator = ", ", key_separator = ": ";
};
// json.dumps.
Status to_json(Heap& heap, const Value& value, const JsonStyle& style, Value* text, Work& work);

// Reads a JSON text; strings without escapes stay where they are.
Status read_json(Heap& heap, std::string_view json, Value* value);

// Python's int() and float() of a text; false: not a number (of 64 bits).
bool read_integer(std::string_view text, int base, int64_t* value);
bool read_real(std::string_view text, double* value);

// `format % values` and format.format(...).
Status format_percent(Heap& heap, std::string_view format, const Value& values, Value* text,
                      Work& work);
Status format_braces(Heap& heap, std::string_view format, const Value* arguments, size_t count,
                     const Entry* keywords, size_t keyword_count, Value* text, Work& work);

// strftime of the time `seconds` after 1970, without a time zone.
Status format_time(Heap& heap, std::string_view format, int64_t seconds, Value* text);
// "2026-01-15T09:30:00", with a space instead of the T, or a date alone. A zone or fraction is
// passed over.
bool parse_time(std::string_view text, int64_t* seconds);

}  // namespace mote::chat
