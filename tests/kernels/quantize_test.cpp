// Activation quantization equals the oracle bit for bit under every instruction set.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel_support.h"
#include "tests/support/guard_page.h"
#include "tests/support/random.h"

namespace mote::test {
namespace {

class Quantize : public testing::TestWithParam<std::string> {};

// Separates the outliers of what was quantized.
void expect_same_outliers(const Kernels& kernels, const std::vector<float>& values,
                          std::vector<int8_t> expected_q, std::vector<float> expected_scale,
                          std::vector<float> expected_sum, std::vector<int32_t> sum16) {
  const size_t blocks = values.size() / 32;
  const auto x = Guarded<float>::copy(values);
  auto q = Guarded<int8_t>::copy(expected_q);
  auto scale = Guarded<float>::copy(expected_scale), sum = Guarded<float>::copy(expected_sum);
  Guarded<int32_t> correction(sum16.size());
  for (size_t b = 0; b < blocks; ++b) {
    correction[2 * b] = -128 * (sum16[2 * b] + sum16[2 * b + 1]);
    correction[2 * b + 1] = -128 * sum16[2 * b];
  }
  std::vector<uint32_t> expected_group(blocks);
  std::vector<int8_t> expected_outlier_q(4 * blocks);
  std::vector<float> expected_outlier_scale(blocks);
  const size_t outliers = quant::separate_outliers(
      values.data(), values.size(), expected_q.data(), expected_scale.data(), expected_sum.data(),
      sum16.data(), expected_group.data(), expected_outlier_q.data(),
      expected_outlier_scale.data());
  Guarded<uint32_t> group(blocks + 1);
  Guarded<int8_t> outlier_q(4 * blocks);
  Guarded<float> outlier_scale(blocks);
  Guarded<int32_t> outlier_correction(blocks);
  const OutlierTask task = {x.data(),
                            values.size(),
                            q.data(),
                            scale.data(),
                            sum.data(),
                            correction.data(),
                            group.data(),
                            outlier_q.data(),
                            outlier_scale.data(),
                            outlier_correction.data()};
  kernels.separate_outliers(&task);
  ASSERT_EQ(group[outliers], kNoOutlier);
  for (size_t n = 0; n < outliers; ++n) {
    ASSERT_EQ(group[n], expected_group[n]) << "outlier " << n << " of " << outliers;
    ASSERT_TRUE(same_bits(outlier_scale[n], expected_outlier_scale[n]));
    int32_t levels = 0;
    for (size_t i = 4 * n; i < 4 * n + 4; ++i) {
      ASSERT_EQ(outlier_q[i], expected_outlier_q[i]) << i;
      levels += outlier_q[i];
    }
    ASSERT_EQ(outlier_correction[n], -128 * levels);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(q[i], expected_q[i]) << values[i];
    ASSERT_GE(q[i], -127);
  }
  for (size_t b = 0; b < blocks; ++b) {
    ASSERT_TRUE(same_bits(scale[b], expected_scale[b])) << "block " << b;
    ASSERT_TRUE(same_bits(sum[b], expected_sum[b])) << "block " << b;
    ASSERT_EQ(correction[2 * b], -128 * (sum16[2 * b] + sum16[2 * b + 1])) << "block " << b;
    ASSERT_EQ(correction[2 * b + 1], -128 * sum16[2 * b]) << "block " << b;
  }
}

// All of a row with one scale.
void expect_same_row(const Kernels& kernels, const std::vector<float>& values) {
  const size_t columns = values.size(), blocks = columns / 32;
  std::vector<int8_t> expected_q(columns), expected_outlier_q(4 * blocks);
  std::vector<float> expected_scale(blocks), expected_sum(blocks), expected_outlier_scale(blocks);
  std::vector<int32_t> sum16(2 * blocks);
  std::vector<uint32_t> expected_group(blocks);
  const size_t outliers =
      quant::quantize_row(values.data(), columns, expected_q.data(), expected_scale.data(),
                          expected_sum.data(), sum16.data(), expected_group.data(),
                          expected_outlier_q.data(), expected_outlier_scale.data());
  const auto x = Guarded<float>::copy(values);
  Guarded<int8_t> q(columns), outlier_q(4 * blocks);
  Guarded<float> scale(blocks), scaled_sum(blocks), outlier_scale(blocks);
  Guarded<int32_t> correction(2 * blocks), outlier_correction(blocks), row_correction(1);
  Guarded<uint32_t> group(blocks + 1);
  const OutlierTask task = {x.data(),
                            columns,
                            q.data(),
                            scale.data(),
                            scaled_sum.data(),
                            correction.data(),
                            group.data(),
                            outlier_q.data(),
                            outlier_scale.data(),
                            outlier_correction.data(),
                            row_correction.data()};
  kernels.quantize_row(&task);
  ASSERT_EQ(group[outliers], kNoOutlier);
  for (size_t n = 0; n < outliers; ++n) {
    ASSERT_EQ(group[n], expected_group[n]) << "outlier " << n << " of " << outliers;
    ASSERT_TRUE(same_bits(outlier_scale[n], expected_outlier_scale[n]));
    int32_t levels = 0;
    for (size_t i = 4 * n; i < 4 * n + 4; ++i) {
      ASSERT_EQ(outlier_q[i], expected_outlier_q[i]) << i;
      levels += outlier_q[i];
    }
    ASSERT_EQ(outlier_correction[n], -128 * levels);
  }
  for (size_t i = 0; i < columns; ++i) {
    ASSERT_EQ(q[i], expected_q[i]) << "value " << values[i] << " at " << i << " of " << columns;
    ASSERT_GE(q[i], -127);
  }
  int32_t total = 0;
  for (size_t b = 0; b < blocks; ++b) {
    ASSERT_TRUE(same_bits(scale[b], expected_scale[0])) << "block " << b;
    ASSERT_TRUE(same_bits(scaled_sum[b], expected_sum[b])) << "block " << b;
    ASSERT_EQ(correction[2 * b], -128 * (sum16[2 * b] + sum16[2 * b + 1])) << "block " << b;
    ASSERT_EQ(correction[2 * b + 1], -128 * sum16[2 * b]) << "block " << b;
    total += correction[2 * b];
  }
  ASSERT_EQ(row_correction[0], total);
}

void expect_same_as_oracle(const Kernels& kernels, const std::vector<float>& values) {
  const size_t columns = values.size(), blocks = columns / 32;
  std::vector<int8_t> expected_q(columns);
  std::vector<float> expected_scale(blocks), expected_sum(blocks);
  std::vector<int32_t> sum16(2 * blocks);
  quant::quantize_activations(values.data(), columns, expected_q.data(), expected_scale.data(),
                              expected_sum.data(), sum16.data());
  const auto x = Guarded<float>::copy(values);
  Guarded<int8_t> q(columns);
  Guarded<float> scale(blocks), scaled_sum(blocks);
  Guarded<int32_t> correction(2 * blocks);
  kernels.quantize_activations(x.data(), columns, q.data(), scale.data(), scaled_sum.data(),
                               correction.data());
  for (size_t i = 0; i < columns; ++i) ASSERT_EQ(q[i], expected_q[i]) << "value " << values[i];
  for (size_t b = 0; b < blocks; ++b) {
    ASSERT_TRUE(same_bits(scale[b], expected_scale[b])) << "block " << b;
    ASSERT_TRUE(same_bits(scaled_sum[b], expected_sum[b])) << "block " << b;
    ASSERT_EQ(correction[2 * b], -128 * (sum16[2 * b] + sum16[2 * b + 1])) << "block " << b;
    ASSERT_EQ(correction[2 * b + 1], -128 * sum16[2 * b]) << "block " << b;
  }
  expect_same_outliers(kernels, values, expected_q, expected_scale, expected_sum, sum16);
  expect_same_row(kernels, values);
}

// What a row stands for, with at most four of its values far larger than the others: each is off by
// half a step of the others, or of its own group.
TEST_P(Quantize, RowsLeaveFineSteps) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(10);
  for (const size_t large : {0, 1, 4}) {
    const size_t blocks = 24;
    std::vector<float> x = random.normals(blocks * 32);
    for (size_t n = 0; n < large; ++n) x[32 * (5 * n + 2) + 9 * n] = n % 2 ? 70.0f : -60.0f;
    std::vector<int8_t> q(x.size()), outlier_q(blocks * 4);
    std::vector<float> scale(blocks), scaled_sum(blocks), outlier_scale(blocks);
    std::vector<int32_t> correction(2 * blocks), outlier_correction(blocks);
    std::vector<uint32_t> group(blocks + 1);
    int32_t total = 0;
    const OutlierTask task = {x.data(),
                              x.size(),
                              q.data(),
                              scale.data(),
                              scaled_sum.data(),
                              correction.data(),
                              group.data(),
                              outlier_q.data(),
                              outlier_scale.data(),
                              outlier_correction.data(),
                              &total};
    kernels.quantize_row(&task);
    EXPECT_LT(scale[0], 5.0f / 127);
    std::vector<double> value(x.size());
    for (size_t i = 0; i < x.size(); ++i) value[i] = double{scale[i / 32]} * q[i];
    for (size_t n = 0; group[n] != kNoOutlier; ++n)
      for (size_t i = 0; i < 4; ++i)
        value[4 * group[n] + i] += double{outlier_scale[n]} * outlier_q[4 * n + i];
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(value[i], double{x[i]}, double{scale[0]} * 0.501) << i;
  }
}

// One large value in a block takes nothing from the others' precision, nor from its own.
TEST_P(Quantize, OutliersLeaveFineSteps) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(9);
  std::vector<float> x = random.normals(80 * 32);
  for (size_t b = 0; b < 80; b += 3) x[32 * b + 7 * b % 32] = b % 2 ? 80.0f : -90.0f;
  std::vector<int8_t> q(x.size()), outlier_q(80 * 4);
  std::vector<float> scale(80), scaled_sum(80), outlier_scale(80);
  std::vector<int32_t> correction(160), outlier_correction(80);
  std::vector<uint32_t> group(81);
  kernels.quantize_activations(x.data(), x.size(), q.data(), scale.data(), scaled_sum.data(),
                               correction.data());
  EXPECT_GT(scale[0], 90.0f / 128);
  const OutlierTask task = {x.data(),
                            x.size(),
                            q.data(),
                            scale.data(),
                            scaled_sum.data(),
                            correction.data(),
                            group.data(),
                            outlier_q.data(),
                            outlier_scale.data(),
                            outlier_correction.data()};
  kernels.separate_outliers(&task);
  size_t n = 0;
  for (size_t b = 0; b < 80; ++b) {
    EXPECT_LT(scale[b], 5.0f / 127);
    const bool outlier = b % 3 == 0;
    if (outlier) {
      EXPECT_EQ(group[n], 8 * b + 7 * b % 32 / 4);
    }
    double sum = 0;
    for (size_t i = 32 * b; i < 32 * b + 32; ++i) {
      double value = double{scale[b]} * q[i];
      if (outlier && i / 4 == group[n])
        value += double{outlier_scale[n]} * outlier_q[4 * n + i % 4];
      EXPECT_NEAR(value, double{x[i]}, double{scale[b]} * 0.501) << i;
      sum += value;
    }
    EXPECT_NEAR(scaled_sum[b], sum, 1e-4);
    n += outlier;
  }
  EXPECT_EQ(group[n], kNoOutlier);
}

TEST_P(Quantize, AnyNumberOfBlocks) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(1);
  for (size_t blocks = 0; blocks < 20; ++blocks)
    for (const float deviation : {1e-30f, 1e-3f, 1.0f, 1e6f, 1e37f})
      ASSERT_NO_FATAL_FAILURE(
          expect_same_as_oracle(kernels, random.normals(blocks * 32, deviation)));
}

TEST_P(Quantize, HandComputed) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  std::vector<float> x(5 * 32, 0.0f);
  x[0] = -127.0f, x[1] = 2.5f, x[2] = 3.5f, x[3] = -0.5f, x[16] = 100.4f;
  std::vector<int8_t> q(x.size(), 99);
  std::vector<float> scale(5), scaled_sum(5);
  std::vector<int32_t> correction(10, 99);
  kernels.quantize_activations(x.data(), x.size(), q.data(), scale.data(), scaled_sum.data(),
                               correction.data());
  EXPECT_EQ(scale[0], 1.0f);
  EXPECT_EQ(q[0], -127);
  EXPECT_EQ(q[1], 2) << "ties go to even";
  EXPECT_EQ(q[2], 4);
  EXPECT_EQ(q[3], 0);
  EXPECT_EQ(q[16], 100);
  EXPECT_EQ(scaled_sum[0], -21.0f);
  EXPECT_EQ(correction[0], -128 * -21);
  EXPECT_EQ(correction[1], -128 * -121);
  for (size_t i = 32; i < x.size(); ++i) EXPECT_EQ(q[i], 0);
  for (size_t b = 1; b < 5; ++b) EXPECT_EQ(scale[b], 0.0f);
}

// Zeros, values too small or too large for the factor, infinities and NaN, in every place of four
// blocks.
TEST_P(Quantize, SpecialValues) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  const float special[] = {0.0f,
                           -0.0f,
                           std::numeric_limits<float>::denorm_min(),
                           1e-40f,
                           3.6e-37f,
                           3.8e-37f,
                           std::numeric_limits<float>::min(),
                           std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(),
                           -std::numeric_limits<float>::quiet_NaN()};
  Random random(2);
  for (const float value : special)
    for (const float others : {0.0f, 1e-38f, 1.0f})
      for (size_t at = 0; at < 6 * 32; at += 11) {
        std::vector<float> x = random.normals(6 * 32, others);
        x[at] = value;
        ASSERT_NO_FATAL_FAILURE(expect_same_as_oracle(kernels, x))
            << value << " at " << at << " among " << others;
      }
}

// Halves between two levels, where rounding is decided by the last bit.
TEST_P(Quantize, Ties) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  std::vector<float> x;
  for (int level = -127; level < 127; ++level) {
    if (x.size() % 32 == 0) x.push_back(127.0f);
    x.push_back(static_cast<float>(level) + 0.5f);
    if (x.size() % 32 == 0) continue;
    x.push_back(std::nextafter(static_cast<float>(level) + 0.5f, 1000.0f));
  }
  x.resize(x.size() / 32 * 32);
  expect_same_as_oracle(kernels, x);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Quantize, testing::ValuesIn(isa_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mote::test
