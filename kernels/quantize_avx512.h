// What quantize.cpp does, for several blocks or lanes at a time with AVX-512.
#pragma once

#include "kernels/kernels.h"
#include "kernels/simd_int8.h"

namespace mote::MOTE_ISA {
namespace {

// The largest of the 16 lanes of v[i] in each lane of quarter i.
MOTE_INLINE __m512i largest_of_each(const __m512i v[4]) {
  const __m512i a = _mm512_max_epi32(_mm512_shuffle_i32x4(v[0], v[1], 0x44),
                                     _mm512_shuffle_i32x4(v[0], v[1], 0xee));
  const __m512i b = _mm512_max_epi32(_mm512_shuffle_i32x4(v[2], v[3], 0x44),
                                     _mm512_shuffle_i32x4(v[2], v[3], 0xee));
  __m512i c = _mm512_max_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
  c = _mm512_max_epi32(c, _mm512_shuffle_epi32(c, _MM_PERM_BADC));
  return _mm512_max_epi32(c, _mm512_shuffle_epi32(c, _MM_PERM_CDAB));
}

// The sum of the 16 bytes of each quarter, in all its lanes.
MOTE_INLINE __m512i sum_quarters(__m512i bytes) {
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi8(1), bytes);
  __m512i sums = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_BADC));
  return _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_CDAB));
}

// The largest magnitudes of four blocks, as bits, each in the lanes of its quarter.
MOTE_INLINE __m512i largest_magnitudes(const __m512 values[8]) {
  const __m512i positive = _mm512_set1_epi32(0x7fffffff);
  __m512i largest[4];
  MOTE_UNROLL
  for (int i = 0; i < 4; ++i)
    largest[i] =
        _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(values[2 * i]), positive),
                         _mm512_and_si512(_mm512_castps_si512(values[2 * i + 1]), positive));
  return largest_of_each(largest);
}
// Lane 0 of each quarter.
MOTE_INLINE __m128i first_lanes(__m512i quarters) {
  return _mm512_castsi512_si128(_mm512_permutexvar_epi32(
      _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12), quarters));
}
MOTE_INLINE void load_four_blocks(const float* x, __m512 values[8]) {
  MOTE_UNROLL
  for (int i = 0; i < 8; ++i) values[i] = _mm512_loadu_ps(x + 16 * i);
}
// The same of x; returns the bits of the largest of all.
MOTE_INLINE int32_t largest_of_four_blocks(const float* x, float* largest) {
  __m512 values[8];
  load_four_blocks(x, values);
  const __m128i each = first_lanes(largest_magnitudes(values));
  _mm_storeu_ps(largest, _mm_castsi128_ps(each));
  const __m128i pairs = _mm_max_epi32(each, _mm_shuffle_epi32(each, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(pairs, _mm_shuffle_epi32(pairs, 0xb1)));
}

// Four blocks at the factors in lanes 0..3; returns the sum of their corrections.
MOTE_INLINE int32_t round_four_blocks(const __m512 values[8], __m512 factors, __m128 scales,
                                      int8_t* q, float* scale, float* scaled_sum,
                                      int32_t* correction) {
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m512i sums[2];  // quarters: first and second half of a block, then of the next
  MOTE_UNROLL
  for (int p = 0; p < 2; ++p) {
    __m512i levels[4];
    MOTE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const __m512 factor = _mm512_permutexvar_ps(_mm512_set1_epi32(2 * p + i / 2), factors);
      levels[i] = _mm512_cvtps_epi32(_mm512_mul_ps(values[4 * p + i], factor));
    }
    const __m512i bytes = _mm512_permutexvar_epi32(
        in_order, _mm512_packs_epi16(_mm512_packs_epi32(levels[0], levels[1]),
                                     _mm512_packs_epi32(levels[2], levels[3])));
    _mm512_storeu_si512(q + 64 * p, bytes);
    sums[p] = sum_quarters(bytes);
  }
  const __m512i first = _mm512_permutex2var_epi32(
      sums[0], _mm512_setr_epi32(0, 8, 16, 24, 0, 8, 16, 24, 0, 8, 16, 24, 0, 8, 16, 24), sums[1]);
  const __m512i second = _mm512_permutex2var_epi32(
      sums[0], _mm512_setr_epi32(4, 12, 20, 28, 4, 12, 20, 28, 4, 12, 20, 28, 4, 12, 20, 28),
      sums[1]);
  const __m128i firsts = _mm512_castsi512_si128(first);
  const __m128i totals = _mm_add_epi32(firsts, _mm512_castsi512_si128(second));
  _mm_storeu_ps(scale, scales);
  _mm_storeu_ps(scaled_sum, _mm_mul_ps(scales, _mm_cvtepi32_ps(totals)));
  const __m128i zero = _mm_setzero_si128();
  const __m128i low = _mm_unpacklo_epi32(totals, firsts), high = _mm_unpackhi_epi32(totals, firsts);
  auto* out = reinterpret_cast<__m128i*>(correction);
  _mm_storeu_si128(out, _mm_slli_epi32(_mm_sub_epi32(zero, low), 7));
  _mm_storeu_si128(out + 1, _mm_slli_epi32(_mm_sub_epi32(zero, high), 7));
  const __m128i pairs = _mm_add_epi32(totals, _mm_shuffle_epi32(totals, 0x4e));
  return -128 * _mm_cvtsi128_si32(_mm_add_epi32(pairs, _mm_shuffle_epi32(pairs, 0xb1)));
}

// quantize_activations of four blocks with one division; false, and nothing done, if a value is not
// finite.
MOTE_INLINE bool quantize_four_blocks(const float* x, int8_t* q, float* scale, float* scaled_sum,
                                      int32_t* correction) {
  __m512 values[8];
  load_four_blocks(x, values);
  const __m512i infinity = _mm512_set1_epi32(0x7f800000);
  const __m512i all = largest_magnitudes(values);
  if (_mm512_cmpge_epi32_mask(all, infinity)) return false;

  // Lanes 0..3: 127 / largest of the four blocks, lanes 4..7: largest / 127. Zero where 127 /
  // largest is infinite.
  const __m256 maxima = _mm256_castsi256_ps(_mm256_broadcastsi128_si256(first_lanes(all)));
  const __m256 most = _mm256_set1_ps(127.0f);
  __m256 quotients =
      _mm256_div_ps(_mm256_blend_ps(most, maxima, 0xf0), _mm256_blend_ps(maxima, most, 0xf0));
  const __mmask8 regular =
      _mm256_cmplt_epi32_mask(_mm256_castps_si256(quotients), _mm512_castsi512_si256(infinity)) &
      15;
  quotients = _mm256_maskz_mov_ps(static_cast<__mmask8>(regular | regular << 4), quotients);
  round_four_blocks(values, _mm512_castps256_ps512(quotients), _mm256_extractf128_ps(quotients, 1),
                    q, scale, scaled_sum, correction);
  return true;
}

MOTE_INLINE __m512i magnitudes(const float* x) {
  return _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(0x7fffffff));
}

// The larger of neighbours, lane by quarter: those of a, then those of b.
MOTE_INLINE __m512i larger_of_pairs(__m512i a, __m512i b) {
  const __m512 x = _mm512_castsi512_ps(a), y = _mm512_castsi512_ps(b);
  return _mm512_max_epi32(_mm512_castps_si512(_mm512_shuffle_ps(x, y, 0x88)),
                          _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0xdd)));
}

// The largest and the second of some groups in each lane.
struct TopTwo {
  __m512i largest, second;
  static MOTE_INLINE TopTwo of(__m512i a, __m512i b) {
    return {_mm512_max_epi32(a, b), _mm512_min_epi32(a, b)};
  }
};
MOTE_INLINE TopTwo join(const TopTwo& a, const TopTwo& b) {
  const TopTwo most = TopTwo::of(a.largest, b.largest);
  return {most.largest, _mm512_max_epi32(most.second, _mm512_max_epi32(a.second, b.second))};
}
// Quarters of a, then of b.
template <int kQuarters>
MOTE_INLINE TopTwo quarters(const TopTwo& a, const TopTwo& b) {
  return {_mm512_shuffle_i32x4(a.largest, b.largest, kQuarters),
          _mm512_shuffle_i32x4(a.second, b.second, kQuarters)};
}

// The largest of each group of 4 of four blocks, then the larger ones of a block's first and last
// four groups: lane b of quarter i is of groups i and 4 + i of block b. Only `blocks` are read, the
// others are zeros.
template <bool kAll>
MOTE_INLINE TopTwo top_two_of_four_blocks(const float* x, size_t blocks) {
  __m512i groups[2];
  MOTE_UNROLL
  for (size_t i = 0; i < 4; i += 2) {
    __m512i v[4];
    MOTE_UNROLL
    for (size_t k = 0; k < 4; ++k) {
      const __mmask16 mask = kAll || i + k / 2 < blocks ? 0xffff : 0;
      v[k] = _mm512_and_si512(_mm512_maskz_loadu_epi32(mask, x + 32 * i + 16 * k),
                              _mm512_set1_epi32(0x7fffffff));
    }
    groups[i / 2] = larger_of_pairs(larger_of_pairs(v[0], v[1]), larger_of_pairs(v[2], v[3]));
  }
  const __m512 a = _mm512_castsi512_ps(groups[0]), b = _mm512_castsi512_ps(groups[1]);
  return TopTwo::of(_mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88)),
                    _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xdd)));
}

constexpr size_t kChunk = 8;

template <bool kAll>
MOTE_INLINE void find_gains_of(const float* x, size_t blocks, float* gain, float* totals) {
  const TopTwo a = top_two_of_four_blocks<kAll>(x, blocks);
  const TopTwo b = kAll || blocks > 4 ? top_two_of_four_blocks<kAll>(x + 128, blocks - 4)
                                      : TopTwo{_mm512_setzero_si512(), _mm512_setzero_si512()};
  const TopTwo half = join(quarters<0x88>(a, b), quarters<0xdd>(a, b));
  const TopTwo all = join(quarters<0x88>(half, half), quarters<0xdd>(half, half));
  const __m256 most = _mm512_castps512_ps256(_mm512_castsi512_ps(all.largest));
  const __m256 next = _mm512_castps512_ps256(_mm512_castsi512_ps(all.second));
  const auto mask = static_cast<__mmask8>((1u << blocks) - 1);
  _mm256_mask_storeu_ps(gain, mask,
                        _mm256_mul_ps(_mm256_sub_ps(most, next), _mm256_add_ps(most, next)));
  _mm256_storeu_ps(totals, _mm256_add_ps(_mm256_loadu_ps(totals), _mm256_mul_ps(most, most)));
}
MOTE_INLINE void find_gains(const float* x, size_t blocks, float* gain, float* totals) {
  if (blocks == kChunk)
    find_gains_of<true>(x, blocks, gain, totals);
  else
    find_gains_of<false>(x, blocks, gain, totals);
}

// The largest of the first lanes of the quarters of a and b, in all of these.
MOTE_INLINE __m512i largest_quarter(__m512i a, __m512i b) {
  __m512i v = _mm512_max_epi32(a, b);
  v = _mm512_max_epi32(v, _mm512_shuffle_i32x4(v, v, 0x4e));
  return _mm512_max_epi32(v, _mm512_shuffle_i32x4(v, v, 0xb1));
}

// The sums of the first and the last 8 bytes, each as an int64.
MOTE_INLINE __m128i sum_eights(__m128i bytes) {
  return _mm_sub_epi64(_mm_sad_epu8(_mm_xor_si128(bytes, _mm_set1_epi8(-128)), _mm_setzero_si128()),
                       _mm_set1_epi64x(8 * 128));
}
MOTE_INLINE int32_t sum_sixteen(__m128i bytes) {
  const __m128i eights = sum_eights(bytes);
  return _mm_cvtsi128_si32(_mm_add_epi32(eights, _mm_unpackhi_epi64(eights, eights)));
}

MOTE_INLINE void separate_block(const OutlierTask& task, size_t b, size_t n) {
  const float* const x = task.x + 32 * b;
  __m512 values[2];
  __m512i groups[2];  // in each lane the largest of its group
  MOTE_UNROLL
  for (int i = 0; i < 2; ++i) {
    values[i] = _mm512_loadu_ps(x + 16 * i);
    groups[i] = magnitudes(x + 16 * i);
    groups[i] = _mm512_max_epi32(groups[i], _mm512_shuffle_epi32(groups[i], _MM_PERM_BADC));
    groups[i] = _mm512_max_epi32(groups[i], _mm512_shuffle_epi32(groups[i], _MM_PERM_CDAB));
  }
  const __m512i most = largest_quarter(groups[0], groups[1]);
  const uint32_t equal = static_cast<uint32_t>(_mm512_cmpeq_epi32_mask(groups[0], most)) |
                         static_cast<uint32_t>(_mm512_cmpeq_epi32_mask(groups[1], most)) << 16;
  const uint32_t group = static_cast<uint32_t>(__builtin_ctz(equal)) / 4;
  const uint32_t lanes = uint32_t(15) << 4 * group;
  const __mmask16 own[2] = {static_cast<__mmask16>(lanes), static_cast<__mmask16>(lanes >> 16)};
  const __m128 second = _mm_castsi128_ps(_mm512_castsi512_si128(
      largest_quarter(_mm512_mask_mov_epi32(groups[0], own[0], _mm512_setzero_si512()),
                      _mm512_mask_mov_epi32(groups[1], own[1], _mm512_setzero_si512()))));

  // 127 / largest, largest / 127, half a step of the outliers.
  const __m128 largest = _mm_castsi128_ps(_mm512_castsi512_si128(most)), levels = _mm_set1_ps(127);
  const __m128 outlier = _mm_div_ps(_mm_blend_ps(largest, levels, 1),
                                    _mm_blend_ps(_mm_setr_ps(127, 127, 254, 254), largest, 1));
  const __m128 outlier_factor = _mm_shuffle_ps(outlier, outlier, 0);
  const __m512 outlier_scale = _mm512_broadcastss_ps(_mm_movehdup_ps(outlier));
  // What rounding leaves of the outliers is at most half a step of theirs.
  const __m128 rest = _mm_max_ps(second, _mm_movehl_ps(outlier, outlier));
  const __m128 quotients = _mm_div_ps(_mm_blend_ps(rest, levels, 1), _mm_blend_ps(levels, rest, 1));
  const __m512 factor = _mm512_broadcastss_ps(quotients);

  __m128i q[2];
  MOTE_UNROLL
  for (int i = 0; i < 2; ++i) {
    const __m512 rounded = _mm512_cvtepi32_ps(
        _mm512_cvtps_epi32(_mm512_mul_ps(values[i], _mm512_broadcastss_ps(outlier_factor))));
    const __m512 left =
        _mm512_mask_sub_ps(values[i], own[i], values[i], _mm512_mul_ps(rounded, outlier_scale));
    q[i] = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(left, factor)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(task.q + 32 * b + 16 * i), q[i]);
  }
  const __m128i outlier_q =
      _mm_cvtepi32_epi8(_mm_cvtps_epi32(_mm_mul_ps(_mm_loadu_ps(x + 4 * group), outlier_factor)));
  const int32_t outlier_bytes = _mm_cvtsi128_si32(outlier_q);
  std::memcpy(task.outlier_q + 4 * n, &outlier_bytes, 4);

  const int32_t outlier_sum = sum_sixteen(outlier_q), first = sum_sixteen(q[0]);
  const int32_t sum = first + sum_sixteen(q[1]);
  const float scale = _mm_cvtss_f32(_mm_movehdup_ps(quotients));
  const float scale_of_outlier = _mm512_cvtss_f32(outlier_scale);
  task.scale[b] = scale;
  task.scaled_sum[b] =
      scale * static_cast<float>(sum) + scale_of_outlier * static_cast<float>(outlier_sum);
  task.correction[2 * b] = -128 * sum;
  task.correction[2 * b + 1] = -128 * first;
  task.group[n] = static_cast<uint32_t>(8 * b) + group;
  task.outlier_scale[n] = scale_of_outlier;
  task.outlier_correction[n] = -128 * outlier_sum;
}

}  // namespace
}  // namespace mote::MOTE_ISA
