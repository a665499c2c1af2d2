// Tests: what may follow `is`.
#include "models/chat/evaluate.h"
#include "models/chat/parser.h"
#include "models/chat/text.h"

namespace mote::chat {
namespace {

enum Test : uint8_t {
  kDefined = 1,
  kUndefined,
  kNone,
  kBoolean,
  kFalse,
  kTrue,
  kInteger,
  kFloat,
  kNumber,
  kString,
  kMapping,
  kSequence,
  kIterable,
  kCallable,
  kLower,
  kUpper,
  kOdd,
  kEven,
  kDivisible,
  kSame,
  kIn,
  kEscaped,
  kFilter,
  kTest,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
};
struct Name {
  const char* name;
  Test test;
};
constexpr Name kTests[] = {
    {"defined", kDefined},
    {"undefined", kUndefined},
    {"none", kNone},
    {"boolean", kBoolean},
    {"false", kFalse},
    {"true", kTrue},
    {"integer", kInteger},
    {"float", kFloat},
    {"number", kNumber},
    {"string", kString},
    {"mapping", kMapping},
    {"sequence", kSequence},
    {"iterable", kIterable},
    {"callable", kCallable},
    {"lower", kLower},
    {"upper", kUpper},
    {"odd", kOdd},
    {"even", kEven},
    {"divisibleby", kDivisible},
    {"sameas", kSame},
    {"in", kIn},
    {"escaped", kEscaped},
    {"filter", kFilter},
    {"test", kTest},
    {"eq", kEqual},
    {"equalto", kEqual},
    {"==", kEqual},
    {"ne", kNotEqual},
    {"!=", kNotEqual},
    {"lt", kLess},
    {"lessthan", kLess},
    {"<", kLess},
    {"le", kLessEqual},
    {"<=", kLessEqual},
    {"gt", kGreater},
    {"greaterthan", kGreater},
    {">", kGreater},
    {"ge", kGreaterEqual},
    {">=", kGreaterEqual},
};

Op operator_of(uint8_t test) {
  switch (test) {
    case kEqual:
      return Op::eq;
    case kNotEqual:
      return Op::ne;
    case kLess:
      return Op::lt;
    case kLessEqual:
      return Op::le;
    case kGreater:
      return Op::gt;
    case kGreaterEqual:
      return Op::ge;
    default:
      return Op::none;
  }
}

Status parity(Evaluator& evaluator, const Value& value, const Value& divisor, int64_t rest,
              bool* result) {
  Value remainder;
  MOTE_TRY(arithmetic(Op::mod, value, divisor, evaluator, &remainder));
  *result = equal(remainder, Value::of(rest), evaluator.work);
  return kOk;
}

bool is_same(const Value& left, const Value& right) {
  if (left.kind != right.kind || left.size != right.size) return false;
  switch (left.kind) {
    case Kind::none:
      return true;
    case Kind::boolean:
      return left.boolean == right.boolean;
    case Kind::string:
      return left.string() == right.string();  // Python keeps one copy of most texts
    default:
      return left.integer == right.integer;
  }
}

bool is_kind(uint8_t test, const Value& value) {
  switch (test) {
    case kDefined:
      return !value.is(Kind::undefined);
    case kUndefined:
      return value.is(Kind::undefined);
    case kNone:
      return value.is(Kind::none);
    case kBoolean:
      return value.is(Kind::boolean);
    case kFalse:
      return value.is(Kind::boolean) && !value.boolean;
    case kTrue:
      return value.is(Kind::boolean) && value.boolean;
    case kInteger:
      return value.is(Kind::integer);
    case kFloat:
      return value.is(Kind::real);
    case kNumber:
      return value.is_number();
    case kString:
      return value.is_string();
    case kMapping:
      return value.is_mapping();
    case kSequence:
      return value.is_string() || value.is_sequence() || value.is_mapping() ||
             value.is(Kind::undefined);
    case kIterable:
      return value.is_string() || value.is_items() || value.is_mapping() ||
             value.is(Kind::undefined) || value.is(Kind::loop);
    case kCallable:
      return value.is_callable();
    case kLower:
      return value.is_string() && is_class(value.string(), Class::lower);
    case kUpper:
      return value.is_string() && is_class(value.string(), Class::upper);
    case kFilter:
      return value.is_string() && find_filter(value.string());
    case kTest:
      return value.is_string() && find_test(value.string());
    default:
      return false;
  }
}

}  // namespace

uint8_t find_test(std::string_view name) {
  for (const Name& entry : kTests)
    if (name == entry.name) return entry.test;
  return 0;
}

Status apply_test(uint8_t test, Evaluator& evaluator, const Value& input,
                  const Arguments& arguments, bool* result) {
  Value other;
  const bool compares = operator_of(test) != Op::none;
  const bool binary = compares || test == kDivisible || test == kSame || test == kIn;
  static constexpr const char* kNames[] = {"other", nullptr};
  static constexpr const char* kDivisor[] = {"num", nullptr};
  static constexpr const char* kContainer[] = {"seq", nullptr};
  static constexpr const char* kNothing[] = {nullptr};
  const char* const* names = test == kDivisible ? kDivisor : test == kIn ? kContainer : kNames;
  MOTE_TRY(bind(arguments, binary ? names : kNothing, binary ? 1 : 0, &other));
  if (compares) return compare_by(operator_of(test), input, other, evaluator.work, result);
  switch (test) {
    case kOdd:
      return parity(evaluator, input, Value::of(int64_t{2}), 1, result);
    case kEven:
      return parity(evaluator, input, Value::of(int64_t{2}), 0, result);
    case kDivisible:
      return parity(evaluator, input, other, 0, result);
    case kSame:
      *result = is_same(input, other);
      return kOk;
    case kIn:
      return contains(other, input, result, evaluator.work);
    default:
      *result = is_kind(test, input);
      return kOk;
  }
}

}  // namespace mote::chat
