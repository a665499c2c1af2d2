#include "models/tokenizers/special_matcher.h"

#include <algorithm>
#include <cstring>

#include "core/utf8.h"
#include "models/tokenizers/characters.h"
#include "models/tokenizers/text_part.h"

namespace mote {
namespace {

constexpr std::string_view kMark = "\xe2\x96\x81";  // U+2581
constexpr size_t kMaxFlagged = 4096;                // each is looked for among all

bool stands_alone(TokenType type) {
  return type == TokenType::control || type == TokenType::user_defined ||
         type == TokenType::unknown;
}

// Start of the character that ends at text[end], end > from.
size_t previous(std::string_view text, size_t from, size_t end) {
  size_t at = end - 1;
  while (at > from && end - at < 4 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
  return at + read_utf8(text, at).length == end ? at : end - 1;
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

Status SpecialMatcher::open(const GgufFile& file, const Vocabulary& vocabulary,
                            Allocator& allocator, bool spaces, int32_t left_strip) {
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
    if (spaces && text.find(kMark) != std::string_view::npos) marks_ = true;
  }
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
  MOTE_TRY(flags_.allocate(allocator, count, "flags of special tokens"));
  for (size_t i = 0; i < count; ++i) flags_[i] = sorted_[i] == left_strip ? kLeftStrip : 0;
  MOTE_TRY(read_flags(file, "mote.added_tokens.lstrip", kLeftStrip));
  MOTE_TRY(read_flags(file, "mote.added_tokens.rstrip", kRightStrip));
  MOTE_TRY(read_flags(file, "mote.added_tokens.single_word", kSingleWord));
  MOTE_TRY(read_flags(file, "mote.added_tokens.late", kLate));
  note_first_bytes();
  return kOk;
}

uint8_t SpecialMatcher::kind_bit(Pass pass, bool is_user_defined) {
  return static_cast<uint8_t>((is_user_defined ? 1 : 2) << (pass == Pass::late ? 2 : 0));
}

void SpecialMatcher::note_first_bytes() {
  for (size_t i = 0; i < sorted_.size(); ++i) {
    const bool late = flags_[i] & kLate;
    has_late_ |= late;
    first_[static_cast<uint8_t>(unit(vocabulary_->text(sorted_[i]), 0).value)] |= kind_bit(
        late ? Pass::late : Pass::first, vocabulary_->type(sorted_[i]) == TokenType::user_defined);
  }
  if (spaces_) first_[static_cast<uint8_t>(kMark[0])] |= first_[static_cast<uint8_t>(' ')];
}

Status SpecialMatcher::read_flags(const GgufFile& file, const char* name, uint8_t flag) {
  if (!file.find(name)) return kOk;
  const GgufKey* key = nullptr;
  MOTE_TRY(file.get_array(name, GgufType::i32, 0, &key));
  if (key->count > kMaxFlagged)
    return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %s: expected at most %zu tokens, found %llu",
                static_cast<int>(file.name().size()), file.name().data(), name, kMaxFlagged,
                static_cast<unsigned long long>(key->count));
  for (size_t i = 0; i < flags_.size(); ++i) flags_[i] &= static_cast<uint8_t>(~flag);
  for (uint64_t item = 0; item < key->count; ++item) {
    int32_t id;
    std::memcpy(&id, key->data + item * sizeof id, sizeof id);
    size_t at = sorted_.size();
    if (vocabulary_->contains(id) && stands_alone(vocabulary_->type(id)))
      at = static_cast<size_t>(std::find(sorted_.begin(), sorted_.end(), id) - sorted_.begin());
    // A control token that is late would not be found where it must not be.
    const bool late = flag == kLate;
    if (at == sorted_.size() || (late && vocabulary_->type(id) != TokenType::user_defined))
      return fail(MOTE_ERROR_BAD_FILE,
                  "%.*s: key %s: item %llu: expected a %suser-defined token, found %d",
                  static_cast<int>(file.name().size()), file.name().data(), name,
                  static_cast<unsigned long long>(item), late ? "" : "control or ", id);
    flags_[at] |= flag;
  }
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

SpecialMatcher::Match SpecialMatcher::longest(std::string_view text, size_t at, Pass pass, bool all,
                                              size_t* index) const {
  Match best = {at, at, at, at, -1};
  size_t low = 0, high = sorted_.size(), end = at;
  for (size_t depth = 0;; ++depth) {
    // Tokens [low, high) begin with text[at, end); those that end here come first.
    for (; low < high && unit_of(low, depth) < 0; ++low) {
      const int32_t id = sorted_[low];
      if (!all && vocabulary_->type(id) != TokenType::user_defined) continue;
      if (((flags_[low] & kLate) != 0) != (pass == Pass::late)) continue;
      best = {at, end, at, end, id};
      *index = low;
    }
    const Unit next = unit(text, end);
    if (low == high || next.value < 0) return best;
    low = bound(low, high, depth, next.value);
    high = bound(low, high, depth, next.value + 1);
    end += next.length;
  }
}

// Takes white space in; false: the token is within a word and must not be.
bool SpecialMatcher::stretch(std::string_view text, size_t taken, uint8_t flags,
                             Match* match) const {
  if (flags & kSingleWord) {
    if (match->start > 0 &&
        is_word_character(read_utf8(text, previous(text, 0, match->start)).value))
      return false;
    if (match->end < text.size() && is_word_character(read_utf8(text, match->end).value))
      return false;
  }
  while ((flags & kLeftStrip) && match->start > taken) {
    const size_t at = previous(text, taken, match->start);
    if (!is_white_space(read_utf8(text, at).value)) break;
    match->start = at;
  }
  if ((flags & kLeftStrip) && match->start < taken) match->start = taken;
  while ((flags & kRightStrip) && match->end < text.size()) {
    const CodePoint next = read_utf8(text, match->end);
    if (!is_white_space(next.value)) break;
    match->end += next.length;
  }
  return true;
}

SpecialMatcher::Match SpecialMatcher::find(std::string_view text, size_t from, size_t taken,
                                           Pass pass, bool all, LiteralPlaces literal) const {
  const uint8_t kinds =
      static_cast<uint8_t>(kind_bit(pass, true) | (all ? kind_bit(pass, false) : 0));
  for (size_t at = from; at < text.size(); ++at) {
    if (!(first_[static_cast<uint8_t>(text[at])] & kinds)) continue;
    const bool here = std::binary_search(literal.at, literal.at + literal.count, at);
    size_t index = 0;
    Match match = longest(text, at, pass, all && !here, &index);
    if (match.id < 0) continue;
    if (!flags_[index] || stretch(text, taken, flags_[index], &match)) return match;
    at = match.next - 1;
  }
  return {text.size(), text.size(), text.size(), text.size(), -1};
}

}  // namespace mote
