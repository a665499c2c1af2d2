// x86: 4, 8 or 16 rows a vector. See simd_int8.h, which includes this.
#pragma once

#include <immintrin.h>

namespace mote::MOTE_ISA {
namespace {

// Hides where an address comes from. The compiler would rather keep a pointer to each of 16 rows
// than add offsets, and move them to and from vector registers because there are not enough others.
template <class T>
MOTE_INLINE T opaque(T value) {
  __asm__("" : "+r"(value));
  return value;
}

MOTE_INLINE __m128i load16(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

#if defined(__AVX512BW__)

constexpr int kLanes = 16;
constexpr bool kFused = true;
using Bytes = __m512i;
using Ints = __m512i;
using Floats = __m512;

MOTE_INLINE Bytes load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
MOTE_INLINE void store_bytes(uint8_t* p, Bytes v) { _mm512_storeu_si512(p, v); }
MOTE_INLINE Floats load_floats(const float* p) { return _mm512_loadu_ps(p); }
MOTE_INLINE void store_floats(float* p, Floats v) { _mm512_storeu_ps(p, v); }
MOTE_INLINE Floats set_float(float v) { return _mm512_set1_ps(v); }
MOTE_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
MOTE_INLINE Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
MOTE_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
MOTE_INLINE Floats to_float(Ints v) { return _mm512_cvtepi32_ps(v); }

MOTE_INLINE void load_quads(const uint8_t* p, size_t stride, Bytes out[4]) {
  const size_t four = opaque(4 * stride), twelve = opaque(12 * stride);
  Bytes t[4];
  MOTE_UNROLL
  for (int i = 0; i < 4; ++i) {  // rows i, i + 4, i + 8, i + 12 in the four quarters
    const uint8_t* row = p;
    p = opaque(p + stride);
    t[i] = _mm512_castsi128_si512(load16(row));
    t[i] = _mm512_mask_broadcast_i32x4(t[i], 0x00f0, load16(row + four));
    t[i] = _mm512_mask_broadcast_i32x4(t[i], 0x0f00, load16(row + 2 * four));
    t[i] = _mm512_mask_broadcast_i32x4(t[i], 0xf000, load16(row + twelve));
  }
  const Bytes a = _mm512_unpacklo_epi32(t[0], t[1]), b = _mm512_unpackhi_epi32(t[0], t[1]);
  const Bytes c = _mm512_unpacklo_epi32(t[2], t[3]), d = _mm512_unpackhi_epi32(t[2], t[3]);
  out[0] = _mm512_unpacklo_epi64(a, c);
  out[1] = _mm512_unpackhi_epi64(a, c);
  out[2] = _mm512_unpacklo_epi64(b, d);
  out[3] = _mm512_unpackhi_epi64(b, d);
}
MOTE_INLINE Ints load_words(const uint8_t* p, size_t stride) {
  const Ints rows = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const Ints offsets = _mm512_mullo_epi32(rows, _mm512_set1_epi32(static_cast<int>(stride)));
  return _mm512_i32gather_epi32(offsets, p, 1);
}
MOTE_INLINE Floats load_halves(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
MOTE_INLINE Floats low_f16(Ints v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
MOTE_INLINE Floats high_f16(Ints v) { return low_f16(_mm512_srli_epi32(v, 16)); }
MOTE_INLINE Floats low_bf16(Ints v) { return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)); }
MOTE_INLINE Floats high_bf16(Ints v) {
  return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(int32_t(0xffff0000))));
}
MOTE_INLINE Floats as_floats(Bytes v) { return _mm512_castsi512_ps(v); }
MOTE_INLINE Ints as_ints(Bytes v) { return v; }
MOTE_INLINE Bytes low_nibbles(Bytes v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
MOTE_INLINE Bytes high_nibbles(Bytes v) { return low_nibbles(_mm512_srli_epi16(v, 4)); }
template <int kBits>
MOTE_INLINE Ints shift_right(Ints v) {
  return _mm512_srai_epi32(v, kBits);
}
MOTE_INLINE Bytes raise(Bytes v, int by) {
  return _mm512_add_epi8(v, _mm512_set1_epi8(static_cast<char>(by)));
}

#elif defined(__AVX2__)

constexpr int kLanes = 8;
constexpr bool kFused = true;
using Bytes = __m256i;
using Ints = __m256i;
using Floats = __m256;

MOTE_INLINE Bytes load_bytes(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
MOTE_INLINE void store_bytes(uint8_t* p, Bytes v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}
MOTE_INLINE Floats load_floats(const float* p) { return _mm256_loadu_ps(p); }
MOTE_INLINE void store_floats(float* p, Floats v) { _mm256_storeu_ps(p, v); }
MOTE_INLINE Floats set_float(float v) { return _mm256_set1_ps(v); }
MOTE_INLINE Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
MOTE_INLINE Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
MOTE_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
MOTE_INLINE Floats to_float(Ints v) { return _mm256_cvtepi32_ps(v); }

MOTE_INLINE void load_quads(const uint8_t* p, size_t stride, Bytes out[4]) {
  const size_t four = opaque(4 * stride);
  Bytes t[4];
  MOTE_UNROLL
  for (int i = 0; i < 4; ++i) {  // rows i, i + 4 in the two halves
    const uint8_t* row = p;
    p = opaque(p + stride);
    t[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(row)), load16(row + four), 1);
  }
  const Bytes a = _mm256_unpacklo_epi32(t[0], t[1]), b = _mm256_unpackhi_epi32(t[0], t[1]);
  const Bytes c = _mm256_unpacklo_epi32(t[2], t[3]), d = _mm256_unpackhi_epi32(t[2], t[3]);
  out[0] = _mm256_unpacklo_epi64(a, c);
  out[1] = _mm256_unpackhi_epi64(a, c);
  out[2] = _mm256_unpacklo_epi64(b, d);
  out[3] = _mm256_unpackhi_epi64(b, d);
}
MOTE_INLINE Ints load_words(const uint8_t* p, size_t stride) {
  const Ints rows = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const Ints offsets = _mm256_mullo_epi32(rows, _mm256_set1_epi32(static_cast<int>(stride)));
  return _mm256_i32gather_epi32(reinterpret_cast<const int*>(p), offsets, 1);
}
MOTE_INLINE Floats load_halves(const uint8_t* p) { return _mm256_cvtph_ps(load16(p)); }
MOTE_INLINE Floats low_f16(Ints v) {
  const Ints low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
  const Ints packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}
MOTE_INLINE Floats high_f16(Ints v) {
  const Ints high = _mm256_srli_epi32(v, 16);
  const Ints packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}
MOTE_INLINE Floats low_bf16(Ints v) { return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16)); }
MOTE_INLINE Floats high_bf16(Ints v) {
  return _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(int32_t(0xffff0000))));
}
MOTE_INLINE Floats as_floats(Bytes v) { return _mm256_castsi256_ps(v); }
MOTE_INLINE Ints as_ints(Bytes v) { return v; }
MOTE_INLINE Bytes low_nibbles(Bytes v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
MOTE_INLINE Bytes high_nibbles(Bytes v) { return low_nibbles(_mm256_srli_epi16(v, 4)); }
template <int kBits>
MOTE_INLINE Ints shift_right(Ints v) {
  return _mm256_srai_epi32(v, kBits);
}
MOTE_INLINE Bytes raise(Bytes v, int by) {
  return _mm256_add_epi8(v, _mm256_set1_epi8(static_cast<char>(by)));
}

#else  // SSE2

constexpr int kLanes = 4;
constexpr bool kFused = false;
using Bytes = __m128i;
using Ints = __m128i;
using Floats = __m128;

MOTE_INLINE Bytes load_bytes(const uint8_t* p) { return load16(p); }
MOTE_INLINE void store_bytes(uint8_t* p, Bytes v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
}
MOTE_INLINE Floats load_floats(const float* p) { return _mm_loadu_ps(p); }
MOTE_INLINE void store_floats(float* p, Floats v) { _mm_storeu_ps(p, v); }
MOTE_INLINE Floats set_float(float v) { return _mm_set1_ps(v); }
MOTE_INLINE Floats add(Floats a, Floats b) { return _mm_add_ps(a, b); }
MOTE_INLINE Floats multiply(Floats a, Floats b) { return _mm_mul_ps(a, b); }
MOTE_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
MOTE_INLINE Floats to_float(Ints v) { return _mm_cvtepi32_ps(v); }

MOTE_INLINE void load_quads(const uint8_t* p, size_t stride, Bytes out[4]) {
  const Bytes r0 = load16(p), r1 = load16(p + stride);
  const Bytes r2 = load16(p + 2 * stride), r3 = load16(p + 3 * stride);
  const Bytes a = _mm_unpacklo_epi32(r0, r1), b = _mm_unpackhi_epi32(r0, r1);
  const Bytes c = _mm_unpacklo_epi32(r2, r3), d = _mm_unpackhi_epi32(r2, r3);
  out[0] = _mm_unpacklo_epi64(a, c);
  out[1] = _mm_unpackhi_epi64(a, c);
  out[2] = _mm_unpacklo_epi64(b, d);
  out[3] = _mm_unpackhi_epi64(b, d);
}
MOTE_INLINE Ints load_words(const uint8_t* p, size_t stride) {
  return _mm_setr_epi32(read<int32_t>(p), read<int32_t>(p + stride), read<int32_t>(p + 2 * stride),
                        read<int32_t>(p + 3 * stride));
}
// f16 in the low halves, the high halves zero. A normal number is rebased by adding to its
// exponent; a subnormal one gets an implicit bit whose value is subtracted again; the exponent of
// infinity and NaN becomes 255.
MOTE_INLINE Floats f16_to_float(Ints v) {
  const Ints sign = _mm_slli_epi32(_mm_and_si128(v, _mm_set1_epi32(0x8000)), 16);
  const Ints magnitude = _mm_slli_epi32(_mm_and_si128(v, _mm_set1_epi32(0x7fff)), 13);
  const Ints normal = _mm_add_epi32(magnitude, _mm_set1_epi32(112 << 23));
  const Ints special = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32((31 << 23) - 1));
  const Ints subnormal = _mm_cmpgt_epi32(_mm_set1_epi32(1 << 23), magnitude);
  const Floats implicit = _mm_set1_ps(0x1p-14f);
  const Ints small = _mm_castps_si128(
      _mm_sub_ps(_mm_castsi128_ps(_mm_add_epi32(magnitude, _mm_castps_si128(implicit))), implicit));
  Ints bits = _mm_or_si128(_mm_and_si128(subnormal, small), _mm_andnot_si128(subnormal, normal));
  bits = _mm_or_si128(bits, _mm_and_si128(special, _mm_set1_epi32(0x7f800000)));
  return _mm_castsi128_ps(_mm_or_si128(bits, sign));
}
MOTE_INLINE Floats load_halves(const uint8_t* p) {
  const Ints eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return f16_to_float(_mm_unpacklo_epi16(eight, _mm_setzero_si128()));
}
MOTE_INLINE Floats low_f16(Ints v) {
  return f16_to_float(_mm_and_si128(v, _mm_set1_epi32(0xffff)));
}
MOTE_INLINE Floats high_f16(Ints v) { return f16_to_float(_mm_srli_epi32(v, 16)); }
MOTE_INLINE Floats low_bf16(Ints v) { return _mm_castsi128_ps(_mm_slli_epi32(v, 16)); }
MOTE_INLINE Floats high_bf16(Ints v) {
  return _mm_castsi128_ps(_mm_and_si128(v, _mm_set1_epi32(int32_t(0xffff0000))));
}
MOTE_INLINE Floats as_floats(Bytes v) { return _mm_castsi128_ps(v); }
MOTE_INLINE Ints as_ints(Bytes v) { return v; }
MOTE_INLINE Bytes low_nibbles(Bytes v) { return _mm_and_si128(v, _mm_set1_epi8(15)); }
MOTE_INLINE Bytes high_nibbles(Bytes v) { return low_nibbles(_mm_srli_epi16(v, 4)); }
template <int kBits>
MOTE_INLINE Ints shift_right(Ints v) {
  return _mm_srai_epi32(v, kBits);
}
MOTE_INLINE Bytes raise(Bytes v, int by) {
  return _mm_add_epi8(v, _mm_set1_epi8(static_cast<char>(by)));
}

#endif

// ---- exact dot products ----

#if defined(__AVX512VNNI__) || (defined(__AVXVNNI__) && !defined(__AVX512BW__))

// vpdpbusd: four products of unsigned weights and signed activations, added in int32.
constexpr int kByteOffset = 128;

#if defined(__AVX512VNNI__)
MOTE_INLINE Bytes weight_bytes(Bytes v) { return _mm512_xor_si512(v, _mm512_set1_epi8(-128)); }
MOTE_INLINE Ints set_int(int32_t v) { return _mm512_set1_epi32(v); }
MOTE_INLINE Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
MOTE_INLINE Ints dot4(Ints sum, Bytes w, Bytes q) { return _mm512_dpbusd_epi32(sum, w, q); }
#else
MOTE_INLINE Bytes weight_bytes(Bytes v) { return _mm256_xor_si256(v, _mm256_set1_epi8(-128)); }
MOTE_INLINE Ints set_int(int32_t v) { return _mm256_set1_epi32(v); }
MOTE_INLINE Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
MOTE_INLINE Ints dot4(Ints sum, Bytes w, Bytes q) { return _mm256_dpbusd_avx_epi32(sum, w, q); }
#endif

struct ActivationBlock {
  const int8_t* q;
  MOTE_INLINE explicit ActivationBlock(const int8_t* from) : q(from) {}
  static MOTE_INLINE ActivationBlock of_four(const int8_t* from) { return ActivationBlock(from); }
};

template <Weights, int kChains, int = 8>
struct Dot {
  Ints sum[kChains];
  MOTE_INLINE void begin(Ints first) {
    MOTE_UNROLL
    for (int c = 0; c < kChains; ++c) sum[c] = c ? set_int(0) : first;
  }
  MOTE_INLINE void step(int i, Bytes w, const ActivationBlock& x) {
    sum[i % kChains] = dot4(sum[i % kChains], w, set_int(read<int32_t>(x.q + 4 * i)));
  }
  MOTE_INLINE Ints finish(Ints) {
    if constexpr (kChains == 4) return add(add(sum[0], sum[1]), add(sum[2], sum[3]));
    if constexpr (kChains == 2) return add(sum[0], sum[1]);
    return sum[0];
  }
};

#elif defined(__AVX512BW__) || defined(__AVX2__)

// vpmaddubsw adds two products in int16, and so many steps stay below 32768: 8 * 2 * 15 * 127, 4 *
// 2
// * 31 * 127, 2 * 2 * 63 * 127. Bytes: the sign of the weight goes to the activation, so that a
// pair stays below 2 * 128 * 127 = 32512, and is widened at once.
constexpr int steps_in_int16(Weights kind) {
  return kind == Weights::nibbles ? 8 : kind == Weights::five_bits ? 4 : 2;
}
constexpr int kByteOffset = 0;
MOTE_INLINE Bytes weight_bytes(Bytes v) { return v; }

#if defined(__AVX512BW__)
MOTE_INLINE Ints set_int(int32_t v) { return _mm512_set1_epi32(v); }
MOTE_INLINE Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
MOTE_INLINE Ints add16(Ints a, Ints b) { return _mm512_add_epi16(a, b); }
MOTE_INLINE Ints widen_pairs(Ints v) { return _mm512_madd_epi16(v, _mm512_set1_epi16(1)); }
MOTE_INLINE Ints multiply_pairs(Bytes w, Bytes q) { return _mm512_maddubs_epi16(w, q); }
MOTE_INLINE Bytes magnitude(Bytes w) { return _mm512_abs_epi8(w); }
MOTE_INLINE Bytes with_sign(Bytes q, Bytes w) {
  return _mm512_mask_sub_epi8(q, _mm512_movepi8_mask(w), _mm512_setzero_si512(), q);
}
#else
MOTE_INLINE Ints set_int(int32_t v) { return _mm256_set1_epi32(v); }
MOTE_INLINE Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
MOTE_INLINE Ints add16(Ints a, Ints b) { return _mm256_add_epi16(a, b); }
MOTE_INLINE Ints widen_pairs(Ints v) { return _mm256_madd_epi16(v, _mm256_set1_epi16(1)); }
MOTE_INLINE Ints multiply_pairs(Bytes w, Bytes q) { return _mm256_maddubs_epi16(w, q); }
MOTE_INLINE Bytes magnitude(Bytes w) { return _mm256_abs_epi8(w); }
MOTE_INLINE Bytes with_sign(Bytes q, Bytes w) { return _mm256_sign_epi8(q, w); }
#endif

struct ActivationBlock {
  const int8_t* q;
  MOTE_INLINE explicit ActivationBlock(const int8_t* from) : q(from) {}
  static MOTE_INLINE ActivationBlock of_four(const int8_t* from) { return ActivationBlock(from); }
};

// Keeps a chain of additions a chain: as a tree it needs more registers than there are.
MOTE_INLINE Ints in_order(Ints sum) {
  __asm__("" : "+v"(sum));
  return sum;
}

template <Weights kind, int, int kSteps = 8>
struct Dot {
  static constexpr int kRun = steps_in_int16(kind) < kSteps ? steps_in_int16(kind) : kSteps;
  Ints sum, run;
  MOTE_INLINE void begin(Ints) { sum = set_int(0); }
  MOTE_INLINE void step(int i, Bytes w, const ActivationBlock& x) {
    const Bytes q = set_int(read<int32_t>(x.q + 4 * i));
    if constexpr (kind == Weights::bytes) {
      sum = in_order(add(sum, widen_pairs(multiply_pairs(magnitude(w), with_sign(q, w)))));
    } else {
      const int n = i % kSteps;
      const Ints pairs = multiply_pairs(w, q);
      run = in_order(n % kRun == 0 ? pairs : add16(run, pairs));
      if (n % kRun == kRun - 1) sum = n < kRun ? widen_pairs(run) : add(sum, widen_pairs(run));
    }
  }
  MOTE_INLINE Ints finish(Ints first) {
    return kind == Weights::bytes ? sum : add(sum, first);  // of bytes, first is 0
  }
};

#else  // SSE2

// pmaddwd on the even and the odd bytes, widened to int16: each gives one int32 a lane.
constexpr int kByteOffset = 128;
MOTE_INLINE Bytes weight_bytes(Bytes v) { return _mm_xor_si128(v, _mm_set1_epi8(-128)); }
MOTE_INLINE Ints set_int(int32_t v) { return _mm_set1_epi32(v); }
MOTE_INLINE Ints add(Ints a, Ints b) { return _mm_add_epi32(a, b); }

struct ActivationBlock {
  const int8_t* q;
  MOTE_INLINE explicit ActivationBlock(const int8_t* from) : q(from) {}
  static MOTE_INLINE ActivationBlock of_four(const int8_t* from) { return ActivationBlock(from); }
};

// Keeps a chain of additions a chain: as a tree it needs more registers than there are.
MOTE_INLINE Ints in_order(Ints sum) {
  __asm__("" : "+x"(sum));
  return sum;
}

template <Weights, int, int = 8>
struct Dot {
  Ints sum;
  MOTE_INLINE void begin(Ints first) { sum = first; }
  MOTE_INLINE void step(int i, Bytes w, const ActivationBlock& x) {
    const Bytes q = set_int(read<int32_t>(x.q + 4 * i));
    const Bytes even_q = _mm_srai_epi16(_mm_slli_epi16(q, 8), 8), odd_q = _mm_srai_epi16(q, 8);
    const Bytes even = _mm_and_si128(w, _mm_set1_epi16(0xff)), odd = _mm_srli_epi16(w, 8);
    sum = in_order(add(sum, add(_mm_madd_epi16(even, even_q), _mm_madd_epi16(odd, odd_q))));
  }
  MOTE_INLINE Ints finish(Ints) { return sum; }
};

#endif

}  // namespace
}  // namespace mote::MOTE_ISA
