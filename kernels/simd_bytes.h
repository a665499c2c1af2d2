// Vectors of signed bytes as floats: what a q8_0 cache holds.
#pragma once

#include "kernels/simd.h"

namespace mote {
namespace MOTE_ISA {

// kLanes int8, exactly.
MOTE_INLINE F32 load_i8(const int8_t* p) {
#if defined(MOTE_SCALAR)
  return F32{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
             static_cast<float>(p[3])};
#elif defined(__AVX512F__)
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif defined(__AVX2__)
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  int32_t four = 0;
  std::memcpy(&four, p, sizeof four);
#if defined(__SSE2__)
  const __m128i bytes = _mm_cvtsi32_si128(four);
  const __m128i pairs = _mm_unpacklo_epi8(bytes, bytes);  // each byte on top of its lane
  return _mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpacklo_epi16(pairs, pairs), 24));
#else
  const int8x8_t bytes = vreinterpret_s8_s32(vdup_n_s32(four));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))));
#endif
#endif
}

}  // namespace MOTE_ISA
}  // namespace mote
