// Float vectors of the instruction set that this file is compiled for. The only header that sees
// xsimd; with simd_int8.h the only one that sees intrinsics. Everything lives in mote::<isa> and is
// inlined, so no symbol is shared between instruction sets. Each operation's meaning per lane
// stands beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(MOTE_ISA_scalar)
#define MOTE_SCALAR 1
#else
#if defined(__GNUC__) && !defined(__clang__)  // GCC 12 finds these in its own AVX-512 header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <xsimd/xsimd.hpp>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif
#endif

#define MOTE_INLINE inline __attribute__((always_inline))
#define MOTE_LAMBDA __attribute__((always_inline))

namespace mote {
namespace MOTE_ISA {

#if defined(MOTE_SCALAR)
// Four plain floats: the compiler lowers them to whatever the machine has.
typedef float F32 __attribute__((vector_size(16)));
typedef int32_t I32 __attribute__((vector_size(16)));
using Mask = I32;
constexpr size_t kLanes = 4;
MOTE_INLINE F32 broadcast(float x) { return F32{x, x, x, x}; }
MOTE_INLINE I32 broadcast_int(int32_t x) { return I32{x, x, x, x}; }
MOTE_INLINE F32 select(Mask m, F32 a, F32 b) { return m ? a : b; }
MOTE_INLINE F32 min(F32 a, F32 b) { return a < b ? a : b; }
MOTE_INLINE F32 max(F32 a, F32 b) { return a > b ? a : b; }
#else
using F32 = xsimd::batch<float, xsimd::default_arch>;
using I32 = xsimd::batch<int32_t, xsimd::default_arch>;
using Mask = xsimd::batch_bool<float, xsimd::default_arch>;
constexpr size_t kLanes = F32::size;
MOTE_INLINE F32 broadcast(float x) { return F32(x); }
MOTE_INLINE I32 broadcast_int(int32_t x) { return I32(x); }
MOTE_INLINE F32 select(Mask m, F32 a, F32 b) { return xsimd::select(m, a, b); }  // m ? a : b
// Which operand a NaN gives is not defined.
MOTE_INLINE F32 min(F32 a, F32 b) { return xsimd::min(a, b); }
MOTE_INLINE F32 max(F32 a, F32 b) { return xsimd::max(a, b); }
#endif
MOTE_INLINE F32 zero() { return broadcast(0.0f); }

// ---- Memory: any alignment ----

MOTE_INLINE F32 load(const float* p) {
#if defined(MOTE_SCALAR)
  F32 v;
  std::memcpy(&v, p, sizeof v);
  return v;
#else
  return F32::load_unaligned(p);
#endif
}
MOTE_INLINE void store(float* p, F32 v) {
#if defined(MOTE_SCALAR)
  std::memcpy(p, &v, sizeof v);
#else
  v.store_unaligned(p);
#endif
}

#if defined(__AVX512F__) && !defined(MOTE_SCALAR)
MOTE_INLINE __mmask16 first_lanes(size_t n) { return static_cast<__mmask16>((1u << n) - 1); }
#endif
// The first n lanes, n <= kLanes; the others are 0. Nothing behind them is touched.
MOTE_INLINE F32 load_partial(const float* p, size_t n) {
#if defined(__AVX512F__) && !defined(MOTE_SCALAR)
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
#else
  alignas(32) float lanes[kLanes] = {};
  for (size_t i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
#endif
}
MOTE_INLINE void store_partial(float* p, F32 v, size_t n) {
#if defined(__AVX512F__) && !defined(MOTE_SCALAR)
  _mm512_mask_storeu_ps(p, first_lanes(n), v);
#else
  alignas(32) float lanes[kLanes];
  store(lanes, v);
  for (size_t i = 0; i < n; ++i) p[i] = lanes[i];
#endif
}
// Brings a cache line near; any address will do.
MOTE_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 3); }

// ---- Arithmetic beside the operators ----

// a * b + c, rounded once where the instruction set has it, else twice (scalar, sse2). xsimd 8.1
// would multiply and add under AVX-512 and on 32-bit ARM.
MOTE_INLINE F32 fma(F32 a, F32 b, F32 c) {
#if defined(MOTE_SCALAR)
  return a * b + c;
#elif defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__ARM_FEATURE_FMA)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}
// a / b. (xsimd 8.1 approximates it on ARM; on 32-bit ARM so do we.)
MOTE_INLINE F32 divide(F32 a, F32 b) {
#if defined(__aarch64__) && !defined(MOTE_SCALAR)
  return vdivq_f32(a, b);
#else
  return a / b;
#endif
}
MOTE_INLINE F32 sqrt(F32 v) {
#if defined(MOTE_SCALAR)
  for (size_t i = 0; i < kLanes; ++i) v[i] = __builtin_sqrtf(v[i]);
  return v;
#elif defined(__aarch64__)  // xsimd 8.1 approximates on ARM
  return vsqrtq_f32(v);
#elif defined(__ARM_NEON)
  alignas(16) float lanes[4];
  v.store_aligned(lanes);
  for (float& lane : lanes) lane = __builtin_sqrtf(lane);
  return F32::load_aligned(lanes);
#else
  return xsimd::sqrt(v);
#endif
}

// ---- The same bits as another type ----

MOTE_INLINE F32 as_float(I32 v) {
#if defined(MOTE_SCALAR)
  return (F32)v;
#elif defined(__AVX512F__)
  return _mm512_castsi512_ps(v);
#elif defined(__AVX2__)
  return _mm256_castsi256_ps(v);
#elif defined(__SSE2__)
  return _mm_castsi128_ps(v);
#else  // xsimd 8.1's bitwise_cast is an out-of-line call on ARM under GCC
  return vreinterpretq_f32_s32(v);
#endif
}
MOTE_INLINE I32 as_int(F32 v) {
#if defined(MOTE_SCALAR)
  return (I32)v;
#elif defined(__AVX512F__)
  return _mm512_castps_si512(v);
#elif defined(__AVX2__)
  return _mm256_castps_si256(v);
#elif defined(__SSE2__)
  return _mm_castps_si128(v);
#else
  return vreinterpretq_s32_f32(v);
#endif
}
MOTE_INLINE F32 abs(F32 v) { return as_float(as_int(v) & broadcast_int(0x7fffffff)); }
// |a| with the sign of b.
MOTE_INLINE F32 copy_sign(F32 a, F32 b) {
  return as_float((as_int(a) & broadcast_int(0x7fffffff)) | (as_int(b) & broadcast_int(INT32_MIN)));
}
template <int kBits>
MOTE_INLINE I32 shift_left(I32 v) {  // xsimd 8.1 on ARM would switch over the count at run time
#if defined(__ARM_NEON) && !defined(MOTE_SCALAR)
  return vshlq_n_s32(v, kBits);
#else
  return v << kBits;
#endif
}
MOTE_INLINE F32 to_float(I32 v) {
#if defined(MOTE_SCALAR)
  return __builtin_convertvector(v, F32);
#else
  return xsimd::to_float(v);
#endif
}
// Nearest integer, ties to even; |v| < 2^22.
MOTE_INLINE I32 round_to_int(F32 v) {
  return as_int(v + broadcast(12582912.0f)) - broadcast_int(0x4b400000);
}

// ---- Over the lanes, each in one fixed order ----

#if defined(__SSE2__) && !defined(MOTE_SCALAR)
MOTE_INLINE float sum4(__m128 v) {
  v = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps(v, v, 1)));
}
MOTE_INLINE float max4(__m128 v) {
  v = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(v, _mm_shuffle_ps(v, v, 1)));
}
#endif
MOTE_INLINE float sum(F32 v) {
#if defined(MOTE_SCALAR)
  return (v[0] + v[2]) + (v[1] + v[3]);
#elif defined(__AVX512F__)
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  return sum4(_mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)));
#elif defined(__AVX2__)
  return sum4(_mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1)));
#elif defined(__SSE2__)
  return sum4(v);
#elif defined(__aarch64__)
  return vaddvq_f32(v);
#else
  const float32x2_t h = vadd_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(vpadd_f32(h, h), 0);
#endif
}
// The largest lane; not defined if one is NaN.
MOTE_INLINE float largest(F32 v) {
#if defined(MOTE_SCALAR)
  const float a = v[0] > v[2] ? v[0] : v[2], b = v[1] > v[3] ? v[1] : v[3];
  return a > b ? a : b;
#elif defined(__AVX512F__)
  const __m256 h = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  return max4(_mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)));
#elif defined(__AVX2__)
  return max4(_mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1)));
#elif defined(__SSE2__)
  return max4(v);
#elif defined(__aarch64__)
  return vmaxvq_f32(v);
#else
  const float32x2_t h = vmax_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(vpmax_f32(h, h), 0);
#endif
}
MOTE_INLINE float first_lane(F32 v) {
#if defined(MOTE_SCALAR)
  return v[0];
#elif defined(__AVX512F__)
  return _mm512_cvtss_f32(v);
#elif defined(__AVX2__)
  return _mm256_cvtss_f32(v);
#elif defined(__SSE2__)
  return _mm_cvtss_f32(v);
#else
  return vgetq_lane_f32(v, 0);
#endif
}
alignas(64) constexpr float kLaneNumbers[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                8, 9, 10, 11, 12, 13, 14, 15};
MOTE_INLINE F32 lane_numbers() { return load(kLaneNumbers); }  // 0, 1, ...

// ---- Half precision ----

MOTE_INLINE float float_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
MOTE_INLINE uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
// IEEE binary16, exactly. No denormal float takes part: those are slow.
MOTE_INLINE float f16_to_float(uint16_t half) {
#if defined(__F16C__) && !defined(MOTE_SCALAR)
  return _cvtsh_ss(half);
#elif defined(__aarch64__) && !defined(MOTE_SCALAR)
  __fp16 x;
  std::memcpy(&x, &half, 2);
  return x;
#else
  const uint32_t magnitude = half & 0x7fffu, sign = (half & 0x8000u) << 16;
  const uint32_t bits = magnitude << 13;
  const float normal = float_bits(bits + (magnitude >= 0x7c00u ? 224u << 23 : 112u << 23));
  const float small = float_bits(bits + (113u << 23)) - 0x1p-14f;
  return float_bits(bits_of(magnitude < 0x400u ? small : normal) | sign);
#endif
}
// To nearest, ties to even; beyond the range gives infinity; NaN stays NaN.
MOTE_INLINE uint16_t float_to_f16(float x) {
#if defined(__F16C__) && !defined(MOTE_SCALAR)
  return static_cast<uint16_t>(_cvtss_sh(x, 0));
#elif defined(__aarch64__) && !defined(MOTE_SCALAR)
  const __fp16 half = static_cast<__fp16>(x);
  uint16_t bits;
  std::memcpy(&bits, &half, 2);
  return bits;
#else
  const uint32_t sign = (bits_of(x) >> 16) & 0x8000u, magnitude = bits_of(x) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u)  // below 2^-14: adding 0.5 leaves units of 2^-24, rounded
    return static_cast<uint16_t>(sign | (bits_of(float_bits(magnitude) + 0.5f) - bits_of(0.5f)));
  return static_cast<uint16_t>(
      sign | ((magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1)) >> 13));
#endif
}
MOTE_INLINE F32 load_f16(const uint16_t* p) {
#if defined(MOTE_SCALAR)
  return F32{f16_to_float(p[0]), f16_to_float(p[1]), f16_to_float(p[2]), f16_to_float(p[3])};
#elif defined(__AVX512F__)
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__AVX2__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif defined(__SSE2__)
  const __m128i half =
      _mm_unpacklo_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)), _mm_setzero_si128());
  const __m128i magnitude = _mm_and_si128(half, _mm_set1_epi32(0x7fff));
  const __m128i bits = _mm_slli_epi32(magnitude, 13);
  const __m128i sign = _mm_slli_epi32(_mm_xor_si128(half, magnitude), 16);
  const __m128i special = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7bff));
  const __m128i normal = _mm_add_epi32(
      bits,
      _mm_add_epi32(_mm_set1_epi32(112 << 23), _mm_and_si128(special, _mm_set1_epi32(112 << 23))));
  const __m128 small = _mm_sub_ps(_mm_castsi128_ps(_mm_add_epi32(bits, _mm_set1_epi32(113 << 23))),
                                  _mm_set1_ps(0x1p-14f));
  const __m128i is_small = _mm_cmpgt_epi32(_mm_set1_epi32(0x400), magnitude);
  return _mm_castsi128_ps(
      _mm_or_si128(sign, _mm_or_si128(_mm_and_si128(is_small, _mm_castps_si128(small)),
                                      _mm_andnot_si128(is_small, normal))));
#elif defined(__aarch64__)
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else
  alignas(16) const float lanes[4] = {f16_to_float(p[0]), f16_to_float(p[1]), f16_to_float(p[2]),
                                      f16_to_float(p[3])};
  return load(lanes);
#endif
}
// As float_to_f16.
MOTE_INLINE void store_f16(uint16_t* p, F32 v) {
#if defined(__AVX512F__) && !defined(MOTE_SCALAR)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, 0));
#elif defined(__AVX2__) && !defined(MOTE_SCALAR)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, 0));
#elif defined(__aarch64__) && !defined(MOTE_SCALAR)
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v)));
#else
  alignas(16) float lanes[kLanes];
  store(lanes, v);
  for (size_t i = 0; i < kLanes; ++i) p[i] = float_to_f16(lanes[i]);
#endif
}
// bfloat16: the upper half of a float.
MOTE_INLINE float bf16_to_float(uint16_t x) { return float_bits(static_cast<uint32_t>(x) << 16); }
MOTE_INLINE F32 load_bf16(const uint16_t* p) {
#if defined(MOTE_SCALAR)
  return F32{bf16_to_float(p[0]), bf16_to_float(p[1]), bf16_to_float(p[2]), bf16_to_float(p[3])};
#elif defined(__AVX512F__)
  return _mm512_castsi512_ps(_mm512_slli_epi32(
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
#elif defined(__AVX2__)
  return _mm256_castsi256_ps(_mm256_slli_epi32(
      _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
#elif defined(__SSE2__)
  return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(),
                                             _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
#endif
}

// ---- Functions: the same polynomials on every instruction set ----

// e^x for x <= 88.8 that is not below -64, else garbage; NaN stays NaN. x = n ln2 + r, |r| <= ln2 /
// 2; the polynomial holds 2 e^r, so that 2^(n-1) is a normal number for every n.
MOTE_INLINE F32 exp_core(F32 x) {
  const F32 magic = broadcast(12582912.0f);  // adding it rounds to an integer, in the low bits
  const F32 shifted = fma(x, broadcast(1.44269504f), magic);
  const F32 n = shifted - magic;
  const F32 r = fma(n, broadcast(2.12194440e-4f), fma(n, broadcast(-0.693359375f), x));
  F32 p = broadcast(2 * 1.9875691500e-4f);
  p = fma(p, r, broadcast(2 * 1.3981999507e-3f));
  p = fma(p, r, broadcast(2 * 8.3334519073e-3f));
  p = fma(p, r, broadcast(2 * 4.1665795894e-2f));
  p = fma(p, r, broadcast(2 * 1.6666665459e-1f));
  p = fma(p, r, broadcast(2 * 5.0000001201e-1f));
  p = fma(p * r, r, fma(r, broadcast(2.0f), broadcast(2.0f)));
  const F32 power = as_float(shift_left<23>(as_int(shifted)) + broadcast_int(126 << 23));
  return p * power;
}
// e^x for x <= 0, relative error below 2e-7. Exactly 0 below -64: such a term is lost in any sum
// that holds e^0, and denormals, which are very slow, cannot arise from it.
MOTE_INLINE F32 exp_negative(F32 x) { return select(x < broadcast(-64.0f), zero(), exp_core(x)); }
// e^x for any x; 0 below -64, infinity above 88.72.
MOTE_INLINE F32 exp(F32 x) {
  return select(x > broadcast(88.8f), broadcast(__builtin_inff()), exp_negative(x));
}
// Hyperbolic tangent, relative error below 3e-7: near 0 an odd polynomial, else 1 - 2 / (e^(2 |x|)
// + 1).
MOTE_INLINE F32 tanh(F32 x) {
  const F32 z = x * x, magnitude = abs(x);
  F32 p = broadcast(-5.70498872745e-3f);
  p = fma(p, z, broadcast(2.06390887954e-2f));
  p = fma(p, z, broadcast(-5.37397155531e-2f));
  p = fma(p, z, broadcast(1.33314422036e-1f));
  p = fma(p, z, broadcast(-3.33332819422e-1f));
  const F32 near = fma(p * z, x, x);
  const F32 e = exp(magnitude + magnitude);
  const F32 far = broadcast(1.0f) - divide(broadcast(2.0f), e + broadcast(1.0f));
  return select(magnitude < broadcast(0.625f), near, copy_sign(far, x));
}
// Complementary error function for x >= 0, relative error below 1e-6 up to 5, 0 from 8 on:
// e^(-x^2) t P(t) with t = 1 / (1 + x / 2), P fitted over [0, 9.5] to 4e-8.
MOTE_INLINE F32 erfc_positive(F32 x) {
  const F32 t = divide(broadcast(1.0f), fma(x, broadcast(0.5f), broadcast(1.0f)));
  F32 p = broadcast(-0.058890913458728975f);
  p = fma(p, t, broadcast(0.28370259542925647f));
  p = fma(p, t, broadcast(-0.4853849068444298f));
  p = fma(p, t, broadcast(0.27597939752587336f));
  p = fma(p, t, broadcast(-0.025178440849583972f));
  p = fma(p, t, broadcast(0.2020701101672535f));
  p = fma(p, t, broadcast(0.2432609491748479f));
  p = fma(p, t, broadcast(0.28235349055679393f));
  p = fma(p, t, broadcast(0.28208767610837543f));
  return exp_negative(zero() - x * x) * (p * t);
}

}  // namespace MOTE_ISA
}  // namespace mote
