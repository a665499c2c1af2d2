// int8 activations as the linear kernels walk them.
#pragma once

#include "kernels/linear.h"

namespace mote::MOTE_ISA {
namespace {

// The activations of a token and, `pitch` further, of the next. All offsets are multiples of one: a
// block has 4 bytes of scales, 8 of corrections and 32 of q, so that x86 addresses all of them with
// one register per token.
struct BlockActivations {
  const int8_t* q;
  const uint8_t* correction;
  const uint8_t* scale;
  const uint8_t* scaled_sum;
  const int32_t* row_correction;  // one a token
  size_t blocks, pitch;

  MOTE_INLINE BlockActivations(const Activations& a, size_t columns, size_t token)
      : q(a.q + token * columns),
        correction(reinterpret_cast<const uint8_t*>(a.correction + token * (columns / 16))),
        scale(reinterpret_cast<const uint8_t*>(a.scale + token * (columns / 32))),
        scaled_sum(reinterpret_cast<const uint8_t*>(a.scaled_sum + token * (columns / 32))),
        row_correction(a.row_correction ? a.row_correction + token : nullptr),
        blocks(columns / 32),
        pitch(columns / 32 * sizeof(float)) {}
  MOTE_INLINE void next_block() {
    q += 32;
    correction += 8;
    scale += 4;
    scaled_sum += 4;
  }
  // -128 * sum of q, of all 32 or of a half.
  template <int kGroups, int kGroup>
  MOTE_INLINE Ints sum_at(size_t at) const {
    const uint8_t* p = correction + 2 * at;
    if constexpr (kGroups == 1) return set_int(read<int32_t>(p));
    if constexpr (kGroup == 0) return set_int(read<int32_t>(p + 4));
    return set_int(read<int32_t>(p) - read<int32_t>(p + 4));
  }
  // -kOffset * sum of q: what makes up for weights stored with an offset.
  template <int kOffset, int kGroups = 1, int kGroup = 0>
  MOTE_INLINE Ints first(size_t at) const {
    if constexpr (kOffset == 0) return set_int(0);
    return shift_right < kOffset == 0
               ? 0
               : __builtin_ctz(128 / kOffset) > (sum_at<kGroups, kGroup>(at));
  }
  // The same for all columns of token t.
  template <int kOffset>
  MOTE_INLINE Ints row_first(int t) const {
    if constexpr (kOffset == 0) return set_int(0);
    return set_int(row_correction[t] / (128 / kOffset));
  }
  MOTE_INLINE ActivationBlock block(size_t at) const { return ActivationBlock(q + 8 * at); }
  MOTE_INLINE Floats scale_at(size_t at) const { return set_float(read<float>(scale + at)); }
  MOTE_INLINE Floats scaled_sum_at(size_t at) const {
    return set_float(read<float>(scaled_sum + at));
  }
};

// Offsets of the tokens from the first. pin() in every round of a loop makes the compiler keep them
// in registers: it would rather have a pointer for each array and token, more than there are
// registers, and then move them to and from vector ones.
template <int kTokens>
struct TokenOffsets {
  size_t at[kTokens];
  MOTE_INLINE explicit TokenOffsets(size_t pitch) {
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t) at[t] = t * pitch;
  }
  MOTE_INLINE void pin() {
    MOTE_UNROLL
    for (int t = 1; t < kTokens; ++t) __asm__("" : "+r"(at[t]));
  }
};

// ---- outliers ----

constexpr uint32_t kNoOutliers[1] = {kNoOutlier};

// Walks the outliers of one token.
struct Outliers {
  const uint32_t* group = kNoOutliers;
  const int8_t* q = nullptr;
  const int32_t* correction = nullptr;
  const float* scale = nullptr;

  MOTE_INLINE void start(const Activations& a, size_t columns, size_t token) {
    if (!a.outliers) return;
    const size_t first = token * (columns / 32);
    group = a.outlier_group + first + token;
    q = a.outlier_q + 4 * first;
    correction = a.outlier_correction + first;
    scale = a.outlier_scale + first;
  }
  MOTE_INLINE size_t block() const { return *group / 8; }
  MOTE_INLINE void next() { ++group, q += 4, ++correction, ++scale; }
};

// Those of several tokens; `block` is the next that any of them has one in.
template <int kTokens>
struct OutliersOfTokens {
  static constexpr size_t kNone = kNoOutlier / 8;
  Outliers token[kTokens];
  size_t block;

  MOTE_INLINE void start(const Activations& a, size_t columns, size_t first_token) {
    for (int t = 0; t < kTokens; ++t) token[t].start(a, columns, first_token + t);
    find();
  }
  MOTE_INLINE void next() {
    for (int t = 0; t < kTokens; ++t)
      if (token[t].block() == block) token[t].next();
    find();
  }
  MOTE_INLINE void find() {
    block = kNone;
    for (int t = 0; t < kTokens; ++t) block = token[t].block() < block ? token[t].block() : block;
  }
};

// sums += rows [kTokens][kVectors * kLanes].
template <int kTokens, int kVectors>
MOTE_INLINE void add_rows(const float* rows, Floats (&sums)[kTokens][kVectors]) {
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    MOTE_UNROLL
    for (int v = 0; v < kVectors; ++v)
      sums[t][v] = add(sums[t][v], load_floats(rows + (t * kVectors + v) * kLanes));
  }
}

}  // namespace
}  // namespace mote::MOTE_ISA
