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

bool has_linear_output(Format format) {
  return is_float(format) || (can_unpack(format) && format_info(format).values == 32);
}

float linear_output(Format format, const uint8_t* row, size_t columns, const float* x,
                    const int8_t* q, const float* scale, const float* scaled_sum, bool fused) {
  assert(has_linear_output(format));
  float sum = 0.0f;
  if (is_float(format)) {
    for (size_t c = 0; c < columns; ++c)
      sum = multiply_add(x[c], float_value(format, row, c), sum, fused);
    return sum;
  }
  const size_t bytes = format_info(format).bytes;
  Levels levels;
  for (size_t b = 0; b < columns / 32; ++b) {
    unpack(format, row + b * bytes, &levels);
    int32_t dot = 0;
    for (size_t i = 0; i < 32; ++i) dot += static_cast<int32_t>(q[b * 32 + i]) * levels.level[i];
    sum = multiply_add(static_cast<float>(dot) * scale[b], levels.scale[0], sum, fused);
    if (levels.has_offset) sum = multiply_add(levels.offset[0], scaled_sum[b], sum, fused);
  }
  return sum;
}

float linear_refinement(Format format, const uint8_t* row, size_t refined, const uint32_t* block,
                        const int8_t* refined_q, const float* step, bool fused) {
  assert(has_linear_output(format) && !is_float(format));
  float sum = 0.0f;
  Levels levels;
  for (size_t n = 0; n < refined; ++n) {
    unpack(format, row + block[n] * format_info(format).bytes, &levels);
    int32_t dot = 0;
    for (size_t i = 0; i < 32; ++i)
      dot += static_cast<int32_t>(refined_q[n * 32 + i]) * levels.level[i];
    sum = multiply_add(static_cast<float>(dot) * step[n], levels.scale[0], sum, fused);
  }
  return sum;
}

}  // namespace mote::quant
