// Statements whose output becomes a value: set and filter blocks, macros, call blocks, recursive
// loops.
#include "models/chat/evaluate.h"
#include "models/chat/text.h"

namespace mote::chat {

// Runs body in the current scope; what it writes becomes a text above all that it left in the heap.
Status Evaluator::capture(uint32_t body, Value* text) {
  Output captured(heap);
  Output* const before = output_;
  const size_t floor = heap.begin_capture();
  output_ = &captured;
  MOTE_TRY(execute(body));
  output_ = before;
  std::string_view view;
  MOTE_TRY(captured.finish(&view));
  heap.end_capture(floor);
  *text = Value::of(view);
  return kOk;
}

Status Evaluator::set_block(const Node& node) {
  const size_t mark = heap.mark();
  Value text;
  MOTE_TRY(open_scope(scope_));
  MOTE_TRY(capture(node.third, &text));
  close_scope();
  text = Value::of(heap.release_all_but(mark, text.string()));
  if (node.second) {
    const Value before = captured_;
    captured_ = text;
    MOTE_TRY(evaluate(node.second, &text));
    captured_ = before;
  }
  return assign(this->node(node.first), text);
}

Status Evaluator::filter_block(const Node& node) {
  const size_t mark = heap.mark();
  const Value before = captured_;
  Value text;
  MOTE_TRY(open_scope(scope_));
  MOTE_TRY(capture(node.second, &text));
  close_scope();
  captured_ = Value::of(heap.release_all_but(mark, text.string()));
  MOTE_TRY(evaluate(node.first, &text));
  captured_ = before;
  std::string_view view;
  MOTE_TRY(to_string(heap, text, &view, work));
  return output_->write(view, mark);
}

Status Evaluator::make_macro(const Node& node, std::string_view name, uint32_t parameters,
                             Value* macro) {
  Macro* made = heap.take<Macro>(1);
  if (!made) return out_of_memory(heap, sizeof(Macro));
  *made = Macro{name, parameters, node.second, node.function, scope_, scopes_[scope_].serial};
  *macro = Value::of(Kind::macro);
  macro->macro = made;
  return kOk;
}

Status Evaluator::call_block(const Node& node) {
  const size_t mark = heap.mark();
  Entry caller{Value::of("caller"), Value()};
  Value result;
  std::string_view text;
  MOTE_TRY(make_macro(node, "caller", node.third, &caller.value));
  MOTE_TRY(evaluate_call(this->node(node.first), &caller, &result));
  MOTE_TRY(to_string(heap, result, &text, work));
  return output_->write(text, mark);
}

static Status macro_error(const Macro& macro, const char* what, std::string_view name) {
  return fail(MOTE_ERROR_TEMPLATE, "macro '%.*s' %s%s%.*s", static_cast<int>(macro.name.size()),
              macro.name.data(), what, name.empty() ? "" : " ", static_cast<int>(name.size()),
              name.data());
}

// Sets the parameters as variables of the macro's scope, and what remains as varargs, kwargs and
// caller.
Status Evaluator::bind_parameters(const Macro& macro, const Arguments& arguments) {
  size_t place = 0, used_keywords = 0;
  for (uint32_t index = macro.parameters; index; index = node(index).next, ++place) {
    const Node& parameter = node(index);
    Value value = Value::undefined(parameter.string());
    bool given = place < arguments.count;
    if (given) value = arguments.values[place];
    for (size_t i = 0; i < arguments.keyword_count; ++i) {
      if (arguments.keywords[i].key.string() != parameter.string()) continue;
      if (given) return macro_error(macro, "gets two values for", parameter.string());
      value = arguments.keywords[i].value;
      given = true;
      ++used_keywords;
    }
    if (!given && parameter.first) MOTE_TRY(evaluate(parameter.first, &value));
    MOTE_TRY(set_variable(parameter.string(), value));
  }
  if (arguments.count > place && !(macro.uses & kUsesVarargs))
    return macro_error(macro, "takes fewer arguments", "");
  if (macro.uses & kUsesVarargs) {
    const size_t rest = arguments.count > place ? arguments.count - place : 0;
    MOTE_TRY(set_variable(
        "varargs", Value::of(Kind::tuple, arguments.values + (arguments.count - rest), rest)));
  }
  Entry* rest = nullptr;
  size_t rest_count = 0;
  if (macro.uses & kUsesKwargs) {
    rest = heap.take<Entry>(arguments.keyword_count);
    if (!rest) return out_of_memory(heap, arguments.keyword_count * sizeof(Entry));
  }
  for (size_t i = 0; i < arguments.keyword_count; ++i) {
    const Entry& keyword = arguments.keywords[i];
    bool is_parameter = false;
    for (uint32_t index = macro.parameters; index; index = node(index).next)
      is_parameter |= node(index).string() == keyword.key.string();
    if (is_parameter) continue;
    if (keyword.key.string() == "caller" && (macro.uses & kUsesCaller)) {
      MOTE_TRY(set_variable("caller", keyword.value));
    } else if (macro.uses & kUsesKwargs) {
      rest[rest_count++] = keyword;
    } else {
      return macro_error(macro, "takes no argument", keyword.key.string());
    }
  }
  if (macro.uses & kUsesKwargs) return set_variable("kwargs", Value::of(rest, rest_count));
  return kOk;
}

Status Evaluator::call_macro(const Macro& macro, const Arguments& arguments, Value* result) {
  if (macro.scope >= scope_count_ || scopes_[macro.scope].serial != macro.serial)
    return macro_error(macro, "is called after the block that defined it has ended", "");
  const size_t mark = heap.mark();
  const Flow flow = flow_;
  MOTE_TRY(open_scope(macro.scope));
  MOTE_TRY(bind_parameters(macro, arguments));
  Value text;
  MOTE_TRY(capture(macro.body, &text));
  flow_ = flow;
  close_scope();
  *result = Value::of(heap.release_all_but(mark, text.string()));
  return kOk;
}

// loop(items): the loop's body once more, for other items.
Status Evaluator::call_loop(const Loop& loop, const Arguments& arguments, Value* result) {
  if (!loop.node) return fail(MOTE_ERROR_TEMPLATE, "loop(...) needs {%% for ... recursive %%}");
  if (arguments.count != 1 || arguments.keyword_count != 0)
    return fail(MOTE_ERROR_TEMPLATE, "loop(...) expects one argument");
  const size_t mark = heap.mark();
  Output captured(heap);
  Output* const before = output_;
  const size_t floor = heap.begin_capture();
  output_ = &captured;
  MOTE_TRY(run_loop(*loop.node, arguments.values[0], loop.scope, loop.depth + 1));
  output_ = before;
  std::string_view text;
  MOTE_TRY(captured.finish(&text));
  heap.end_capture(floor);
  *result = Value::of(heap.release_all_but(mark, text));
  return kOk;
}

}  // namespace mote::chat
