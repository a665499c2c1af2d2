// Statements: output, branches, loops and assignments.
#include "models/chat/evaluate.h"
#include "models/chat/text.h"

namespace mote::chat {

Status Evaluator::run(uint32_t body) {
  if (scope_count_ == 0) MOTE_TRY(open_scope(0));
  return execute(body);
}

Status Evaluator::execute(uint32_t first) {
  if (++depth_ > kMaxDepth)
    return fail(MOTE_ERROR_TEMPLATE, "more than %d nested evaluations", kMaxDepth);
  for (uint32_t index = first; index && flow_ == Flow::go; index = node(index).next) {
    line_ = node(index).line;
    MOTE_TRY(spend(1));
    MOTE_TRY(execute_one(node(index)));
  }
  --depth_;
  return kOk;
}

Status Evaluator::execute_one(const Node& node) {
  switch (node.kind) {
    case NodeKind::data:
      return output_->write(node.string());
    case NodeKind::print:
      return print(node);
    case NodeKind::branch:
      return branch(node);
    case NodeKind::loop:
      return loop(node);
    case NodeKind::set:
      return set(node);
    case NodeKind::set_block:
      return set_block(node);
    case NodeKind::with:
      return with(node);
    case NodeKind::filter_block:
      return filter_block(node);
    case NodeKind::call_block:
      return call_block(node);
    case NodeKind::macro: {
      Value macro;
      MOTE_TRY(make_macro(node, node.string(), node.first, &macro));
      return set_variable(node.string(), macro);
    }
    case NodeKind::scope:
      MOTE_TRY(open_scope(scope_));
      MOTE_TRY(execute(node.second));
      close_scope();
      return kOk;
    case NodeKind::leave:
      flow_ = Flow::leave;
      return kOk;
    case NodeKind::proceed:
      flow_ = Flow::proceed;
      return kOk;
    default:
      return fail(MOTE_ERROR_TEMPLATE, "an expression where a statement is expected");
  }
}

Status Evaluator::print(const Node& node) {
  for (uint32_t index = node.first; index; index = this->node(index).next) {
    const size_t mark = heap.mark();
    Value value;
    std::string_view text;
    MOTE_TRY(evaluate(index, &value));
    MOTE_TRY(to_string(heap, value, &text, work));
    MOTE_TRY(spend(text.size() / 64));
    MOTE_TRY(output_->write(text, mark));
  }
  return kOk;
}

Status Evaluator::branch(const Node& first) {
  for (const Node* branch = &first;;) {
    const size_t mark = heap.mark();
    Value condition;
    line_ = branch->line;
    MOTE_TRY(evaluate(branch->first, &condition));
    const bool taken = is_true(condition);
    heap.release(mark);
    if (taken) return execute(branch->second);
    const Node& other = node(branch->third);
    if (branch->third == 0 || !other.flag || other.kind != NodeKind::branch)
      return execute(branch->third);
    branch = &other;  // elif
  }
}

Status Evaluator::loop(const Node& node) {
  const size_t mark = heap.mark();
  Value iterable;
  MOTE_TRY(evaluate(this->node(node.first).next, &iterable));
  MOTE_TRY(run_loop(node, iterable, scope_, 0));
  heap.release(mark);
  return kOk;
}

// The items for which the condition holds.
Status Evaluator::filter_items(const Node& target, uint32_t condition, uint32_t scope,
                               Value* items) {
  Value* kept = nullptr;
  size_t count = 0;
  MOTE_TRY(take_items(count_of(*items), &kept));
  for (size_t i = 0; i < count_of(*items); ++i) {
    const Value item = item_of(*items, i);
    Value holds;
    MOTE_TRY(open_scope(scope));
    MOTE_TRY(assign(target, item));
    MOTE_TRY(evaluate(condition, &holds));
    if (is_true(holds)) kept[count++] = item;
    close_scope();
  }
  *items = Value::of(Kind::list, kept, count);
  return kOk;
}

// scope: where the loop stands; depth: of its recursive calls.
Status Evaluator::run_loop(const Node& node, const Value& iterable, uint32_t scope,
                           uint32_t depth) {
  const Node& target = this->node(node.first);
  const uint32_t condition = this->node(target.next).next;
  Value items;
  MOTE_TRY(iterate(iterable, &items));
  if (condition) MOTE_TRY(filter_items(target, condition, scope, &items));
  Loop* loop = heap.take<Loop>(1);
  if (!loop) return out_of_memory(heap, sizeof(Loop));
  *loop = Loop{items, 0, depth, scope, node.flag ? &node : nullptr, nullptr, 0};
  Value variable = Value::of(Kind::loop);
  variable.loop = loop;
  for (; loop->index < count_of(items) && flow_ == Flow::go; ++loop->index) {
    MOTE_TRY(spend(1));
    MOTE_TRY(open_scope(scope));
    MOTE_TRY(assign(target, item_of(items, loop->index)));
    MOTE_TRY(set_variable("loop", variable));
    MOTE_TRY(execute(node.second));
    close_scope();
    if (flow_ == Flow::proceed) flow_ = Flow::go;
  }
  if (flow_ == Flow::leave) flow_ = Flow::go;
  if (count_of(items) > 0 || !node.third) return kOk;
  MOTE_TRY(open_scope(scope));
  MOTE_TRY(execute(node.third));
  close_scope();
  return kOk;
}

Status Evaluator::set(const Node& node) {
  Value value;
  MOTE_TRY(evaluate(node.second, &value));
  return assign(this->node(node.first), value);
}

// The values of {% with %} do not see each other.
Status Evaluator::with(const Node& node) {
  size_t count = 0, i = 0;
  Value* values = nullptr;
  for (uint32_t set = node.first; set; set = this->node(set).next) ++count;
  MOTE_TRY(take_items(count, &values));
  for (uint32_t set = node.first; set; set = this->node(set).next)
    MOTE_TRY(evaluate(this->node(set).second, &values[i++]));
  MOTE_TRY(open_scope(scope_));
  i = 0;
  for (uint32_t set = node.first; set; set = this->node(set).next)
    MOTE_TRY(assign(this->node(this->node(set).first), values[i++]));
  MOTE_TRY(execute(node.second));
  close_scope();
  return kOk;
}

}  // namespace mote::chat
