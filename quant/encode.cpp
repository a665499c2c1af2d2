// Values to blocks: a search for the best Fit, and its bytes in each format.
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "quant/fit.h"
#include "quant/quant.h"

namespace mote::quant {
namespace {

constexpr FitShape integers(int groups, int group, int least, int greatest) {
  return {groups, group, least, greatest, false, 1, 1, 0};
}

constexpr FitShape kQ4_0 = integers(1, 32, -8, 7), kQ5_0 = integers(1, 32, -16, 15),
                   kQ8_0 = integers(1, 32, -127, 127);
constexpr FitShape kQ4_1 = {1, 32, 0, 15, false, 1, 1, 1}, kQ5_1 = {1, 32, 0, 31, false, 1, 1, 1};
constexpr FitShape kIq4Nl = {1, 32, 0, 15, true, 1, 1, 0};
constexpr FitShape kQ2K = {16, 16, 0, 3, false, 0, 15, 15};
constexpr FitShape kQ3K = {16, 16, -4, 3, false, -32, 31, 0};
constexpr FitShape kQ4K = {8, 32, 0, 15, false, 0, 63, 63};
constexpr FitShape kQ5K = {8, 32, 0, 31, false, 0, 63, 63};
constexpr FitShape kQ6K = {16, 16, -32, 31, false, -128, 127, 0};
constexpr FitShape kIq4Xs = {8, 32, 0, 15, true, -32, 31, 0};

// Level i shifted to 0 .. 15 (its lower 4 bits), two to a byte: i and i + 16.
void pack_nibbles(const Fit& fit, int shift, uint8_t (&low)[16]) {
  for (int j = 0; j < 16; ++j)
    low[j] = static_cast<uint8_t>(((fit.level[j] + shift) & 15) | ((fit.level[j + 16] + shift) & 15)
                                                                      << 4);
}

void pack_fifth_bits(const Fit& fit, int shift, uint8_t (&high)[4]) {
  for (int i = 0; i < 32; ++i)
    high[i / 8] |= static_cast<uint8_t>(((fit.level[i] + shift) >> 4 & 1) << i % 8);
}

// A minimum is added in these, and subtracted in a Fit.
uint16_t negated(uint16_t half) { return half ^ 0x8000; }

void pack(const Fit& fit, BlockQ4_0* out) {
  out->scale = fit.scale;
  pack_nibbles(fit, 8, out->low);
}

void pack(const Fit& fit, BlockQ4_1* out) {
  out->scale = fit.scale;
  out->minimum = negated(fit.minimum);
  pack_nibbles(fit, 0, out->low);
}

void pack(const Fit& fit, BlockQ5_0* out) {
  out->scale = fit.scale;
  pack_nibbles(fit, 16, out->low);
  pack_fifth_bits(fit, 16, out->high);
}

void pack(const Fit& fit, BlockQ5_1* out) {
  out->scale = fit.scale;
  out->minimum = negated(fit.minimum);
  pack_nibbles(fit, 0, out->low);
  pack_fifth_bits(fit, 0, out->high);
}

void pack(const Fit& fit, BlockQ8_0* out) {
  out->scale = fit.scale;
  std::memcpy(out->q, fit.level, sizeof out->q);
}

void pack(const Fit& fit, BlockIq4Nl* out) {
  out->scale = fit.scale;
  pack_nibbles(fit, 0, out->low);
}

// The lower two bits, as unpack() reads them.
void pack_pairs(const Fit& fit, int shift, uint8_t (&low)[64]) {
  for (int i = 0; i < 256; ++i)
    low[i / 128 * 32 + i % 32] |=
        static_cast<uint8_t>(((fit.level[i] + shift) & 3) << i % 128 / 32 * 2);
}

void pack(const Fit& fit, BlockQ2K* out) {
  out->scale = fit.scale;
  out->minimum = fit.minimum;
  for (int g = 0; g < 16; ++g)
    out->scales[g] = static_cast<uint8_t>(fit.multiplier[g] | fit.minimum_multiplier[g] << 4);
  pack_pairs(fit, 0, out->low);
}

void pack(const Fit& fit, BlockQ3K* out) {
  out->scale = fit.scale;
  for (int g = 0; g < 16; ++g) {
    const int multiplier = fit.multiplier[g] + 32;
    out->scales[g % 8] |= static_cast<uint8_t>((multiplier & 15) << g / 8 * 4);
    out->scales[8 + g % 4] |= static_cast<uint8_t>(multiplier >> 4 << g / 4 * 2);
  }
  pack_pairs(fit, 4, out->low);
  for (int i = 0; i < 256; ++i)
    out->high[i % 32] |= static_cast<uint8_t>(((fit.level[i] + 4) >> 2) << i / 32);
}

void pack_group_scales(const Fit& fit, uint8_t (&scales)[12]) {
  for (int g = 0; g < 4; ++g) {
    scales[g] = static_cast<uint8_t>(fit.multiplier[g] | fit.multiplier[g + 4] >> 4 << 6);
    scales[g + 4] =
        static_cast<uint8_t>(fit.minimum_multiplier[g] | fit.minimum_multiplier[g + 4] >> 4 << 6);
    scales[g + 8] = static_cast<uint8_t>((fit.multiplier[g + 4] & 15) |
                                         (fit.minimum_multiplier[g + 4] & 15) << 4);
  }
}

// Nibbles of each 64 values in 32 bytes, the first 32 low.
void pack_low_nibbles(const Fit& fit, uint8_t (&low)[128]) {
  for (int i = 0; i < 256; ++i)
    low[i / 64 * 32 + i % 32] |= static_cast<uint8_t>((fit.level[i] & 15) << i / 32 % 2 * 4);
}

void pack(const Fit& fit, BlockQ4K* out) {
  out->scale = fit.scale;
  out->minimum = fit.minimum;
  pack_group_scales(fit, out->scales);
  pack_low_nibbles(fit, out->low);
}

void pack(const Fit& fit, BlockQ5K* out) {
  out->scale = fit.scale;
  out->minimum = fit.minimum;
  pack_group_scales(fit, out->scales);
  pack_low_nibbles(fit, out->low);
  for (int i = 0; i < 256; ++i)
    out->high[i % 32] |= static_cast<uint8_t>((fit.level[i] >> 4) << i / 32);
}

void pack(const Fit& fit, BlockQ6K* out) {
  out->scale = fit.scale;
  for (int g = 0; g < 16; ++g) out->scales[g] = static_cast<int8_t>(fit.multiplier[g]);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, within = i % 128, level = fit.level[i] + 32;
    out->low[half * 64 + within % 64] |= static_cast<uint8_t>((level & 15) << within / 64 * 4);
    out->high[half * 32 + within % 32] |= static_cast<uint8_t>(level >> 4 << within / 32 * 2);
  }
}

void pack(const Fit& fit, BlockIq4Xs* out) {
  out->scale = fit.scale;
  for (int g = 0; g < 8; ++g) {
    const int multiplier = fit.multiplier[g] + 32;
    out->scales_low[g / 2] |= static_cast<uint8_t>((multiplier & 15) << g % 2 * 4);
    out->scales_high |= static_cast<uint16_t>(multiplier >> 4 << 2 * g);
  }
  for (int i = 0; i < 256; ++i)
    out->low[i / 32 * 16 + i % 16] |= static_cast<uint8_t>(fit.level[i] << i / 16 % 2 * 4);
}

template <class Block>
void encode_blocks(const FitShape& shape, const float* x, size_t count, const float* importance,
                   uint8_t* out) {
  const size_t values = static_cast<size_t>(shape.groups) * static_cast<size_t>(shape.group);
  for (size_t at = 0; at < count; at += values, out += sizeof(Block)) {
    Block block{};
    Fit fit;
    if (fit_block(shape, x + at, importance ? importance + at : nullptr, &fit))
      pack(fit, &block);
    else
      block.scale = f32_to_f16(std::numeric_limits<float>::quiet_NaN());
    std::memcpy(out, &block, sizeof block);
  }
}

int8_t level_at(float value, float factor) {
  return static_cast<int8_t>(std::fmin(std::fmax(std::nearbyint(value * factor), -127.0f), 127.0f));
}

// What is wrong with a row at one scale.
double row_error(const float* x, size_t count, const float* importance, float scale) {
  double error = 0.0;
  for (size_t i = 0; i < count; ++i) {
    const double wrong = double(x[i]) - double(scale) * level_at(x[i], 1.0f / scale);
    error += wrong * wrong * (importance ? double(importance[i]) : 1.0);
  }
  return error;
}

// One scale for all: the best of some, from where the largest value just has a level to where it
// is cut to half.
void encode_row(const float* x, size_t count, const float* importance, uint8_t* out) {
  constexpr int kTried = 32;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float largest = 0.0f;
  bool finite = true;
  for (size_t i = 0; i < count; ++i) {
    finite = finite && std::isfinite(x[i]);
    largest = std::fmax(largest, std::fabs(x[i]));
  }
  float importance_sum = 0.0f;
  for (size_t i = 0; importance && i < count; ++i)
    importance_sum += importance[i] >= 0.0f ? importance[i] : std::nanf("");
  if (!(importance_sum > 0.0f && std::isfinite(importance_sum))) importance = nullptr;
  uint16_t scale = finite ? 0 : f32_to_f16(std::numeric_limits<float>::quiet_NaN());
  double least = kInfinity;
  for (int i = 0; finite && i < kTried; ++i) {
    const float wanted = largest / 127.0f * static_cast<float>(2 * kTried - i) / (2 * kTried);
    const uint16_t tried = f32_to_f16(std::fmin(wanted, 65504.0f));
    if (!(1.0f / f16_to_f32(tried) < kInfinity)) break;
    const double error = row_error(x, count, importance, f16_to_f32(tried));
    if (error < least) least = error, scale = tried;
  }
  const float factor = least < kInfinity ? 1.0f / f16_to_f32(scale) : 0.0f;
  for (size_t at = 0; at < count; at += 32, out += sizeof(BlockQ8_0)) {
    BlockQ8_0 block{};
    block.scale = scale;
    for (size_t i = 0; finite && i < 32; ++i) block.q[i] = level_at(x[at + i], factor);
    std::memcpy(out, &block, sizeof block);
  }
}

}  // namespace

bool can_encode(Format format) { return can_decode(format); }

void encode(Format format, const float* values, size_t count, uint8_t* out,
            const float* importance) {
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
      return encode_blocks<BlockQ4_0>(kQ4_0, values, count, importance, out);
    case Format::q4_1:
      return encode_blocks<BlockQ4_1>(kQ4_1, values, count, importance, out);
    case Format::q5_0:
      return encode_blocks<BlockQ5_0>(kQ5_0, values, count, importance, out);
    case Format::q5_1:
      return encode_blocks<BlockQ5_1>(kQ5_1, values, count, importance, out);
    case Format::q8_0:
      return encode_blocks<BlockQ8_0>(kQ8_0, values, count, importance, out);
    case Format::q8_row:
      return encode_row(values, count, importance, out);
    case Format::q2_k:
      return encode_blocks<BlockQ2K>(kQ2K, values, count, importance, out);
    case Format::q3_k:
      return encode_blocks<BlockQ3K>(kQ3K, values, count, importance, out);
    case Format::q4_k:
      return encode_blocks<BlockQ4K>(kQ4K, values, count, importance, out);
    case Format::q5_k:
      return encode_blocks<BlockQ5K>(kQ5K, values, count, importance, out);
    case Format::q6_k:
      return encode_blocks<BlockQ6K>(kQ6K, values, count, importance, out);
    case Format::iq4_nl:
      return encode_blocks<BlockIq4Nl>(kIq4Nl, values, count, importance, out);
    case Format::iq4_xs:
      return encode_blocks<BlockIq4Xs>(kIq4Xs, values, count, importance, out);
    default:
      return;
  }
}

}  // namespace mote::quant
