// Activations as int8 in blocks of 32. Meaning: quant::quantize_activations, bit for bit, with
// corrections instead of sums.
#include "kernels/declarations.h"
#include "kernels/simd_int8.h"

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

// The largest scales first, then the first blocks: 20 bits of the scale, 12 of the index, so that
// no two are the same. Scales are not negative, so these are ordered as integers.
static_assert(kMaxRefinableBlocks == 4096);
MOTE_INLINE int32_t rank(float scale, size_t block) {
  return static_cast<int32_t>((read<uint32_t>(&scale) & 0xfffff000u) |
                              static_cast<uint32_t>(kMaxRefinableBlocks - 1 - block));
}

// The largest rank below `last`, or -1.
MOTE_INLINE int32_t next_rank(const int32_t* ranks, size_t blocks, int32_t last) {
  int32_t best = -1;
  for (size_t b = 0; b < blocks; ++b) {
    const int32_t candidate = ranks[b] < last ? ranks[b] : -1;
    best = candidate > best ? candidate : best;
  }
  return best;
}

// The rank of the count-th block, count <= blocks.
MOTE_INLINE int32_t lowest_rank(const float* scale, size_t blocks, size_t count) {
  int32_t ranks[kMaxRefinableBlocks];
  for (size_t b = 0; b < blocks; ++b) ranks[b] = rank(scale[b], b);
  int32_t last = INT32_MAX;
  for (size_t i = 0; i < count; ++i) last = next_rank(ranks, blocks, last);
  return last;
}

// 16 values of what scale * q leaves of x, in steps of scale / 254: at most half a step of q, so
// within ±127. The sum of them.
MOTE_INLINE int32_t refine_half_block(const float* x, const int8_t* q, float scale, float factor,
                                      int8_t* refined_q) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) {
    const float rest = (x[i] - static_cast<float>(q[i]) * scale) * factor;
    const float shifted = rest + 0x1.8p23f;
    const int32_t level = read<int32_t>(&shifted) - 0x4b400000;
    const int32_t low = level > -127 ? level : -127, bounded = low < 127 ? low : 127;
    refined_q[i] = static_cast<int8_t>(bounded);
    sum += bounded;
  }
  return sum;
}

MOTE_INLINE void refine_block(const float* x, const int8_t* q, float scale, float step,
                              int8_t* refined_q, int32_t* correction) {
  int32_t first = 0, second = 0;
  if (step > 0) {
    const float factor = 1.0f / step;
    first = refine_half_block(x, q, scale, factor, refined_q);
    second = refine_half_block(x + 16, q + 16, scale, factor, refined_q + 16);
  } else {
    std::memset(refined_q, 0, 32);
  }
  correction[0] = -128 * (first + second);
  correction[1] = -128 * first;
}

}  // namespace

void refine_activations(const RefineTask* task) {
  const size_t all = task->columns / 32;
  const size_t blocks = all < kMaxRefinableBlocks ? all : kMaxRefinableBlocks;
  const int32_t lowest = lowest_rank(task->scale, blocks, task->refined);
  size_t n = 0;
  for (size_t b = 0; b < blocks && n < task->refined; ++b) {
    const float scale = task->scale[b];
    if (rank(scale, b) < lowest) continue;
    // A block so small that 1 / step overflows, or that holds a NaN and shows it already, stays.
    const float step = scale > 0x1p-100f ? scale / 254.0f : 0.0f;
    int32_t* correction = task->refined_correction + 2 * n;
    refine_block(task->x + b * 32, task->q + b * 32, scale, step, task->refined_q + n * 32,
                 correction);
    task->block[n] = static_cast<uint32_t>(b);
    task->refined_scale[n] = step;
    task->scaled_sum[b] += step * static_cast<float>(correction[0] / -128);
    ++n;
  }
  task->block[n] = kNoBlock;
}

void quantize_activations(const float* x, size_t columns, int8_t* q, float* scale,
                          float* scaled_sum, int32_t* correction) {
  const size_t blocks = columns / 32;
  for (size_t b = 0; b < blocks;) {
#if defined(MOTE_QUANTIZE_FOUR_BLOCKS)
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
