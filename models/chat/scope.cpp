// Variables in their scopes, and the outputs that statements write to.
#include "models/chat/evaluate.h"
#include "models/chat/text.h"

namespace mote::chat {

Status Output::write(std::string_view text, size_t mark) {
  if (length_ + text.size() > UINT32_MAX)
    return fail(MOTE_ERROR_TEMPLATE, "the template writes more than 4 GiB");
  if (!captures_) {
    if (length_ < capacity_ && !text.empty()) {
      const size_t room = capacity_ - length_;
      memcpy(text_ + length_, text.data(), room < text.size() ? room : text.size());
    }
    length_ += text.size();
    heap_.release(mark);
    return kOk;
  }
  // The text may lie in what is released here: it is moved before anything else is written there.
  heap_.release(mark);
  if (text.empty()) return kOk;
  const bool grows = last_ && heap_.ends_at_top(last_->text, last_->size);
  Chunk* chunk = grows ? last_ : heap_.take<Chunk>(1);
  char* place = chunk ? heap_.take(text.size(), 1) : nullptr;
  if (!place) return out_of_memory(heap_, text.size() + sizeof(Chunk));
  memmove(place, text.data(), text.size());
  length_ += text.size();
  if (grows) {
    last_->size += text.size();
  } else {
    *chunk = Chunk{nullptr, text.size(), place};
    (last_ ? last_->next : first_) = chunk;
    last_ = chunk;
  }
  heap_.hold_all();
  return kOk;
}

Status Output::finish(std::string_view* text) {
  if (first_ == last_) {
    *text = first_ ? std::string_view(first_->text, first_->size) : std::string_view("", 0);
    return kOk;
  }
  char* whole = heap_.take(length_, 1);
  if (!whole) return out_of_memory(heap_, length_);
  *text = std::string_view(whole, length_);
  for (const Chunk* chunk = first_; chunk; chunk = chunk->next) {
    memcpy(whole, chunk->text, chunk->size);
    whole += chunk->size;
  }
  return kOk;
}

Status Evaluator::spend(uint64_t steps) {
  if (work.spend(steps)) return kOk;
  return fail(MOTE_ERROR_TEMPLATE, "the template takes more than %llu steps",
              static_cast<unsigned long long>(kMaxSteps));
}

Status Evaluator::define(std::string_view name, const Value& value) {
  if (scope_count_ == 0) MOTE_TRY(open_scope(0));
  return set_variable(name, value);
}

Status Evaluator::open_scope(uint32_t parent) {
  if (scope_count_ == kMaxScopes)
    return fail(MOTE_ERROR_TEMPLATE, "more than %u nested loops, macros and blocks", kMaxScopes);
  scopes_[scope_count_] = Scope{parent, variables_, ++serial_, heap.mark()};
  scope_ = scope_count_++;
  return kOk;
}

void Evaluator::close_scope() {
  const Scope& scope = scopes_[--scope_count_];
  heap.pop_back((variables_ - scope.first) * sizeof(Variable));
  variables_ = scope.first;
  heap.release(scope.mark);
  scope_ = scope_count_ - 1;
}

Status Evaluator::set_variable(std::string_view name, const Value& value) {
  MOTE_TRY(spend((variables_ - scopes_[scope_].first) / 8));
  for (uint32_t i = variables_; i-- > scopes_[scope_].first;) {
    if (variable(i).name == name) {
      variable(i).value = value;
      return kOk;
    }
  }
  Variable* made = heap.push_back<Variable>();
  if (!made) return out_of_memory(heap, sizeof(Variable));
  if (variables_ == 0) variables_end_ = made + 1;
  ++variables_;
  *made = Variable{name, value};
  return kOk;
}

// Looks through the scope and those around it. A scope that encloses another is not the last one,
// so its variables end where those of the next one begin.
bool Evaluator::find_variable(std::string_view name, Value* value) {
  for (uint32_t scope = scope_, end = variables_;;) {
    const uint32_t first = scopes_[scope].first;
    work.spend((end - first) / 8);
    for (uint32_t i = end; i-- > first;) {
      if (variable(i).name == name) {
        *value = variable(i).value;
        return true;
      }
    }
    if (scope == 0) return false;
    scope = scopes_[scope].parent;
    end = scopes_[scope + 1].first;
  }
}

Status Evaluator::assign(const Node& target, const Value& value) {
  if (target.kind == NodeKind::name) return set_variable(target.string(), value);
  if (target.kind == NodeKind::attribute) return assign_attribute(target, value);
  Value items;
  MOTE_TRY(iterate(value, &items));
  size_t count = 0;
  for (uint32_t index = target.first; index; index = node(index).next) ++count;
  if (count != count_of(items))
    return fail(MOTE_ERROR_TEMPLATE, "%zu names for %zu values", count, count_of(items));
  size_t i = 0;
  for (uint32_t index = target.first; index; index = node(index).next)
    MOTE_TRY(assign(node(index), item_of(items, i++)));
  return kOk;
}

Status Evaluator::assign_attribute(const Node& target, const Value& value) {
  const std::string_view owner = node(target.first).string(), name = target.string();
  Value space;
  if (!find_variable(owner, &space) || space.kind != Kind::name_space)
    return fail(MOTE_ERROR_TEMPLATE, "cannot set '%.*s' of '%.*s': it is no namespace",
                static_cast<int>(name.size()), name.data(), static_cast<int>(owner.size()),
                owner.data());
  Namespace& entries = *space.name_space;
  heap.keep(value);
  for (uint32_t i = 0; i < entries.count; ++i) {
    if (entries.entries[i].key.string() != name) continue;
    entries.entries[i].value = value;
    return kOk;
  }
  MOTE_TRY(spend(entries.count));
  if (entries.count == entries.capacity) {
    const uint32_t capacity = 2 * entries.capacity + 4;
    Entry* grown = heap.take<Entry>(capacity);
    if (!grown) return out_of_memory(heap, capacity * sizeof(Entry));
    if (entries.count)
      memcpy(static_cast<void*>(grown), entries.entries, entries.count * sizeof(Entry));
    entries.entries = grown;
    entries.capacity = capacity;
    heap.keep(space);  // all that was taken so far
  }
  entries.entries[entries.count++] = Entry{Value::of(name), value};
  return kOk;
}

}  // namespace mote::chat
