#include <cstring>

#include "quant/quant.h"

namespace mote::quant {
namespace {

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// value / 2^shift, to the nearest, ties to even. 0 < shift < 32.
uint32_t shift_right_nearest_even(uint32_t value, uint32_t shift) {
  const uint32_t half = 1u << (shift - 1), rest = value & ((1u << shift) - 1);
  const uint32_t floor = value >> shift;
  return floor + (rest > half || (rest == half && (floor & 1)));
}

}  // namespace

// IEEE 754 binary16: 1 sign bit, 5 exponent bits with bias 15, 10 mantissa bits.
float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 31, mantissa = half & 1023;
  if (exponent == 31) return float_of(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return float_of(sign | bits_of(magnitude));
  }
  return float_of(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000)  // NaN: quiet, with the payload's upper bits
    return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
  const uint32_t exponent = magnitude >> 23;
  if (exponent >= 127 + 16) return sign | 0x7c00;  // 2^16 and more
  if (exponent >= 127 - 14) {  // normal; a carry runs into the exponent, up to infinity
    const uint32_t rebased = magnitude - ((127u - 15) << 23);
    return static_cast<uint16_t>(sign | shift_right_nearest_even(rebased, 13));
  }
  const uint32_t shift = 13 + (127 - 14) - exponent;  // subnormal: in units of 2^-24
  if (shift > 24) return sign;                        // below a quarter of the least
  const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  return static_cast<uint16_t>(sign | shift_right_nearest_even(mantissa, shift));
}

float bf16_to_f32(uint16_t value) { return float_of(static_cast<uint32_t>(value) << 16); }

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>(shift_right_nearest_even(bits, 16));
}

}  // namespace mote::quant
