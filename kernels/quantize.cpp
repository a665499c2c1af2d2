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

}  // namespace

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
