#include "models/heads/entities.h"

#include <algorithm>
#include <cstring>

#include "models/heads/labels.h"

namespace mote {
namespace {

size_t largest(const float* values, size_t count) {
  return static_cast<size_t>(std::max_element(values, values + count) - values);
}

}  // namespace

bool is_subword(std::string_view text, const mote_token& token, bool has_prefix,
                size_t piece_code_points, bool unknown) {
  if (unknown) return false;
  const std::string_view covered(text.data() + token.byte_start, token.byte_end - token.byte_start);
  if (has_prefix) return piece_code_points != count_code_points(covered);
  if (token.byte_start == 0) return false;
  return text[token.byte_start - 1] != ' ' && (covered.empty() || covered[0] != ' ');
}

void EntityFinder::plan(Arena& arena, size_t labels, size_t pending) {
  row_ = arena.take<float>(labels);
  sum_ = arena.take<float>(labels);
  pending_ = arena.take<Entity>(pending);
  capacity_ = pending;
}

void EntityFinder::start(std::string_view text, LabelNames labels, uint32_t grouping,
                         size_t windows, mote_span* spans, size_t capacity) {
  text_ = text;
  labels_ = labels;
  grouping_ = grouping;
  several_ = windows > 1;
  spans_ = spans;
  room_ = capacity;
  held_ = found_ = group_units_ = 0;
  order_ = 0;
  has_previous_ = false;
  points_ = CodePointCounter(text);
}

// B-PER: PER begins. O and names without a prefix are tags of their own.
EntityFinder::Tag EntityFinder::tag_of(uint32_t label) const {
  const std::string_view name = labels_.names[label];
  if (name.size() < 2 || name[1] != '-') return {name, Step::continues, false};
  const std::string_view rest(name.data() + 2, name.size() - 2);
  if (name[0] == 'B') return {rest, Step::begins, false};
  if (name[0] == 'I') return {rest, Step::continues, false};
  const bool ends = name[0] == 'E' || name[0] == 'L', alone = name[0] == 'S' || name[0] == 'U';
  if (ends || alone)
    for (size_t i = 0; i < labels_.count; ++i) {
      const std::string_view other = labels_.names[i];
      if (other.size() == name.size() && other[0] == 'B' && other[1] == '-' &&
          std::memcmp(other.data() + 2, rest.data(), rest.size()) == 0)
        return {rest, alone ? Step::begins : Step::continues, true};
    }
  return {name, Step::continues, false};
}

// Of a group: what stands behind the first hyphen, if there is one.
std::string_view EntityFinder::shown_name(uint32_t label) const {
  const std::string_view name = labels_.names[label];
  const size_t hyphen = grouping_ == MOTE_GROUP_NONE ? std::string_view::npos : name.find('-');
  return hyphen == std::string_view::npos
             ? name
             : std::string_view(name.data() + hyphen + 1, name.size() - hyphen - 1);
}

bool EntityFinder::token_probabilities(const float* logits) {
  std::memcpy(row_, logits, labels_.count * sizeof *row_);
  return softmax(row_, labels_.count);
}

// The unit of tokens [first, last).
Status EntityFinder::word_unit(const TagWindow& window, size_t first, size_t last, Unit* unit) {
  *unit = {window.tokens[first].byte_start, window.tokens[last - 1].byte_end, 0, -1.0f};
  if (grouping_ == MOTE_GROUP_AVERAGE) std::fill(sum_, sum_ + labels_.count, 0.0f);
  for (size_t token = first; token < last; ++token) {
    if (token > first && grouping_ == MOTE_GROUP_FIRST) break;
    if (!token_probabilities(window.logits + token * labels_.count))
      return fail(MOTE_ERROR_BAD_FILE, "tag: a logit of token %zu is not finite", token);
    if (grouping_ == MOTE_GROUP_AVERAGE) {
      for (size_t i = 0; i < labels_.count; ++i) sum_[i] += row_[i];
      continue;
    }
    const size_t best = largest(row_, labels_.count);
    if (row_[best] > unit->score) {
      unit->label = static_cast<uint32_t>(best);
      unit->score = row_[best];
    }
  }
  if (grouping_ == MOTE_GROUP_AVERAGE) {
    const size_t best = largest(sum_, labels_.count);
    unit->label = static_cast<uint32_t>(best);
    unit->score = sum_[best] / static_cast<float>(last - first);
  }
  return kOk;
}

Status EntityFinder::add(const TagWindow& window) {
  const bool words = grouping_ != MOTE_GROUP_NONE && grouping_ != MOTE_GROUP_ENTITY;
  // What begins before this window's text meets nothing more.
  if (several_ && window.count > 0) settle(window.tokens[0].byte_start);
  for (size_t first = 0; first < window.count;) {
    size_t last = first + 1;
    while (words && last < window.count && window.subwords[last]) ++last;
    Unit unit;
    MOTE_TRY(word_unit(window, first, last, &unit));
    MOTE_TRY(add_unit(unit));
    first = last;
  }
  return end_group();
}

Status EntityFinder::add_unit(const Unit& unit) {
  const Tag tag = tag_of(unit.label);
  const bool joins = grouping_ != MOTE_GROUP_NONE && group_units_ > 0 &&
                     tag.step == Step::continues && !group_tag_.ends && tag.name == group_tag_.name;
  if (!joins) {
    MOTE_TRY(end_group());
    group_ = {unit.byte_start, unit.byte_end, unit.label, 0, 0};
  }
  group_tag_ = tag;
  group_.byte_end = unit.byte_end;
  group_.score += unit.score;
  ++group_units_;
  return kOk;
}

Status EntityFinder::end_group() {
  if (group_units_ == 0) return kOk;
  Entity entity = group_;
  entity.score /= static_cast<float>(group_units_);
  group_units_ = 0;
  const std::string_view name = shown_name(entity.label);
  return name.size() == 1 && name[0] == 'O' ? kOk : put(entity);
}

Status EntityFinder::put(const Entity& entity) {
  if (!several_) {
    give_out(entity);
    return kOk;
  }
  if (held_ == capacity_)
    return fail(MOTE_ERROR_CAPACITY,
                "tag: more than %zu entities in windows that overlap: a smaller stride gives less",
                capacity_);
  pending_[held_] = entity;
  pending_[held_++].order = order_++;
  return kOk;
}

// Merges what begins before `byte`.
void EntityFinder::settle(size_t byte) {
  std::sort(pending_, pending_ + held_, [](const Entity& a, const Entity& b) {
    return a.byte_start != b.byte_start ? a.byte_start < b.byte_start : a.order < b.order;
  });
  size_t settled = 0;
  while (settled < held_ && pending_[settled].byte_start < byte) merge(pending_[settled++]);
  std::memmove(pending_, pending_ + settled, (held_ - settled) * sizeof *pending_);
  held_ -= settled;
}

void EntityFinder::merge(const Entity& entity) {
  if (!has_previous_ || entity.byte_start >= previous_.byte_end) {
    if (has_previous_) give_out(previous_);
    previous_ = entity;
    has_previous_ = true;
    return;
  }
  // Lengths in code points, as everything about a text.
  const auto length = [&](const Entity& e) {
    return count_code_points({text_.data() + e.byte_start, e.byte_end - e.byte_start});
  };
  const size_t old = length(previous_), now = length(entity);
  if (now > old || (now == old && entity.score > previous_.score)) previous_ = entity;
}

void EntityFinder::give_out(const Entity& entity) {
  if (found_++ >= room_) return;
  mote_span& span = spans_[found_ - 1];
  const std::string_view name = shown_name(entity.label);
  span = {};
  span.byte_start = entity.byte_start;
  span.byte_end = entity.byte_end;
  span.character_start = points_.before(entity.byte_start);
  span.character_end =
      span.character_start +
      count_code_points({text_.data() + entity.byte_start, entity.byte_end - entity.byte_start});
  span.label = entity.label;
  span.score = entity.score;
  span.name = {name.data(), name.size()};
}

size_t EntityFinder::finish() {
  settle(SIZE_MAX);
  if (has_previous_) give_out(previous_);
  has_previous_ = false;
  return found_;
}

}  // namespace mote
