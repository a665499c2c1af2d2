#include "models/tokenizers/scanners.h"

#include <utf8proc.h>

#include "core/utf8.h"
#include "models/tokenizers/characters.h"
#include "models/tokenizers/text_part.h"

namespace mote {
namespace {

constexpr PreTokenizer kPreTokenizers[] = {
    {"gpt-2", Pattern::gpt2, false, false},
    {"phi-2", Pattern::gpt2, false, false},
    {"jina-es", Pattern::gpt2, false, true, true},
    {"jina-de", Pattern::gpt2, false, true, true},
    {"jina-v1-en", Pattern::gpt2, false, true, true},
    {"jina-v2-es", Pattern::gpt2, false, true, true},
    {"jina-v2-de", Pattern::gpt2, false, true, true},
    {"jina-v2-code", Pattern::gpt2, false, true, true},
    {"roberta-bpe", Pattern::gpt2, false, true, true},
    {"gigachat", Pattern::gpt2, false, false},
    {"a.x-4.0", Pattern::gpt2, false, false},
    {"mellum", Pattern::gpt2, false, false},
    {"mpt", Pattern::gpt2, false, false},
    {"olmo", Pattern::gpt2, false, false},
    {"jais", Pattern::gpt2, false, false},
    {"smollm", Pattern::digits_gpt2, false, false},
    {"starcoder", Pattern::digits_gpt2, false, false},
    {"refact", Pattern::digits_gpt2, false, false},
    {"command-r", Pattern::digits_gpt2, false, false},
    {"codeshell", Pattern::digits_gpt2, false, false},
    {"exaone", Pattern::digits_gpt2, false, false},
    {"minerva-7b", Pattern::digits_gpt2, false, false},
    {"llama-bpe", Pattern::llama3, true, true},
    {"llama3", Pattern::llama3, true, true},
    {"llama-v3", Pattern::llama3, true, true},
    {"falcon3", Pattern::llama3, true, true},
    {"falcon-h1", Pattern::llama3, true, true},
    {"pixtral", Pattern::llama3, true, true},
    {"midm-2.0", Pattern::llama3, true, true},
    {"lfm2", Pattern::llama3, true, true},
    {"jina-v5-nano", Pattern::llama3, true, true},
    {"dbrx", Pattern::llama3, false, false},
    {"smaug-bpe", Pattern::llama3, false, false},
    {"chatglm-bpe", Pattern::llama3, false, false},
    {"glm4", Pattern::llama3, false, false},
    {"qwen2", Pattern::qwen2, false, false},
    {"deepseek-r1-qwen", Pattern::qwen2, false, false},
    {"kormo", Pattern::qwen2, false, false},
    {"f2llmv2", Pattern::qwen2, false, false},
    {"megrez", Pattern::qwen2, false, false},
    {"stablelm2", Pattern::qwen2, false, false},
    {"default", Pattern::punctuation_gpt2, false, false},
};

// newline: \r and \n, which are \s as well. end: behind the text.
enum class Kind : uint8_t { letter, number, space, newline, other, end };

struct Character {
  Kind kind;
  uint32_t value;
  uint32_t length;
};

Kind kind_of(uint32_t value) {
  if (value < 0x80) {
    if ((value | 0x20) - 'a' < 26) return Kind::letter;
    if (value - '0' < 10) return Kind::number;
    if (value == '\n' || value == '\r') return Kind::newline;
    return is_white_space(value) ? Kind::space : Kind::other;
  }
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(value))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return Kind::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Kind::number;
    default:
      return is_white_space(value) ? Kind::space : Kind::other;
  }
}

// \p{P} and the ASCII symbols $ + < = > ^ ~ |.
bool is_punctuation(uint32_t value) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(value));
  if (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO) return true;
  return value < 0x80 &&
         std::string_view("$+<=>^~|").find(static_cast<char>(value)) != std::string_view::npos;
}

Character read(std::string_view text, size_t at) {
  if (at >= text.size()) return {Kind::end, 0, 0};
  const uint8_t byte = static_cast<uint8_t>(text[at]);
  if (byte < 0x80) return {kind_of(byte), byte, 1};
  const CodePoint point = read_utf8(text, at);
  return {kind_of(point.value), point.value, point.length};
}

// Behind the characters of this kind, of at most `limit`.
size_t skip(std::string_view text, size_t at, Kind kind, size_t limit = SIZE_MAX) {
  for (; limit > 0; --limit) {
    const Character next = read(text, at);
    if (next.kind != kind) break;
    at += next.length;
  }
  return at;
}

bool is_space(Kind kind) { return kind == Kind::space || kind == Kind::newline; }

// Bytes of 's 't 're 've 'm 'll 'd at text[at], an apostrophe; 0: none. With any_case letters may
// be of either case, and the long s U+017F, which Unicode folds to s, is one.
size_t contraction(std::string_view text, size_t at, bool any_case) {
  const std::string_view rest =
      text_part(text, at + 1, at + 3 < text.size() ? at + 3 : text.size());
  if (any_case && rest == "\xc5\xbf") return 3;
  char letters[2] = {0, 0};
  for (size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    letters[i] = any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  }
  switch (letters[0]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return letters[1] == 'e' ? 3 : 0;
    case 'l':
      return letters[1] == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

// \s+(?!\S)|\s+ : white space up to what it stands before, less its last character unless it has
// only one.
size_t end_of_spaces(std::string_view text, size_t at, bool newlines) {
  size_t end = at, last = at, behind_newline = at;
  while (true) {
    const Character next = read(text, end);
    if (!is_space(next.kind)) break;
    last = end;
    end += next.length;
    if (next.kind == Kind::newline) behind_newline = end;
  }
  if (newlines && behind_newline > at) return behind_newline;  // \s*[\r\n]+
  return end == text.size() || last == at ? end : last;
}

size_t end_of_gpt2(std::string_view text, size_t at) {
  const Character first = read(text, at);
  if (first.value == '\'') {
    if (const size_t length = contraction(text, at, false)) return at + length;
  }
  if (first.value == ' ') {
    const Kind kind = read(text, at + 1).kind;
    if (kind != Kind::end && !is_space(kind)) return skip(text, at + 1, kind);
  }
  if (is_space(first.kind)) return end_of_spaces(text, at, false);
  return skip(text, at + first.length, first.kind);
}

size_t end_of_llama3(std::string_view text, size_t at, size_t digits) {
  const Character first = read(text, at);
  if (first.value == '\'') {
    if (const size_t length = contraction(text, at, true)) return at + length;
  }
  const size_t second = at + first.length;
  if (first.kind == Kind::letter) return skip(text, second, Kind::letter);
  if (first.kind == Kind::number) return skip(text, second, Kind::number, digits - 1);
  const Kind kind = read(text, second).kind;
  if (kind == Kind::letter && first.kind != Kind::newline) return skip(text, second, Kind::letter);
  if (first.kind == Kind::other || (first.value == ' ' && kind == Kind::other))
    return skip(text, skip(text, second, Kind::other), Kind::newline);
  return end_of_spaces(text, at, true);
}

bool is_digit(std::string_view text, size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

// A number of \p{N}+ at text[at]: leftmost groups of three ASCII digits are cut out.
size_t end_of_number(std::string_view text, size_t at) {
  size_t end = at;
  for (Character next; (next = read(text, end)).kind == Kind::number; end += next.length) {
    if (is_digit(text, end) && is_digit(text, end + 1) && is_digit(text, end + 2))
      return end > at ? end : end + 3;
  }
  return end;
}

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& known : kPreTokenizers)
    if (name == known.name) return &known;
  return nullptr;
}

size_t PieceScanner::end_of_piece() {
  switch (pattern_) {
    case Pattern::gpt2:
      return end_of_gpt2(text_, at_);
    case Pattern::llama3:
      return end_of_llama3(text_, at_, 3);
    case Pattern::qwen2:
      return end_of_llama3(text_, at_, 1);
    case Pattern::digits_gpt2: {
      const Character first = read(text_, at_);
      if (first.kind == Kind::number) return at_ + first.length;
      if (segment_end_ <= at_) {
        Character next = first;
        for (segment_end_ = at_; next.kind != Kind::end && next.kind != Kind::number;
             next = read(text_, segment_end_))
          segment_end_ += next.length;
      }
      return end_of_gpt2(text_part(text_, 0, segment_end_), at_);
    }
    case Pattern::punctuation_gpt2: {
      Character next = read(text_, at_);
      if (next.kind == Kind::other && is_punctuation(next.value)) {
        size_t end = at_;
        for (; next.kind == Kind::other && is_punctuation(next.value); next = read(text_, end))
          end += next.length;
        return end;
      }
      if (segment_end_ <= at_) {
        for (segment_end_ = at_;
             next.kind != Kind::end && !(next.kind == Kind::other && is_punctuation(next.value));
             next = read(text_, segment_end_))
          segment_end_ += next.length;
      }
      const std::string_view segment = text_part(text_, 0, segment_end_);
      if (read(segment, at_).kind == Kind::number) return end_of_number(segment, at_);
      if (text_[at_] == ' ' && read(segment, at_ + 1).kind == Kind::number) return at_ + 1;
      return end_of_gpt2(segment, at_);
    }
  }
  return text_.size();
}

bool PieceScanner::next(std::string_view* piece) {
  if (at_ >= text_.size()) return false;
  const size_t end = end_of_piece();
  *piece = text_part(text_, at_, end);
  at_ = end;
  return true;
}

}  // namespace mote
