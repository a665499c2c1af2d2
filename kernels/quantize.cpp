// Activations as int8 in blocks of 32. Meaning: quant::quantize_activations, bit for bit, with
// corrections instead of sums.
#include "kernels/declarations.h"
#include "kernels/simd_int8.h"
#if defined(__AVX512BW__)
#include "kernels/quantize_avx512.h"
#endif

namespace mote::MOTE_ISA {
namespace {

constexpr int32_t kInfinityBits = 0x7f800000;

// The bits of non-negative floats are ordered as integers, infinity and NaN last. Loops over
// integers without branches: compilers turn them into vector code.
MOTE_INLINE int32_t largest_bits(const float* x) {
  int32_t largest = 0;
  for (int i = 0; i < 32; ++i) {
    const int32_t magnitude = read<int32_t>(x + i) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

// q = x * factor, and the sum of its 16 values. Adding 1.5 * 2^23 rounds to the nearest even
// integer.
MOTE_INLINE int32_t round_half_block(const float* x, float factor, int8_t* q) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) {
    const float shifted = x[i] * factor + 0x1.8p23f;
    const int32_t level = read<int32_t>(&shifted) - 0x4b400000;
    q[i] = static_cast<int8_t>(level);
    sum += level;
  }
  return sum;
}

MOTE_INLINE void quantize_block(const float* x, int8_t* q, float* scale, float* scaled_sum,
                                int32_t* correction) {
  const int32_t bits = largest_bits(x);
  const float largest = float_of(static_cast<uint32_t>(bits)), factor = 127.0f / largest;
  const bool finite = bits < kInfinityBits, zero = read<int32_t>(&factor) >= kInfinityBits;
  int32_t first = 0, second = 0;
  if (finite && !zero) {
    first = round_half_block(x, factor, q);
    second = round_half_block(x + 16, factor, q + 16);
  } else {
    std::memset(q, 0, 32);
  }
  *scale = !finite ? float_of(0x7fc00000) : zero ? 0.0f : largest / 127.0f;
  *scaled_sum = *scale * static_cast<float>(first + second);
  correction[0] = -128 * (first + second);
  correction[1] = -128 * first;
}

#if !defined(__AVX512BW__)

constexpr size_t kChunk = 16;  // blocks whose outliers are looked for at a time

// The largest magnitude of each of `count` groups of 4.
MOTE_INLINE void group_maxima(const float* x, size_t count, int32_t* maxima) {
  for (size_t g = 0; g < count; ++g) {
    const int32_t a = read<int32_t>(x + 4 * g) & 0x7fffffff;
    const int32_t b = read<int32_t>(x + 4 * g + 1) & 0x7fffffff;
    const int32_t c = read<int32_t>(x + 4 * g + 2) & 0x7fffffff;
    const int32_t d = read<int32_t>(x + 4 * g + 3) & 0x7fffffff;
    const int32_t first = a > b ? a : b, second = c > d ? c : d;
    maxima[g] = first > second ? first : second;
  }
}

// The largest magnitudes of some columns and the largest of the others.
template <size_t kCount>
struct Maxima {
  int32_t largest[kCount], second[kCount];
};
template <size_t kCount>
MOTE_INLINE Maxima<kCount / 2> join_neighbours(const Maxima<kCount>& from) {
  Maxima<kCount / 2> to;
  for (size_t i = 0; i < kCount / 2; ++i) {
    const int32_t a = from.largest[2 * i], b = from.largest[2 * i + 1];
    const int32_t c = from.second[2 * i], d = from.second[2 * i + 1];
    const int32_t less = a < b ? a : b, other = c > d ? c : d;
    to.largest[i] = a > b ? a : b;
    to.second[i] = less > other ? less : other;
  }
  return to;
}

// gain[b] = what separating block b's largest group takes from the square of the block's maximum,
// of up to kChunk blocks; totals[b % 8] += that square.
MOTE_INLINE void find_gains(const float* x, size_t blocks, float* gain, float* totals) {
  Maxima<8 * kChunk> groups;
  std::memset(groups.second, 0, sizeof groups.second);
  if (blocks < kChunk) std::memset(groups.largest, 0, sizeof groups.largest);
  group_maxima(x, 8 * blocks, groups.largest);
  const Maxima<kChunk> maxima = join_neighbours(join_neighbours(join_neighbours(groups)));
  float gains[kChunk];
  for (size_t b = 0; b < kChunk; ++b) {
    const float most = read<float>(maxima.largest + b), next = read<float>(maxima.second + b);
    gains[b] = (most - next) * (most + next);
    totals[b % 8] += most * most;
  }
  std::memcpy(gain, gains, blocks * sizeof *gain);
}

// Quantizes block b anew, with a second vector for its largest group: outlier n.
MOTE_INLINE void separate_block(const OutlierTask& task, size_t b, size_t n) {
  int32_t maxima[8];
  group_maxima(task.x + 32 * b, 8, maxima);
  uint32_t group = 0;
  for (uint32_t g = 1; g < 8; ++g) group = maxima[g] > maxima[group] ? g : group;
  int32_t next = 0;
  for (uint32_t g = 0; g < 8; ++g) next = g != group && maxima[g] > next ? maxima[g] : next;
  const float largest = read<float>(maxima + group), second = read<float>(&next);

  const float outlier_scale = largest / 127.0f, outlier_factor = 127.0f / largest;
  float rest[32];
  std::memcpy(rest, task.x + 32 * b, sizeof rest);
  int32_t outlier_sum = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    float* value = rest + 4 * group + i;
    const float shifted = *value * outlier_factor + 0x1.8p23f;
    const int32_t level = read<int32_t>(&shifted) - 0x4b400000;
    task.outlier_q[4 * n + i] = static_cast<int8_t>(level);
    outlier_sum += level;
    *value -= static_cast<float>(level) * outlier_scale;
  }
  // What rounding leaves of the outliers is at most half a step of theirs.
  const float half_step = largest / 254.0f, most = second > half_step ? second : half_step;
  const float factor = 127.0f / most;
  const int32_t sums[2] = {round_half_block(rest, factor, task.q + 32 * b),
                           round_half_block(rest + 16, factor, task.q + 32 * b + 16)};
  task.scale[b] = most / 127.0f;
  task.scaled_sum[b] = task.scale[b] * static_cast<float>(sums[0] + sums[1]) +
                       outlier_scale * static_cast<float>(outlier_sum);
  task.correction[2 * b] = -128 * (sums[0] + sums[1]);
  task.correction[2 * b + 1] = -128 * sums[0];
  task.group[n] = static_cast<uint32_t>(8 * b) + group;
  task.outlier_scale[n] = outlier_scale;
  task.outlier_correction[n] = -128 * outlier_sum;
}

#endif

}  // namespace

void separate_outliers(const OutlierTask* task) {
  const size_t blocks = task->columns / 32;
  float* const gain = task->outlier_scale;  // until outlier n <= b takes the place
  float totals[8] = {};
  for (size_t b = 0; b < blocks; b += kChunk)
    find_gains(task->x + 32 * b, blocks - b < kChunk ? blocks - b : kChunk, gain + b, totals);
  for (size_t half = 4; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) totals[i] += totals[i + half];
  // First which, then how: branches that nobody foresees would keep blocks from overlapping.
  size_t count = 0;
  for (size_t b = 0; b < blocks; ++b) {
    task->group[count] = static_cast<uint32_t>(b);
    count += gain[b] * static_cast<float>(2 * blocks) > totals[0];
  }
  for (size_t n = 0; n < count; ++n) separate_block(*task, task->group[n], n);
  task->group[count] = kNoOutlier;
}

void quantize_activations(const float* x, size_t columns, int8_t* q, float* scale,
                          float* scaled_sum, int32_t* correction) {
  const size_t blocks = columns / 32;
  for (size_t b = 0; b < blocks;) {
#if defined(__AVX512BW__)
    if (blocks - b >= 4 && quantize_four_blocks(x + b * 32, q + b * 32, scale + b, scaled_sum + b,
                                                correction + 2 * b)) {
      b += 4;
      continue;
    }
#endif
    quantize_block(x + b * 32, q + b * 32, scale + b, scaled_sum + b, correction + 2 * b);
    ++b;
  }
}

}  // namespace mote::MOTE_ISA
