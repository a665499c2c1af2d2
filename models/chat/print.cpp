// Values as text: Python's str() and repr(), and its numbers.
#include <charconv>
#include <cmath>

#include "core/real.h"
#include "core/slice.h"
#include "core/utf8.h"
#include "models/chat/text.h"
#include "utf8proc.h"

namespace mote::chat {

void append_real(TextBuilder& out, double value) {
  if (std::isnan(value)) return out.append("nan");
  if (std::signbit(value)) out.append('-');
  value = std::fabs(value);
  if (std::isinf(value)) return out.append("inf");
  if (value == 0) return out.append("0.0");
  const Decimal decimal = shortest_decimal(value);
  const char* digits = decimal.digits;
  const int count = decimal.count, exponent = decimal.exponent;
  const bool negative = exponent < 0;
  const std::string_view all(digits, static_cast<size_t>(count));
  if (exponent < -4 || exponent >= 16) {
    out.append(digits[0]);
    if (count > 1) out.append('.'), out.append(slice(all, 1));
    out.append('e');
    out.append(negative ? '-' : '+');
    const int size = negative ? -exponent : exponent;
    if (size < 10) out.append('0');
    out.append_integer(size);
  } else if (exponent < 0) {
    out.append("0.");
    out.repeat("0", static_cast<size_t>(-exponent - 1));
    out.append(all);
  } else {
    const size_t whole = static_cast<size_t>(exponent) + 1;
    out.append(slice(all, 0, whole));
    if (whole > all.size()) out.repeat("0", whole - all.size());
    out.append('.');
    out.append(whole < all.size() ? slice(all, whole) : "0");
  }
}

static bool is_printable(uint32_t c) {
  if (c < 0x7F) return c >= 0x20;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

static void append_quoted(TextBuilder& out, std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos;
  const char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.append(quote);
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = read_utf8(text, at);
    const uint32_t c = point.value;
    at += point.length;
    if (c == '\\' || c == static_cast<uint32_t>(quote)) {
      out.append('\\');
      out.append(static_cast<char>(c));
    } else if (c == '\n') {
      out.append("\\n");
    } else if (c == '\r') {
      out.append("\\r");
    } else if (c == '\t') {
      out.append("\\t");
    } else if (is_printable(c)) {
      out.append_code_point(c);
    } else {
      static constexpr char kDigits[] = "0123456789abcdef";
      const int length = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
      out.append(c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U");
      for (int i = length - 1; i >= 0; --i) out.append(kDigits[c >> (4 * i) & 15]);
    }
  }
  out.append(quote);
}

static void append_items(TextBuilder& out, const Value& value, const char* brackets, Work& work,
                         int depth) {
  out.append(brackets[0]);
  for (size_t i = 0; i < count_of(value); ++i) {
    if (i > 0) out.append(", ");
    append_repr(out, item_of(value, i), work, depth + 1);
  }
  if (value.kind == Kind::tuple && value.size == 1) out.append(',');
  out.append(brackets[1]);
}

static void append_entries(TextBuilder& out, const Value& value, Work& work, int depth) {
  out.append('{');
  for (size_t i = 0; i < count_of(value); ++i) {
    const Entry entry = entry_of(value, i);
    if (i > 0) out.append(", ");
    append_repr(out, entry.key, work, depth + 1);
    out.append(": ");
    append_repr(out, entry.value, work, depth + 1);
  }
  out.append('}');
}

void append_repr(TextBuilder& out, const Value& value, Work& work, int depth) {
  if (depth > kMaxValueDepth || !work.spend(1)) return out.append("...");
  switch (value.kind) {
    case Kind::undefined:
      return out.append("Undefined");
    case Kind::none:
      return out.append("None");
    case Kind::boolean:
      return out.append(value.boolean ? "True" : "False");
    case Kind::integer:
      return out.append_integer(value.integer);
    case Kind::real:
      return append_real(out, value.real);
    case Kind::string:
      return append_quoted(out, value.string());
    case Kind::list:
    case Kind::messages:
      return append_items(out, value, "[]", work, depth);
    case Kind::tuple:
      return append_items(out, value, "()", work, depth);
    case Kind::dict:
    case Kind::message:
      return append_entries(out, value, work, depth);
    case Kind::view: {
      static constexpr const char* kNames[] = {"dict_keys(", "dict_values(", "dict_items("};
      out.append(kNames[value.detail]);
      append_items(out, value, "[]", work, depth);
      return out.append(')');
    }
    case Kind::range:
      out.append("range(");
      out.append_integer(value.range->start);
      out.append(", ");
      out.append_integer(value.range->stop);
      if (value.range->step != 1) out.append(", "), out.append_integer(value.range->step);
      return out.append(')');
    case Kind::name_space:
      out.append("<Namespace ");
      append_entries(out, Value::of(value.name_space->entries, value.name_space->count), work,
                     depth);
      return out.append('>');
    default:
      out.append('<');
      out.append(type_name(value));
      return out.append('>');
  }
}

void append_string(TextBuilder& out, const Value& value, Work& work, int depth) {
  if (value.kind == Kind::undefined) return;
  if (value.is_string()) return out.append(value.string());
  append_repr(out, value, work, depth);
}

Status to_string(Heap& heap, const Value& value, std::string_view* text, Work& work) {
  if (value.is_string()) {
    *text = value.string();
    return kOk;
  }
  TextBuilder out(heap);
  append_string(out, value, work);
  return out.finish(text);
}

// Without underscores between digits and spaces around, which Python allows; false if they are
// misplaced.
static bool plain_number(std::string_view text, char* out, size_t capacity, size_t* length) {
  text = strip(text);
  *length = 0;
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  if (text.empty() || text[0] == '+') return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      const bool between = i > 0 && i + 1 < text.size() && text[i - 1] != '_' && text[i + 1] != '_';
      if (!between) return false;
      continue;
    }
    if (*length == capacity) return false;
    out[(*length)++] = text[i];
  }
  return true;
}

bool read_integer(std::string_view text, int base, int64_t* value) {
  char plain[400];
  size_t length = 0;
  if (base < 2 || base > 36 || !plain_number(text, plain, sizeof plain, &length)) return false;
  const std::from_chars_result end = std::from_chars(plain, plain + length, *value, base);
  return end.ec == std::errc() && end.ptr == plain + length;
}

bool read_real(std::string_view text, double* value) {
  char plain[400];
  size_t length = 0;
  return plain_number(text, plain, sizeof plain, &length) &&
         parse_real(std::string_view(plain, length), value);
}

}  // namespace mote::chat
