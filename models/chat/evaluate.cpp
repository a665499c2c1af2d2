// Expressions.
#include "models/chat/evaluate.h"

#include "core/slice.h"
#include "core/utf8.h"
#include "models/chat/text.h"

namespace mote::chat {

Status bind(const Arguments& arguments, const char* const* names, size_t required, Value* values) {
  size_t count = 0;
  for (; names[count]; ++count) values[count] = Value();
  if (arguments.count > count)
    return fail(MOTE_ERROR_TEMPLATE, "%zu arguments, expected %zu at most", arguments.count, count);
  for (size_t i = 0; i < arguments.count; ++i) values[i] = arguments.values[i];
  for (size_t k = 0; k < arguments.keyword_count; ++k) {
    const std::string_view key = arguments.keywords[k].key.string();
    size_t i = 0;
    while (i < count && key != names[i]) ++i;
    if (i == count || i < arguments.count)
      return fail(MOTE_ERROR_TEMPLATE,
                  i == count ? "no argument is named '%.*s'" : "two values for argument '%.*s'",
                  static_cast<int>(key.size()), key.data());
    values[i] = arguments.keywords[k].value;
  }
  for (size_t i = 0; i < required; ++i)
    if (missing(values[i])) return fail(MOTE_ERROR_TEMPLATE, "argument '%s' is missing", names[i]);
  return kOk;
}

Status Evaluator::take_items(size_t count, Value** items) {
  MOTE_TRY(spend(count / 16));
  *items = heap.take<Value>(count);
  return *items ? kOk : out_of_memory(heap, count * sizeof(Value));
}

static Status undefined_error(const Value& value) {
  const int size = static_cast<int>(value.size);
  if (value.detail == 0) return fail(MOTE_ERROR_TEMPLATE, "'%.*s' is undefined", size, value.text);
  Value owner;
  owner.kind = static_cast<Kind>(value.detail - 1);
  return fail(MOTE_ERROR_TEMPLATE, "'%s object' has no attribute '%.*s'", type_name(owner), size,
              value.text);
}

Status Evaluator::iterate(const Value& value, Value* items) {
  *items = value;
  if (value.is_items()) return kOk;
  Value* made = nullptr;
  size_t count = 0;
  if (value.kind == Kind::undefined) {
    *items = Value::of(Kind::list, nullptr, 0);
    return kOk;
  }
  if (value.is_mapping()) {
    MOTE_TRY(take_items(count_of(value), &made));
    for (; count < count_of(value); ++count) made[count] = entry_of(value, count).key;
  } else if (value.is_string()) {
    MOTE_TRY(spend(value.size / 16));
    MOTE_TRY(take_items(code_points(value.string()), &made));
    for (size_t at = 0; at < value.size;) {
      const uint32_t length = read_utf8(value.string(), at).length;
      made[count++] = Value::of(slice(value.string(), at, length));
      at += length;
    }
  } else {
    return fail(MOTE_ERROR_TEMPLATE, "'%s' is no list, dict or string to go through",
                type_name(value));
  }
  *items = Value::of(Kind::list, made, count);
  return kOk;
}

Status Evaluator::evaluate(uint32_t index, Value* value) {
  const Node& node = nodes_[index];
  line_ = node.line;
  MOTE_TRY(spend(1));
  if (++depth_ > kMaxDepth)
    return fail(MOTE_ERROR_TEMPLATE, "more than %d nested evaluations", kMaxDepth);
  MOTE_TRY(evaluate_node(node, value));
  --depth_;
  return kOk;
}

Status Evaluator::evaluate_node(const Node& node, Value* value) {
  switch (node.kind) {
    case NodeKind::none:
      *value = Value::none();
      return kOk;
    case NodeKind::boolean:
      *value = Value::of(node.integer != 0);
      return kOk;
    case NodeKind::integer:
      *value = Value::of(node.integer);
      return kOk;
    case NodeKind::real:
      *value = Value::of(node.real);
      return kOk;
    case NodeKind::string:
      *value = Value::of(node.string());
      return kOk;
    case NodeKind::captured:
      *value = captured_;
      return kOk;
    case NodeKind::name:
      return evaluate_name(node, value);
    case NodeKind::attribute: {
      Value object;
      MOTE_TRY(evaluate(node.first, &object));
      return attribute(object, node.string(), value);
    }
    case NodeKind::item:
      return evaluate_item(node, value);
    case NodeKind::call:
      return evaluate_call(node, nullptr, value);
    case NodeKind::filter:
      return evaluate_filter(node, value);
    case NodeKind::test:
      return evaluate_test(node, value);
    case NodeKind::both:
    case NodeKind::either:
      return evaluate_words(node, value);
    case NodeKind::compare:
      return evaluate_compare(node, value);
    case NodeKind::arithmetic:
      return evaluate_arithmetic(node, value);
    case NodeKind::concat:
      return evaluate_concat(node, value);
    case NodeKind::invert: {
      MOTE_TRY(evaluate(node.first, value));
      *value = Value::of(!is_true(*value));
      return kOk;
    }
    case NodeKind::negate:
    case NodeKind::plus: {
      Value operand;
      MOTE_TRY(evaluate(node.first, &operand));
      if (node.kind == NodeKind::negate) return negate(operand, value);
      return arithmetic(Op::add, Value::of(int64_t{0}), operand, *this, value);
    }
    case NodeKind::conditional:
      return evaluate_conditional(node, value);
    case NodeKind::list:
    case NodeKind::tuple:
      return evaluate_items(node, value);
    case NodeKind::dict:
      return evaluate_dict(node, value);
    default:
      return fail(MOTE_ERROR_TEMPLATE, "a statement where an expression is expected");
  }
}

Status Evaluator::evaluate_name(const Node& node, Value* value) {
  const std::string_view name = node.string();
  uint8_t function = 0;
  if (find_variable(name, value)) return kOk;
  if (context_.kind == Kind::dict && find_key(context_, name, value)) return kOk;
  if (find_function(name, has_now_, &function)) {
    *value = Value::of(Kind::function);
    value->detail = function;
  } else {
    *value = Value::undefined(name);
  }
  return kOk;
}

// The last operand that was looked at is the value, as in Python.
Status Evaluator::evaluate_words(const Node& node, Value* value) {
  for (uint32_t index = node.first; index; index = this->node(index).next) {
    MOTE_TRY(evaluate(index, value));
    if (is_true(*value) == (node.kind == NodeKind::either)) break;
  }
  return kOk;
}

Status Evaluator::evaluate_compare(const Node& node, Value* value) {
  Value left;
  MOTE_TRY(evaluate(node.first, &left));
  for (uint32_t index = this->node(node.first).next; index; index = this->node(index).next) {
    Value right;
    bool holds = false;
    MOTE_TRY(evaluate(index, &right));
    MOTE_TRY(compare_by(this->node(index).op, left, right, work, &holds));
    *value = Value::of(holds);
    if (!holds) break;
    left = right;
  }
  return kOk;
}

Status Evaluator::evaluate_arithmetic(const Node& node, Value* value) {
  MOTE_TRY(evaluate(node.first, value));
  for (uint32_t index = this->node(node.first).next; index; index = this->node(index).next) {
    Value right;
    const Value left = *value;
    MOTE_TRY(evaluate(index, &right));
    for (const Value& operand : {left, right})
      if (operand.kind == Kind::undefined) return undefined_error(operand);
    MOTE_TRY(arithmetic(this->node(index).op, left, right, *this, value));
  }
  return kOk;
}

Status Evaluator::evaluate_concat(const Node& node, Value* value) {
  *value = Value::of("");
  for (uint32_t index = node.first; index; index = this->node(index).next) {
    Value operand;
    std::string_view text;
    MOTE_TRY(evaluate(index, &operand));
    MOTE_TRY(to_string(heap, operand, &text, work));
    MOTE_TRY(spend(text.size() / 64));
    MOTE_TRY(concatenate(heap, value->string(), text, value));
  }
  return kOk;
}

Status Evaluator::evaluate_conditional(const Node& node, Value* value) {
  Value condition;
  MOTE_TRY(evaluate(node.first, &condition));
  if (is_true(condition)) return evaluate(node.second, value);
  if (node.third) return evaluate(node.third, value);
  *value = Value::undefined("the value of an if without else");
  return kOk;
}

Status Evaluator::evaluate_items(const Node& node, Value* value) {
  Value* items = nullptr;
  size_t count = 0;
  for (uint32_t index = node.first; index; index = this->node(index).next) ++count;
  MOTE_TRY(take_items(count, &items));
  count = 0;
  for (uint32_t index = node.first; index; index = this->node(index).next)
    MOTE_TRY(evaluate(index, &items[count++]));
  *value = Value::of(node.kind == NodeKind::list ? Kind::list : Kind::tuple, items, count);
  return kOk;
}

static bool is_hashable(const Value& key) {
  return key.kind != Kind::list && key.kind != Kind::messages && !key.is_mapping();
}

Status Evaluator::evaluate_dict(const Node& node, Value* value) {
  size_t capacity = 0, count = 0;
  for (uint32_t index = node.first; index; index = this->node(index).next) ++capacity;
  Entry* entries = heap.take<Entry>(capacity / 2);
  if (!entries) return out_of_memory(heap, capacity / 2 * sizeof(Entry));
  for (uint32_t index = node.first; index;) {
    Entry entry;
    MOTE_TRY(evaluate(index, &entry.key));
    index = this->node(index).next;
    MOTE_TRY(evaluate(index, &entry.value));
    index = this->node(index).next;
    if (!is_hashable(entry.key))
      return fail(MOTE_ERROR_TEMPLATE, "a %s cannot be a key", type_name(entry.key));
    size_t place = 0;  // a key that comes again replaces the first
    while (place < count && !equal(entries[place].key, entry.key, work)) ++place;
    if (place == count) entries[count++].key = entry.key;
    entries[place].value = entry.value;
  }
  *value = Value::of(entries, count);
  return kOk;
}

Status Evaluator::evaluate_item(const Node& node, Value* value) {
  Value object, index;
  MOTE_TRY(evaluate(node.first, &object));
  const Node& subscript = this->node(node.second);
  if (subscript.kind == NodeKind::slice) return evaluate_slice(subscript, object, value);
  MOTE_TRY(evaluate(node.second, &index));
  return item(object, index, value);
}

Status Evaluator::evaluate_slice(const Node& node, const Value& object, Value* value) {
  Value bounds[3];
  const uint32_t parts[3] = {node.first, node.second, node.third};
  for (int i = 0; i < 3; ++i) {
    bounds[i] = Value::none();
    if (parts[i]) MOTE_TRY(evaluate(parts[i], &bounds[i]));
  }
  if (object.kind == Kind::undefined) return undefined_error(object);
  return slice_value(object, bounds[0], bounds[1], bounds[2], *this, value);
}

Status Evaluator::attribute(const Value& object, std::string_view name, Value* result) {
  if (object.kind == Kind::undefined) return undefined_error(object);
  uint8_t method = 0;
  if (loop_attribute(object, name, result)) return kOk;
  if (object.kind == Kind::name_space && find_attribute(*object.name_space, name, result))
    return kOk;
  if (object.kind == Kind::macro && name == "name")
    return *result = Value::of(object.macro->name), kOk;
  if (object.kind == Kind::tuple && object.detail == kGroup &&
      (name == "grouper" || name == "list"))
    return *result = object.items[name == "list"], kOk;
  if (find_method(object, name, &method)) {
    Value* self = nullptr;
    MOTE_TRY(take_items(1, &self));
    *self = object;
    *result = Value::of(Kind::method);
    result->detail = method;
    result->self = self;
    return kOk;
  }
  if (object.is_mapping() && find_key(object, name, result)) return kOk;
  *result = Value::undefined(name, &object);
  return kOk;
}

// The index of a Python sequence of `size`; false: outside.
static bool resolve_index(const Value& index, size_t size, size_t* place) {
  int64_t i = index.as_integer();
  if (i < 0) i += static_cast<int64_t>(size);
  *place = static_cast<size_t>(i);
  return i >= 0 && *place < size;
}

Status Evaluator::item(const Value& object, const Value& index, Value* result) {
  if (object.kind == Kind::undefined) return undefined_error(object);
  size_t place = 0;
  if (object.is_mapping()) {
    MOTE_TRY(spend(count_of(object) / 8));
    if (find_key(object, index, result, work)) return kOk;
  } else if (object.is_sequence() && index.is_integral()) {
    if (resolve_index(index, count_of(object), &place))
      return *result = item_of(object, place), kOk;
  } else if (object.is_string() && index.is_integral()) {
    MOTE_TRY(spend(object.size / 64));
    if (resolve_index(index, code_points(object.string()), &place)) {
      const size_t at = byte_offset(object.string(), place);
      *result = Value::of(slice(object.string(), at, read_utf8(object.string(), at).length));
      return kOk;
    }
  }
  if (index.is_string()) return attribute(object, index.string(), result);
  std::string_view name;
  MOTE_TRY(to_string(heap, index, &name, work));
  *result = Value::undefined(name, &object);
  return kOk;
}

Status Evaluator::attribute_path(const Value& object, const Value& path, Value* result) {
  *result = object;
  if (!path.is_string()) return item(object, path, result);
  std::string_view rest = path.string();
  for (bool more = true; more;) {
    const size_t dot = rest.find('.');
    const std::string_view name = slice(rest, 0, dot);
    more = dot != std::string_view::npos;
    if (more) rest.remove_prefix(dot + 1);
    const Value from = *result;
    int64_t index = 0;
    const bool number = !name.empty() && name[0] != '-' && read_integer(name, 10, &index);
    MOTE_TRY(item(from, number ? Value::of(index) : Value::of(name), result));
  }
  return kOk;
}

Status Evaluator::evaluate_arguments(uint32_t first, const Entry* last, Arguments* arguments) {
  // First what may be spread, then the counts are known.
  Value* spread = nullptr;
  size_t count = 0, keywords = last ? 1 : 0, spreads = 0;
  for (uint32_t index = first; index; index = node(index).next) {
    const NodeKind kind = node(index).kind;
    spreads += kind == NodeKind::spread || kind == NodeKind::spread_keywords;
  }
  MOTE_TRY(take_items(spreads, &spread));
  spreads = 0;
  for (uint32_t index = first; index; index = node(index).next) {
    const Node& argument = node(index);
    if (argument.kind == NodeKind::spread) {
      Value value;
      MOTE_TRY(evaluate(argument.first, &value));
      MOTE_TRY(iterate(value, &spread[spreads]));
      count += count_of(spread[spreads++]);
    } else if (argument.kind == NodeKind::spread_keywords) {
      MOTE_TRY(evaluate(argument.first, &spread[spreads]));
      if (!spread[spreads].is_mapping())
        return fail(MOTE_ERROR_TEMPLATE, "** expects a dict, found '%s'",
                    type_name(spread[spreads]));
      keywords += count_of(spread[spreads++]);
    } else {
      ++(argument.kind == NodeKind::keyword ? keywords : count);
    }
  }
  Value* values = nullptr;
  MOTE_TRY(take_items(count, &values));
  Entry* entries = heap.take<Entry>(keywords);
  if (!entries) return out_of_memory(heap, keywords * sizeof(Entry));
  *arguments = Arguments{values, count, entries, keywords};
  count = keywords = spreads = 0;
  for (uint32_t index = first; index; index = node(index).next) {
    const Node& argument = node(index);
    if (argument.kind == NodeKind::spread) {
      const Value& items = spread[spreads++];
      for (size_t i = 0; i < count_of(items); ++i) values[count++] = item_of(items, i);
    } else if (argument.kind == NodeKind::spread_keywords) {
      const Value& dict = spread[spreads++];
      for (size_t i = 0; i < count_of(dict); ++i) {
        entries[keywords] = entry_of(dict, i);
        if (!entries[keywords++].key.is_string())
          return fail(MOTE_ERROR_TEMPLATE, "** expects names as keys");
      }
    } else if (argument.kind == NodeKind::keyword) {
      entries[keywords].key = Value::of(argument.string());
      MOTE_TRY(evaluate(argument.first, &entries[keywords++].value));
    } else {
      MOTE_TRY(evaluate(index, &values[count++]));
    }
  }
  if (last) entries[keywords] = *last;
  return kOk;
}

Status Evaluator::evaluate_call(const Node& node, const Entry* caller, Value* value) {
  Value callee;
  Arguments arguments;
  MOTE_TRY(evaluate(node.first, &callee));
  MOTE_TRY(evaluate_arguments(node.second, caller, &arguments));
  line_ = node.line;
  return call(callee, arguments, value);
}

Status Evaluator::call(const Value& callee, const Arguments& arguments, Value* result) {
  switch (callee.kind) {
    case Kind::undefined:
      return undefined_error(callee);
    case Kind::macro:
      return call_macro(*callee.macro, arguments, result);
    case Kind::loop:
      return call_loop(*callee.loop, arguments, result);
    case Kind::function:
      return call_function(callee.detail, *this, arguments, result);
    case Kind::method:
      return call_method(callee.detail, *this, *callee.self, arguments, result);
    case Kind::joiner: {
      Cycler& joiner = *callee.cycler;
      *result = joiner.at++ == 0 ? Value::of("") : joiner.items[0];
      joiner.at = 1;
      return kOk;
    }
    default:
      return fail(MOTE_ERROR_TEMPLATE, "a value of type %s cannot be called", type_name(callee));
  }
}

Status Evaluator::evaluate_filter(const Node& node, Value* value) {
  Value input;
  Arguments arguments;
  if (!node.function)
    return fail(MOTE_ERROR_TEMPLATE, "no filter is named '%.*s'", static_cast<int>(node.length),
                node.text);
  MOTE_TRY(evaluate(node.first, &input));
  MOTE_TRY(evaluate_arguments(node.second, nullptr, &arguments));
  line_ = node.line;
  return apply_filter(node.function, *this, input, arguments, value);
}

Status Evaluator::evaluate_test(const Node& node, Value* value) {
  Value input;
  Arguments arguments;
  bool holds = false;
  if (!node.function)
    return fail(MOTE_ERROR_TEMPLATE, "no test is named '%.*s'", static_cast<int>(node.length),
                node.text);
  MOTE_TRY(evaluate(node.first, &input));
  MOTE_TRY(evaluate_arguments(node.second, nullptr, &arguments));
  line_ = node.line;
  MOTE_TRY(apply_test(node.function, *this, input, arguments, &holds));
  *value = Value::of(holds != node.flag);
  return kOk;
}

}  // namespace mote::chat
