// The expressions of the template language, from the loosest operator to the tightest.
#include "models/chat/parser.h"

namespace mote::chat {

Status Parser::parse_expression(uint32_t* node) {
  MOTE_TRY(enter());
  MOTE_TRY(parse_conditional(node));
  leave();
  return kOk;
}

Status Parser::parse_conditional(uint32_t* node) {
  MOTE_TRY(parse_words(NodeKind::either, node));
  while (token_.is_name("if")) {
    uint32_t conditional = 0, condition = 0, otherwise = 0;
    MOTE_TRY(new_node(NodeKind::conditional, token_.line, &conditional));
    MOTE_TRY(next());
    MOTE_TRY(parse_words(NodeKind::either, &condition));
    if (token_.is_name("else")) {
      MOTE_TRY(next());
      MOTE_TRY(enter());
      MOTE_TRY(parse_conditional(&otherwise));
      leave();
    }
    nodes_[conditional].first = condition;
    nodes_[conditional].second = *node;
    nodes_[conditional].third = otherwise;
    *node = conditional;
  }
  return kOk;
}

// Expressions with commas between make a tuple. conditional: whether `a if b` is read.
Status Parser::parse_tuple(bool conditional, bool may_be_empty, uint32_t* node) {
  List items;
  bool tuple = false;
  const uint32_t line = token_.line;
  MOTE_TRY(enter());
  for (;;) {
    const bool end = token_.is(TokenKind::variable_end) || token_.is(TokenKind::block_end) ||
                     token_.is(Op::rparen) || token_.is_name("recursive");
    if (end) break;
    uint32_t item = 0;
    MOTE_TRY(conditional ? parse_conditional(&item) : parse_words(NodeKind::either, &item));
    append(&items, item);
    bool comma = false;
    MOTE_TRY(skip_if(Op::comma, &comma));
    if (!comma) break;
    tuple = true;
  }
  leave();
  if (!items.first && !may_be_empty) return error("an expression");
  *node = items.first;
  if (items.first && !tuple) return kOk;
  MOTE_TRY(new_node(NodeKind::tuple, line, node));
  nodes_[*node].first = items.first;
  return kOk;
}

// `or` of `and`s of `not`s.
Status Parser::parse_words(NodeKind kind, uint32_t* node) {
  const bool either = kind == NodeKind::either;
  const char* word = either ? "or" : "and";
  List operands;
  const uint32_t line = token_.line;
  for (;;) {
    uint32_t operand = 0;
    MOTE_TRY(either ? parse_words(NodeKind::both, &operand) : parse_not(&operand));
    append(&operands, operand);
    if (!token_.is_name(word)) break;
    MOTE_TRY(next());
  }
  *node = operands.first;
  if (operands.first == operands.last) return kOk;
  MOTE_TRY(new_node(kind, line, node));
  nodes_[*node].first = operands.first;
  return kOk;
}

Status Parser::parse_not(uint32_t* node) {
  if (!token_.is_name("not")) return parse_compare(node);
  uint32_t operand = 0;
  MOTE_TRY(enter());
  MOTE_TRY(new_node(NodeKind::invert, token_.line, node));
  MOTE_TRY(next());
  MOTE_TRY(parse_not(&operand));
  nodes_[*node].first = operand;
  leave();
  return kOk;
}

Status Parser::parse_compare(uint32_t* node) {
  List operands;
  const uint32_t line = token_.line;
  for (Op op = Op::none;;) {
    uint32_t operand = 0;
    MOTE_TRY(parse_chain(0, &operand));
    nodes_[operand].op = op;
    append(&operands, operand);
    op = Op::none;
    if (token_.kind == TokenKind::op && token_.op >= Op::eq && token_.op <= Op::ge) {
      op = token_.op;
    } else if (token_.is_name("in")) {
      op = Op::in;
    } else if (token_.is_name("not")) {
      MOTE_TRY(look());
      if (look_.is_name("in")) {
        op = Op::not_in;
        MOTE_TRY(next());
      }
    }
    if (op == Op::none) break;
    MOTE_TRY(next());
  }
  *node = operands.first;
  if (operands.first == operands.last) return kOk;
  MOTE_TRY(new_node(NodeKind::compare, line, node));
  nodes_[*node].first = operands.first;
  return kOk;
}

// Operators of the same rank, which all group to the left: 0 + -, 1 ~, 2 * / // %, 3 **.
Status Parser::parse_chain(int level, uint32_t* node) {
  List operands;
  const uint32_t line = token_.line;
  for (Op op = Op::none;;) {
    uint32_t operand = 0;
    MOTE_TRY(level == 3 ? parse_unary(true, &operand) : parse_chain(level + 1, &operand));
    nodes_[operand].op = op;
    append(&operands, operand);
    op = token_.is(TokenKind::op) ? token_.op : Op::none;
    bool mine = false;
    switch (op) {
      case Op::add:
      case Op::sub:
        mine = level == 0;
        break;
      case Op::tilde:
        mine = level == 1;
        break;
      case Op::mul:
      case Op::div:
      case Op::floor_div:
      case Op::mod:
        mine = level == 2;
        break;
      case Op::pow:
        mine = level == 3;
        break;
      default:
        break;
    }
    if (!mine) break;
    MOTE_TRY(next());
  }
  *node = operands.first;
  if (operands.first == operands.last) return kOk;
  MOTE_TRY(new_node(level == 1 ? NodeKind::concat : NodeKind::arithmetic, line, node));
  nodes_[*node].first = operands.first;
  return kOk;
}

Status Parser::parse_unary(bool filters, uint32_t* node) {
  if (token_.is(Op::sub) || token_.is(Op::add)) {
    uint32_t operand = 0;
    MOTE_TRY(enter());
    MOTE_TRY(new_node(token_.is(Op::sub) ? NodeKind::negate : NodeKind::plus, token_.line, node));
    MOTE_TRY(next());
    MOTE_TRY(parse_unary(false, &operand));
    nodes_[*node].first = operand;
    leave();
  } else {
    MOTE_TRY(parse_primary(node));
  }
  MOTE_TRY(parse_postfix(node));
  return filters ? parse_filters(node) : kOk;
}

Status Parser::parse_primary(uint32_t* node) {
  const Token token = token_;
  if (token.is(Op::lbracket)) return parse_list(node);
  if (token.is(Op::lbrace)) return parse_dict(node);
  if (token.is(Op::lparen)) {
    MOTE_TRY(next());
    MOTE_TRY(parse_tuple(true, true, node));
    return expect(Op::rparen, "')'");
  }
  NodeKind kind = NodeKind::name;
  switch (token.kind) {
    case TokenKind::string:
      kind = NodeKind::string;
      break;
    case TokenKind::integer:
      kind = NodeKind::integer;
      break;
    case TokenKind::real:
      kind = NodeKind::real;
      break;
    case TokenKind::name:
      break;
    default:
      return error("an expression");
  }
  const std::string_view text = token.text;
  const bool yes = text == "true" || text == "True", no = text == "false" || text == "False";
  if (kind == NodeKind::name && (yes || no)) kind = NodeKind::boolean;
  if (kind == NodeKind::name && (text == "none" || text == "None")) kind = NodeKind::none;
  if (kind == NodeKind::name && text == "varargs") uses_ |= kUsesVarargs;
  if (kind == NodeKind::name && text == "kwargs") uses_ |= kUsesKwargs;
  if (kind == NodeKind::name && text == "caller") uses_ |= kUsesCaller;
  MOTE_TRY(new_node(kind, token.line, node));
  Node& made = nodes_[*node];
  if (kind == NodeKind::integer) {
    made.integer = token.integer;
  } else if (kind == NodeKind::boolean) {
    made.integer = yes;
  } else if (kind == NodeKind::real) {
    made.real = token.real;
  } else {
    made.text = text.data();
    made.length = static_cast<uint32_t>(text.size());
  }
  MOTE_TRY(next());
  if (kind != NodeKind::string || !token_.is(TokenKind::string)) return kOk;
  List parts;  // strings side by side are one
  append(&parts, *node);
  while (token_.is(TokenKind::string)) {
    uint32_t part = 0;
    MOTE_TRY(new_node(NodeKind::string, token_.line, &part));
    nodes_[part].text = token_.text.data();
    nodes_[part].length = static_cast<uint32_t>(token_.text.size());
    append(&parts, part);
    MOTE_TRY(next());
  }
  MOTE_TRY(new_node(NodeKind::concat, token.line, node));
  nodes_[*node].first = parts.first;
  return kOk;
}

Status Parser::parse_list(uint32_t* node) {
  MOTE_TRY(new_node(NodeKind::list, token_.line, node));
  MOTE_TRY(next());
  List items;
  while (!token_.is(Op::rbracket)) {
    if (items.first) MOTE_TRY(expect(Op::comma, "a comma or ']'"));
    if (token_.is(Op::rbracket)) break;
    uint32_t item = 0;
    MOTE_TRY(parse_expression(&item));
    append(&items, item);
  }
  nodes_[*node].first = items.first;
  return next();
}

Status Parser::parse_dict(uint32_t* node) {
  MOTE_TRY(new_node(NodeKind::dict, token_.line, node));
  MOTE_TRY(next());
  List items;
  while (!token_.is(Op::rbrace)) {
    if (items.first) MOTE_TRY(expect(Op::comma, "a comma or '}'"));
    if (token_.is(Op::rbrace)) break;
    uint32_t key = 0, value = 0;
    MOTE_TRY(parse_expression(&key));
    MOTE_TRY(expect(Op::colon, "':'"));
    MOTE_TRY(parse_expression(&value));
    append(&items, key);
    append(&items, value);
  }
  nodes_[*node].first = items.first;
  return next();
}

Status Parser::parse_postfix(uint32_t* node) {
  for (;;) {
    if (token_.is(Op::dot) || token_.is(Op::lbracket)) {
      MOTE_TRY(parse_subscript(node));
    } else if (token_.is(Op::lparen)) {
      uint32_t call = 0, arguments = 0;
      MOTE_TRY(new_node(NodeKind::call, token_.line, &call));
      MOTE_TRY(parse_arguments(&arguments));
      nodes_[call].first = *node;
      nodes_[call].second = arguments;
      *node = call;
    } else {
      return kOk;
    }
  }
}

Status Parser::parse_filters(uint32_t* node) {
  for (;;) {
    if (token_.is(Op::pipe)) {
      MOTE_TRY(next());
      MOTE_TRY(parse_filter(node));
    } else if (token_.is_name("is")) {
      MOTE_TRY(parse_test(node));
    } else if (token_.is(Op::lparen)) {
      MOTE_TRY(parse_postfix(node));
    } else {
      return kOk;
    }
  }
}

Status Parser::parse_dotted_name(std::string_view* name) {
  if (!at_word()) return error("a name");
  *name = token_.text;
  MOTE_TRY(next());
  while (token_.is(Op::dot)) {  // no filter or test here has a dot in its name
    MOTE_TRY(next());
    if (!at_word()) return error("a name");
    *name = std::string_view(
        name->data(), static_cast<size_t>(token_.text.data() - name->data()) + token_.text.size());
    MOTE_TRY(next());
  }
  return kOk;
}

// After the | : wraps *node in the filter.
Status Parser::parse_filter(uint32_t* node) {
  uint32_t filter = 0, arguments = 0;
  MOTE_TRY(new_node(NodeKind::filter, token_.line, &filter));
  std::string_view name;
  MOTE_TRY(parse_dotted_name(&name));
  if (token_.is(Op::lparen)) MOTE_TRY(parse_arguments(&arguments));
  Node& made = nodes_[filter];
  made.text = name.data();
  made.length = static_cast<uint32_t>(name.size());
  made.function = find_filter(name);
  made.first = *node;
  made.second = arguments;
  *node = filter;
  return kOk;
}

// At `is`: wraps *node in the test.
Status Parser::parse_test(uint32_t* node) {
  uint32_t test = 0, arguments = 0;
  MOTE_TRY(new_node(NodeKind::test, token_.line, &test));
  MOTE_TRY(next());
  if (token_.is_name("not")) {
    nodes_[test].flag = true;
    MOTE_TRY(next());
  }
  std::string_view name;
  MOTE_TRY(parse_dotted_name(&name));
  const bool word =
      at_word() && !token_.is_name("else") && !token_.is_name("or") && !token_.is_name("and");
  if (token_.is(Op::lparen)) {
    MOTE_TRY(parse_arguments(&arguments));
  } else if (word || token_.is(TokenKind::string) || token_.is(TokenKind::integer) ||
             token_.is(TokenKind::real) || token_.is(Op::lbracket) || token_.is(Op::lbrace)) {
    if (token_.is_name("is")) return error("one test ('is' cannot be chained)");
    MOTE_TRY(enter());
    MOTE_TRY(parse_primary(&arguments));
    MOTE_TRY(parse_postfix(&arguments));
    leave();
  }
  Node& made = nodes_[test];
  made.text = name.data();
  made.length = static_cast<uint32_t>(name.size());
  made.function = find_test(name);
  made.first = *node;
  made.second = arguments;
  *node = test;
  return kOk;
}

Status Parser::parse_subscript(uint32_t* node) {
  uint32_t made = 0, index = 0;
  const uint32_t line = token_.line;
  if (token_.is(Op::dot)) {
    MOTE_TRY(next());
    const Token name = token_;
    if (!name.is(TokenKind::name) && !name.is(TokenKind::integer))
      return error("a name or a number");
    MOTE_TRY(next());
    if (name.is(TokenKind::integer)) {
      MOTE_TRY(new_node(NodeKind::integer, line, &index));
      nodes_[index].integer = name.integer;
    }
    MOTE_TRY(new_node(index ? NodeKind::item : NodeKind::attribute, line, &made));
    nodes_[made].second = index;
    nodes_[made].text = name.text.data();
    nodes_[made].length = static_cast<uint32_t>(name.text.size());
  } else {
    MOTE_TRY(next());
    MOTE_TRY(enter());
    MOTE_TRY(parse_index(&index));
    leave();
    MOTE_TRY(new_node(NodeKind::item, line, &made));
    nodes_[made].second = index;
    MOTE_TRY(expect(Op::rbracket, "']'"));
  }
  nodes_[made].first = *node;
  *node = made;
  return kOk;
}

// What stands in []: an expression or a slice.
Status Parser::parse_index(uint32_t* node) {
  uint32_t parts[3] = {};
  const uint32_t line = token_.line;
  bool slice = false;
  for (int i = 0; i < 3; ++i) {
    if (!token_.is(Op::colon) && !token_.is(Op::rbracket)) MOTE_TRY(parse_expression(&parts[i]));
    if (i == 2 || !token_.is(Op::colon)) break;
    slice = true;
    MOTE_TRY(next());
  }
  *node = parts[0];
  if (!slice) return parts[0] ? kOk : error("an expression");
  MOTE_TRY(new_node(NodeKind::slice, line, node));
  nodes_[*node].first = parts[0];
  nodes_[*node].second = parts[1];
  nodes_[*node].third = parts[2];
  return kOk;
}

Status Parser::parse_arguments(uint32_t* first) {
  List list;
  bool keywords = false;
  MOTE_TRY(enter());
  MOTE_TRY(expect(Op::lparen, "'('"));
  while (!token_.is(Op::rparen)) {
    if (list.first) MOTE_TRY(expect(Op::comma, "a comma or ')'"));
    if (token_.is(Op::rparen)) break;
    uint32_t argument = 0, value = 0;
    NodeKind kind = token_.is(Op::mul)   ? NodeKind::spread
                    : token_.is(Op::pow) ? NodeKind::spread_keywords
                                         : NodeKind::none;
    const Token name = token_;
    if (at_word()) {
      MOTE_TRY(look());
      if (look_.is(Op::assign)) kind = NodeKind::keyword;
    }
    if (kind == NodeKind::none) {
      if (keywords) return error("a keyword argument, as one came before");
      MOTE_TRY(parse_expression(&argument));
    } else {
      keywords |= kind != NodeKind::spread;
      MOTE_TRY(new_node(kind, token_.line, &argument));
      nodes_[argument].text = name.text.data();
      nodes_[argument].length = static_cast<uint32_t>(name.text.size());
      MOTE_TRY(next());
      if (kind == NodeKind::keyword) MOTE_TRY(next());
      MOTE_TRY(parse_expression(&value));
      nodes_[argument].first = value;
    }
    append(&list, argument);
  }
  leave();
  *first = list.first;
  return next();
}

}  // namespace mote::chat
