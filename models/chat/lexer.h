// Splits a template into tokens, as Jinja does with trim_blocks and lstrip_blocks.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/status.h"
#include "models/chat/node.h"

namespace mote::chat {

enum class TokenKind : uint8_t {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  op,
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  Op op = Op::none;
  uint32_t line = 1;
  std::string_view text;  // of data and strings: the decoded value
  int64_t integer = 0;
  double real = 0;

  bool is(TokenKind other) const { return kind == other; }
  bool is(Op other) const { return kind == TokenKind::op && op == other; }
  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

class Lexer {
 public:
  // source: with \n line ends only. pool: room for source.size() bytes of decoded strings.
  Lexer(std::string_view source, char* pool);
  Status next(Token* token);
  uint32_t line() const { return line_; }

 private:
  enum class State : uint8_t { text, variable, block };
  struct Tag;

  Status next_of_text(Token* token);
  Status next_of_code(Token* token);
  bool read_end(Token* token);
  Status read_raw(size_t begin_of_text, Token* token);
  Status skip_comment();
  Status read_string(Token* token);
  Status read_number(Token* token);
  bool read_name(Token* token);
  Status read_operator(Token* token);
  std::string_view strip_before_tag(std::string_view text, char sign, bool variable) const;
  void skip_spaces();
  void advance(size_t to);
  Status error(const char* expected) const;

  std::string_view source_;
  char* pool_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  State state_ = State::text;
  bool line_starting_ = true;
  bool pending_begin_ = false;  // the tag after a piece of data
  Token pending_;
  static constexpr int kMaxBrackets = 200;
  char brackets_[kMaxBrackets];
  int bracket_count_ = 0;
};

}  // namespace mote::chat
