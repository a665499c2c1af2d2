// Builds the syntax tree of a template.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/memory.h"
#include "core/status.h"
#include "models/chat/lexer.h"
#include "models/chat/node.h"

namespace mote::chat {

class Parser {
 public:
  // nodes: grows through allocator; node 0 is none. pool: as for Lexer.
  Parser(std::string_view source, char* pool, HeapArray<Node>& nodes, Allocator& allocator)
      : lexer_(source, pool), nodes_(nodes), allocator_(allocator) {}
  // *body: the first statement.
  Status parse(uint32_t* body);

 private:
  static constexpr int kMaxDepth = 64;  // of nested statements and brackets

  // A list of siblings that grows at its end.
  struct List {
    uint32_t first = 0, last = 0;
  };
  void append(List* list, uint32_t node);

  // parser.cpp: statements. ends: words that end the body, "" the rest unused.
  struct Ends {
    const char* words[3];
  };
  Status parse_body(const Ends& ends, uint32_t* first);
  Status parse_end(const char* word);
  Status parse_print(List* body);
  Status parse_statement(List* body);
  Status parse_statement_of(std::string_view keyword, uint32_t line, uint32_t* node);
  Status parse_if(uint32_t line, uint32_t* node);
  Status parse_for(uint32_t line, uint32_t* node);
  Status parse_set(uint32_t line, uint32_t* node);
  Status parse_macro_body(const char* end, uint32_t node, uint32_t* body);
  Status parse_macro(uint32_t line, uint32_t* node);
  Status parse_call_block(uint32_t line, uint32_t* node);
  Status parse_filter_block(uint32_t line, uint32_t* node);
  Status parse_with(uint32_t line, uint32_t* node);
  Status parse_transparent(const char* end, uint32_t line, uint32_t* node);
  Status parse_parameters(uint32_t* first);
  Status parse_target(bool attributes, uint32_t* node);

  // expressions.cpp.
  Status parse_expression(uint32_t* node);
  Status parse_conditional(uint32_t* node);
  Status parse_tuple(bool conditional, bool may_be_empty, uint32_t* node);
  Status parse_words(NodeKind kind, uint32_t* node);
  Status parse_not(uint32_t* node);
  Status parse_compare(uint32_t* node);
  Status parse_chain(int level, uint32_t* node);
  Status parse_unary(bool filters, uint32_t* node);
  Status parse_primary(uint32_t* node);
  Status parse_list(uint32_t* node);
  Status parse_dict(uint32_t* node);
  Status parse_postfix(uint32_t* node);
  Status parse_filters(uint32_t* node);
  Status parse_filter(uint32_t* node);
  Status parse_test(uint32_t* node);
  Status parse_subscript(uint32_t* node);
  Status parse_index(uint32_t* node);
  Status parse_arguments(uint32_t* first);
  Status parse_dotted_name(std::string_view* name);

  Status new_node(NodeKind kind, uint32_t line, uint32_t* node);
  Status next();
  Status look();  // reads the token after the current one into look_
  Status expect(Op op, const char* what);
  Status expect_kind(TokenKind kind, const char* what);
  Status skip_if(Op op, bool* skipped);
  bool at_word() const { return token_.is(TokenKind::name); }
  Status error(const char* expected) const;
  Status enter();
  void leave() { --depth_; }

  Lexer lexer_;
  HeapArray<Node>& nodes_;
  Allocator& allocator_;
  size_t count_ = 1;
  Token token_, look_;
  bool looked_ = false;
  int depth_ = 0;
  uint8_t uses_ = 0;  // MacroUse bits of the macro that is being read
  int loops_ = 0;     // around the current statement, for break and continue
};

// Numbers of a filter or test for Node::function; 0: unknown.
uint8_t find_filter(std::string_view name);
uint8_t find_test(std::string_view name);

}  // namespace mote::chat
