#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "quant/quant.h"
#include "tests/support/random.h"

namespace mote::quant {
namespace {

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

// From the definition of IEEE 754 binary16, in arithmetic instead of bits.
double f16_by_definition(uint32_t half) {
  const double sign = half & 0x8000 ? -1.0 : 1.0;
  const int exponent = static_cast<int>(half >> 10 & 31), mantissa = static_cast<int>(half & 1023);
  if (exponent == 31) return mantissa ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

double bf16_by_definition(uint32_t value) {
  const double sign = value & 0x8000 ? -1.0 : 1.0;
  const int exponent = static_cast<int>(value >> 7 & 255), mantissa = static_cast<int>(value & 127);
  if (exponent == 255) return mantissa ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, -133);
  return sign * std::ldexp(128 + mantissa, exponent - 134);
}

TEST(FloatFormats, EveryHalfDecodesByDefinition) {
  for (uint32_t half = 0; half < 65536; ++half) {
    const double expected = f16_by_definition(half);
    const float value = f16_to_f32(static_cast<uint16_t>(half));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << half;
    } else {
      EXPECT_EQ(value, expected) << half;
      EXPECT_EQ(std::signbit(value), std::signbit(expected)) << half;
    }
  }
}

TEST(FloatFormats, EveryBrainFloatDecodesByDefinition) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double expected = bf16_by_definition(bits);
    const float value = bf16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else {
      EXPECT_EQ(value, expected) << bits;
      EXPECT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    }
  }
}

TEST(FloatFormats, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float half = f16_to_f32(bits), brain = bf16_to_f32(bits);
    if (std::isnan(half))
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(half)))) << i;
    else
      EXPECT_EQ(f32_to_f16(half), bits);
    if (std::isnan(brain))
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(brain)))) << i;
    else
      EXPECT_EQ(f32_to_bf16(brain), bits);
  }
}

// Halfway between neighbours the even one wins; a hair beside it the nearer one.
template <class Encode, class Decode>
void check_rounding(uint32_t infinity, Encode encode, Decode decode) {
  for (uint32_t i = 0; i + 1 < infinity; ++i) {
    const float low = decode(static_cast<uint16_t>(i)), high = decode(static_cast<uint16_t>(i + 1));
    const auto middle = static_cast<float>((static_cast<double>(low) + high) / 2);
    const uint32_t even = i % 2 ? i + 1 : i;
    ASSERT_EQ(encode(middle), even) << i;
    ASSERT_EQ(encode(std::nextafter(middle, 0.0f)), i) << i;
    ASSERT_EQ(encode(std::nextafter(middle, HUGE_VALF)), i + 1) << i;
    ASSERT_EQ(encode(-middle), even | 0x8000) << i;
  }
}

TEST(FloatFormats, RoundsToNearestEven) { check_rounding(0x7c00, f32_to_f16, f16_to_f32); }

// The least brain floats have no float between them and half a step, so start where they do.
TEST(FloatFormats, BrainFloatRoundsToNearestEven) {
  check_rounding(0x7f80, f32_to_bf16, bf16_to_f32);
}

TEST(FloatFormats, OverflowAndUnderflow) {
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(HUGE_VALF), 0x7c00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);
  EXPECT_EQ(f32_to_f16(std::nextafter(0x1p-25f, 1.0f)), 1);
  EXPECT_EQ(f32_to_f16(-1e-40f), 0x8000);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(f32_to_bf16(-HUGE_VALF), 0xff80);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(FloatFormats, NanNeverBecomesInfinity) {
  test::Random random(3);
  for (int i = 0; i < 10000; ++i) {
    uint32_t bits = 0x7f800000 | (random.bits() & 0x807fffff);
    if (i == 0) bits = 0x7f800001;
    if ((bits & 0x7fffff) == 0) continue;
    float value;
    std::memcpy(&value, &bits, 4);
    EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value)))) << bits;
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value)))) << bits;
    EXPECT_EQ(f32_to_f16(value) >> 15, bits >> 31);
  }
}

TEST(FloatFormats, RandomFloatsRoundToTheNearest) {
  test::Random random(4);
  for (int i = 0; i < 200000; ++i) {
    uint32_t bits = random.bits();
    float value;
    std::memcpy(&value, &bits, 4);
    if (!std::isfinite(value)) continue;
    const float brain = bf16_to_f32(f32_to_bf16(value));
    if (std::isfinite(brain)) {
      EXPECT_LE(std::fabs(static_cast<double>(brain) - value),
                std::ldexp(1.0, std::max(std::ilogb(value), -126) - 8))
          << value;
    }
    value = std::ldexp(random.uniform(1.0f, 2.0f), random.between(-24, 15));
    const float half = f16_to_f32(f32_to_f16(value));
    if (std::isfinite(half)) {
      EXPECT_LE(std::fabs(static_cast<double>(half) - value),
                std::ldexp(1.0, std::max(std::ilogb(value), -14) - 11))
          << value;
    }
    EXPECT_EQ(bits_of(bf16_to_f32(f32_to_bf16(brain))), bits_of(brain));
  }
}

}  // namespace
}  // namespace mote::quant
