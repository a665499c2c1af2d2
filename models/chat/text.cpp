#include "models/chat/text.h"

#include <charconv>

#include "core/slice.h"
#include "core/utf8.h"

namespace mote::chat {

size_t code_points(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += read_utf8(text, at).length) ++count;
  return count;
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += read_utf8(text, at).length;
  return at;
}

bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// The code point that ends before `end`.
static CodePoint read_utf8_before(std::string_view text, size_t end) {
  for (size_t length = 4; length > 1; --length) {
    if (length > end) continue;
    const CodePoint point = read_utf8(slice(text, 0, end), end - length);
    if (point.length == length && point.valid) return point;
  }
  const CodePoint last = read_utf8(slice(text, 0, end), end - 1);
  return CodePoint{last.value, 1, last.valid};
}

static bool is_one_of(uint32_t c, std::string_view characters) {
  for (size_t at = 0; at < characters.size();) {
    const CodePoint point = read_utf8(characters, at);
    if (point.value == c) return true;
    at += point.length;
  }
  return false;
}

template <class Predicate>
static std::string_view strip_start_if(std::string_view text, Predicate matches) {
  while (!text.empty()) {
    const CodePoint point = read_utf8(text, 0);
    if (!matches(point.value)) break;
    text.remove_prefix(point.length);
  }
  return text;
}

template <class Predicate>
static std::string_view strip_end_if(std::string_view text, Predicate matches) {
  while (!text.empty()) {
    const CodePoint point = read_utf8_before(text, text.size());
    if (!matches(point.value)) break;
    text.remove_suffix(point.length);
  }
  return text;
}

std::string_view strip_start(std::string_view text) { return strip_start_if(text, is_space); }
std::string_view strip_end(std::string_view text) { return strip_end_if(text, is_space); }
std::string_view strip_start(std::string_view text, std::string_view characters) {
  return strip_start_if(text, [=](uint32_t c) { return is_one_of(c, characters); });
}
std::string_view strip_end(std::string_view text, std::string_view characters) {
  return strip_end_if(text, [=](uint32_t c) { return is_one_of(c, characters); });
}

Status out_of_memory(const Heap& heap, size_t bytes) {
  return fail(
      MOTE_ERROR_TEMPLATE,
      "the template needs %zu more bytes of scratch memory, %zu are left (raise text_bytes)", bytes,
      heap.left());
}

void TextBuilder::append(std::string_view text) {
  if (failed_ || text.empty()) return;
  char* piece = nullptr;
  if (begin_ && !heap_.ends_at_top(begin_, size_)) {
    // Something else was taken meanwhile: move to the top.
    char* moved = text.size() <= SIZE_MAX - size_ ? heap_.take(size_ + text.size(), 1) : nullptr;
    if (moved) {
      memcpy(moved, begin_, size_);
      begin_ = moved;
      piece = moved + size_;
    }
  } else {
    piece = heap_.take(text.size(), 1);
    if (!begin_) begin_ = piece;
  }
  if (!piece || size_ + text.size() > UINT32_MAX) {
    failed_ = true;
    return;
  }
  memcpy(piece, text.data(), text.size());
  size_ += text.size();
}

void TextBuilder::append_code_point(uint32_t code_point) {
  char bytes[4];
  append(std::string_view(bytes, write_utf8(code_point, bytes)));
}

void TextBuilder::append_integer(int64_t value) {
  char digits[24];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, value);
  append(std::string_view(digits, static_cast<size_t>(end.ptr - digits)));
}

void TextBuilder::repeat(std::string_view text, size_t times) {
  if (text.empty()) return;
  if (times > heap_.left() / text.size()) failed_ = true;
  for (; times > 0 && !failed_; --times) append(text);
}

Status TextBuilder::finish(std::string_view* text) {
  if (failed_) return out_of_memory(heap_, size_ + 1);
  *text = std::string_view(begin_ ? begin_ : "", size_);
  return kOk;
}

Status TextBuilder::finish(Value* text) {
  std::string_view view;
  MOTE_TRY(finish(&view));
  *text = Value::of(view);
  return kOk;
}

Status concatenate(Heap& heap, std::string_view left, std::string_view right, Value* text) {
  if (right.empty() || left.empty()) {
    *text = Value::of(right.empty() ? left : right);
    return kOk;
  }
  const bool grows = heap.ends_at_top(left.data(), left.size());
  const size_t bytes = right.size() + (grows ? 0 : left.size());
  char* piece = left.size() + right.size() <= UINT32_MAX ? heap.take(bytes, 1) : nullptr;
  if (!piece) return out_of_memory(heap, bytes);
  if (!grows) {
    memcpy(piece, left.data(), left.size());
    memcpy(piece + left.size(), right.data(), right.size());
    *text = Value::of(std::string_view(piece, left.size() + right.size()));
  } else {
    memcpy(piece, right.data(), right.size());
    *text = Value::of(std::string_view(left.data(), left.size() + right.size()));
  }
  return kOk;
}

}  // namespace mote::chat
