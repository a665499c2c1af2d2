#include "models/chat/lexer.h"

#include <charconv>
#include <cstring>

#include "core/slice.h"
#include "core/utf8.h"
#include "models/chat/text.h"
#include "utf8proc.h"

namespace mote::chat {

Lexer::Lexer(std::string_view source, char* pool) : source_(source), pool_(pool) {
  // Jinja drops one line end at the end of a template.
  if (!source_.empty() && source_.back() == '\n') source_.remove_suffix(1);
}

static bool starts_with(std::string_view text, size_t at, std::string_view prefix) {
  return slice(text, at, prefix.size()) == prefix;
}

static size_t after_spaces(std::string_view text, size_t at) {
  return text.size() - strip_start(slice(text, at)).size();
}

// Moves on and counts lines.
void Lexer::advance(size_t to) {
  for (; at_ < to; ++at_) line_ += source_[at_] == '\n';
}

void Lexer::skip_spaces() { advance(after_spaces(source_, at_)); }

Status Lexer::error(const char* expected) const {
  if (at_ >= source_.size())
    return fail(MOTE_ERROR_TEMPLATE, "chat template line %u: expected %s, found the end", line_,
                expected);
  const std::string_view found = slice(source_, at_, 16);
  return fail(MOTE_ERROR_TEMPLATE, "chat template line %u: expected %s, found '%.*s'", line_,
              expected, static_cast<int>(found.size()), found.data());
}

Status Lexer::next(Token* token) {
  if (pending_begin_) {
    pending_begin_ = false;
    *token = pending_;
    return kOk;
  }
  *token = Token();
  if (state_ == State::text) return next_of_text(token);
  return next_of_code(token);
}

// What is left of the text before a tag. sign: '-' strips all spaces, '+' none; otherwise a tag
// that is alone at the beginning of its line takes the spaces before it along (not a variable).
std::string_view Lexer::strip_before_tag(std::string_view text, char sign, bool variable) const {
  if (sign == '-') return strip_end(text);
  if (sign == '+' || variable) return text;
  const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
  if ((line > 0 || line_starting_) && strip_start(slice(text, line)).empty())
    return slice(text, 0, line);
  return text;
}

// Position after "{% raw %}" that begins at `at`, or npos.
static size_t after_raw_begin(std::string_view source, size_t at, char sign) {
  at = after_spaces(source, at + (sign ? 3 : 2));
  if (!starts_with(source, at, "raw")) return std::string_view::npos;
  at = after_spaces(source, at + 3);
  if (starts_with(source, at, "-%}")) return after_spaces(source, at + 3);
  return starts_with(source, at, "%}") ? at + 2 : std::string_view::npos;
}

static char sign_at(std::string_view source, size_t at) {
  return at < source.size() && (source[at] == '-' || source[at] == '+') ? source[at] : '\0';
}

Status Lexer::next_of_text(Token* token) {
  while (at_ < source_.size()) {
    size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 == source_.size()) {
        tag = source_.size();
        break;
      }
      const char c = source_[tag + 1];
      if (c == '{' || c == '%' || c == '#') break;
    }
    token->kind = TokenKind::data;
    token->line = line_;
    token->text = slice(source_, at_, tag - at_);
    if (tag == source_.size()) {
      advance(tag);
      return kOk;
    }
    const char second = source_[tag + 1], sign = sign_at(source_, tag + 2);
    token->text = strip_before_tag(token->text, sign, second == '{');
    const size_t raw = second == '%' ? after_raw_begin(source_, tag, sign) : std::string_view::npos;
    advance(raw != std::string_view::npos ? raw : tag + (sign ? 3 : 2));
    line_starting_ = source_[at_ - 1] == '\n';
    if (raw != std::string_view::npos) return read_raw(raw, token);
    if (second == '#') {
      MOTE_TRY(skip_comment());
      if (!token->text.empty()) return kOk;
      continue;
    }
    pending_ = Token();
    pending_.kind = second == '{' ? TokenKind::variable_begin : TokenKind::block_begin;
    pending_.line = line_;
    state_ = second == '{' ? State::variable : State::block;
    if (token->text.empty()) {
      *token = pending_;
    } else {
      pending_begin_ = true;
    }
    return kOk;
  }
  token->kind = TokenKind::end;
  token->line = line_;
  return kOk;
}

// The content of a raw block follows `token`, the text before it, as data of its own.
Status Lexer::read_raw(size_t begin_of_text, Token* token) {
  for (size_t tag = begin_of_text;; ++tag) {
    tag = source_.find("{%", tag);
    if (tag == std::string_view::npos) {
      at_ = source_.size();
      return error("{% endraw %}");
    }
    const char sign = sign_at(source_, tag + 2);
    size_t at = after_spaces(source_, tag + (sign ? 3 : 2));
    if (!starts_with(source_, at, "endraw")) continue;
    at = after_spaces(source_, at + 6);
    if (starts_with(source_, at, "-%}")) {
      at = after_spaces(source_, at + 3);
    } else if (starts_with(source_, at, "+%}")) {
      at += 3;
    } else if (starts_with(source_, at, "%}")) {
      at += 2;
      if (at < source_.size() && source_[at] == '\n') ++at;
    } else {
      continue;
    }
    Token raw;
    raw.kind = TokenKind::data;
    raw.line = line_;
    raw.text = strip_before_tag(slice(source_, begin_of_text, tag - begin_of_text), sign, false);
    advance(at);
    line_starting_ = source_[at_ - 1] == '\n';
    if (token->text.empty()) {
      *token = raw;
    } else {
      pending_ = raw;
      pending_begin_ = true;
    }
    return kOk;
  }
}

Status Lexer::skip_comment() {
  const size_t begin = at_, end = source_.find("#}", at_);
  if (end == std::string_view::npos) {
    at_ = source_.size();
    return error("#}, the end of a comment");
  }
  const char sign = end > begin ? sign_at(source_, end - 1) : '\0';
  advance(end + 2);
  if (sign == '-') {
    skip_spaces();
  } else if (sign != '+' && at_ < source_.size() && source_[at_] == '\n') {
    advance(at_ + 1);
  }
  line_starting_ = source_[at_ - 1] == '\n';
  return kOk;
}

// The end of a tag, with what it takes along of the text behind it.
bool Lexer::read_end(Token* token) {
  const bool block = state_ == State::block;
  const char sign = sign_at(source_, at_);
  size_t at = at_ + (sign && (block || sign == '-') ? 1 : 0);
  if (!starts_with(source_, at, block ? "%}" : "}}")) return false;
  at += 2;
  if (sign == '-') {
    at = after_spaces(source_, at);
  } else if (block && sign != '+' && at < source_.size() && source_[at] == '\n') {
    ++at;
  }
  token->kind = block ? TokenKind::block_end : TokenKind::variable_end;
  advance(at);
  line_starting_ = source_[at_ - 1] == '\n';
  state_ = State::text;
  return true;
}

Status Lexer::next_of_code(Token* token) {
  skip_spaces();
  token->line = line_;
  if (at_ >= source_.size()) return error(state_ == State::block ? "%}" : "}}");
  if (bracket_count_ == 0 && read_end(token)) return kOk;
  const char c = source_[at_];
  if (c == '\'' || c == '"') return read_string(token);
  if (c >= '0' && c <= '9') return read_number(token);
  if (read_name(token)) return kOk;
  return read_operator(token);
}

bool Lexer::read_name(Token* token) {
  size_t end = at_;
  while (end < source_.size()) {
    const CodePoint point = read_utf8(source_, end);
    const uint32_t c = point.value;
    bool letter = (c | 32) - 'a' < 26u || c == '_';
    bool digit = c - '0' < 10u;
    if (c >= 0x80 && point.valid) {
      const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
      letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
      digit = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_NO;
    }
    if (!letter && !(digit && end > at_)) break;
    end += point.length;
  }
  if (end == at_) return false;
  token->kind = TokenKind::name;
  token->text = slice(source_, at_, end - at_);
  at_ = end;
  return true;
}

Status Lexer::read_operator(Token* token) {
  struct Spelling {
    char text[3];
    Op op;
  };
  static constexpr Spelling kSpellings[] = {
      {"//", Op::floor_div}, {"**", Op::pow},     {"==", Op::eq},      {"!=", Op::ne},
      {"<=", Op::le},        {">=", Op::ge},      {"+", Op::add},      {"-", Op::sub},
      {"*", Op::mul},        {"/", Op::div},      {"%", Op::mod},      {"<", Op::lt},
      {">", Op::gt},         {"~", Op::tilde},    {"=", Op::assign},   {".", Op::dot},
      {":", Op::colon},      {",", Op::comma},    {"|", Op::pipe},     {"(", Op::lparen},
      {")", Op::rparen},     {"[", Op::lbracket}, {"]", Op::rbracket}, {"{", Op::lbrace},
      {"}", Op::rbrace},     {";", Op::semicolon}};
  for (const Spelling& spelling : kSpellings) {
    const size_t length = strlen(spelling.text);
    if (!starts_with(source_, at_, spelling.text)) continue;
    const char c = spelling.text[0];
    if (c == '(' || c == '[' || c == '{') {
      if (bracket_count_ == kMaxBrackets) return error("fewer nested brackets");
      brackets_[bracket_count_++] = c;
    } else if (c == ')' || c == ']' || c == '}') {
      const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (bracket_count_ == 0) return error("no closing bracket, as none is open");
      if (brackets_[bracket_count_ - 1] != open) {
        const char last = brackets_[bracket_count_ - 1];
        return error(last == '(' ? "')'" : last == '[' ? "']'" : "'}'");
      }
      --bracket_count_;
    }
    token->kind = TokenKind::op;
    token->op = spelling.op;
    token->text = slice(source_, at_, length);
    at_ += length;
    return kOk;
  }
  return error("a name, a value or an operator");
}

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

// Value of exactly `count` hexadecimal digits, or -1.
static int64_t read_hex(std::string_view text, size_t at, size_t count) {
  int64_t value = 0;
  if (text.size() - at < count) return -1;
  for (size_t i = 0; i < count; ++i) {
    const int digit = digit_of(text[at + i]);
    if (digit > 15) return -1;
    value = value * 16 + digit;
  }
  return value;
}

// Decodes the escape after the backslash at text[*at]; false: not a valid one. Never writes more
// bytes than it reads.
static bool decode_escape(std::string_view text, size_t* at, char** out) {
  const char c = text[*at + 1];
  static constexpr char kFrom[] = "\\'\"abfnrtv", kTo[] = "\\'\"\a\b\f\n\r\t\v";
  if (c == '\n') return *at += 2, true;
  if (const char* found = strchr(kFrom, c); found && c) {
    *(*out)++ = kTo[found - kFrom];
    *at += 2;
    return true;
  }
  int64_t value = 0;
  size_t length = 0;
  if (c >= '0' && c <= '7') {
    for (length = 1; length <= 3 && *at + length < text.size(); ++length) {
      const char digit = text[*at + length];
      if (digit < '0' || digit > '7') break;
      value = value * 8 + (digit - '0');
    }
  } else if (c == 'x' || c == 'u' || c == 'U') {
    const size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    value = read_hex(text, *at + 2, count);
    length = 2 + count;
    if (value < 0 || value > 0x10FFFF) return false;
    if (value >= 0xD800 && value < 0xE000) value = 0xFFFD;  // half of a pair is no character
  } else if (c == 'N') {
    return false;  // names of characters are not known here
  } else {
    *(*out)++ = '\\';  // as Python, which keeps an unknown escape
    ++*at;
    return true;
  }
  *out += write_utf8(static_cast<uint32_t>(value), *out);
  *at += length;
  return true;
}

Status Lexer::read_string(Token* token) {
  const char quote = source_[at_];
  size_t end = at_ + 1;
  bool escaped = false;
  while (end < source_.size() && source_[end] != quote) {
    if (source_[end] == '\\') escaped = true, ++end;
    ++end;
  }
  if (end >= source_.size()) return error("a string that ends with its quote");
  token->kind = TokenKind::string;
  token->text = slice(source_, at_ + 1, end - at_ - 1);
  if (escaped) {
    char* out = pool_;
    for (size_t i = 0; i < token->text.size();) {
      if (token->text[i] != '\\') {
        *out++ = token->text[i++];
      } else if (!decode_escape(token->text, &i, &out)) {
        return error("a string with known escapes");
      }
    }
    token->text = std::string_view(pool_, static_cast<size_t>(out - pool_));
    pool_ = out;
  }
  advance(end + 1);
  return kOk;
}

// Digits with single underscores between them.
static size_t skip_digits(std::string_view text, size_t at, int base) {
  const size_t start = at;
  while (at < text.size()) {
    if (digit_of(text[at]) < base) {
      ++at;
    } else if (text[at] == '_' && at > start && at + 1 < text.size() &&
               digit_of(text[at + 1]) < base) {
      at += 2;
    } else {
      break;
    }
  }
  return at;
}

Status Lexer::read_number(Token* token) {
  static constexpr size_t kLongest = 400;
  int base = 10;
  if (source_[at_] == '0' && at_ + 1 < source_.size()) {
    const char c = static_cast<char>(source_[at_ + 1] | 32);
    base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
  }
  const size_t digits = at_ + (base == 10 ? 0 : 2);
  size_t end = skip_digits(source_, digits, base);
  if (end == digits) return error("digits of a number");
  bool real = false;
  if (base == 10 && !(at_ > 0 && source_[at_ - 1] == '.')) {
    size_t more = end;
    if (more < source_.size() && source_[more] == '.') {
      const size_t fraction = skip_digits(source_, more + 1, 10);
      if (fraction > more + 1) more = fraction, real = true;
    }
    if (more < source_.size() && (source_[more] | 32) == 'e') {
      size_t exponent = more + 1;
      if (sign_at(source_, exponent)) ++exponent;
      const size_t last = skip_digits(source_, exponent, 10);
      if (last > exponent) more = last, real = true;
    }
    if (real) end = more;
  }
  char plain[kLongest];
  size_t length = 0;
  for (size_t i = digits; i < end; ++i) {
    if (source_[i] == '_') continue;
    if (length == kLongest) return error("a shorter number");
    plain[length++] = source_[i];
  }
  const std::string_view text(plain, length);
  token->kind = real ? TokenKind::real : TokenKind::integer;
  const bool known =
      real ? read_real(text, &token->real) : read_integer(text, base, &token->integer);
  if (!known) return error("a number of 64 bits");
  token->text = slice(source_, at_, end - at_);
  at_ = end;
  return kOk;
}

}  // namespace mote::chat
