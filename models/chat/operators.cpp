// What operators do to values, as in Python but with integers of 64 bits: an overflow is an error.
#include <cmath>

#include "core/slice.h"
#include "models/chat/evaluate.h"
#include "models/chat/text.h"

namespace mote::chat {
namespace {

Status overflow() { return fail(MOTE_ERROR_TEMPLATE, "an integer of more than 64 bits"); }
Status division_by_zero() { return fail(MOTE_ERROR_TEMPLATE, "division by zero"); }

// Python's a % b: the result has the sign of b.
double modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// Python's a // b.
double floor_divide(double a, double b) {
  const double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Status power(int64_t base, int64_t exponent, Value* result) {
  if (exponent < 0) {
    if (base == 0) return division_by_zero();
    *result = Value::of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    return kOk;
  }
  int64_t value = 1;
  for (;;) {
    if ((exponent & 1) && __builtin_mul_overflow(value, base, &value)) return overflow();
    exponent >>= 1;
    if (exponent == 0) break;
    if (__builtin_mul_overflow(base, base, &base)) return overflow();
  }
  *result = Value::of(value);
  return kOk;
}

Status integers(Op op, int64_t a, int64_t b, Value* result) {
  int64_t value = 0;
  bool overflows = false;
  switch (op) {
    case Op::add:
      overflows = __builtin_add_overflow(a, b, &value);
      break;
    case Op::sub:
      overflows = __builtin_sub_overflow(a, b, &value);
      break;
    case Op::mul:
      overflows = __builtin_mul_overflow(a, b, &value);
      break;
    case Op::div:
      if (b == 0) return division_by_zero();
      *result = Value::of(static_cast<double>(a) / static_cast<double>(b));
      return kOk;
    case Op::floor_div:
      if (b == 0) return division_by_zero();
      if (a == INT64_MIN && b == -1) return overflow();
      value = a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
      break;
    case Op::mod:
      if (b == 0) return division_by_zero();
      value = b == -1 ? 0 : a % b;
      if (value != 0 && (value < 0) != (b < 0)) value += b;
      break;
    default:
      return power(a, b, result);
  }
  if (overflows) return overflow();
  *result = Value::of(value);
  return kOk;
}

Status reals(Op op, double a, double b, Value* result) {
  double value = 0;
  switch (op) {
    case Op::add:
      value = a + b;
      break;
    case Op::sub:
      value = a - b;
      break;
    case Op::mul:
      value = a * b;
      break;
    case Op::div:
      if (b == 0) return division_by_zero();
      value = a / b;
      break;
    case Op::floor_div:
      if (b == 0) return division_by_zero();
      value = floor_divide(a, b);
      break;
    case Op::mod:
      if (b == 0) return division_by_zero();
      value = modulo(a, b);
      break;
    default:
      if (a == 0 && b < 0) return division_by_zero();
      if (a < 0 && b != std::floor(b)) return fail(MOTE_ERROR_TEMPLATE, "a complex number");
      value = std::pow(a, b);
      if (std::isinf(value) && !std::isinf(a) && !std::isinf(b))
        return fail(MOTE_ERROR_TEMPLATE, "a number too large for a float");
  }
  *result = Value::of(value);
  return kOk;
}

Status repeat(const Value& value, int64_t times, Evaluator& evaluator, Value* result) {
  const size_t count = times > 0 ? static_cast<size_t>(times) : 0;
  if (value.is_string()) {
    TextBuilder text(evaluator.heap);
    MOTE_TRY(evaluator.spend(value.size ? count / 16 : 0));
    text.repeat(value.string(), count);
    return text.finish(result);
  }
  Value* items = nullptr;
  size_t total = 0;
  if (__builtin_mul_overflow(count, count_of(value), &total) || total > UINT32_MAX)
    return fail(MOTE_ERROR_TEMPLATE, "a list of more than 4294967295 items");
  MOTE_TRY(evaluator.take_items(total, &items));
  for (size_t i = 0; i < total; ++i) items[i] = item_of(value, i % count_of(value));
  *result = Value::of(value.kind == Kind::tuple ? Kind::tuple : Kind::list, items, total);
  return kOk;
}

bool is_list(const Value& value) { return value.is(Kind::list) || value.is(Kind::messages); }

Status join_lists(const Value& left, const Value& right, Evaluator& evaluator, Value* result) {
  Value* items = nullptr;
  const size_t count = count_of(left) + count_of(right);
  MOTE_TRY(evaluator.take_items(count, &items));
  for (size_t i = 0; i < count_of(left); ++i) items[i] = item_of(left, i);
  for (size_t i = 0; i < count_of(right); ++i) items[count_of(left) + i] = item_of(right, i);
  *result = Value::of(left.is(Kind::tuple) ? Kind::tuple : Kind::list, items, count);
  return kOk;
}

}  // namespace

Status arithmetic(Op op, const Value& left, const Value& right, Evaluator& evaluator,
                  Value* result) {
  if (left.is_integral() && right.is_integral())
    return integers(op, left.as_integer(), right.as_integer(), result);
  if (left.is_number() && right.is_number())
    return reals(op, left.as_real(), right.as_real(), result);
  if (op == Op::add && left.is_string() && right.is_string()) {
    MOTE_TRY(evaluator.spend((left.size + right.size) / 64));
    return concatenate(evaluator.heap, left.string(), right.string(), result);
  }
  const bool lists =
      (is_list(left) && is_list(right)) || (left.is(Kind::tuple) && right.is(Kind::tuple));
  if (op == Op::add && lists) return join_lists(left, right, evaluator, result);
  if (op == Op::mod && left.is_string())
    return format_percent(evaluator.heap, left.string(), right, result, evaluator.work);
  const auto repeats = [](const Value& value) {
    return value.is_string() || is_list(value) || value.is(Kind::tuple);
  };
  if (op == Op::mul && repeats(left) && right.is_integral())
    return repeat(left, right.as_integer(), evaluator, result);
  if (op == Op::mul && left.is_integral() && repeats(right))
    return repeat(right, left.as_integer(), evaluator, result);
  static constexpr const char* kNames[] = {"", "+", "-", "*", "/", "//", "%", "**"};
  return fail(MOTE_ERROR_TEMPLATE, "'%s' and '%s' have no operator %s", type_name(left),
              type_name(right), kNames[static_cast<int>(op)]);
}

Status negate(const Value& value, Value* result) {
  if (value.is(Kind::real)) return *result = Value::of(-value.real), kOk;
  if (!value.is_integral())
    return fail(MOTE_ERROR_TEMPLATE, "'%s' has no operator -", type_name(value));
  return integers(Op::sub, 0, value.as_integer(), result);
}

Status compare_by(Op op, const Value& left, const Value& right, Work& work, bool* result) {
  int order = 0;
  switch (op) {
    case Op::eq:
      *result = equal(left, right, work);
      return kOk;
    case Op::ne:
      *result = !equal(left, right, work);
      return kOk;
    case Op::in:
      return contains(right, left, result, work);
    case Op::not_in:
      MOTE_TRY(contains(right, left, result, work));
      *result = !*result;
      return kOk;
    default:
      break;
  }
  MOTE_TRY(compare(left, right, &order, work));
  switch (op) {
    case Op::lt:
      *result = order == -1;
      break;
    case Op::le:
      *result = order == -1 || order == 0;
      break;
    case Op::gt:
      *result = order == 1;
      break;
    default:
      *result = order == 1 || order == 0;
      break;
  }
  return kOk;
}

// A bound of a slice, brought into [low, high].
static Status slice_bound(const Value& value, int64_t length, int64_t missing, int64_t low,
                          int64_t high, int64_t* bound) {
  *bound = missing;
  if (value.is(Kind::none)) return kOk;
  if (!value.is_integral())
    return fail(MOTE_ERROR_TEMPLATE, "a slice expects integers, found '%s'", type_name(value));
  int64_t at = value.as_integer();
  if (at < 0) at += length;
  *bound = at < low ? low : at > high ? high : at;
  return kOk;
}

Status slice_value(const Value& object, const Value& start, const Value& stop,
                   const Value& step_value, Evaluator& evaluator, Value* result) {
  if (!object.is_string() && !object.is_sequence()) {
    *result = Value::undefined("slice", &object);
    return kOk;
  }
  Value from;
  MOTE_TRY(object.is_string() ? kOk : evaluator.iterate(object, &from));
  const bool whole_text = object.is_string();
  const int64_t length =
      static_cast<int64_t>(whole_text ? code_points(object.string()) : count_of(from));
  MOTE_TRY(evaluator.spend(whole_text ? object.size / 64 : 0));
  if (!step_value.is(Kind::none) && !step_value.is_integral())
    return fail(MOTE_ERROR_TEMPLATE, "a slice expects integers, found '%s'", type_name(step_value));
  const int64_t step = step_value.is(Kind::none) ? 1 : step_value.as_integer();
  if (step == 0) return fail(MOTE_ERROR_TEMPLATE, "a slice with step 0");
  int64_t first = 0, last = 0;
  const bool up = step > 0;
  MOTE_TRY(slice_bound(start, length, up ? 0 : length - 1, up ? 0 : -1, up ? length : length - 1,
                       &first));
  MOTE_TRY(
      slice_bound(stop, length, up ? length : -1, up ? 0 : -1, up ? length : length - 1, &last));
  const uint64_t stride =
      up ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const int64_t distance = up ? last - first : first - last;
  const size_t count =
      distance <= 0 ? 0 : static_cast<size_t>((static_cast<uint64_t>(distance) - 1) / stride + 1);
  if (step == 1 && whole_text) {
    const size_t begin = byte_offset(object.string(), static_cast<size_t>(first));
    const std::string_view rest = slice(object.string(), begin);
    *result = Value::of(slice(rest, 0, byte_offset(rest, count)));
    return kOk;
  }
  if (step == 1 && object.kind != Kind::range) {  // seen in place
    *result = object;
    result->size = static_cast<uint32_t>(count);
    if (object.is(Kind::messages)) {
      result->message = object.message + first;
    } else if (object.items) {
      result->items = object.items + first;
    }
    return kOk;
  }
  if (whole_text) MOTE_TRY(evaluator.iterate(object, &from));
  Value* items = nullptr;
  MOTE_TRY(evaluator.take_items(count, &items));
  for (size_t i = 0; i < count; ++i)
    items[i] = item_of(from, static_cast<size_t>(first + static_cast<int64_t>(i) * step));
  if (!whole_text) {
    *result = Value::of(object.is(Kind::tuple) ? Kind::tuple : Kind::list, items, count);
    return kOk;
  }
  TextBuilder text(evaluator.heap);
  for (size_t i = 0; i < count; ++i) text.append(items[i].string());
  return text.finish(result);
}

}  // namespace mote::chat
