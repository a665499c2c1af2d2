#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "quant/quant.h"

namespace mote::quant {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// 1 / scale, or 0 where there is none: all levels are then 0, and the scale rounds to 0 in float16
// as well.
float inverse(float scale) {
  const float result = scale != 0.0f ? 1.0f / scale : 0.0f;
  return std::isfinite(result) ? result : 0.0f;
}

bool all_finite(const float* x) {
  for (int i = 0; i < 32; ++i)
    if (!std::isfinite(x[i])) return false;
  return true;
}

// Truncates, at most 15. For values >= 0.
uint8_t nibble(float value) {
  const int level = static_cast<int>(value);
  return static_cast<uint8_t>(level < 15 ? level : 15);
}

// The value of the largest magnitude becomes level -8 exactly, so that all 16 levels are of use.
void encode_block(const float* x, BlockQ4_0* out) {
  float largest = 0.0f;
  for (int i = 0; i < 32; ++i)
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  const float scale = largest / -8.0f, factor = inverse(scale);
  out->scale = f32_to_f16(scale);
  for (int j = 0; j < 16; ++j)
    out->low[j] = nibble(x[j] * factor + 8.5f) | nibble(x[j + 16] * factor + 8.5f) << 4;
}

// Level 0 is the least value and level 15 the greatest.
void encode_block(const float* x, BlockQ4_1* out) {
  float low = x[0], high = x[0];
  for (int i = 1; i < 32; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  const float scale = (high - low) / 15.0f, factor = inverse(scale);
  out->scale = f32_to_f16(scale);
  out->minimum = f32_to_f16(low);
  if (!std::isfinite(scale)) {  // high - low overflowed
    out->scale = f32_to_f16(kNaN);
    std::memset(out->low, 0, sizeof(out->low));
    return;
  }
  for (int j = 0; j < 16; ++j)
    out->low[j] = nibble((x[j] - low) * factor + 0.5f) | nibble((x[j + 16] - low) * factor + 0.5f)
                                                             << 4;
}

// The largest magnitude becomes level 127 or -127; ties are rounded away from zero.
void encode_block(const float* x, BlockQ8_0* out) {
  float largest = 0.0f;
  for (int i = 0; i < 32; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
  const float scale = largest / 127.0f, factor = inverse(scale);
  out->scale = f32_to_f16(scale);
  for (int i = 0; i < 32; ++i) out->q[i] = static_cast<int8_t>(std::round(x[i] * factor));
}

template <class Block>
void encode_blocks(const float* x, size_t count, uint8_t* out) {
  for (size_t at = 0; at < count; at += 32, out += sizeof(Block)) {
    Block block{};
    if (all_finite(x + at))
      encode_block(x + at, &block);
    else
      block.scale = f32_to_f16(kNaN);
    std::memcpy(out, &block, sizeof(block));
  }
}

}  // namespace

bool can_encode(Format format) {
  switch (format) {
    case Format::f32:
    case Format::f16:
    case Format::bf16:
    case Format::q4_0:
    case Format::q4_1:
    case Format::q8_0:
      return true;
    default:
      return false;
  }
}

void encode(Format format, const float* values, size_t count, uint8_t* out) {
  assert(can_encode(format));
  switch (format) {
    case Format::f32:
      std::memcpy(out, values, count * sizeof(float));
      return;
    case Format::f16:
    case Format::bf16:
      for (size_t i = 0; i < count; ++i) {
        const uint16_t bits =
            format == Format::f16 ? f32_to_f16(values[i]) : f32_to_bf16(values[i]);
        std::memcpy(out + i * 2, &bits, 2);
      }
      return;
    case Format::q4_0:
      return encode_blocks<BlockQ4_0>(values, count, out);
    case Format::q4_1:
      return encode_blocks<BlockQ4_1>(values, count, out);
    case Format::q8_0:
      return encode_blocks<BlockQ8_0>(values, count, out);
    default:
      return;
  }
}

void quantize_activations(const float* x, size_t columns, int8_t* q, float* scale,
                          float* scaled_sum, int32_t* sum16) {
  for (size_t b = 0; b < columns / 32; ++b) {
    const float* block = x + b * 32;
    float largest = 0.0f;
    for (int i = 0; i < 32; ++i) largest = std::fmax(largest, std::fabs(block[i]));
    const float factor = 127.0f / largest;
    const bool finite = all_finite(block), zero = !std::isfinite(factor);
    int32_t sums[2] = {0, 0};
    for (int i = 0; i < 32; ++i) {
      int level = 0;
      if (finite && !zero) {
        level = static_cast<int>(std::nearbyint(block[i] * factor));
        level = level > 127 ? 127 : level < -127 ? -127 : level;
      }
      q[b * 32 + i] = static_cast<int8_t>(level);
      sums[i / 16] += level;
    }
    scale[b] = !finite ? kNaN : zero ? 0.0f : largest / 127.0f;
    scaled_sum[b] = scale[b] * static_cast<float>(sums[0] + sums[1]);
    sum16[b * 2] = sums[0];
    sum16[b * 2 + 1] = sums[1];
  }
}

namespace {

uint32_t truncated(float scale) {
  uint32_t bits = 0;
  std::memcpy(&bits, &scale, sizeof bits);
  return bits >> 12;
}

}  // namespace

void refine_activations(const float* x, size_t columns, const int8_t* q, const float* scale,
                        float* scaled_sum, size_t refined, uint32_t* block, int8_t* refined_q,
                        float* step, int32_t* sum16) {
  const size_t blocks = columns / 32;
  assert(refined <= blocks && blocks <= 4096);
  size_t n = 0;
  for (size_t b = 0; b < blocks; ++b) {
    size_t before = 0;  // blocks that come first
    for (size_t other = 0; other < blocks; ++other)
      before += truncated(scale[other]) > truncated(scale[b]) ||
                (truncated(scale[other]) == truncated(scale[b]) && other < b);
    if (before >= refined) continue;
    block[n] = static_cast<uint32_t>(b);
    step[n] = scale[b] > 0x1p-100f ? scale[b] / 254.0f : 0.0f;
    const float factor = step[n] > 0.0f ? 1.0f / step[n] : 0.0f;
    int32_t sums[2] = {0, 0};
    for (size_t i = 0; i < 32 && factor > 0.0f; ++i) {
      const float product = static_cast<float>(q[b * 32 + i]) * scale[b];
      const float rest = (x[b * 32 + i] - product) * factor;
      const auto level =
          static_cast<int8_t>(std::nearbyint(std::fmin(std::fmax(rest, -127.0f), 127.0f)));
      refined_q[n * 32 + i] = level;
      sums[i / 16] += level;
    }
    if (factor == 0.0f) std::memset(refined_q + n * 32, 0, 32);
    scaled_sum[b] += step[n] * static_cast<float>(sums[0] + sums[1]);
    sum16[n * 2] = sums[0];
    sum16[n * 2 + 1] = sums[1];
    ++n;
  }
}

}  // namespace mote::quant
