#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "quant/quant.h"
#include "tests/support/random.h"

namespace mote::quant {
namespace {

struct Quantized {
  explicit Quantized(const std::vector<float>& x)
      : q(x.size()), scale(x.size() / 32), scaled_sum(x.size() / 32), sum16(x.size() / 16) {
    quantize_activations(x.data(), x.size(), q.data(), scale.data(), scaled_sum.data(),
                         sum16.data());
  }
  std::vector<int8_t> q;
  std::vector<float> scale, scaled_sum;
  std::vector<int32_t> sum16;
};

TEST(Activations, ByHand) {
  std::vector<float> x(64, 0.0f);
  x[0] = 127.0f;  // scale 1
  x[1] = 2.5f;    // a tie: to the even 2
  x[2] = 3.5f;    // to the even 4
  x[3] = -2.5f;
  x[17] = -126.6f;
  const Quantized a(x);
  EXPECT_EQ(a.scale[0], 1.0f);
  EXPECT_EQ(a.q[0], 127);
  EXPECT_EQ(a.q[1], 2);
  EXPECT_EQ(a.q[2], 4);
  EXPECT_EQ(a.q[3], -2);
  EXPECT_EQ(a.q[17], -127);
  EXPECT_EQ(a.sum16[0], 131);
  EXPECT_EQ(a.sum16[1], -127);
  EXPECT_EQ(a.scaled_sum[0], 4.0f);
  EXPECT_EQ(a.scale[1], 0.0f);
  EXPECT_EQ(a.scaled_sum[1], 0.0f);
  EXPECT_EQ(a.sum16[2] | a.sum16[3], 0);
}

TEST(Activations, ErrorIsHalfAStep) {
  test::Random random(1);
  for (int trial = 0; trial < 500; ++trial) {
    const auto x = random.normals(96, std::ldexp(1.0f, random.between(-60, 60)));
    const Quantized a(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const float scale = a.scale[i / 32];
      EXPECT_LE(std::fabs(a.q[i]), 127);
      EXPECT_LE(std::fabs(static_cast<double>(a.q[i]) * scale - x[i]), 0.5001 * scale);
    }
    for (int b = 0; b < 3; ++b) {
      int sum = 0;
      for (int i = 0; i < 32; ++i) sum += a.q[b * 32 + i];
      EXPECT_EQ(a.sum16[2 * b] + a.sum16[2 * b + 1], sum);
      EXPECT_EQ(a.scaled_sum[b], a.scale[b] * static_cast<float>(sum));
    }
  }
}

TEST(Activations, BadValuesShowInTheirBlockOnly) {
  for (float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    std::vector<float> x(96, 1.0f);
    x[45] = bad;
    const Quantized a(x);
    EXPECT_EQ(a.scale[0], 1.0f / 127.0f);
    EXPECT_TRUE(std::isnan(a.scale[1]));
    EXPECT_TRUE(std::isnan(a.scaled_sum[1]));
    EXPECT_EQ(a.scale[2], 1.0f / 127.0f);
    for (int i = 32; i < 64; ++i) EXPECT_EQ(a.q[i], 0);
  }
}

TEST(Activations, TooSmallCountsAsZeros) {
  for (float tiny : {1e-45f, 1e-38f, 3.7e-37f}) {
    const Quantized a(std::vector<float>(32, tiny));
    EXPECT_EQ(a.scale[0], 0.0f);
    EXPECT_EQ(a.q[7], 0);
    EXPECT_EQ(a.scaled_sum[0], 0.0f);
  }
  const Quantized a(std::vector<float>(32, 3.8e-37f));
  EXPECT_EQ(a.q[7], 127);
  const Quantized b(std::vector<float>(32, 3.4e38f));
  EXPECT_EQ(b.q[7], 127);
  EXPECT_TRUE(std::isfinite(b.scale[0]));
}

// Two blocks with every step written out.
TEST(LinearOutput, Q4_1ByHand) {
  BlockQ4_1 row[2]{};
  row[0] = {0x3800, 0xc200, {}};  // 0.5, -3
  row[1] = {0x4000, 0x3c00, {}};  // 2, 1
  row[0].low[0] = 0x5f;           // values 0: 15, 16: 5
  row[1].low[15] = 0x70;          // value 63: 7
  std::vector<int8_t> q(64, 0);
  q[0] = 3, q[16] = -2, q[5] = 10, q[63] = -127;
  const float scale[2] = {0.5f, 4.0f};
  const float scaled_sum[2] = {0.5f * 11, 4.0f * -127};
  const float expected = (35 * 0.5f * 0.5f + -3.0f * 5.5f) + (-889 * 4.0f * 2.0f + 1.0f * -508.0f);
  EXPECT_EQ(linear_output(Format::q4_1, reinterpret_cast<const uint8_t*>(row), 64, nullptr,
                          q.data(), scale, scaled_sum),
            expected);
}

TEST(LinearOutput, Q8_0WithTheLeastLevel) {
  BlockQ8_0 row{};
  row.scale = 0x3c00;
  std::vector<int8_t> q(32, 127);
  for (int8_t& w : row.q) w = -128;
  const float scale = 1.0f, scaled_sum = 127 * 32;
  EXPECT_EQ(linear_output(Format::q8_0, reinterpret_cast<const uint8_t*>(&row), 32, nullptr,
                          q.data(), &scale, &scaled_sum),
            -128.0f * 127 * 32);
}

TEST(LinearOutput, FloatOrderIsOneChain) {
  const float x[4] = {1e8f, 1.0f, -1e8f, 1.0f}, w[4] = {1, 1, 1, 1};
  // 1e8 + 1 is 1e8 in float32, so the chain gives 1 and any other order may give 2.
  EXPECT_EQ(linear_output(Format::f32, reinterpret_cast<const uint8_t*>(w), 4, x, nullptr, nullptr,
                          nullptr),
            1.0f);
  const float a[2] = {1.0f, 1.0f + 0x1p-12f}, b[2] = {-1.0f - 0x1p-11f, 1.0f + 0x1p-12f};
  EXPECT_EQ(linear_output(Format::f32, reinterpret_cast<const uint8_t*>(b), 2, a, nullptr, nullptr,
                          nullptr),
            0x1p-24f);
  EXPECT_EQ(linear_output(Format::f32, reinterpret_cast<const uint8_t*>(b), 2, a, nullptr, nullptr,
                          nullptr, false),
            0.0f);
}

// Against the plain product of the decoded values in double precision.
TEST(LinearOutput, EqualsTheDotProductOfDecodedValues) {
  test::Random random(6);
  for (Format format : {Format::f32, Format::f16, Format::bf16, Format::q4_0, Format::q4_1,
                        Format::q5_0, Format::q5_1, Format::q8_0, Format::iq4_nl}) {
    for (size_t columns : {32, 64, 576, 1536}) {
      std::vector<uint8_t> row = random.bytes(row_bytes(format, columns));
      if (can_encode(format)) {
        encode(format, random.normals(columns, 0.1f).data(), columns, row.data());
      } else {
        for (size_t at = 0; at < row.size(); at += format_info(format).bytes) {
          row[at + 1] = 0x2c;  // a scale of about 1/16, and for q5_1 a minimum of the same size
          if (format == Format::q5_1) row[at + 3] = 0xac;
        }
      }
      const auto x = random.normals(columns);
      const Quantized a(x);
      std::vector<float> weights(columns);
      decode(format, row.data(), columns, weights.data());
      const bool is_float = format_info(format).values == 1;
      double expected = 0, magnitude = 0;
      for (size_t c = 0; c < columns; ++c) {
        const double value = is_float ? x[c] : static_cast<double>(a.scale[c / 32]) * a.q[c];
        expected += value * weights[c];
        magnitude += std::fabs(value * weights[c]);
      }
      for (bool fused : {true, false}) {
        const float got = linear_output(format, row.data(), columns, x.data(), a.q.data(),
                                        a.scale.data(), a.scaled_sum.data(), fused);
        EXPECT_NEAR(got, expected, magnitude * 1e-6) << format_info(format).name << " " << columns;
      }
    }
  }
}

TEST(LinearOutput, ANanInputShows) {
  std::vector<float> x(64, 1.0f), ones(64, 1.0f);
  x[40] = std::nanf("");
  const Quantized a(x);
  for (Format format : {Format::q4_0, Format::q4_1, Format::q8_0}) {
    std::vector<uint8_t> row(row_bytes(format, 64));
    encode(format, ones.data(), 64, row.data());
    EXPECT_TRUE(std::isnan(linear_output(format, row.data(), 64, nullptr, a.q.data(),
                                         a.scale.data(), a.scaled_sum.data())));
  }
}

}  // namespace
}  // namespace mote::quant
