// Activations as int8 in blocks of 32. Meaning: quant::quantize_activations, bit for bit, with
// corrections instead of sums.
#include "kernels/declarations.h"
#include "kernels/simd_int8.h"
#include "quant/blocks.h"
#if defined(__AVX512BW__)
#include "kernels/quantize_avx512.h"
#endif

namespace mote::MOTE_ISA {
namespace {

using quant::kRowOutliers;

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
  int32_t levels[16], sum = 0;
  int8_t bytes[16];  // beside q, which might be anything: compilers could not use vectors
  for (int i = 0; i < 16; ++i) {
    const float shifted = x[i] * factor + 0x1.8p23f;
    levels[i] = read<int32_t>(&shifted) - 0x4b400000;
  }
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<int8_t>(levels[i]);
  for (int i = 0; i < 16; ++i) sum += levels[i];
  std::memcpy(q, bytes, sizeof bytes);
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

// A block's largest group of 4 columns.
struct LargestGroup {
  uint32_t group = 0;
  float largest, second;
  MOTE_INLINE explicit LargestGroup(const float* block) {
    int32_t maxima[8];
    group_maxima(block, 8, maxima);
    for (uint32_t g = 1; g < 8; ++g) group = maxima[g] > maxima[group] ? g : group;
    int32_t next = 0;
    for (uint32_t g = 0; g < 8; ++g) next = g != group && maxima[g] > next ? maxima[g] : next;
    largest = read<float>(maxima + group);
    second = read<float>(&next);
  }
};

// Makes a block's largest group outlier n of the task; what rounding leaves of it stays in the
// block: at most half a step. Returns what the outlier adds to the block's scaled sum.
MOTE_INLINE float take_outlier(const OutlierTask& task, size_t b, size_t n,
                               const LargestGroup& from, float* block) {
  const float scale = from.largest / 127.0f, factor = 127.0f / from.largest;
  int32_t sum = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    float* value = block + 4 * from.group + i;
    const float shifted = *value * factor + 0x1.8p23f;
    const int32_t level = read<int32_t>(&shifted) - 0x4b400000;
    task.outlier_q[4 * n + i] = static_cast<int8_t>(level);
    sum += level;
    *value -= static_cast<float>(level) * scale;
  }
  task.group[n] = static_cast<uint32_t>(8 * b) + from.group;
  task.outlier_scale[n] = scale;
  task.outlier_correction[n] = -128 * sum;
  return scale * static_cast<float>(sum);
}

// Quantizes block b, of whose values `block` is what outliers left. Returns its correction.
MOTE_INLINE int32_t round_block(const OutlierTask& task, size_t b, const float* block, float factor,
                                float scale) {
  const int32_t sums[2] = {round_half_block(block, factor, task.q + 32 * b),
                           round_half_block(block + 16, factor, task.q + 32 * b + 16)};
  task.scale[b] = scale;
  task.scaled_sum[b] = scale * static_cast<float>(sums[0] + sums[1]);
  task.correction[2 * b] = -128 * (sums[0] + sums[1]);
  task.correction[2 * b + 1] = -128 * sums[0];
  return task.correction[2 * b];
}

// The blocks of a row that get outliers, ascending; most: the largest magnitude of all others.
struct RowOutliers {
  size_t block[kRowOutliers], count = 0;
  float most = 0.0f;

  // largest: of each block.
  MOTE_INLINE RowOutliers(const float* largest, size_t blocks) {
    float top[kRowOutliers + 1] = {};  // descending
    size_t at[kRowOutliers + 1], found = 0;
    for (size_t b = 0; b < blocks; ++b) {
      if (found > kRowOutliers && !(largest[b] > top[kRowOutliers])) continue;
      size_t i = found > kRowOutliers ? kRowOutliers : found++;
      for (; i > 0 && largest[b] > top[i - 1]; --i) top[i] = top[i - 1], at[i] = at[i - 1];
      top[i] = largest[b], at[i] = b;
    }
    const float twice = top[0] + top[0];
    const bool huge = read<int32_t>(&twice) >= kInfinityBits;
    for (; !huge && count < found && count < kRowOutliers; ++count) {
      const float factor = 127.0f / top[count];
      if (read<int32_t>(&factor) >= kInfinityBits) break;
      size_t i = count;
      for (; i > 0 && block[i - 1] > at[count]; --i) block[i] = block[i - 1];
      block[i] = at[count];
    }
    if (count < found) most = top[count];
  }
};

// A row, of which some blocks, in ascending order, are what outliers left.
struct RestOfRow {
  const float* x;
  float kept[kRowOutliers][32];
  size_t block[kRowOutliers], count = 0;

  MOTE_INLINE explicit RestOfRow(const float* row) : x(row) {}
  MOTE_INLINE float* keep(size_t b) {
    block[count] = b;
    std::memcpy(kept[count], x + 32 * b, sizeof kept[0]);
    return kept[count++];
  }
  // Copies blocks [first, first + kCount).
  template <size_t kCount>
  MOTE_INLINE void read_blocks(size_t first, float* out) const {
    std::memcpy(out, x + 32 * first, kCount * sizeof kept[0]);
    for (size_t n = 0; n < count; ++n)
      if (block[n] - first < kCount)
        std::memcpy(out + 32 * (block[n] - first), kept[n], sizeof kept[n]);
  }
};

// The largest magnitude of each block, and the bits of the largest of all.
MOTE_INLINE int32_t find_largest(const float* x, size_t blocks, float* largest) {
  int32_t greatest = 0;
  size_t b = 0;
#if defined(__AVX512BW__)
  for (; b + 4 <= blocks; b += 4) {
    const int32_t bits = largest_of_four_blocks(x + 32 * b, largest + b);
    greatest = bits > greatest ? bits : greatest;
  }
#endif
  for (; b < blocks; ++b) {
    const int32_t bits = largest_bits(x + 32 * b);
    largest[b] = float_of(static_cast<uint32_t>(bits));
    greatest = bits > greatest ? bits : greatest;
  }
  return greatest;
}

// Quantizes all of a row with one scale.
MOTE_INLINE void round_row(const OutlierTask& task, const RestOfRow& row, float factor,
                           float scale) {
  const size_t blocks = task.columns / 32;
  int32_t correction = 0;
  size_t b = 0;
#if defined(__AVX512BW__)
  for (; b + 4 <= blocks; b += 4) {
    float four[4 * 32];
    __m512 values[8];
    row.read_blocks<4>(b, four);
    load_four_blocks(four, values);
    correction +=
        round_four_blocks(values, _mm512_set1_ps(factor), _mm_set1_ps(scale), task.q + 32 * b,
                          task.scale + b, task.scaled_sum + b, task.correction + 2 * b);
  }
#endif
  for (; b < blocks; ++b) {
    float block[32];
    row.read_blocks<1>(b, block);
    correction += round_block(task, b, block, factor, scale);
  }
  *task.row_correction = correction;
}

// A NaN or an infinity shows in every output.
MOTE_INLINE void quantize_bad_row(const OutlierTask& task) {
  const float zeros[32] = {}, bad = float_of(0x7fc00000);
  for (size_t b = 0; b < task.columns / 32; ++b) round_block(task, b, zeros, 0.0f, bad);
  task.group[0] = kNoOutlier;
  *task.row_correction = 0;
}

#if !defined(__AVX512BW__)

constexpr size_t kChunk = 16;  // blocks whose outliers are looked for at a time

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
  float block[32];
  std::memcpy(block, task.x + 32 * b, sizeof block);
  const LargestGroup group(block);
  const float taken = take_outlier(task, b, n, group, block);
  // What rounding leaves of the outliers is at most half a step of theirs.
  const float half_step = group.largest / 254.0f;
  const float most = group.second > half_step ? group.second : half_step;
  round_block(task, b, block, 127.0f / most, most / 127.0f);
  task.scaled_sum[b] += taken;
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

void quantize_row(const OutlierTask* task) {
  const size_t blocks = task->columns / 32;
  float* const largest = task->outlier_scale;  // until the outliers take the place
  if (find_largest(task->x, blocks, largest) >= kInfinityBits) return quantize_bad_row(*task);
  const RowOutliers outliers(largest, blocks);
  RestOfRow rest(task->x);
  float taken[kRowOutliers], most = outliers.most;
  for (size_t n = 0; n < outliers.count; ++n) {
    float* block = rest.keep(outliers.block[n]);
    const LargestGroup group(block);
    taken[n] = take_outlier(*task, outliers.block[n], n, group, block);
    most = group.second > most ? group.second : most;
    most = group.largest / 254.0f > most ? group.largest / 254.0f : most;
  }
  task->group[outliers.count] = kNoOutlier;
  const float factor = 127.0f / most;
  const bool zero = read<int32_t>(&factor) >= kInfinityBits;
  round_row(*task, rest, zero ? 0.0f : factor, zero ? 0.0f : most / 127.0f);
  for (size_t n = 0; n < outliers.count; ++n) task->scaled_sum[outliers.block[n]] += taken[n];
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
