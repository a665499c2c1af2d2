#include "models/chat/parser.h"

#include <cstdio>
#include <cstring>

namespace mote::chat {

Status Parser::parse(uint32_t* body) {
  // No token makes more than one node, but for the ends of lists.
  size_t tokens = 0;
  for (Lexer counter = lexer_; !token_.is(TokenKind::end) || tokens == 0; ++tokens)
    MOTE_TRY(counter.next(&token_));
  MOTE_TRY(nodes_.allocate(allocator_, tokens + 16, "chat template"));
  nodes_[0] = Node();
  MOTE_TRY(next());
  return parse_body(Ends{}, body);
}

Status Parser::new_node(NodeKind kind, uint32_t line, uint32_t* node) {
  if (count_ == nodes_.size()) {
    HeapArray<Node> grown;
    MOTE_TRY(grown.allocate(allocator_, 2 * count_, "chat template"));
    memcpy(static_cast<void*>(grown.data()), nodes_.data(), count_ * sizeof(Node));
    nodes_.swap(grown);
  }
  *node = static_cast<uint32_t>(count_++);
  nodes_[*node] = Node();
  nodes_[*node].kind = kind;
  nodes_[*node].line = line;
  return kOk;
}

void Parser::append(List* list, uint32_t node) {
  if (list->last) {
    nodes_[list->last].next = node;
  } else {
    list->first = node;
  }
  list->last = node;
}

Status Parser::next() {
  if (looked_) {
    looked_ = false;
    token_ = look_;
    return kOk;
  }
  return lexer_.next(&token_);
}

Status Parser::look() {
  if (looked_) return kOk;
  MOTE_TRY(lexer_.next(&look_));
  looked_ = true;
  return kOk;
}

Status Parser::error(const char* expected) const {
  const char* found = "the end";
  switch (token_.kind) {
    case TokenKind::data:
      found = "text";
      break;
    case TokenKind::variable_begin:
      found = "{{";
      break;
    case TokenKind::variable_end:
      found = "}}";
      break;
    case TokenKind::block_begin:
      found = "{%";
      break;
    case TokenKind::block_end:
      found = "%}";
      break;
    case TokenKind::end:
      break;
    default: {
      const size_t shown = token_.text.size() < 40 ? token_.text.size() : 40;
      return fail(MOTE_ERROR_TEMPLATE, "chat template line %u: expected %s, found '%.*s'",
                  token_.line, expected, static_cast<int>(shown), token_.text.data());
    }
  }
  return fail(MOTE_ERROR_TEMPLATE, "chat template line %u: expected %s, found %s", token_.line,
              expected, found);
}

Status Parser::enter() {
  if (++depth_ > kMaxDepth) return error("fewer nested statements and brackets (64 at most)");
  return kOk;
}

Status Parser::expect(Op op, const char* what) {
  if (!token_.is(op)) return error(what);
  return next();
}

Status Parser::expect_kind(TokenKind kind, const char* what) {
  if (!token_.is(kind)) return error(what);
  return next();
}

Status Parser::skip_if(Op op, bool* skipped) {
  *skipped = token_.is(op);
  return *skipped ? next() : kOk;
}

// Statements up to "{% word": the token after it is then the word. No words: up to the end.
Status Parser::parse_body(const Ends& ends, uint32_t* first) {
  MOTE_TRY(enter());
  List body;
  for (;;) {
    if (token_.is(TokenKind::data)) {
      uint32_t node = 0;
      MOTE_TRY(new_node(NodeKind::data, token_.line, &node));
      nodes_[node].text = token_.text.data();
      nodes_[node].length = static_cast<uint32_t>(token_.text.size());
      append(&body, node);
      MOTE_TRY(next());
    } else if (token_.is(TokenKind::variable_begin)) {
      MOTE_TRY(parse_print(&body));
    } else if (token_.is(TokenKind::block_begin)) {
      MOTE_TRY(next());
      if (!at_word()) return error("the name of a statement");
      bool ended = false;
      for (const char* word : ends.words) ended |= word && token_.text == word;
      if (ended) break;
      MOTE_TRY(parse_statement(&body));
    } else if (token_.is(TokenKind::end) && !ends.words[0]) {
      break;
    } else {
      char expected[64];
      snprintf(expected, sizeof expected, "{%% %s %%}", ends.words[0] ? ends.words[0] : "...");
      return error(expected);
    }
  }
  *first = body.first;
  leave();
  return kOk;
}

// The word that ended a body, and the end of its tag.
Status Parser::parse_end(const char* word) {
  if (!token_.is_name(word)) return error(word);
  MOTE_TRY(next());
  return expect_kind(TokenKind::block_end, "%}");
}

Status Parser::parse_print(List* body) {
  uint32_t node = 0, expression = 0;
  MOTE_TRY(new_node(NodeKind::print, token_.line, &node));
  MOTE_TRY(next());
  MOTE_TRY(parse_tuple(true, false, &expression));
  nodes_[node].first = expression;
  append(body, node);
  return expect_kind(TokenKind::variable_end, "}}");
}

Status Parser::parse_statement(List* body) {
  const std::string_view keyword = token_.text;
  const uint32_t line = token_.line;
  uint32_t node = 0;
  MOTE_TRY(parse_statement_of(keyword, line, &node));
  append(body, node);
  return kOk;
}

Status Parser::parse_statement_of(std::string_view keyword, uint32_t line, uint32_t* node) {
  const bool leaves = keyword == "break", proceeds = keyword == "continue";
  if ((leaves || proceeds) && loops_ == 0) return error("a statement that needs no loop around it");
  if (keyword == "if") return parse_if(line, node);
  if (keyword == "for") return parse_for(line, node);
  if (keyword == "set") return parse_set(line, node);
  if (keyword == "macro") return parse_macro(line, node);
  if (keyword == "call") return parse_call_block(line, node);
  if (keyword == "filter") return parse_filter_block(line, node);
  if (keyword == "with") return parse_with(line, node);
  if (keyword == "generation") return parse_transparent("endgeneration", line, node);
  if (keyword == "print") {
    MOTE_TRY(new_node(NodeKind::print, line, node));
    MOTE_TRY(next());
    List list;
    while (!token_.is(TokenKind::block_end)) {
      if (list.first) MOTE_TRY(expect(Op::comma, "a comma"));
      uint32_t expression = 0;
      MOTE_TRY(parse_expression(&expression));
      append(&list, expression);
    }
    nodes_[*node].first = list.first;
    return next();
  }
  if (leaves || proceeds) {
    MOTE_TRY(new_node(leaves ? NodeKind::leave : NodeKind::proceed, line, node));
    MOTE_TRY(next());
    return expect_kind(TokenKind::block_end, "%}");
  }
  return error(
      "a statement (if, for, set, macro, call, filter, with, generation, print, break, continue)");
}

Status Parser::parse_if(uint32_t line, uint32_t* node) {
  MOTE_TRY(new_node(NodeKind::branch, line, node));
  for (uint32_t branch = *node;;) {
    uint32_t condition = 0, body = 0;
    MOTE_TRY(next());
    MOTE_TRY(parse_tuple(false, false, &condition));
    MOTE_TRY(expect_kind(TokenKind::block_end, "%}"));
    MOTE_TRY(parse_body(Ends{{"endif", "elif", "else"}}, &body));
    nodes_[branch].first = condition;
    nodes_[branch].second = body;
    if (token_.is_name("elif")) {
      uint32_t other = 0;
      MOTE_TRY(new_node(NodeKind::branch, token_.line, &other));
      nodes_[other].flag = true;
      nodes_[branch].third = other;
      branch = other;
      continue;
    }
    if (token_.is_name("else")) {
      MOTE_TRY(parse_end("else"));
      MOTE_TRY(parse_body(Ends{{"endif"}}, &body));
      nodes_[branch].third = body;
    }
    return parse_end("endif");
  }
}

Status Parser::parse_for(uint32_t line, uint32_t* node) {
  MOTE_TRY(new_node(NodeKind::loop, line, node));
  MOTE_TRY(next());
  List header;
  uint32_t part = 0;
  MOTE_TRY(parse_target(false, &part));
  append(&header, part);
  if (!token_.is_name("in")) return error("in");
  MOTE_TRY(next());
  MOTE_TRY(parse_tuple(false, false, &part));
  append(&header, part);
  if (token_.is_name("if")) {
    MOTE_TRY(next());
    MOTE_TRY(parse_expression(&part));
    append(&header, part);
  }
  if (token_.is_name("recursive")) {
    nodes_[*node].flag = true;
    MOTE_TRY(next());
  }
  MOTE_TRY(expect_kind(TokenKind::block_end, "%}"));
  uint32_t body = 0, otherwise = 0;
  ++loops_;
  MOTE_TRY(parse_body(Ends{{"endfor", "else"}}, &body));
  --loops_;
  if (token_.is_name("else")) {
    MOTE_TRY(parse_end("else"));
    MOTE_TRY(parse_body(Ends{{"endfor"}}, &otherwise));
  }
  nodes_[*node].first = header.first;
  nodes_[*node].second = body;
  nodes_[*node].third = otherwise;
  return parse_end("endfor");
}

// A name, or names with commas between; attributes: name.attribute too.
Status Parser::parse_target(bool attributes, uint32_t* node) {
  MOTE_TRY(enter());
  List names;
  const uint32_t line = token_.line;
  bool tuple = false;
  while (!token_.is_name("in") && !token_.is(Op::rparen)) {
    uint32_t name = 0;
    if (token_.is(Op::lparen)) {
      MOTE_TRY(next());
      MOTE_TRY(parse_target(attributes, &name));
      MOTE_TRY(expect(Op::rparen, "')'"));
    } else {
      if (!at_word()) return error("a name to assign to");
      static constexpr const char* kReserved[] = {"true", "false", "none", "True", "False", "None"};
      for (const char* word : kReserved)
        if (token_.text == word) return error("a name that can be assigned to");
      MOTE_TRY(new_node(NodeKind::name, token_.line, &name));
      nodes_[name].text = token_.text.data();
      nodes_[name].length = static_cast<uint32_t>(token_.text.size());
      MOTE_TRY(next());
      if (attributes && token_.is(Op::dot)) {
        MOTE_TRY(next());
        if (!at_word()) return error("the name of an attribute");
        uint32_t attribute = 0;
        MOTE_TRY(new_node(NodeKind::attribute, token_.line, &attribute));
        nodes_[attribute].first = name;
        nodes_[attribute].text = token_.text.data();
        nodes_[attribute].length = static_cast<uint32_t>(token_.text.size());
        name = attribute;
        MOTE_TRY(next());
      }
    }
    append(&names, name);
    bool comma = false;
    MOTE_TRY(skip_if(Op::comma, &comma));
    if (!comma) break;
    tuple = true;
    if (token_.is(Op::assign) || token_.is(TokenKind::block_end)) break;
  }
  if (!names.first) return error("a name to assign to");
  *node = names.first;
  if (tuple) {
    MOTE_TRY(new_node(NodeKind::tuple, line, node));
    nodes_[*node].first = names.first;
  }
  leave();
  return kOk;
}

Status Parser::parse_set(uint32_t line, uint32_t* node) {
  MOTE_TRY(next());
  uint32_t target = 0, value = 0, body = 0;
  MOTE_TRY(parse_target(true, &target));
  bool assigned = false;
  MOTE_TRY(skip_if(Op::assign, &assigned));
  MOTE_TRY(new_node(assigned ? NodeKind::set : NodeKind::set_block, line, node));
  nodes_[*node].first = target;
  if (assigned) {
    MOTE_TRY(parse_tuple(true, false, &value));
    nodes_[*node].second = value;
    return expect_kind(TokenKind::block_end, "%}");
  }
  if (token_.is(Op::pipe)) {
    MOTE_TRY(new_node(NodeKind::captured, line, &value));
    while (token_.is(Op::pipe)) {
      MOTE_TRY(next());
      MOTE_TRY(parse_filter(&value));
    }
    nodes_[*node].second = value;
  }
  MOTE_TRY(expect_kind(TokenKind::block_end, "= or %}"));
  MOTE_TRY(parse_body(Ends{{"endset"}}, &body));
  nodes_[*node].third = body;
  return parse_end("endset");
}

Status Parser::parse_parameters(uint32_t* first) {
  List list;
  bool defaults = false;
  MOTE_TRY(expect(Op::lparen, "'('"));
  while (!token_.is(Op::rparen)) {
    if (list.first) MOTE_TRY(expect(Op::comma, "a comma or ')'"));
    if (!at_word()) return error("the name of a parameter");
    uint32_t name = 0, value = 0;
    MOTE_TRY(new_node(NodeKind::name, token_.line, &name));
    nodes_[name].text = token_.text.data();
    nodes_[name].length = static_cast<uint32_t>(token_.text.size());
    append(&list, name);
    MOTE_TRY(next());
    bool has_default = false;
    MOTE_TRY(skip_if(Op::assign, &has_default));
    if (has_default) {
      MOTE_TRY(parse_expression(&value));
      nodes_[name].first = value;
    } else if (defaults) {
      return error("'=' and a default, as the parameter before has one");
    }
    defaults |= has_default;
  }
  *first = list.first;
  return next();
}

// A body that break and continue do not leave, and whose node learns which of the special names it
// uses.
Status Parser::parse_macro_body(const char* end, uint32_t node, uint32_t* body) {
  const int loops = loops_;
  const uint8_t uses = uses_;
  loops_ = 0;
  uses_ = 0;
  MOTE_TRY(parse_body(Ends{{end}}, body));
  nodes_[node].function = uses_;
  loops_ = loops;
  uses_ = uses;
  return kOk;
}

Status Parser::parse_macro(uint32_t line, uint32_t* node) {
  MOTE_TRY(new_node(NodeKind::macro, line, node));
  MOTE_TRY(next());
  if (!at_word()) return error("the name of a macro");
  nodes_[*node].text = token_.text.data();
  nodes_[*node].length = static_cast<uint32_t>(token_.text.size());
  MOTE_TRY(next());
  uint32_t parameters = 0, body = 0;
  MOTE_TRY(parse_parameters(&parameters));
  MOTE_TRY(expect_kind(TokenKind::block_end, "%}"));
  MOTE_TRY(parse_macro_body("endmacro", *node, &body));
  nodes_[*node].first = parameters;
  nodes_[*node].second = body;
  return parse_end("endmacro");
}

Status Parser::parse_call_block(uint32_t line, uint32_t* node) {
  MOTE_TRY(new_node(NodeKind::call_block, line, node));
  MOTE_TRY(next());
  uint32_t parameters = 0, call = 0, body = 0;
  if (token_.is(Op::lparen)) MOTE_TRY(parse_parameters(&parameters));
  MOTE_TRY(parse_expression(&call));
  if (nodes_[call].kind != NodeKind::call) return error("a call of a macro before");
  MOTE_TRY(expect_kind(TokenKind::block_end, "%}"));
  MOTE_TRY(parse_macro_body("endcall", *node, &body));
  nodes_[*node].first = call;
  nodes_[*node].second = body;
  nodes_[*node].third = parameters;
  return parse_end("endcall");
}

Status Parser::parse_filter_block(uint32_t line, uint32_t* node) {
  MOTE_TRY(new_node(NodeKind::filter_block, line, node));
  MOTE_TRY(next());
  uint32_t filters = 0, body = 0;
  MOTE_TRY(new_node(NodeKind::captured, line, &filters));
  MOTE_TRY(parse_filter(&filters));
  while (token_.is(Op::pipe)) {
    MOTE_TRY(next());
    MOTE_TRY(parse_filter(&filters));
  }
  MOTE_TRY(expect_kind(TokenKind::block_end, "%}"));
  MOTE_TRY(parse_body(Ends{{"endfilter"}}, &body));
  nodes_[*node].first = filters;
  nodes_[*node].second = body;
  return parse_end("endfilter");
}

Status Parser::parse_with(uint32_t line, uint32_t* node) {
  MOTE_TRY(new_node(NodeKind::with, line, node));
  MOTE_TRY(next());
  List sets;
  while (!token_.is(TokenKind::block_end)) {
    if (sets.first) MOTE_TRY(expect(Op::comma, "a comma or %}"));
    uint32_t set = 0, target = 0, value = 0;
    MOTE_TRY(new_node(NodeKind::set, token_.line, &set));
    MOTE_TRY(parse_target(false, &target));
    MOTE_TRY(expect(Op::assign, "'='"));
    MOTE_TRY(parse_expression(&value));
    nodes_[set].first = target;
    nodes_[set].second = value;
    append(&sets, set);
  }
  MOTE_TRY(next());
  uint32_t body = 0;
  MOTE_TRY(parse_body(Ends{{"endwith"}}, &body));
  nodes_[*node].first = sets.first;
  nodes_[*node].second = body;
  return parse_end("endwith");
}

// {% generation %}, which marks what training would learn: here just its body.
Status Parser::parse_transparent(const char* end, uint32_t line, uint32_t* node) {
  MOTE_TRY(new_node(NodeKind::scope, line, node));
  MOTE_TRY(next());
  MOTE_TRY(expect_kind(TokenKind::block_end, "%}"));
  uint32_t body = 0;
  const int loops = loops_;
  loops_ = 0;
  MOTE_TRY(parse_body(Ends{{end}}, &body));
  loops_ = loops;
  nodes_[*node].second = body;
  return parse_end(end);
}

}  // namespace mote::chat
