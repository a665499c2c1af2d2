// Filters of single values, and the table of all.
#include "models/chat/filters.h"

#include <cmath>

#include "core/slice.h"
#include "core/utf8.h"
#include "models/chat/parser.h"
#include "models/chat/text.h"

namespace mote::chat {

Status integer_argument(const Value& value, int64_t* integer) {
  if (missing(value) || value.is(Kind::none)) return kOk;
  if (!value.is_integral())
    return fail(MOTE_ERROR_TEMPLATE, "expected an integer argument, found '%s'", type_name(value));
  *integer = value.as_integer();
  return kOk;
}

namespace {

constexpr const char* kNothing[] = {nullptr};

// The input as a text, for a filter without arguments.
Status text_input(const FilterCall& call, std::string_view* text) {
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  MOTE_TRY(to_string(call.heap(), call.input, text, call.work()));
  return call.evaluator.spend(text->size() / 4);
}

Status change(const FilterCall& call, Case to) {
  std::string_view text;
  MOTE_TRY(text_input(call, &text));
  return change_case(call.heap(), text, to, call.result);
}
Status upper(const FilterCall& call) { return change(call, Case::upper); }
Status lower(const FilterCall& call) { return change(call, Case::lower); }
Status capitalize(const FilterCall& call) { return change(call, Case::capital); }

// Not str.title: words begin after spaces and - ( { [ <.
Status title(const FilterCall& call) {
  std::string_view text;
  MOTE_TRY(text_input(call, &text));
  // Each piece is changed by itself and follows the one before in memory.
  Value result = Value::of(""), piece;
  for (size_t at = 0; at < text.size();) {
    const size_t first = read_utf8(text, at).length;
    size_t end = at + first;
    const auto breaks = [&](size_t i) {
      const uint32_t c = read_utf8(text, i).value;
      return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    };
    const bool separator = breaks(at);
    while (end < text.size() && breaks(end) == separator) end += read_utf8(text, end).length;
    MOTE_TRY(change_case(call.heap(), slice(text, at, first), Case::upper, &piece));
    MOTE_TRY(concatenate(call.heap(), result.string(), piece.string(), &result));
    MOTE_TRY(
        change_case(call.heap(), slice(text, at + first, end - at - first), Case::lower, &piece));
    MOTE_TRY(concatenate(call.heap(), result.string(), piece.string(), &result));
    at = end;
  }
  return call.give(result);
}

Status string(const FilterCall& call) {
  std::string_view text;
  MOTE_TRY(text_input(call, &text));
  return call.give(Value::of(text));
}

Status trim(const FilterCall& call) {
  Value characters;
  static constexpr const char* kNames[] = {"chars", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, &characters));
  std::string_view text;
  MOTE_TRY(to_string(call.heap(), call.input, &text, call.work()));
  if (!characters.is_string()) return call.give(Value::of(strip(text)));
  MOTE_TRY(call.evaluator.spend(text.size() / 16 * (1 + characters.size / 8)));
  return call.give(
      Value::of(strip_start(strip_end(text, characters.string()), characters.string())));
}

Status default_value(const FilterCall& call) {
  Value values[2];
  static constexpr const char* kNames[] = {"default_value", "boolean", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  if (missing(values[0])) values[0] = Value::of("");
  const bool replace =
      call.input.is(Kind::undefined) || (is_true(values[1]) && !is_true(call.input));
  return call.give(replace ? values[0] : call.input);
}

Status replace(const FilterCall& call) {
  Value values[3];
  static constexpr const char* kNames[] = {"old", "new", "count", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 2, values));
  std::string_view texts[3];
  MOTE_TRY(to_string(call.heap(), call.input, &texts[0], call.work()));
  MOTE_TRY(to_string(call.heap(), values[0], &texts[1], call.work()));
  MOTE_TRY(to_string(call.heap(), values[1], &texts[2], call.work()));
  int64_t count = -1;
  MOTE_TRY(integer_argument(values[2], &count));
  MOTE_TRY(
      call.evaluator.spend(texts[0].size() / 4 + search_steps(texts[0].size(), texts[1].size())));
  return replace_text(call.heap(), texts[0], texts[1], texts[2], count, call.result);
}

Status to_integer(const FilterCall& call) {
  Value values[2];
  static constexpr const char* kNames[] = {"default", "base", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  int64_t base = 10, integer = 0;
  MOTE_TRY(integer_argument(values[1], &base));
  if (missing(values[0])) values[0] = Value::of(int64_t{0});
  const Value& input = call.input;
  if (input.is_integral()) return call.give(Value::of(input.as_integer()));
  double real = input.is(Kind::real) ? input.real : 0;
  if (input.is_string()) {
    std::string_view text = strip(input.string());
    const bool prefixed =
        text.size() > 2 && text[0] == '0' &&
        ((base == 16 && (text[1] | 32) == 'x') || (base == 8 && (text[1] | 32) == 'o') ||
         (base == 2 && (text[1] | 32) == 'b'));
    if (prefixed) text.remove_prefix(2);
    if (read_integer(text, static_cast<int>(base < 2 || base > 36 ? 10 : base), &integer))
      return call.give(Value::of(integer));
    if (!read_real(text, &real)) return call.give(values[0]);
  } else if (!input.is(Kind::real)) {
    if (input.is(Kind::undefined))
      return fail(MOTE_ERROR_TEMPLATE, "'%.*s' is undefined", static_cast<int>(input.size),
                  input.text);
    return call.give(values[0]);
  }
  if (std::isnan(real) || std::isinf(real)) return call.give(values[0]);
  if (std::fabs(real) >= 9223372036854775808.0)
    return fail(MOTE_ERROR_TEMPLATE, "an integer of more than 64 bits");
  return call.give(Value::of(static_cast<int64_t>(real)));
}

Status to_real(const FilterCall& call) {
  Value value;
  static constexpr const char* kNames[] = {"default", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, &value));
  double real = 0;
  if (call.input.is_number()) return call.give(Value::of(call.input.as_real()));
  if (call.input.is_string() && read_real(call.input.string(), &real))
    return call.give(Value::of(real));
  if (call.input.is(Kind::undefined))
    return fail(MOTE_ERROR_TEMPLATE, "'%.*s' is undefined", static_cast<int>(call.input.size),
                call.input.text);
  return call.give(missing(value) ? Value::of(0.0) : value);
}

Status absolute(const FilterCall& call) {
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  if (call.input.is(Kind::real)) return call.give(Value::of(std::fabs(call.input.real)));
  if (call.input.is_integral() && call.input.as_integer() >= 0)
    return call.give(Value::of(call.input.as_integer()));
  return negate(call.input, call.result);
}

Status round_value(const FilterCall& call) {
  Value values[2];
  static constexpr const char* kNames[] = {"precision", "method", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  int64_t precision = 0;
  MOTE_TRY(integer_argument(values[0], &precision));
  const std::string_view method = values[1].is_string() ? values[1].string() : "common";
  if (!call.input.is_number())
    return fail(MOTE_ERROR_TEMPLATE, "round expects a number, found '%s'", type_name(call.input));
  if (method != "common" && method != "ceil" && method != "floor")
    return fail(MOTE_ERROR_TEMPLATE, "method must be common, ceil or floor");
  const double value = call.input.as_real();
  if (method == "common") {
    if (call.input.is_integral() && precision >= 0)
      return call.give(Value::of(call.input.as_integer()));
    return round_real(value, precision, call.input.is_integral(), call.result);
  }
  const double factor = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value * factor;
  return call.give(Value::of((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / factor));
}

Status attr(const FilterCall& call) {
  Value name;
  static constexpr const char* kNames[] = {"name", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, &name));
  std::string_view text;
  MOTE_TRY(to_string(call.heap(), name, &text, call.work()));
  // Only what Python calls an attribute: not the entries of a dict.
  if (!call.input.is_mapping()) return call.evaluator.attribute(call.input, text, call.result);
  uint8_t method = 0;
  if (find_method(call.input, text, &method))
    return call.evaluator.attribute(call.input, text, call.result);
  return call.give(Value::undefined(text, &call.input));
}

Status tojson(const FilterCall& call) {
  Value values[4];
  static constexpr const char* kNames[] = {"ensure_ascii", "indent", "separators", "sort_keys",
                                           nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  JsonStyle style;
  style.ascii = is_true(values[0]);
  style.sort_keys = is_true(values[3]);
  const Value& indent = values[1];
  Value spaces;
  if (indent.is_integral()) {
    style.has_indent = true;
    int64_t width = indent.as_integer();
    if (width < 0) width = 0;
    if (width > 64)
      return fail(MOTE_ERROR_TEMPLATE, "tojson: indent %lld, expected 64 at most",
                  static_cast<long long>(width));
    TextBuilder text(call.heap());
    text.repeat(" ", static_cast<size_t>(width));
    MOTE_TRY(text.finish(&spaces));
    style.indent = spaces.string();
  } else if (indent.is_string()) {
    style.has_indent = true;
    style.indent = indent.string();
  }
  if (style.has_indent) style.item_separator = ",";
  const Value& separators = values[2];
  if (separators.is_sequence()) {
    if (count_of(separators) != 2 || !item_of(separators, 0).is_string() ||
        !item_of(separators, 1).is_string())
      return fail(MOTE_ERROR_TEMPLATE, "tojson: separators must be two strings");
    style.item_separator = item_of(separators, 0).string();
    style.key_separator = item_of(separators, 1).string();
  }
  return to_json(call.heap(), call.input, style, call.result, call.work());
}

Status escape(const FilterCall& call) {
  std::string_view text;
  MOTE_TRY(text_input(call, &text));
  TextBuilder out(call.heap());
  for (const char c : text) {
    switch (c) {
      case '&':
        out.append("&amp;");
        break;
      case '<':
        out.append("&lt;");
        break;
      case '>':
        out.append("&gt;");
        break;
      case '"':
        out.append("&#34;");
        break;
      case '\'':
        out.append("&#39;");
        break;
      default:
        out.append(c);
    }
  }
  return out.finish(call.result);
}

Status urlencode_one(TextBuilder& out, std::string_view text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    const uint8_t byte = static_cast<uint8_t>(c);
    const bool plain = (byte | 32u) - 'a' < 26u || byte - 48u < 10u || c == '_' || c == '.' ||
                       c == '-' || c == '~';
    if (plain || (c == '/' && keep_slash)) {
      out.append(c);
    } else {
      const char escaped[3] = {'%', kDigits[byte >> 4], kDigits[byte & 15]};
      out.append(std::string_view(escaped, 3));
    }
  }
  return kOk;
}

Status urlencode(const FilterCall& call) {
  std::string_view text;
  MOTE_TRY(text_input(call, &text));
  TextBuilder out(call.heap());
  MOTE_TRY(urlencode_one(out, text, true));
  return out.finish(call.result);
}

Status format(const FilterCall& call) {
  if (!call.input.is_string())
    return fail(MOTE_ERROR_TEMPLATE, "format expects a string, found '%s'", type_name(call.input));
  if (call.arguments.keyword_count > 0 && call.arguments.count > 0)
    return fail(MOTE_ERROR_TEMPLATE, "format: arguments with and without names");
  const Value values = call.arguments.keyword_count > 0
                           ? Value::of(call.arguments.keywords, call.arguments.keyword_count)
                           : Value::of(Kind::tuple, call.arguments.values, call.arguments.count);
  return format_percent(call.heap(), call.input.string(), values, call.result, call.work());
}

Status indent(const FilterCall& call) {
  Value values[3];
  static constexpr const char* kNames[] = {"width", "first", "blank", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  std::string_view text;
  MOTE_TRY(to_string(call.heap(), call.input, &text, call.work()));
  MOTE_TRY(call.evaluator.spend(text.size() / 16));
  int64_t width = 4;
  if (!values[0].is_string()) MOTE_TRY(integer_argument(values[0], &width));
  TextBuilder out(call.heap());
  bool first = true;
  for (size_t at = 0; at <= text.size();) {
    size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view line = slice(text, at, end - at);
    if (first ? is_true(values[1]) : (!line.empty() || is_true(values[2]))) {
      if (values[0].is_string())
        out.append(values[0].string());
      else
        out.repeat(" ", width > 0 ? static_cast<size_t>(width) : 0);
    }
    out.append(line);
    if (end < text.size()) out.append('\n');
    first = false;
    at = end + 1;
  }
  return out.finish(call.result);
}

Status center(const FilterCall& call) {
  Value value;
  static constexpr const char* kNames[] = {"width", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, &value));
  std::string_view text;
  MOTE_TRY(to_string(call.heap(), call.input, &text, call.work()));
  int64_t width = 80;
  MOTE_TRY(integer_argument(value, &width));
  return pad_text(call.heap(), text, width, " ", Align::center, call.result);
}

Status truncate(const FilterCall& call) {
  Value values[4];
  static constexpr const char* kNames[] = {"length", "killwords", "end", "leeway", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  std::string_view text;
  MOTE_TRY(to_string(call.heap(), call.input, &text, call.work()));
  int64_t length = 255, leeway = 5;
  MOTE_TRY(integer_argument(values[0], &length));
  MOTE_TRY(integer_argument(values[3], &leeway));
  const std::string_view end = values[2].is_string() ? values[2].string() : "...";
  const int64_t end_length = static_cast<int64_t>(code_points(end));
  if (length < end_length || leeway < 0)
    return fail(MOTE_ERROR_TEMPLATE, "truncate: length %lld is too small",
                static_cast<long long>(length));
  const int64_t limit = length > INT64_MAX - leeway ? INT64_MAX : length + leeway;
  if (static_cast<int64_t>(code_points(text)) <= limit) return call.give(Value::of(text));
  std::string_view kept =
      slice(text, 0, byte_offset(text, static_cast<size_t>(length - end_length)));
  if (!is_true(values[1])) kept = slice(kept, 0, kept.rfind(' '));
  TextBuilder out(call.heap());
  out.append(kept);
  out.append(end);
  return out.finish(call.result);
}

Status wordcount(const FilterCall& call) {
  std::string_view text;
  MOTE_TRY(text_input(call, &text));
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = read_utf8(text, at);
    const bool word =
        point.value == '_' || is_class(slice(text, at, point.length), Class::alphanumeric);
    count += word && !inside;
    inside = word;
    at += point.length;
  }
  return call.give(Value::of(count));
}

struct Name {
  const char* name;
  Filter filter;
};
constexpr Name kFilters[] = {
    {"abs", absolute},
    {"attr", attr},
    {"batch", filter_batch},
    {"capitalize", capitalize},
    {"center", center},
    {"count", filter_length},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", filter_dictsort},
    {"e", escape},
    {"escape", escape},
    {"first", filter_first},
    {"float", to_real},
    {"forceescape", escape},
    {"format", format},
    {"groupby", filter_groupby},
    {"indent", indent},
    {"int", to_integer},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"lower", lower},
    {"map", filter_map},
    {"max", filter_max},
    {"min", filter_min},
    {"reject", filter_reject},
    {"rejectattr", filter_rejectattr},
    {"replace", replace},
    {"reverse", filter_reverse},
    {"round", round_value},
    {"safe", string},
    {"select", filter_select},
    {"selectattr", filter_selectattr},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"string", string},
    {"sum", filter_sum},
    {"title", title},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"unique", filter_unique},
    {"upper", upper},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
};

}  // namespace

uint8_t find_filter(std::string_view name) {
  for (size_t i = 0; i < sizeof kFilters / sizeof kFilters[0]; ++i)
    if (name == kFilters[i].name) return static_cast<uint8_t>(i + 1);
  return 0;
}

Status apply_filter(uint8_t filter, Evaluator& evaluator, const Value& input,
                    const Arguments& arguments, Value* result) {
  return kFilters[filter - 1].filter(FilterCall{evaluator, input, arguments, result});
}

}  // namespace mote::chat
