#include "models/tokenizers/special_matcher.h"

#include <algorithm>

#include "models/tokenizers/text_part.h"

namespace mote {
namespace {

constexpr std::string_view kMark = "\xe2\x96\x81";  // U+2581

bool stands_alone(TokenType type) {
  return type == TokenType::control || type == TokenType::user_defined ||
         type == TokenType::unknown;
}

}  // namespace

SpecialMatcher::Unit SpecialMatcher::unit(std::string_view text, size_t at) const {
  if (at >= text.size()) return {-1, 0};
  if (spaces_ && has_at(text, at, kMark)) return {' ', kMark.size()};
  return {static_cast<uint8_t>(text[at]), 1};
}

int32_t SpecialMatcher::unit_of(size_t index, size_t depth) const {
  const std::string_view text = vocabulary_->text(sorted_[index]);
  if (!marks_) return depth < text.size() ? static_cast<uint8_t>(text[depth]) : -1;
  size_t at = 0;
  for (size_t i = 0; i < depth && at < text.size(); ++i) at += unit(text, at).length;
  return unit(text, at).value;
}

Status SpecialMatcher::open(const Vocabulary& vocabulary, Allocator& allocator, bool spaces) {
  vocabulary_ = &vocabulary;
  spaces_ = spaces;
  const auto wanted = [&](int32_t id) {
    return stands_alone(vocabulary.type(id)) && !vocabulary.text(id).empty();
  };
  size_t count = 0;
  const int32_t size = static_cast<int32_t>(vocabulary.size());
  for (int32_t id = 0; id < size; ++id) count += wanted(id);
  MOTE_TRY(sorted_.allocate(allocator, count, "special tokens"));
  count = 0;
  for (int32_t id = 0; id < size; ++id) {
    if (!wanted(id)) continue;
    const std::string_view text = vocabulary.text(id);
    sorted_[count++] = id;
    const uint8_t kind = vocabulary.type(id) == TokenType::user_defined ? 1 : 2;
    first_[static_cast<uint8_t>(unit(text, 0).value)] |= kind;
    if (spaces && text.find(kMark) != std::string_view::npos) marks_ = true;
  }
  if (spaces) first_[static_cast<uint8_t>(kMark[0])] |= first_[static_cast<uint8_t>(' ')];
  std::sort(sorted_.begin(), sorted_.end(), [&](int32_t a, int32_t b) {
    const std::string_view left = vocabulary.text(a), right = vocabulary.text(b);
    if (!marks_) return left < right;
    for (size_t i = 0, j = 0;;) {
      const Unit x = unit(left, i), y = unit(right, j);
      if (x.value != y.value) return x.value < y.value;
      if (x.value < 0) return a < b;
      i += x.length, j += y.length;
    }
  });
  return kOk;
}

// The first index in [low, high) whose unit at depth is at least value.
size_t SpecialMatcher::bound(size_t low, size_t high, size_t depth, int32_t value) const {
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (unit_of(middle, depth) < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

SpecialMatcher::Match SpecialMatcher::longest(std::string_view text, size_t at, bool all) const {
  Match best = {at, at, -1};
  size_t low = 0, high = sorted_.size(), end = at;
  for (size_t depth = 0;; ++depth) {
    // Tokens [low, high) begin with text[at, end); those that end here come first.
    for (; low < high && unit_of(low, depth) < 0; ++low) {
      const int32_t id = sorted_[low];
      if (all || vocabulary_->type(id) == TokenType::user_defined) best = {at, end, id};
    }
    const Unit next = unit(text, end);
    if (low == high || next.value < 0) return best;
    low = bound(low, high, depth, next.value);
    high = bound(low, high, depth, next.value + 1);
    end += next.length;
  }
}

SpecialMatcher::Match SpecialMatcher::find(std::string_view text, size_t from, bool all,
                                           LiteralPlaces literal) const {
  const uint8_t kinds = all ? 3 : 1;
  for (size_t at = from; at < text.size(); ++at) {
    if (!(first_[static_cast<uint8_t>(text[at])] & kinds)) continue;
    const bool here = std::binary_search(literal.at, literal.at + literal.count, at);
    const Match match = longest(text, at, all && !here);
    if (match.id >= 0) return match;
  }
  return {text.size(), text.size(), -1};
}

}  // namespace mote
