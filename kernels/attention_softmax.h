// The streaming softmax of one row over blocks and segments of keys.
#pragma once

#include "kernels/kernels.h"
#include "kernels/simd.h"

namespace mote {
namespace MOTE_ISA {
namespace {

constexpr float kInfinity = __builtin_inff();

// Running state of one row: maximum of the scores, and per lane the sum of exp(score - maximum).
struct RowState {
  float* top;
  float* sums;  // [kLanes]
};

// s[lo..hi), raw scores of one block, become exp(score - maximum); the state takes them in. Returns
// the factor for what was summed before. kWhole: the row sees the whole block. bias: null, or of
// the block's keys.
template <bool kWhole>
MOTE_INLINE float softmax_block(float* s, size_t lo, size_t hi, float scale, float cap,
                                const float* bias, RowState state) {
  const F32 low = broadcast(-kInfinity), factor = broadcast(scale);
  const size_t begin = kWhole ? 0 : lo / kLanes;
  const size_t end = kWhole ? kKeyBlock / kLanes : (hi + kLanes - 1) / kLanes;
  F32 best = low;
#pragma GCC unroll 4
  for (size_t v = begin; v < end; ++v) {
    F32 x = load(s + v * kLanes) * factor;
    if (!kWhole && bias) x = x + load(bias + v * kLanes);
    if (cap > 0.0f) x = broadcast(cap) * tanh(x * broadcast(1.0f / cap));
    if (!kWhole) {
      const F32 at = lane_numbers() + broadcast(static_cast<float>(v * kLanes));
      x = select(at < broadcast(static_cast<float>(lo)), low, x);
      x = select(at < broadcast(static_cast<float>(hi)), x, low);
    }
    store(s + v * kLanes, x);
    best = max(best, x);
  }
  const float before = *state.top, block = largest(best);
  const float top = block > before ? block : before;
  const F32 shift = broadcast(top == -kInfinity ? 0.0f : top);
  const F32 decay = exp_negative(broadcast(before) - shift);
  F32 sums = load(state.sums) * decay;
#pragma GCC unroll 4
  for (size_t v = begin; v < end; ++v) {
    const F32 e = exp_negative(load(s + v * kLanes) - shift);
    store(s + v * kLanes, e);
    sums = sums + e;
  }
  store(state.sums, sums);
  *state.top = top;
  return first_lane(decay);
}

MOTE_INLINE float exp_of_difference(float x, float top) {
  return first_lane(exp_negative(broadcast(x - top)));
}

// Folds the result of a segment (part, part_top, part_sum) into what came before (y, *top, *sum).
MOTE_INLINE void fold_segment(float* y, float* top, float* sum, const float* part, float part_top,
                              float part_sum, size_t n) {
  if (part_top == -kInfinity) return;  // the row saw none of its keys
  const bool first = *top == -kInfinity;
  const float joint = first || part_top > *top ? part_top : *top;
  const float a = first ? 0.0f : exp_of_difference(*top, joint);
  const float b = exp_of_difference(part_top, joint);
  *sum = first ? part_sum * b : *sum * a + part_sum * b;
  *top = joint;
  const F32 old = broadcast(a), fresh = broadcast(b);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F32 v = load(part + i) * fresh;
    store(y + i, first ? v : fma(load(y + i), old, v));
  }
  if (i < n) {
    const F32 v = load_partial(part + i, n - i) * fresh;
    store_partial(y + i, first ? v : fma(load_partial(y + i, n - i), old, v), n - i);
  }
}

// y = x / sum; zeros where there was no key.
MOTE_INLINE void normalise(float* y, const float* x, float sum, size_t n) {
  const bool empty = sum == 0.0f;
  const F32 factor = broadcast(1.0f / sum);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, empty ? zero() : load(x + i) * factor);
  if (i < n) store_partial(y + i, empty ? zero() : load_partial(x + i, n - i) * factor, n - i);
}

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote
