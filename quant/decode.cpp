#include <cassert>
#include <cmath>
#include <cstring>

#include "quant/quant.h"

namespace mote::quant {
namespace {

bool is_float(Format format) {
  return format == Format::f32 || format == Format::f16 || format == Format::bf16;
}

float float_value(Format format, const uint8_t* values, size_t index) {
  if (format == Format::f32) {
    float value;
    std::memcpy(&value, values + index * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, values + index * 2, 2);
  return format == Format::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

float multiply_add(float a, float b, float c, bool fused) {
  return fused ? std::fma(a, b, c) : a * b + c;
}

// What 32 columns of a block add to a sum: see linear_output.
float add_run(const Levels& levels, size_t run, const int8_t* q, float scale, float scaled_sum,
              float sum, bool fused) {
  int32_t dot = 0, half_sums[2] = {0, 0};
  const bool halves = levels.group == 16;
  for (size_t i = 0; i < 32; ++i) {
    const int32_t factor = halves ? levels.multiplier[(run * 32 + i) / 16] : 1;
    dot += factor * levels.level[run * 32 + i] * q[i];
    half_sums[i / 16] += q[i];
  }
  const float d = halves ? levels.block_scale : levels.scale[run];
  sum = multiply_add(static_cast<float>(dot) * scale, d, sum, fused);
  if (!levels.has_offset) return sum;
  if (!halves) return multiply_add(levels.offset[run], scaled_sum, sum, fused);
  for (size_t h = 0; h < 2; ++h)
    sum = multiply_add(levels.offset[run * 2 + h], static_cast<float>(half_sums[h]) * scale, sum,
                       fused);
  return sum;
}

}  // namespace

bool can_decode(Format format) { return is_float(format) || can_unpack(format); }

void decode(Format format, const uint8_t* blocks, size_t values, float* out) {
  assert(can_decode(format));
  if (is_float(format)) {
    for (size_t i = 0; i < values; ++i) out[i] = float_value(format, blocks, i);
    return;
  }
  const FormatInfo& info = format_info(format);
  Levels levels;
  for (size_t at = 0; at < values; at += info.values, blocks += info.bytes) {
    unpack(format, blocks, &levels);
    for (size_t i = 0; i < levels.values; ++i) {
      const size_t group = i / levels.group;
      const float value = levels.scale[group] * static_cast<float>(levels.level[i]);
      out[at + i] = levels.has_offset ? value + levels.offset[group] : value;
    }
  }
}

float linear_output(Format format, const uint8_t* row, size_t columns, const float* x,
                    const int8_t* q, const float* scale, const float* scaled_sum, bool fused) {
  assert(can_decode(format));
  float sum = 0.0f;
  if (is_float(format)) {
    for (size_t c = 0; c < columns; ++c)
      sum = multiply_add(x[c], float_value(format, row, c), sum, fused);
    return sum;
  }
  const FormatInfo& info = format_info(format);
  const size_t runs = info.values / 32;
  Levels levels;
  if (format == Format::q8_row) {
    int32_t dot = 0;
    unpack(format, row, &levels);
    const float first_scale = levels.scale[0];
    for (size_t b = 0; b < columns / 32; ++b) {
      unpack(format, row + b * info.bytes, &levels);
      for (size_t i = 0; i < 32; ++i) dot += levels.level[i] * q[b * 32 + i];
    }
    return multiply_add(static_cast<float>(dot) * scale[0], first_scale, 0.0f, fused);
  }
  for (size_t b = 0; b < columns / 32; ++b) {
    if (b % runs == 0) unpack(format, row + b / runs * info.bytes, &levels);
    sum = add_run(levels, b % runs, q + b * 32, scale[b], scaled_sum[b], sum, fused);
  }
  return sum;
}

float linear_outliers(Format format, const uint8_t* row, size_t outliers, const uint32_t* group,
                      const int8_t* outlier_q, const float* outlier_scale, bool fused) {
  assert(can_unpack(format));
  const FormatInfo& info = format_info(format);
  const size_t groups = info.values / 4;  // of a block
  float sum = 0.0f;
  Levels levels;
  for (size_t n = 0; n < outliers; ++n) {
    unpack(format, row + group[n] / groups * info.bytes, &levels);
    const size_t first = group[n] % groups * 4, half = first / 16;
    const bool halves = levels.group == 16;
    int32_t dot = 0, total = 0;
    for (size_t i = 0; i < 4; ++i) {
      dot += levels.level[first + i] * outlier_q[4 * n + i];
      total += outlier_q[4 * n + i];
    }
    if (halves) dot *= levels.multiplier[half];
    float d = halves ? levels.block_scale : levels.scale[first / 32];
    if (format == Format::q8_row) {
      Levels row_start;
      unpack(format, row, &row_start);
      d = row_start.scale[0];
    }
    sum = multiply_add(static_cast<float>(dot) * outlier_scale[n], d, sum, fused);
    if (halves && levels.has_offset)
      sum = multiply_add(levels.offset[half], static_cast<float>(total) * outlier_scale[n], sum,
                         fused);
  }
  return sum;
}

}  // namespace mote::quant
