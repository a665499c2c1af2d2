// Methods of strings, dicts, lists, loops and cyclers.
#include <cmath>

#include "core/slice.h"
#include "core/utf8.h"
#include "models/chat/evaluate.h"
#include "models/chat/text.h"

namespace mote::chat {
namespace {

struct MethodCall {
  Evaluator& evaluator;
  const Value& self;
  const Arguments& arguments;
  Value* result;
  int which;  // tells apart methods that share a function

  Heap& heap() const { return evaluator.heap; }
  Status give(const Value& value) const {
    *result = value;
    return kOk;
  }
  // Reads arguments and checks that the given ones are strings.
  Status strings(const char* const* names, size_t required, Value* values) const {
    MOTE_TRY(bind(arguments, names, required, values));
    for (size_t i = 0; names[i]; ++i)
      if (!missing(values[i]) && !values[i].is(Kind::none) && !values[i].is_string())
        return fail(MOTE_ERROR_TEMPLATE, "argument '%s' expects a string, found '%s'", names[i],
                    type_name(values[i]));
    return kOk;
  }
};

constexpr const char* kNothing[] = {nullptr};

// which: bit 0 at the start, bit 1 at the end.
Status strip_method(const MethodCall& call) {
  Value characters;
  static constexpr const char* kNames[] = {"chars", nullptr};
  MOTE_TRY(call.strings(kNames, 0, &characters));
  std::string_view text = call.self.string();
  const bool given = characters.is_string();
  MOTE_TRY(call.evaluator.spend(text.size() / 64 * (1 + characters.size / 8)));
  if (call.which & 1) text = given ? strip_start(text, characters.string()) : strip_start(text);
  if (call.which & 2) text = given ? strip_end(text, characters.string()) : strip_end(text);
  return call.give(Value::of(text));
}

Status case_method(const MethodCall& call) {
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  MOTE_TRY(call.evaluator.spend(call.self.size / 4));
  return change_case(call.heap(), call.self.string(), static_cast<Case>(call.which), call.result);
}

Status class_method(const MethodCall& call) {
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  MOTE_TRY(call.evaluator.spend(call.self.size / 16));
  return call.give(Value::of(is_class(call.self.string(), static_cast<Class>(call.which))));
}

// which: 0 startswith, 1 endswith. A tuple: any of its strings.
Status affix_method(const MethodCall& call) {
  Value affix;
  static constexpr const char* kNames[] = {"prefix", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, &affix));
  const std::string_view text = call.self.string();
  const size_t count = affix.is(Kind::tuple) ? count_of(affix) : 1;
  bool found = false;
  for (size_t i = 0; i < count; ++i) {
    const Value one = affix.is(Kind::tuple) ? item_of(affix, i) : affix;
    if (!one.is_string())
      return fail(MOTE_ERROR_TEMPLATE, "expected a string or a tuple of strings, found '%s'",
                  type_name(one));
    if (one.size > text.size()) continue;
    found |= slice(text, call.which ? text.size() - one.size : 0, one.size) == one.string();
  }
  return call.give(Value::of(found));
}

// which: 0 removeprefix, 1 removesuffix.
Status remove_affix(const MethodCall& call) {
  Value affix;
  static constexpr const char* kNames[] = {"prefix", nullptr};
  MOTE_TRY(call.strings(kNames, 1, &affix));
  std::string_view text = call.self.string();
  if (affix.size <= text.size()) {
    const bool found =
        slice(text, call.which ? text.size() - affix.size : 0, affix.size) == affix.string();
    if (found)
      text = call.which ? slice(text, 0, text.size() - affix.size) : slice(text, affix.size);
  }
  return call.give(Value::of(text));
}

// The part of self that start and end (code points, as of a slice) leave; *offset: code points
// before it.
Status window(const MethodCall& call, const Value& start, const Value& end, std::string_view* part,
              size_t* offset) {
  const std::string_view text = call.self.string();
  const int64_t length = static_cast<int64_t>(code_points(text));
  int64_t from = 0, to = length;
  for (const Value* bound : {&start, &end}) {
    if (missing(*bound) || bound->is(Kind::none)) continue;
    if (!bound->is_integral())
      return fail(MOTE_ERROR_TEMPLATE, "expected an integer, found '%s'", type_name(*bound));
    int64_t at = bound->as_integer();
    if (at < 0) at = at + length < 0 ? 0 : at + length;
    (bound == &start ? from : to) = at;
  }
  *offset = static_cast<size_t>(from);
  if (from > length || to < from) return *part = std::string_view(nullptr, 0), kOk;
  const size_t begin = byte_offset(text, static_cast<size_t>(from));
  const std::string_view rest = slice(text, begin);
  *part = slice(rest, 0, byte_offset(rest, static_cast<size_t>(to - from)));
  if (!part->data()) *part = std::string_view("", 0);
  return kOk;
}

// which: bit 0 from the end, bit 1 raises.
Status find_text_method(const MethodCall& call) {
  Value values[3];
  static constexpr const char* kNames[] = {"sub", "start", "end", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, values));
  if (!values[0].is_string())
    return fail(MOTE_ERROR_TEMPLATE, "expected a string, found '%s'", type_name(values[0]));
  std::string_view part;
  size_t offset = 0;
  MOTE_TRY(call.evaluator.spend(search_steps(call.self.size, values[0].size)));
  MOTE_TRY(window(call, values[1], values[2], &part, &offset));
  size_t at = std::string_view::npos;
  if (part.data())
    at = call.which & 1 ? part.rfind(values[0].string()) : part.find(values[0].string());
  if (at != std::string_view::npos)
    return call.give(Value::of(static_cast<int64_t>(offset + code_points(slice(part, 0, at)))));
  if (call.which & 2) return fail(MOTE_ERROR_TEMPLATE, "substring not found");
  return call.give(Value::of(int64_t{-1}));
}

Status count_method(const MethodCall& call) {
  Value values[3];
  static constexpr const char* kNames[] = {"sub", "start", "end", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, values));
  if (!values[0].is_string())
    return fail(MOTE_ERROR_TEMPLATE, "expected a string, found '%s'", type_name(values[0]));
  std::string_view part;
  size_t offset = 0;
  MOTE_TRY(call.evaluator.spend(search_steps(call.self.size, values[0].size)));
  MOTE_TRY(window(call, values[1], values[2], &part, &offset));
  if (!part.data()) return call.give(Value::of(int64_t{0}));
  if (values[0].size == 0) return call.give(Value::of(static_cast<int64_t>(code_points(part)) + 1));
  int64_t count = 0;
  for (size_t at = 0; (at = part.find(values[0].string(), at)) != std::string_view::npos;
       at += values[0].size)
    ++count;
  return call.give(Value::of(count));
}

Status replace_method(const MethodCall& call) {
  Value values[3];
  static constexpr const char* kNames[] = {"old", "new", "count", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 2, values));
  if (!values[0].is_string() || !values[1].is_string())
    return fail(MOTE_ERROR_TEMPLATE, "replace expects strings");
  if (!missing(values[2]) && !values[2].is_integral())
    return fail(MOTE_ERROR_TEMPLATE, "replace expects an integer count");
  MOTE_TRY(call.evaluator.spend(call.self.size / 4 + search_steps(call.self.size, values[0].size)));
  return replace_text(call.heap(), call.self.string(), values[0].string(), values[1].string(),
                      missing(values[2]) ? -1 : values[2].as_integer(), call.result);
}

// One more part of a split; the list is allocated for as many as there can be.
struct Parts {
  Value* items;
  size_t count;
  void add(std::string_view text) { items[count++] = Value::of(text); }
};

void split_at_spaces(std::string_view text, int64_t limit, Parts* parts) {
  for (text = strip_start(text); !text.empty(); text = strip_start(text)) {
    size_t end = 0;
    while (end < text.size() && !is_space(read_utf8(text, end).value))
      end += read_utf8(text, end).length;
    if (limit >= 0 && static_cast<int64_t>(parts->count) == limit) return parts->add(text);
    parts->add(slice(text, 0, end));
    text.remove_prefix(end);
  }
}

void split_at_spaces_from_end(std::string_view text, int64_t limit, Parts* parts) {
  for (text = strip_end(text); !text.empty(); text = strip_end(text)) {
    if (limit >= 0 && static_cast<int64_t>(parts->count) == limit) return parts->add(text);
    size_t begin = text.size(), after = 0;
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = read_utf8(text, at);
      at += point.length;
      if (is_space(point.value)) after = at;
    }
    begin = after;
    parts->add(slice(text, begin));
    text = slice(text, 0, begin);
  }
}

// which: 0 split, 1 rsplit.
Status split_method(const MethodCall& call) {
  Value values[2];
  static constexpr const char* kNames[] = {"sep", "maxsplit", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  const bool spaces = missing(values[0]) || values[0].is(Kind::none);
  if (!spaces && !values[0].is_string())
    return fail(MOTE_ERROR_TEMPLATE, "split expects a string, found '%s'", type_name(values[0]));
  if (!spaces && values[0].size == 0)
    return fail(MOTE_ERROR_TEMPLATE, "split at an empty separator");
  if (!missing(values[1]) && !values[1].is_integral())
    return fail(MOTE_ERROR_TEMPLATE, "split expects an integer maxsplit");
  const int64_t limit = missing(values[1]) ? -1 : values[1].as_integer();
  std::string_view text = call.self.string();
  const std::string_view separator = spaces ? " " : values[0].string();
  MOTE_TRY(call.evaluator.spend(search_steps(text.size(), separator.size())));
  // Count first: a place for each part.
  size_t most = 1;
  if (spaces) {
    bool inside = false;
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = read_utf8(text, at);
      const bool space = is_space(point.value);
      most += !space && !inside;
      inside = !space;
      at += point.length;
    }
  } else {
    for (size_t at = 0; (at = text.find(separator, at)) != std::string_view::npos;
         at += separator.size())
      ++most;
  }
  if (limit >= 0 && static_cast<uint64_t>(limit) + 1 < most) most = static_cast<size_t>(limit) + 1;
  Parts parts{nullptr, 0};
  MOTE_TRY(call.evaluator.take_items(most, &parts.items));
  if (spaces && call.which) MOTE_TRY(call.evaluator.spend(most * (text.size() / 16)));
  if (spaces) {
    (call.which ? split_at_spaces_from_end : split_at_spaces)(text, limit, &parts);
  } else {
    while (parts.count + 1 < most) {
      const size_t at = call.which ? text.rfind(separator) : text.find(separator);
      if (at == std::string_view::npos) break;
      parts.add(call.which ? slice(text, at + separator.size()) : slice(text, 0, at));
      text = call.which ? slice(text, 0, at) : slice(text, at + separator.size());
    }
    parts.add(text);
  }
  for (size_t i = 0; call.which && i < parts.count / 2; ++i) {
    const Value other = parts.items[i];
    parts.items[i] = parts.items[parts.count - 1 - i];
    parts.items[parts.count - 1 - i] = other;
  }
  return call.give(Value::of(Kind::list, parts.items, parts.count));
}

Status splitlines_method(const MethodCall& call) {
  Value keep;
  static constexpr const char* kNames[] = {"keepends", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, &keep));
  const std::string_view text = call.self.string();
  MOTE_TRY(call.evaluator.spend(text.size() / 16));
  const auto is_end = [](uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
  };
  Value* items = nullptr;
  size_t count = 0;
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) MOTE_TRY(call.evaluator.take_items(count, &items));
    count = 0;
    for (size_t at = 0, begin = 0; at < text.size();) {
      const CodePoint point = read_utf8(text, at);
      size_t next = at + point.length;
      const bool end = is_end(point.value);
      if (point.value == '\r' && next < text.size() && text[next] == '\n') ++next;
      const size_t line = end ? (is_true(keep) ? next : at) : next;
      if (end || next == text.size()) {
        if (items) items[count] = Value::of(slice(text, begin, line - begin));
        ++count;
        begin = next;
      }
      at = next;
    }
  }
  return call.give(Value::of(Kind::list, items, count));
}

// which: 0 partition, 1 rpartition.
Status partition_method(const MethodCall& call) {
  Value separator, *parts = nullptr;
  static constexpr const char* kNames[] = {"sep", nullptr};
  MOTE_TRY(call.strings(kNames, 1, &separator));
  const std::string_view text = call.self.string();
  if (separator.size == 0) return fail(MOTE_ERROR_TEMPLATE, "partition at an empty separator");
  MOTE_TRY(call.evaluator.take_items(3, &parts));
  MOTE_TRY(call.evaluator.spend(search_steps(text.size(), separator.size)));
  const size_t at = call.which ? text.rfind(separator.string()) : text.find(separator.string());
  const bool found = at != std::string_view::npos;
  parts[0] = Value::of(found ? slice(text, 0, at) : call.which ? "" : text);
  parts[1] = found ? separator : Value::of("");
  parts[2] = Value::of(found ? slice(text, at + separator.size) : call.which ? text : "");
  return call.give(Value::of(Kind::tuple, parts, 3));
}

Status join_method(const MethodCall& call) {
  Value list, items;
  static constexpr const char* kNames[] = {"iterable", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, &list));
  MOTE_TRY(call.evaluator.iterate(list, &items));
  TextBuilder text(call.heap());
  for (size_t i = 0; i < count_of(items); ++i) {
    const Value item = item_of(items, i);
    if (!item.is_string())
      return fail(MOTE_ERROR_TEMPLATE, "join expects strings, found '%s'", type_name(item));
    MOTE_TRY(call.evaluator.spend(1 + (item.size + call.self.size) / 64));
    if (i > 0) text.append(call.self.string());
    text.append(item.string());
  }
  return text.finish(call.result);
}

Status format_method(const MethodCall& call) {
  return format_braces(call.heap(), call.self.string(), call.arguments.values, call.arguments.count,
                       call.arguments.keywords, call.arguments.keyword_count, call.result,
                       call.evaluator.work);
}

Status pad_method(const MethodCall& call) {
  Value values[2];
  static constexpr const char* kNames[] = {"width", "fillchar", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, values));
  if (!values[0].is_integral())
    return fail(MOTE_ERROR_TEMPLATE, "expected an integer width, found '%s'", type_name(values[0]));
  const std::string_view fill = missing(values[1])      ? " "
                                : values[1].is_string() ? values[1].string()
                                                        : "";
  if (code_points(fill) != 1)
    return fail(MOTE_ERROR_TEMPLATE, "expected one character to fill with");
  return pad_text(call.heap(), call.self.string(), values[0].as_integer(), fill,
                  static_cast<Align>(call.which), call.result);
}

Status zfill_method(const MethodCall& call) {
  Value width, rest;
  static constexpr const char* kNames[] = {"width", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, &width));
  if (!width.is_integral())
    return fail(MOTE_ERROR_TEMPLATE, "expected an integer width, found '%s'", type_name(width));
  const std::string_view text = call.self.string();
  const bool sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  if (!sign) return pad_text(call.heap(), text, width.as_integer(), "0", Align::right, call.result);
  const int64_t rest_width = width.as_integer() > 0 ? width.as_integer() - 1 : 0;
  MOTE_TRY(pad_text(call.heap(), slice(text, 1), rest_width, "0", Align::right, &rest));
  TextBuilder out(call.heap());
  out.append(text[0]);
  out.append(rest.string());
  return out.finish(call.result);
}

Status get_method(const MethodCall& call) {
  Value values[2];
  static constexpr const char* kNames[] = {"key", "default", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, values));
  if (missing(values[1])) values[1] = Value::none();
  MOTE_TRY(call.evaluator.spend(count_of(call.self) / 8));
  if (!find_key(call.self, values[0], call.result, call.evaluator.work)) *call.result = values[1];
  return kOk;
}

// which: 0 keys, 1 values, 2 items.
Status view_method(const MethodCall& call) {
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  const size_t count = count_of(call.self);
  Value *items = nullptr, *parts = nullptr;
  MOTE_TRY(call.evaluator.take_items(count, &items));
  if (call.which == 2) MOTE_TRY(call.evaluator.take_items(2 * count, &parts));
  for (size_t i = 0; i < count; ++i) {
    const Entry entry = entry_of(call.self, i);
    items[i] = call.which == 0 ? entry.key : entry.value;
    if (call.which < 2) continue;
    parts[2 * i] = entry.key;
    parts[2 * i + 1] = entry.value;
    items[i] = Value::of(Kind::tuple, parts + 2 * i, 2);
  }
  *call.result = Value::of(Kind::view, items, count);
  call.result->detail = static_cast<uint8_t>(call.which);
  return kOk;
}

Status copy_method(const MethodCall& call) {
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  return call.give(call.self);  // values do not change
}

// which: 0 count, 1 index.
Status search_list(const MethodCall& call) {
  Value item;
  static constexpr const char* kNames[] = {"value", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, &item));
  int64_t count = 0;
  for (size_t i = 0; i < count_of(call.self); ++i) {
    if (!equal(item_of(call.self, i), item, call.evaluator.work)) continue;
    if (call.which) return call.give(Value::of(static_cast<int64_t>(i)));
    ++count;
  }
  MOTE_TRY(call.evaluator.spend(1));
  return call.which ? fail(MOTE_ERROR_TEMPLATE, "the value is not in the list")
                    : call.give(Value::of(count));
}

Status is_integer_method(const MethodCall& call) {
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  return call.give(
      Value::of(std::floor(call.self.real) == call.self.real && !std::isinf(call.self.real)));
}

Status loop_cycle(const MethodCall& call) {
  if (call.arguments.count == 0 || call.arguments.keyword_count > 0)
    return fail(MOTE_ERROR_TEMPLATE, "loop.cycle expects at least one item");
  return call.give(call.arguments.values[call.self.loop->index % call.arguments.count]);
}

Status loop_changed(const MethodCall& call) {
  Loop& loop = *call.self.loop;
  const Value now = Value::of(Kind::tuple, call.arguments.values, call.arguments.count);
  const bool same =
      loop.changed &&
      equal(now, Value::of(Kind::tuple, loop.changed, loop.changed_count), call.evaluator.work);
  if (same) return call.give(Value::of(false));
  loop.changed = call.arguments.values;
  loop.changed_count = static_cast<uint32_t>(call.arguments.count);
  call.heap().keep(now);
  return call.give(Value::of(true));
}

// which: 0 next, 1 reset.
Status cycler_method(const MethodCall& call) {
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  Cycler& cycler = *call.self.cycler;
  *call.result = call.which ? Value::none() : cycler.items[cycler.at];
  cycler.at = call.which ? 0 : (cycler.at + 1) % cycler.count;
  return kOk;
}

enum Owner : uint8_t { kText, kDict, kList, kReal, kLoop, kCycler };
struct Method {
  Owner owner;
  const char* name;
  Status (*call)(const MethodCall& call);
  int which;
};
constexpr Method kMethods[] = {
    {kText, "strip", strip_method, 3},
    {kText, "lstrip", strip_method, 1},
    {kText, "rstrip", strip_method, 2},
    {kText, "split", split_method, 0},
    {kText, "rsplit", split_method, 1},
    {kText, "splitlines", splitlines_method, 0},
    {kText, "partition", partition_method, 0},
    {kText, "rpartition", partition_method, 1},
    {kText, "startswith", affix_method, 0},
    {kText, "endswith", affix_method, 1},
    {kText, "removeprefix", remove_affix, 0},
    {kText, "removesuffix", remove_affix, 1},
    {kText, "upper", case_method, static_cast<int>(Case::upper)},
    {kText, "lower", case_method, static_cast<int>(Case::lower)},
    {kText, "casefold", case_method, static_cast<int>(Case::lower)},
    {kText, "title", case_method, static_cast<int>(Case::title)},
    {kText, "capitalize", case_method, static_cast<int>(Case::capital)},
    {kText, "swapcase", case_method, static_cast<int>(Case::swapped)},
    {kText, "find", find_text_method, 0},
    {kText, "rfind", find_text_method, 1},
    {kText, "index", find_text_method, 2},
    {kText, "rindex", find_text_method, 3},
    {kText, "count", count_method, 0},
    {kText, "replace", replace_method, 0},
    {kText, "join", join_method, 0},
    {kText, "format", format_method, 0},
    {kText, "zfill", zfill_method, 0},
    {kText, "ljust", pad_method, static_cast<int>(Align::left)},
    {kText, "rjust", pad_method, static_cast<int>(Align::right)},
    {kText, "center", pad_method, static_cast<int>(Align::center)},
    {kText, "isspace", class_method, static_cast<int>(Class::space)},
    {kText, "isdigit", class_method, static_cast<int>(Class::digit)},
    {kText, "isalpha", class_method, static_cast<int>(Class::alpha)},
    {kText, "isalnum", class_method, static_cast<int>(Class::alphanumeric)},
    {kText, "isupper", class_method, static_cast<int>(Class::upper)},
    {kText, "islower", class_method, static_cast<int>(Class::lower)},
    {kText, "istitle", class_method, static_cast<int>(Class::title)},
    {kText, "isascii", class_method, static_cast<int>(Class::ascii)},
    {kText, "isidentifier", class_method, static_cast<int>(Class::identifier)},
    {kDict, "get", get_method, 0},
    {kDict, "keys", view_method, 0},
    {kDict, "values", view_method, 1},
    {kDict, "items", view_method, 2},
    {kDict, "copy", copy_method, 0},
    {kList, "count", search_list, 0},
    {kList, "index", search_list, 1},
    {kList, "copy", copy_method, 0},
    {kReal, "is_integer", is_integer_method, 0},
    {kLoop, "cycle", loop_cycle, 0},
    {kLoop, "changed", loop_changed, 0},
    {kCycler, "next", cycler_method, 0},
    {kCycler, "reset", cycler_method, 1},
};

bool owner_of(const Value& object, Owner* owner) {
  switch (object.kind) {
    case Kind::string:
      *owner = kText;
      return true;
    case Kind::dict:
    case Kind::message:
      *owner = kDict;
      return true;
    case Kind::list:
    case Kind::messages:
    case Kind::tuple:
    case Kind::range:
      *owner = kList;
      return true;
    case Kind::real:
      *owner = kReal;
      return true;
    case Kind::loop:
      *owner = kLoop;
      return true;
    case Kind::cycler:
      *owner = kCycler;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool find_method(const Value& object, std::string_view name, uint8_t* method) {
  Owner owner;
  if (!owner_of(object, &owner)) return false;
  for (size_t i = 0; i < sizeof kMethods / sizeof kMethods[0]; ++i) {
    if (kMethods[i].owner != owner || name != kMethods[i].name) continue;
    *method = static_cast<uint8_t>(i);
    return true;
  }
  return false;
}

Status call_method(uint8_t method, Evaluator& evaluator, const Value& self,
                   const Arguments& arguments, Value* result) {
  return kMethods[method].call(
      MethodCall{evaluator, self, arguments, result, kMethods[method].which});
}

}  // namespace mote::chat
