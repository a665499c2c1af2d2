// Element by element, and reductions of one row.
#include "kernels/declarations.h"
#include "kernels/simd.h"

namespace mote {
namespace MOTE_ISA {

void add(float* y, const float* x, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(y + i) + load(x + i));
  for (; i < n; ++i) y[i] += x[i];
}

void scale(float* y, float factor, size_t n) {
  const F32 f = broadcast(factor);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(y + i) * f);
  for (; i < n; ++i) y[i] *= factor;
}

void softcap(float* y, float cap, size_t n) {
  const F32 c = broadcast(cap), inverse = broadcast(1.0f / cap);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, c * tanh(load(y + i) * inverse));
  if (i < n) store_partial(y + i, c * tanh(load_partial(y + i, n - i) * inverse), n - i);
}

// Minus infinity where all are NaN or there is nothing.
static MOTE_INLINE float row_max(const float* x, size_t n) {
  F32 a = broadcast(-__builtin_inff()), b = a;
  size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const F32 v = load(x + i), w = load(x + i + kLanes);
    a = select(v > a, v, a);
    b = select(w > b, w, b);
  }
  float best = largest(max(a, b));
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

void softmax(float* y, const float* x, size_t n) {
  const float top = row_max(x, n);
  // A row of -inf alone becomes e^-inf = 0.
  const F32 shift = broadcast(top == -__builtin_inff() ? 0.0f : top);
  F32 total = zero();
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F32 e = exp(load(x + i) - shift);
    store(y + i, e);
    total = total + e;
  }
  if (i < n) {
    const F32 e = exp(load_partial(x + i, n - i) - shift);
    store_partial(y + i, e, n - i);
    total = total + select(lane_numbers() < broadcast(static_cast<float>(n - i)), e, zero());
  }
  const float all = sum(total);
  if (all != 0.0f) scale(y, 1.0f / all, n);
}

float log_sum_exp(const float* x, size_t n) {
  const float top = row_max(x, n);
  if (top - top != 0.0f) return top;  // infinite
  const F32 shift = broadcast(top);
  double total = 0;
  size_t i = 0;
  for (; i + 8 * kLanes <= n; i += 8 * kLanes) {
    F32 part = zero();
    for (size_t j = 0; j < 8; ++j) part = part + exp_negative(load(x + i + j * kLanes) - shift);
    total += sum(part);
  }
  for (; i + kLanes <= n; i += kLanes) total += sum(exp_negative(load(x + i) - shift));
  if (i < n) {
    const F32 e = exp_negative(load_partial(x + i, n - i) - shift);
    total += sum(select(lane_numbers() < broadcast(static_cast<float>(n - i)), e, zero()));
  }
  return static_cast<float>(top + __builtin_log(total));
}

size_t argmax(const float* x, size_t n) {
  constexpr size_t kBlock = 1024;
  float best = -__builtin_inff();
  size_t block = n;
  for (size_t i = 0; i < n; i += kBlock) {
    const float top = row_max(x + i, n - i < kBlock ? n - i : kBlock);
    if (top > best) {
      best = top;
      block = i;
    }
  }
  while (block < n && x[block] != best) ++block;
  return block;
}

}  // namespace MOTE_ISA
}  // namespace mote
