// Arm: 4 rows a vector. See simd_int8.h, which includes this. Weights stay signed; nibbles are
// 0..15 in signed bytes.
#pragma once

#include <arm_neon.h>

namespace mote::MOTE_ISA {
namespace {

constexpr int kLanes = 4;
#if defined(__ARM_FEATURE_FMA)
constexpr bool kFused = true;
#else
constexpr bool kFused = false;
#endif
using Bytes = int8x16_t;
using Ints = int32x4_t;
using Floats = float32x4_t;

MOTE_INLINE Bytes load_bytes(const uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }
MOTE_INLINE void store_bytes(uint8_t* p, Bytes v) { vst1q_u8(p, vreinterpretq_u8_s8(v)); }
MOTE_INLINE Floats load_floats(const float* p) { return vld1q_f32(p); }
MOTE_INLINE void store_floats(float* p, Floats v) { vst1q_f32(p, v); }
MOTE_INLINE Floats set_float(float v) { return vdupq_n_f32(v); }
MOTE_INLINE Floats add(Floats a, Floats b) { return vaddq_f32(a, b); }
MOTE_INLINE Floats multiply(Floats a, Floats b) { return vmulq_f32(a, b); }
MOTE_INLINE Floats fma(Floats a, Floats b, Floats c) {
#if defined(__ARM_FEATURE_FMA)
  return vfmaq_f32(c, a, b);
#else
  return vaddq_f32(vmulq_f32(a, b), c);
#endif
}
MOTE_INLINE Floats to_float(Ints v) { return vcvtq_f32_s32(v); }
MOTE_INLINE Ints set_int(int32_t v) { return vdupq_n_s32(v); }
MOTE_INLINE Ints add(Ints a, Ints b) { return vaddq_s32(a, b); }
template <int kBits>
MOTE_INLINE Ints shift_right(Ints v) {
  return vshrq_n_s32(v, kBits);
}

MOTE_INLINE void load_quads(const uint8_t* p, size_t stride, Bytes out[4]) {
  int32x4_t rows[4];
  MOTE_UNROLL
  for (int i = 0; i < 4; ++i) rows[i] = vreinterpretq_s32_u8(vld1q_u8(p + i * stride));
  const int32x4x2_t a = vtrnq_s32(rows[0], rows[1]), b = vtrnq_s32(rows[2], rows[3]);
  MOTE_UNROLL
  for (int i = 0; i < 2; ++i) {
    out[i] = vreinterpretq_s8_s32(vcombine_s32(vget_low_s32(a.val[i]), vget_low_s32(b.val[i])));
    out[i + 2] =
        vreinterpretq_s8_s32(vcombine_s32(vget_high_s32(a.val[i]), vget_high_s32(b.val[i])));
  }
}
MOTE_INLINE Ints load_words(const uint8_t* p, size_t stride) {
  const int32_t words[4] = {read<int32_t>(p), read<int32_t>(p + stride),
                            read<int32_t>(p + 2 * stride), read<int32_t>(p + 3 * stride)};
  return vld1q_s32(words);
}
MOTE_INLINE Floats load_halves(const uint8_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}
MOTE_INLINE Floats low_f16(Ints v) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(vreinterpretq_u32_s32(v))));
}
MOTE_INLINE Floats high_f16(Ints v) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vshrn_n_u32(vreinterpretq_u32_s32(v), 16)));
}
MOTE_INLINE Floats low_bf16(Ints v) { return vreinterpretq_f32_s32(vshlq_n_s32(v, 16)); }
MOTE_INLINE Floats high_bf16(Ints v) {
  return vreinterpretq_f32_s32(vandq_s32(v, vdupq_n_s32(static_cast<int32_t>(0xffff0000))));
}
MOTE_INLINE Floats as_floats(Bytes v) { return vreinterpretq_f32_s8(v); }
[[maybe_unused]] MOTE_INLINE Bytes as_bytes(Floats v) { return vreinterpretq_s8_f32(v); }
MOTE_INLINE Ints as_ints(Bytes v) { return vreinterpretq_s32_s8(v); }
MOTE_INLINE Bytes low_nibbles(Bytes v) { return vandq_s8(v, vdupq_n_s8(15)); }
MOTE_INLINE Bytes high_nibbles(Bytes v) {
  return vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(v), 4));
}
MOTE_INLINE Bytes raise(Bytes v, int by) {
  return vaddq_s8(v, vdupq_n_s8(static_cast<int8_t>(by)));
}

// ---- exact dot products ----

constexpr int kByteOffset = 0;
MOTE_INLINE Bytes weight_bytes(Bytes v) { return v; }

#define MOTE_ROW_VECTORS

MOTE_INLINE Ints pair_sums(Ints a, Ints b) {
#if defined(__aarch64__)
  return vpaddq_s32(a, b);
#else
  return vcombine_s32(vpadd_s32(vget_low_s32(a), vget_high_s32(a)),
                      vpadd_s32(vget_low_s32(b), vget_high_s32(b)));
#endif
}

#if defined(__ARM_FEATURE_DOTPROD)

struct ActivationBlock {
  int8x16_t q[2];
  MOTE_INLINE explicit ActivationBlock(const int8_t* from)
      : q{vld1q_s8(from), vld1q_s8(from + 16)} {}
  static MOTE_INLINE ActivationBlock of_four(const int8_t* from) {
    return ActivationBlock(vreinterpretq_s8_s32(vdupq_n_s32(read<int32_t>(from))));
  }

 private:
  MOTE_INLINE explicit ActivationBlock(int8x16_t four) : q{four, four} {}
};

// The lane must be a constant: the cases fold where the loop is unrolled.
MOTE_INLINE Ints dot4(Ints sum, Bytes w, int8x16_t q, int lane) {
  switch (lane) {
    case 0:
      return vdotq_laneq_s32(sum, w, q, 0);
    case 1:
      return vdotq_laneq_s32(sum, w, q, 1);
    case 2:
      return vdotq_laneq_s32(sum, w, q, 2);
    default:
      return vdotq_laneq_s32(sum, w, q, 3);
  }
}

template <Weights, int kChains, int = 8>
struct Dot {
  Ints sum[kChains];
  MOTE_INLINE void begin(Ints first) {
    MOTE_UNROLL
    for (int c = 0; c < kChains; ++c) sum[c] = c ? set_int(0) : first;
  }
  MOTE_INLINE void step(int i, Bytes w, const ActivationBlock& x) {
    sum[i % kChains] = dot4(sum[i % kChains], w, x.q[i / 4], i % 4);
  }
  MOTE_INLINE Ints finish(Ints) {
    if constexpr (kChains == 4) return add(add(sum[0], sum[1]), add(sum[2], sum[3]));
    if constexpr (kChains == 2) return add(sum[0], sum[1]);
    return sum[0];
  }
};

template <Weights kind>
struct RowDot {
  Ints sum[4];
  MOTE_INLINE void begin(Ints) {
    MOTE_UNROLL
    for (Ints& s : sum) s = set_int(0);
  }
  MOTE_INLINE void step(int i, Bytes w, const ActivationBlock& x) {
    sum[i % 4] = vdotq_s32(sum[i % 4], w, x.q[i / 4]);
  }
  MOTE_INLINE Ints finish(Ints first) {
    const Ints sums = pair_sums(pair_sums(sum[0], sum[1]), pair_sums(sum[2], sum[3]));
    return kind == Weights::bytes ? sums : add(sums, first);  // of bytes, first is 0
  }
};

#if defined(__ARM_FEATURE_MATMUL_INT8)
#define MOTE_MULTIPLY_PAIRS

// smmla: 2 rows x 8 columns by 2 tokens x 8 columns gives [row][token].
MOTE_INLINE Ints multiply_two_by_two(Ints sum, Bytes rows, Bytes tokens) {
  return vmmlaq_s32(sum, rows, tokens);
}
// Of two vectors of 4 rows with consecutive columns: 8 columns of rows 0, 1 and of rows 2, 3.
MOTE_INLINE Bytes first_rows(Bytes a, Bytes b) {
  return vreinterpretq_s8_s32(vzip1q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b)));
}
MOTE_INLINE Bytes last_rows(Bytes a, Bytes b) {
  return vreinterpretq_s8_s32(vzip2q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b)));
}
MOTE_INLINE Bytes two_tokens(const int8_t* a, const int8_t* b) {
  return vcombine_s8(vld1_s8(a), vld1_s8(b));
}
// a and b hold one value in all lanes: a b a b.
MOTE_INLINE Ints by_token(Ints a, Ints b) { return vzip1q_s32(a, b); }
MOTE_INLINE Floats by_token(Floats a, Floats b) { return vzip1q_f32(a, b); }
MOTE_INLINE Floats first_twice(Floats v) { return vzip1q_f32(v, v); }
MOTE_INLINE Floats last_twice(Floats v) { return vzip2q_f32(v, v); }
MOTE_INLINE Floats rows_of_token(Floats low, Floats high, int token) {
  return token ? vuzp2q_f32(low, high) : vuzp1q_f32(low, high);
}

#endif

#else

struct ActivationBlock {
  const int8_t* q;
  MOTE_INLINE explicit ActivationBlock(const int8_t* from) : q(from) {}
  static MOTE_INLINE ActivationBlock of_four(const int8_t* from) { return ActivationBlock(from); }
};

// Products of two rows each in int16, and so many steps stay below 32768: 8 * 31 * 127, 4 * 63 *
// 127, 2 * 128 * 127.
constexpr int steps_in_int16(Weights kind) {
  return kind == Weights::bytes ? 2 : kind == Weights::six_bits ? 4 : 8;
}

template <Weights kind, int, int kSteps = 8>
struct Dot {
  static constexpr int kRun = steps_in_int16(kind) < kSteps ? steps_in_int16(kind) : kSteps;
  int16x8_t low, high;
  Ints low_sum, high_sum;
  MOTE_INLINE void begin(Ints) {}
  MOTE_INLINE void step(int i, Bytes w, const ActivationBlock& x) {
    const int8x8_t q = vreinterpret_s8_s32(vdup_n_s32(read<int32_t>(x.q + 4 * i)));
    const int n = i % kSteps;
    const bool fresh = n % kRun == 0;
    low = fresh ? vmull_s8(vget_low_s8(w), q) : vmlal_s8(low, vget_low_s8(w), q);
    high = fresh ? vmull_s8(vget_high_s8(w), q) : vmlal_s8(high, vget_high_s8(w), q);
    if (n % kRun == kRun - 1) {
      low_sum = n < kRun ? vpaddlq_s16(low) : vpadalq_s16(low_sum, low);
      high_sum = n < kRun ? vpaddlq_s16(high) : vpadalq_s16(high_sum, high);
    }
  }
  MOTE_INLINE Ints finish(Ints first) {
    const Ints sum = pair_sums(low_sum, high_sum);
    return kind == Weights::bytes ? sum : add(sum, first);  // of bytes, first is 0
  }
};

// The same bounds: 16 columns make two products in each int16, 32 make four.
template <Weights kind>
struct RowDot {
  static constexpr bool kOneRun = kind == Weights::nibbles;
  int16x8_t run[4];
  Ints sum[4];
  MOTE_INLINE void begin(Ints) {}
  MOTE_INLINE void step(int i, Bytes w, const ActivationBlock& x) {
    const int half = i / 4;
    const int8x8_t low = vld1_s8(x.q + 16 * half), high = vld1_s8(x.q + 16 * half + 8);
    int16x8_t& r = run[i % 4];
    r = kOneRun && half ? vmlal_s8(r, vget_low_s8(w), low) : vmull_s8(vget_low_s8(w), low);
    r = vmlal_s8(r, vget_high_s8(w), high);
    if (kOneRun ? half == 1 : half == 0) sum[i % 4] = vpaddlq_s16(r);
    if (!kOneRun && half) sum[i % 4] = vpadalq_s16(sum[i % 4], r);
  }
  MOTE_INLINE Ints finish(Ints first) {
    const Ints sums = pair_sums(pair_sums(sum[0], sum[1]), pair_sums(sum[2], sum[3]));
    return kind == Weights::bytes ? sums : add(sums, first);  // of bytes, first is 0
  }
};

#endif

}  // namespace
}  // namespace mote::MOTE_ISA
