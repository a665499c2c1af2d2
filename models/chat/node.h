// The syntax tree of a template: nodes in one array, linked by index (0: none).
#pragma once

#include <cstdint>
#include <string_view>

namespace mote::chat {

enum class Op : uint8_t {
  none,
  // Tokens that are operators.
  add,
  sub,
  mul,
  div,
  floor_div,
  mod,
  pow,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  tilde,
  assign,
  dot,
  colon,
  comma,
  pipe,
  lparen,
  rparen,
  lbracket,
  rbracket,
  lbrace,
  rbrace,
  semicolon,
  // Operators that are words.
  in,
  not_in,
};

enum class NodeKind : uint8_t {
  // Statements.
  data,        // text
  print,       // first: expressions
  branch,      // if: first condition, second body, third else
  loop,        // for: first target -> iterable (-> filter), second body, third else; flag recursive
  set,         // first target, second expression
  set_block,   // first target, second filters of captured (or 0), third body
  macro,       // text name; first parameters, second body
  call_block,  // first call, second body, third parameters
  filter_block,  // first filters of captured, second body
  with,          // first: set nodes, second body
  scope,         // second body
  leave,         // break
  proceed,       // continue
  // Expressions.
  none,
  boolean,  // integer
  integer,
  real,
  string,           // text
  captured,         // what a filter block or set block captured
  name,             // text; as a parameter: first is its default
  attribute,        // first . text
  item,             // first [second]
  slice,            // first : second : third, each may be 0
  call,             // first (second: arguments)
  keyword,          // argument text = first
  spread,           // argument *first
  spread_keywords,  // argument **first
  filter,           // first | text (second: arguments); function: its number
  test,             // first is text (second: arguments); function; flag negated
  both,             // and: operands from first on
  either,           // or
  compare,          // operands from first on, each but the first with its op
  arithmetic,       // likewise: + - * / // % **
  concat,           // operands of ~
  invert,           // not first
  negate,           // -first
  plus,             // +first
  conditional,      // second if first else third (or 0)
  list,             // items from first on
  tuple,
  dict,  // key, value, key, value ... from first on
};

// Special names that the body of a macro or call block uses (Node::function).
enum MacroUse : uint8_t { kUsesVarargs = 1, kUsesKwargs = 2, kUsesCaller = 4 };

struct Node {
  NodeKind kind = NodeKind::none;
  Op op = Op::none;
  bool flag = false;
  uint8_t function =
      0;  // of a filter or test: index + 1 in its table, 0 unknown; of a macro: MacroUse
  uint32_t line = 0;
  uint32_t next = 0;  // sibling in a list
  uint32_t first = 0, second = 0, third = 0;
  uint32_t length = 0;  // of text
  union {
    const char* text;
    int64_t integer;
    double real;
  };

  Node() : text(nullptr) {}
  std::string_view string() const { return std::string_view(text, length); }
};

}  // namespace mote::chat
