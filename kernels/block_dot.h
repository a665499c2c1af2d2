// What one block of 32 columns adds to an output, in the order of kernels.h. F is a format, or the
// form that it has in a panel.
#pragma once

#include "kernels/block_activations.h"

namespace mote::MOTE_ISA {
namespace {

// float(dot) of kLanes rows with one token: one dot product, or two of 16 columns with their
// scales, all of which f32 holds exactly.
template <class F, int kChains>
struct BlockDot {
  static constexpr int kSteps = 8 / F::kGroups;
  DotOf<F::kWeights, kChains, kSteps, F::kRowVectors> group[F::kGroups];

  MOTE_INLINE void begin(const BlockActivations& x, size_t at) {
    group[0].begin(first<0>(x, at));
    if constexpr (F::kGroups == 2) group[1].begin(first<1>(x, at));
  }
  // Of a row's blocks one after the other: what was so far, and with this one.
  MOTE_INLINE void begin_row(Ints total) { group[0].begin(F::kOffset ? total : set_int(0)); }
  MOTE_INLINE Ints finish_row(Ints total) {
    const Ints dot = group[0].finish(set_int(0));
    return F::kOffset ? dot : add(total, dot);
  }
  MOTE_INLINE void step(int i, Bytes w, const ActivationBlock& q) {
    group[i / kSteps].step(i, w, q);
  }
  // group_scale: [kGroups], not read if there is one.
  MOTE_INLINE Floats finish(const BlockActivations& x, size_t at, const Floats* group_scale) {
    const Floats dot = to_float(group[0].finish(first<0>(x, at)));
    if constexpr (F::kGroups == 1) return dot;
    return fma(to_float(group[F::kGroups - 1].finish(first<F::kGroups - 1>(x, at))), group_scale[1],
               multiply(dot, group_scale[0]));
  }

 private:
  template <int kGroup>
  static MOTE_INLINE Ints first(const BlockActivations& x, size_t at) {
    return x.first<F::kOffset, F::kGroups, kGroup>(at);
  }
};

// sum + m * what the block's activations add up to. Two minimums take the sums of 16 levels from
// the corrections, whose factor of -128 is in m.
template <class F>
MOTE_INLINE Floats add_minimums(Floats sum, const Floats* m, const BlockActivations& x, size_t at) {
  if constexpr (F::kMinimums == 1) return fma(m[0], x.scaled_sum_at(at), sum);
  if constexpr (F::kMinimums == 2) {
    const Floats scale = x.scale_at(at);
    sum = fma(m[0], multiply(to_float(x.sum_at<2, 0>(at)), scale), sum);
    return fma(m[1], multiply(to_float(x.sum_at<2, 1>(at)), scale), sum);
  }
  return sum;
}

// sum + the 4 columns w of kLanes rows times an outlier, with the scales of its block.
template <class F>
MOTE_INLINE Floats add_outlier(Floats sum, Bytes w, Floats d, const Floats* group_scale,
                               const Floats* m, const Outliers& x) {
  const int half = *x.group % 8 / 4;
  Dot<F::kWeights, 1, 1> dot;
  const Ints first = set_int(F::kOffset == 0 ? 0 : *x.correction / (128 / F::kOffset));
  dot.begin(first);
  dot.step(0, w, ActivationBlock::of_four(x.q));
  const Floats scale = set_float(*x.scale);
  Floats product = to_float(dot.finish(first));
  if constexpr (F::kGroups == 2) product = multiply(product, group_scale[half]);
  sum = fma(multiply(product, scale), d, sum);
  if constexpr (F::kMinimums == 2)
    sum = fma(m[half], multiply(to_float(set_int(*x.correction)), scale), sum);
  return sum;
}

}  // namespace
}  // namespace mote::MOTE_ISA
