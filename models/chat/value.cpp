#include "models/chat/value.h"

#include <algorithm>
#include <cmath>

#include "models/chat/text.h"

namespace mote::chat {

Value Value::undefined(std::string_view name, const Value* owner) {
  Value result = of(name);
  result.kind = Kind::undefined;
  result.detail = owner ? static_cast<uint8_t>(1 + static_cast<int>(owner->kind)) : 0;
  return result;
}

bool Value::is_callable() const {
  switch (kind) {
    case Kind::macro:
    case Kind::function:
    case Kind::method:
    case Kind::joiner:
    case Kind::loop:
      return true;
    default:
      return false;
  }
}

char* Heap::take(size_t bytes, size_t alignment) {
  const size_t start = (top_ + alignment - 1) & ~(alignment - 1);
  if (start > end_ || bytes > end_ - start) return nullptr;
  top_ = start + bytes;
  return base_ + start;
}

std::string_view Heap::release_all_but(size_t mark, std::string_view text) {
  release(mark);
  char* free = base_ + top_;
  const char* end = text.data() + text.size();
  if (text.empty() || text.data() < base_ || text.data() >= base_ + end_ || end <= free)
    return text;
  if (text.data() > free) {
    memmove(free, text.data(), text.size());
    text = std::string_view(free, text.size());
  }
  if (!keeps_) top_ = static_cast<size_t>(text.data() - base_) + text.size();
  return text;
}

void Heap::keep(const Value& value) {
  size_t end = top_;
  switch (value.kind) {
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::function:
      return;
    case Kind::undefined:
    case Kind::string:
      if (value.text < base_ || value.text >= base_ + top_) return;
      end = static_cast<size_t>(value.text - base_) + value.size;
      break;
    default:
      break;
  }
  if (end > floor_) floor_ = end;
}

const char* type_name(const Value& value) {
  switch (value.kind) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return "str";
    case Kind::list:
    case Kind::messages:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::generator:
      return "generator";
    case Kind::view:
      return "dict view";
    case Kind::range:
      return "range";
    case Kind::dict:
    case Kind::message:
      return "dict";
    case Kind::name_space:
      return "Namespace";
    case Kind::loop:
      return "LoopContext";
    case Kind::macro:
      return "Macro";
    case Kind::function:
      return "function";
    case Kind::method:
      return "method";
    case Kind::cycler:
      return "Cycler";
    case Kind::joiner:
      return "Joiner";
  }
  return "value";
}

bool is_true(const Value& value) {
  switch (value.kind) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return value.boolean;
    case Kind::integer:
      return value.integer != 0;
    case Kind::real:
      return value.real != 0;
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::view:
    case Kind::messages:
    case Kind::range:
    case Kind::dict:
      return value.size != 0;
    case Kind::loop:
      return count_of(value.loop->items) != 0;
    default:
      return true;
  }
}

bool length_of(const Value& value, size_t* length) {
  switch (value.kind) {
    case Kind::undefined:
      *length = 0;
      return true;
    case Kind::string:
      *length = code_points(value.string());
      return true;
    case Kind::list:
    case Kind::tuple:
    case Kind::view:
    case Kind::messages:
    case Kind::range:
    case Kind::dict:
    case Kind::message:
      *length = count_of(value);
      return true;
    case Kind::loop:
      *length = count_of(value.loop->items);
      return true;
    default:
      return false;
  }
}

Value item_of(const Value& value, size_t index) {
  if (value.kind == Kind::range)
    return Value::of(value.range->start + static_cast<int64_t>(index) * value.range->step);
  if (value.kind == Kind::messages) {
    Value item = Value::of(Kind::message);
    item.message = value.message + index;
    return item;
  }
  return value.items[index];
}

static std::string_view view(const mote_text& text) {
  return std::string_view(text.data, text.length);
}

Entry entry_of(const Value& value, size_t index) {
  if (value.kind == Kind::dict) return value.entries[index];
  return index == 0 ? Entry{Value::of("role"), Value::of(view(value.message->role))}
                    : Entry{Value::of("content"), Value::of(view(value.message->content))};
}

bool find_key(const Value& mapping, std::string_view key, Value* value) {
  if (mapping.kind == Kind::message) {
    const size_t index = key == "role" ? 0 : 1;
    if (index == 1 && key != "content") return false;
    *value = entry_of(mapping, index).value;
    return true;
  }
  for (size_t i = 0; i < mapping.size; ++i) {
    const Entry& entry = mapping.entries[i];
    if (entry.key.is_string() && entry.key.string() == key) {
      *value = entry.value;
      return true;
    }
  }
  return false;
}

bool find_key(const Value& mapping, const Value& key, Value* value, Work& work) {
  if (key.is_string()) return find_key(mapping, key.string(), value);
  if (mapping.kind == Kind::message) return false;
  for (size_t i = 0; i < mapping.size; ++i) {
    if (equal(mapping.entries[i].key, key, work)) {
      *value = mapping.entries[i].value;
      return true;
    }
  }
  return false;
}

bool find_attribute(const Namespace& space, std::string_view name, Value* value) {
  return find_key(Value::of(space.entries, space.count), name, value);
}

// Exact, also where an integer has no double of its own.
static int compare_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) {
    const int64_t a = left.as_integer(), b = right.as_integer();
    return a < b ? -1 : a > b;
  }
  if (left.is_integral()) {
    const int order = compare_numbers(right, left);
    return order == 2 ? 2 : -order;
  }
  const double a = left.real;
  if (std::isnan(a)) return 2;
  if (right.kind == Kind::real)
    return std::isnan(right.real) ? 2 : a < right.real ? -1 : a > right.real;
  if (a >= 9223372036854775808.0) return 1;
  if (a < -9223372036854775808.0) return -1;
  const double whole = std::floor(a);
  const int64_t floor = static_cast<int64_t>(whole), b = right.as_integer();
  if (floor != b) return floor < b ? -1 : 1;
  return a > whole ? 1 : 0;
}

static bool equal_mappings(const Value& left, const Value& right, Work& work, int depth) {
  if (count_of(left) != count_of(right)) return false;
  for (size_t i = 0; i < count_of(left); ++i) {
    const Entry entry = entry_of(left, i);
    Value other;
    if (!find_key(right, entry.key, &other, work) || !equal(entry.value, other, work, depth + 1))
      return false;
  }
  return true;
}

static bool is_list(const Value& value) {
  return value.kind == Kind::list || value.kind == Kind::messages;
}

bool equal(const Value& left, const Value& right, Work& work, int depth) {
  if (depth > kMaxValueDepth || !work.spend(1)) return false;
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.is_mapping() && right.is_mapping()) return equal_mappings(left, right, work, depth);
  const bool same_sequence =
      (is_list(left) && is_list(right)) || (left.kind == right.kind && left.is_sequence());
  if (same_sequence) {
    if (left.size != right.size) return false;
    for (size_t i = 0; i < left.size; ++i)
      if (!equal(item_of(left, i), item_of(right, i), work, depth + 1)) return false;
    return true;
  }
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      return left.size == right.size && work.spend(left.size / 64 + 1) &&
             left.string() == right.string();
    case Kind::function:
      return left.detail == right.detail;
    default:
      return left.text == right.text && left.detail == right.detail;
  }
}

Status compare(const Value& left, const Value& right, int* order, Work& work, int depth) {
  if (left.is_number() && right.is_number()) {
    *order = compare_numbers(left, right);
    return kOk;
  }
  if (left.is_string() && right.is_string()) {
    work.spend(std::min(left.size, right.size) / 64);
    const int difference = left.string().compare(right.string());
    *order = difference < 0 ? -1 : difference > 0;
    return kOk;
  }
  const bool sequences =
      (is_list(left) && is_list(right)) || (left.kind == Kind::tuple && right.kind == Kind::tuple);
  if (sequences && depth <= kMaxValueDepth) {
    for (size_t i = 0; i < left.size && i < right.size; ++i) {
      const Value a = item_of(left, i), b = item_of(right, i);
      if (!equal(a, b, work)) return compare(a, b, order, work, depth + 1);
    }
    *order = left.size < right.size ? -1 : left.size > right.size;
    return kOk;
  }
  return fail(MOTE_ERROR_TEMPLATE, "'%s' and '%s' have no order", type_name(left),
              type_name(right));
}

Status contains(const Value& container, const Value& item, bool* result, Work& work) {
  *result = false;
  if (container.is_string()) {
    if (!item.is_string())
      return fail(MOTE_ERROR_TEMPLATE, "'in <string>' expects a string on its left, found '%s'",
                  type_name(item));
    if (!work.spend(search_steps(container.size, item.size)))
      return fail(MOTE_ERROR_TEMPLATE, "'in' takes too many steps");
    *result = container.string().find(item.string()) != std::string_view::npos;
    return kOk;
  }
  if (container.is_mapping()) {
    Value ignored;
    *result = find_key(container, item, &ignored, work);
    return kOk;
  }
  if (container.kind == Kind::undefined) return kOk;
  if (!container.is_items())
    return fail(MOTE_ERROR_TEMPLATE, "'in' expects something to look through, found '%s'",
                type_name(container));
  for (size_t i = 0; i < container.size && !*result; ++i)
    *result = equal(item_of(container, i), item, work);
  return kOk;
}

}  // namespace mote::chat
