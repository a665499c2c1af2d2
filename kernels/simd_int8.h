// The tile view of weight rows: a vector holds kLanes rows, and of each row 4 consecutive int8
// columns or one float. So a dot product stays inside its lane, and nothing is ever summed across a
// vector. Each instruction set gives:
//
//   Bytes, Ints, Floats         [kLanes][4] int8 or uint8, [kLanes] int32, [kLanes] f32
//   load_quads(p, stride, out)  out[j] = bytes 4 j .. 4 j + 3 of the 16 bytes at p + row * stride,
//                               of each row
//   load_words(p, stride)       the 4 bytes at p + row * stride, of each row, as integers
//   load_halves(p)              kLanes consecutive f16 as f32
//   low_f16, high_f16, low_bf16, high_bf16(Ints)   the lower or upper half of each integer as f32
//   as_floats, as_ints(Bytes)   the same bits
//   low_nibbles, high_nibbles(Bytes)   byte & 15, byte >> 4
//   fma(a, b, c)                a * b + c, rounded once where the instruction set can (kFused),
//                               else twice
//   ActivationBlock(q)          32 int8 activations, within ±127, ready for Dot (of_four: 4 of
//                               them, for step 0)
//   Dot<kind, chains>           exact dot products of a block of 32 weights: begin(first), then
//                               step(i, weights, activations) for the quads i = 0..7, then
//                               finish(first): first + sum over k of w[k] * q[k]
//
// Weights are levels from 0 to 15, 31 or 63, or bytes. Bytes come from weight_bytes(b), of signed
// b: instruction sets that multiply unsigned by signed keep them with an offset of kByteOffset =
// 128, the others as they are (kByteOffset = 0); the caller makes up for offsets with `first`.
// Dot<kind, chains, steps>: how many partial sums to keep where a step has a long latency; 8 steps,
// or 4, so that two make a block. DotOf<..., row vectors>: that, or RowDot, the same of vectors
// that hold 16 columns of one row: w[4 h + r] those from 16 h on of row r.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) && !defined(__clang__)  // GCC 12 finds these in its own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define MOTE_INLINE inline __attribute__((always_inline))
#if defined(MOTE_ISA_scalar)
#define MOTE_UNROLL
#elif defined(__clang__)
#define MOTE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MOTE_UNROLL _Pragma("GCC unroll 32")
#endif

namespace mote::MOTE_ISA {
namespace {

enum class Weights { nibbles, five_bits, six_bits, bytes };

template <class T>
MOTE_INLINE T read(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

MOTE_INLINE float float_of(uint32_t bits) { return read<float>(&bits); }

// One f16 as f32, exactly. A subnormal one gets an implicit bit whose value is subtracted again.
MOTE_INLINE float f16_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, magnitude = (half & 0x7fffu) << 13;
  if (magnitude >= 31u << 23) return float_of(sign | 0x7f800000 | magnitude);
  if (magnitude >= 1u << 23) return float_of(sign | (magnitude + (112u << 23)));
  const float small = float_of(magnitude + (113u << 23)) - 0x1p-14f;
  return sign ? -small : small;
}

// Into the second level of the cache; any address may be given.
MOTE_INLINE void prefetch(const uint8_t* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace
}  // namespace mote::MOTE_ISA

#if defined(MOTE_ISA_scalar)
#include "kernels/simd_int8_scalar.h"
#elif defined(__x86_64__)
#include "kernels/simd_int8_x86.h"
#elif defined(__ARM_NEON)
#include "kernels/simd_int8_neon.h"
#endif

namespace mote::MOTE_ISA {
namespace {

template <Weights kind, int kChains, int kSteps, bool kRowVectors>
struct ChosenDot {
  using type = Dot<kind, kChains, kSteps>;
};
#if defined(MOTE_ROW_VECTORS)
template <Weights kind, int kChains, int kSteps>
struct ChosenDot<kind, kChains, kSteps, true> {
  using type = RowDot<kind>;
};
#endif
template <Weights kind, int kChains, int kSteps, bool kRowVectors>
using DotOf = typename ChosenDot<kind, kChains, kSteps, kRowVectors>::type;

}  // namespace
}  // namespace mote::MOTE_ISA
