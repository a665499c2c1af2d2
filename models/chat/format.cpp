// Formatting: % and str.format, padding, replacing, rounding.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/real.h"
#include "core/slice.h"
#include "core/utf8.h"
#include "models/chat/text.h"

namespace mote::chat {
namespace {

// What stands between % or : and the letter.
struct Spec {
  char align = 0, sign = 0, type = 0;
  std::string_view fill = " ";
  bool zero = false, alternate = false, comma = false;
  int64_t width = 0, precision = -1;
};
constexpr int64_t kMaxWidth = 100'000;

bool read_count(std::string_view text, size_t* at, int64_t* count) {
  *count = 0;
  for (; *at < text.size() && text[*at] >= '0' && text[*at] <= '9'; ++*at) {
    *count = *count * 10 + (text[*at] - '0');
    if (*count > kMaxWidth) return false;
  }
  return true;
}

Status pad(Heap& heap, std::string_view text, const Spec& spec, char default_align,
           TextBuilder& out) {
  const char align = spec.align ? spec.align : default_align;
  const int64_t missing = spec.width - static_cast<int64_t>(code_points(text));
  const size_t all = missing > 0 ? static_cast<size_t>(missing) : 0;
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ') ? 1 : 0;
  (void)heap;
  if (align == '=') {
    out.append(slice(text, 0, sign));
    out.repeat(spec.fill, all);
    out.append(slice(text, sign));
    return kOk;
  }
  const size_t left = align == '>' ? all : align == '^' ? all / 2 : 0;
  out.repeat(spec.fill, left);
  out.append(text);
  out.repeat(spec.fill, all - left);
  return kOk;
}

constexpr int kMaxPrecision = 300;
constexpr size_t kMaxReal = 680;  // 309 digits before the point, kMaxPrecision behind it, and some

// Writes value >= 0 with printf, whose decimal point depends on the locale: so only digits are read
// back, and a '.' goes where it belongs. type: 'f' or 'e'.
size_t write_digits(double value, char type, int precision, char* out) {
  char text[kMaxReal];
  const char format[] = {'%', '.', '*', type, '\0'};
  snprintf(text, sizeof text, format, precision, value);
  size_t length = 0;
  const char* at = text;
  for (; *at && *at != 'e'; ++at)
    if (*at >= '0' && *at <= '9') out[length++] = *at;
  if (precision > 0) {
    const size_t point = length - static_cast<size_t>(precision);
    memmove(out + point + 1, out + point, static_cast<size_t>(precision));
    out[point] = '.';
    ++length;
  }
  for (; *at; ++at) out[length++] = *at;
  return length;
}

// %g: significant digits, without zeros at the end unless alternate.
size_t write_general(double value, int precision, bool alternate, char* out) {
  if (precision == 0) precision = 1;
  size_t length = write_digits(value, 'e', precision - 1, out);
  const char* mark = static_cast<const char*>(memchr(out, 'e', length));
  out[length] = '\0';
  const int exponent = atoi(mark + 1);
  const bool fixed = exponent >= -4 && exponent < precision;
  if (fixed) length = write_digits(value, 'f', precision - 1 - exponent, out);
  size_t end = fixed ? length : static_cast<size_t>(mark - out), kept = end;
  if (!alternate && memchr(out, '.', end)) {
    while (out[kept - 1] == '0') --kept;
    if (out[kept - 1] == '.') --kept;
  }
  memmove(out + kept, out + end, length - end);
  return length - (end - kept);
}

// value >= 0, infinite or NaN as C's printf writes it; type: one of eEfFgG. out: kMaxReal bytes.
size_t write_real(double value, char type, int precision, bool alternate, char* out) {
  const bool upper = type == 'F' || type == 'E' || type == 'G';
  const char low = static_cast<char>(type | 32);
  size_t length = 3;
  if (std::isnan(value) || std::isinf(value)) {
    memcpy(out, std::isnan(value) ? "nan" : "inf", 3);
  } else {
    length = low == 'g' ? write_general(value, precision, alternate, out)
                        : write_digits(value, low, precision, out);
  }
  for (size_t i = 0; upper && i < length; ++i)
    if (out[i] >= 'a' && out[i] <= 'z') out[i] = static_cast<char>(out[i] - 32);
  return length;
}

size_t write_integer(uint64_t value, char type, char* out) {
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  const std::to_chars_result end = std::to_chars(out, out + 64, value, base);
  for (char* c = out; type == 'X' && c < end.ptr; ++c)
    if (*c >= 'a') *c = static_cast<char>(*c - 32);
  return static_cast<size_t>(end.ptr - out);
}

Status format_number(Heap& heap, const Value& value, const Spec& spec, TextBuilder& out) {
  char digits[kMaxReal], text[kMaxReal + kMaxReal / 2];
  size_t length = 0, size = 0;
  const bool real = (spec.type | 32) == 'e' || (spec.type | 32) == 'f' || (spec.type | 32) == 'g' ||
                    spec.type == '%';
  bool negative = false;
  if (real) {
    const double number = value.as_real();
    negative = std::signbit(number) && !std::isnan(number);
    const double scaled = spec.type == '%' ? 100 * std::fabs(number) : std::fabs(number);
    if (spec.precision > kMaxPrecision)
      return fail(MOTE_ERROR_TEMPLATE, "format: precision %lld, expected %d at most",
                  static_cast<long long>(spec.precision), kMaxPrecision);
    const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
    length =
        write_real(scaled, spec.type == '%' ? 'f' : spec.type, precision, spec.alternate, digits);
    if (spec.type == '%') digits[length++] = '%';
  } else {
    int64_t number = value.is(Kind::real) ? 0 : value.as_integer();
    if (value.is(Kind::real)) {
      if (!(std::fabs(value.real) < 9223372036854775808.0))
        return fail(MOTE_ERROR_TEMPLATE, "format: the number has more than 64 bits");
      number = static_cast<int64_t>(value.real);
    }
    negative = number < 0;
    const uint64_t size_of =
        negative ? uint64_t{0} - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    length = write_integer(size_of, spec.type, digits);
  }
  if (negative)
    text[size++] = '-';
  else if (spec.sign == '+' || spec.sign == ' ')
    text[size++] = spec.sign;
  if (spec.alternate && !real && spec.type != 'd') text[size++] = '0', text[size++] = spec.type;
  size_t whole = 0;
  while (whole < length && digits[whole] >= '0' && digits[whole] <= '9') ++whole;
  for (size_t i = 0; i < length; ++i) {
    text[size++] = digits[i];
    const bool group = spec.comma && i + 1 < whole && (whole - 1 - i) % 3 == 0;
    if (group) text[size++] = ',';
  }
  Spec padded = spec;
  if (spec.zero && spec.fill == " ") padded.fill = "0";
  if (spec.zero && !spec.align) padded.align = '=';
  return pad(heap, std::string_view(text, size), padded, '>', out);
}

Status format_text(Heap& heap, std::string_view text, const Spec& spec, TextBuilder& out) {
  if (spec.precision >= 0)
    text = slice(text, 0, byte_offset(text, static_cast<size_t>(spec.precision)));
  return pad(heap, text, spec, '<', out);
}

Status text_of(Heap& heap, const Value& value, bool quoted, std::string_view* text, Work& work) {
  if (!quoted) return to_string(heap, value, text, work);
  TextBuilder repr(heap);
  append_repr(repr, value, work);
  return repr.finish(text);
}

Status wrong(const char* what) { return fail(MOTE_ERROR_TEMPLATE, "format: %s", what); }

// [[fill]align][sign][#][0][width][,][.precision][type]
Status read_spec(std::string_view text, Spec* spec) {
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  size_t at = 0;
  if (!text.empty()) {
    const size_t first = read_utf8(text, 0).length;
    if (first < text.size() && is_align(text[first])) {
      spec->fill = slice(text, 0, first);
      spec->align = text[first];
      at = first + 1;
    } else if (is_align(text[0])) {
      spec->align = text[0];
      at = 1;
    }
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' '))
    spec->sign = text[at++];
  if (at < text.size() && text[at] == '#') spec->alternate = true, ++at;
  if (at < text.size() && text[at] == '0') spec->zero = true, ++at;
  if (!read_count(text, &at, &spec->width)) return wrong("the width is too large");
  if (at < text.size() && text[at] == ',') spec->comma = true, ++at;
  if (at < text.size() && text[at] == '.') {
    const size_t begin = ++at;
    if (!read_count(text, &at, &spec->precision) || at == begin) return wrong("a wrong precision");
  }
  if (at < text.size()) spec->type = text[at++];
  return at == text.size() ? kOk : wrong("an unknown format specification");
}

Status format_with_spec(Heap& heap, const Value& value, std::string_view spec_text,
                        TextBuilder& out, Work& work) {
  Spec spec;
  MOTE_TRY(read_spec(spec_text, &spec));
  const bool number = value.is_number() && !(value.is(Kind::boolean) && spec.type == 0);
  if (number && spec.type == 0 && value.is(Kind::real) && spec.precision >= 0) spec.type = 'g';
  if (number && spec.type == 0 && !value.is(Kind::real)) spec.type = 'd';
  const bool known =
      spec.type && std::string_view("dxXobeEfFgG%").find(spec.type) != std::string_view::npos;
  if (number && known) {
    if (value.is(Kind::real) && std::string_view("dxXob").find(spec.type) != std::string_view::npos)
      return wrong("an integer type for a float");
    return format_number(heap, value, spec, out);
  }
  if (spec.type && spec.type != 's') return wrong("a type that does not fit the value");
  std::string_view text;
  MOTE_TRY(to_string(heap, value, &text, work));
  if (number) return pad(heap, text, spec, '>', out);
  return format_text(heap, text, spec, out);
}

}  // namespace

Status format_percent(Heap& heap, std::string_view format, const Value& values, Value* result,
                      Work& work) {
  TextBuilder out(heap);
  const bool tuple = values.is(Kind::tuple);
  size_t used = 0;
  const size_t given = tuple ? count_of(values) : 1;
  bool by_name = false;
  for (size_t at = 0; at < format.size();) {
    const size_t percent = format.find('%', at);
    out.append(slice(format, at, percent == std::string_view::npos ? percent : percent - at));
    if (percent == std::string_view::npos) break;
    at = percent + 1;
    Value value;
    Spec spec;
    bool named = false;
    if (at < format.size() && format[at] == '(') {
      const size_t end = format.find(')', at);
      if (end == std::string_view::npos || !values.is_mapping())
        return wrong("%(name) expects a dict");
      if (!find_key(values, slice(format, at + 1, end - at - 1), &value))
        return wrong("%(name) of a key that is not there");
      named = by_name = true;
      at = end + 1;
    }
    for (;
         at < format.size() && std::string_view("-+ 0#").find(format[at]) != std::string_view::npos;
         ++at) {
      if (format[at] == '-')
        spec.align = '<';
      else if (format[at] == '0')
        spec.zero = true;
      else if (format[at] == '#')
        spec.alternate = true;
      else if (spec.sign != '+')
        spec.sign = format[at];
    }
    if (!read_count(format, &at, &spec.width)) return wrong("the width is too large");
    if (at < format.size() && format[at] == '.')
      if (++at, !read_count(format, &at, &spec.precision))
        return wrong("the precision is too large");
    if (at >= format.size()) return wrong("nothing after %");
    spec.type = format[at++];
    if (spec.align) spec.zero = false;
    if (spec.type == '%') {
      out.append('%');
      continue;
    }
    if (!named) {
      if (used == given) return wrong("more % than values");
      value = tuple ? item_of(values, used) : values;
      ++used;
    }
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    if (std::string_view("dxXoeEfFgG").find(spec.type) != std::string_view::npos) {
      if (!value.is_number()) return wrong("a number is expected");
      MOTE_TRY(format_number(heap, value, spec, out));
    } else if (spec.type == 's' || spec.type == 'r') {
      std::string_view text;
      MOTE_TRY(text_of(heap, value, spec.type == 'r', &text, work));
      if (!spec.align) spec.align = '>';
      MOTE_TRY(format_text(heap, text, spec, out));
    } else {
      return wrong("an unknown letter after %");
    }
  }
  if (used < given && !by_name && !values.is_mapping()) return wrong("more values than %");
  return out.finish(result);
}

// The value of "name.attribute[key]" or "0"; empty: the next one.
static Status find_field(std::string_view field, const Value* arguments, size_t count,
                         const Entry* keywords, size_t keyword_count, size_t* next, Value* value) {
  size_t end = 0;
  while (end < field.size() && field[end] != '.' && field[end] != '[') ++end;
  const std::string_view name = slice(field, 0, end);
  int64_t index = 0;
  if (name.empty() || read_integer(name, 10, &index)) {
    const size_t place = name.empty() ? (*next)++ : static_cast<size_t>(index);
    if (place >= count) return wrong("more {} than values");
    *value = arguments[place];
  } else if (!find_key(Value::of(keywords, keyword_count), name, value)) {
    return wrong("{name} of a value that is not there");
  }
  for (std::string_view rest = slice(field, end); !rest.empty();) {
    const bool bracket = rest[0] == '[';
    const size_t stop = bracket ? rest.find(']') : rest.find_first_of(".[", 1);
    if (bracket && stop == std::string_view::npos) return wrong("[ without ]");
    const std::string_view key = slice(rest, 1, stop == std::string_view::npos ? stop : stop - 1);
    rest.remove_prefix(stop == std::string_view::npos ? rest.size() : stop + (bracket ? 1 : 0));
    const Value from = *value;
    const bool number = read_integer(key, 10, &index);
    if (bracket && number && from.is_sequence() && index >= 0 &&
        static_cast<size_t>(index) < count_of(from)) {
      *value = item_of(from, static_cast<size_t>(index));
    } else if (!bracket || !from.is_mapping() || !find_key(from, key, value)) {
      return wrong("a field that is not there");
    }
  }
  return kOk;
}

Status format_braces(Heap& heap, std::string_view format, const Value* arguments, size_t count,
                     const Entry* keywords, size_t keyword_count, Value* result, Work& work) {
  TextBuilder out(heap);
  size_t next = 0;
  for (size_t at = 0; at < format.size();) {
    const char c = format[at++];
    if (c != '{' && c != '}') {
      const size_t end = std::min(format.find_first_of("{}", at), format.size());
      out.append(slice(format, at - 1, end - at + 1));
      at = end;
      continue;
    }
    if (at < format.size() && format[at] == c) {
      out.append(c);
      ++at;
      continue;
    }
    const size_t end = c == '{' ? format.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos) return wrong(c == '{' ? "{ without }" : "} without {");
    std::string_view field = slice(format, at, end - at), spec;
    if (field.find('{') != std::string_view::npos) return wrong("nested {}");
    at = end + 1;
    if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = slice(field, colon + 1);
      field = slice(field, 0, colon);
    }
    bool quoted = false, text = false;
    if (field.size() >= 2 && field[field.size() - 2] == '!') {
      quoted = field.back() == 'r';
      text = field.back() == 's';
      if (!quoted && !text) return wrong("an unknown conversion after !");
      field.remove_suffix(2);
    }
    Value value;
    MOTE_TRY(find_field(field, arguments, count, keywords, keyword_count, &next, &value));
    if (quoted || text) {
      std::string_view converted;
      MOTE_TRY(text_of(heap, value, quoted, &converted, work));
      value = Value::of(converted);
    }
    MOTE_TRY(format_with_spec(heap, value, spec, out, work));
  }
  return out.finish(result);
}

Status replace_text(Heap& heap, std::string_view text, std::string_view old, std::string_view with,
                    int64_t count, Value* result) {
  TextBuilder out(heap);
  if (old.empty()) {
    // Between all code points.
    size_t at = 0;
    for (;; count -= count > 0) {
      if (count != 0) out.append(with);
      if (at >= text.size()) break;
      const size_t length = read_utf8(text, at).length;
      out.append(slice(text, at, length));
      at += length;
    }
    return out.finish(result);
  }
  size_t at = 0;
  for (; count != 0; count -= count > 0) {
    const size_t found = text.find(old, at);
    if (found == std::string_view::npos) break;
    out.append(slice(text, at, found - at));
    out.append(with);
    at = found + old.size();
  }
  if (at == 0) {
    *result = Value::of(text);
    return kOk;
  }
  out.append(slice(text, at));
  return out.finish(result);
}

Status pad_text(Heap& heap, std::string_view text, int64_t width, std::string_view fill,
                Align align, Value* result) {
  const int64_t missing = width - static_cast<int64_t>(code_points(text));
  if (missing <= 0) {
    *result = Value::of(text);
    return kOk;
  }
  const size_t all = static_cast<size_t>(missing);
  // Python puts an odd space to the left where the width is odd.
  const size_t left = align == Align::left    ? 0
                      : align == Align::right ? all
                                              : all / 2 + (all & static_cast<size_t>(width) & 1);
  TextBuilder out(heap);
  out.repeat(fill, left);
  out.append(text);
  out.repeat(fill, all - left);
  return out.finish(result);
}

Status round_real(double value, int64_t precision, bool integer, Value* result) {
  double rounded = value;
  if (std::isfinite(value) && precision >= 0 && precision <= kMaxPrecision) {
    char digits[kMaxReal];
    const size_t length = write_digits(std::fabs(value), 'f', static_cast<int>(precision), digits);
    parse_real(std::string_view(digits, length), &rounded);
    rounded = std::copysign(rounded, value);
  } else if (std::isfinite(value) && precision < 0) {
    const double factor =
        precision < -310 ? HUGE_VAL : std::pow(10.0, static_cast<double>(-precision));
    rounded = std::nearbyint(value / factor) * factor;
    if (std::isnan(rounded)) rounded = 0;
  }
  if (integer && std::fabs(rounded) >= 9223372036854775808.0)
    return wrong("the rounded integer has more than 64 bits");
  *result = integer ? Value::of(static_cast<int64_t>(rounded)) : Value::of(rounded);
  return kOk;
}

}  // namespace mote::chat
