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

// What kernels write of a row, each array up against a guard page.
struct Written {
  Guarded<float> x;
  Guarded<int8_t> q, outlier_q;
  Guarded<float> scale, scaled_sum, outlier_scale;
  Guarded<int32_t> correction, outlier_correction, row_correction;
  Guarded<uint32_t> group;
  OutlierTask task;

  explicit Written(const std::vector<float>& values)
      : x(Guarded<float>::copy(values)),
        q(values.size()),
        outlier_q(values.size() / 8),
        scale(values.size() / 32),
        scaled_sum(values.size() / 32),
        outlier_scale(values.size() / 32),
        correction(values.size() / 16),
        outlier_correction(values.size() / 32),
        row_correction(1),
        group(values.size() / 32 + 1),
        task{x.data(),
             values.size(),
             q.data(),
             scale.data(),
             scaled_sum.data(),
             correction.data(),
             group.data(),
             outlier_q.data(),
             outlier_scale.data(),
             outlier_correction.data(),
             row_correction.data()} {}
};

// The same from the oracle.
struct Expected {
  size_t columns, outliers = 0;
  std::vector<int8_t> q, outlier_q;
  std::vector<float> scale, scaled_sum, outlier_scale;
  std::vector<int32_t> sum16;
  std::vector<uint32_t> group;

  explicit Expected(size_t count)
      : columns(count),
        q(count),
        outlier_q(count / 8),
        scale(count / 32),
        scaled_sum(count / 32),
        outlier_scale(count / 32),
        sum16(count / 16),
        group(count / 32) {}
};

void expect_same_blocks(const Written& written, const Expected& expected) {
  for (size_t i = 0; i < expected.columns; ++i) {
    ASSERT_EQ(written.q[i], expected.q[i]) << written.x[i] << " at " << i;
    ASSERT_GE(written.q[i], -127);
  }
  for (size_t b = 0; b < expected.columns / 32; ++b) {
    const int32_t first = expected.sum16[2 * b], second = expected.sum16[2 * b + 1];
    ASSERT_TRUE(same_bits(written.scale[b], expected.scale[b])) << "block " << b;
    ASSERT_TRUE(same_bits(written.scaled_sum[b], expected.scaled_sum[b])) << "block " << b;
    ASSERT_EQ(written.correction[2 * b], -128 * (first + second)) << "block " << b;
    ASSERT_EQ(written.correction[2 * b + 1], -128 * first) << "block " << b;
  }
}

void expect_same_outliers(const Written& written, const Expected& expected) {
  ASSERT_EQ(written.group[expected.outliers], kNoOutlier);
  for (size_t n = 0; n < expected.outliers; ++n) {
    ASSERT_EQ(written.group[n], expected.group[n]) << n << " of " << expected.outliers;
    ASSERT_TRUE(same_bits(written.outlier_scale[n], expected.outlier_scale[n]));
    int32_t levels = 0;
    for (size_t i = 4 * n; i < 4 * n + 4; ++i) {
      ASSERT_EQ(written.outlier_q[i], expected.outlier_q[i]) << i;
      levels += written.outlier_q[i];
    }
    ASSERT_EQ(written.outlier_correction[n], -128 * levels);
  }
}

// All of a row with one scale.
void expect_same_row(const Kernels& kernels, const std::vector<float>& values) {
  Expected expected(values.size());
  expected.outliers =
      quant::quantize_row(values.data(), values.size(), expected.q.data(), expected.scale.data(),
                          expected.scaled_sum.data(), expected.sum16.data(), expected.group.data(),
                          expected.outlier_q.data(), expected.outlier_scale.data());
  const Written written(values);
  kernels.quantize_row(&written.task);
  expect_same_outliers(written, expected);
  expect_same_blocks(written, expected);
  int32_t total = 0;
  for (size_t b = 0; b < values.size() / 32; ++b) {
    ASSERT_TRUE(same_bits(written.scale[b], expected.scale[0])) << "block " << b;
    total += written.correction[2 * b];
  }
  ASSERT_EQ(written.row_correction[0], total);
}

// Blocks, then their outliers, then the whole row.
void expect_same_as_oracle(const Kernels& kernels, const std::vector<float>& values) {
  const size_t columns = values.size();
  Expected expected(columns);
  quant::quantize_activations(values.data(), columns, expected.q.data(), expected.scale.data(),
                              expected.scaled_sum.data(), expected.sum16.data());
  const Written written(values);
  const OutlierTask& task = written.task;
  kernels.quantize_activations(task.x, columns, task.q, task.scale, task.scaled_sum,
                               task.correction);
  ASSERT_NO_FATAL_FAILURE(expect_same_blocks(written, expected));
  expected.outliers = quant::separate_outliers(
      values.data(), columns, expected.q.data(), expected.scale.data(), expected.scaled_sum.data(),
      expected.sum16.data(), expected.group.data(), expected.outlier_q.data(),
      expected.outlier_scale.data());
  kernels.separate_outliers(&task);
  ASSERT_NO_FATAL_FAILURE(expect_same_outliers(written, expected));
  ASSERT_NO_FATAL_FAILURE(expect_same_blocks(written, expected));
  expect_same_row(kernels, values);
}

// What a row stands for, with at most four of its values far larger than the others: each is off by
// half a step of the others, or of its own group.
TEST_P(Quantize, RowsLeaveFineSteps) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(10);
  for (const size_t large : {0, 1, 4}) {
    std::vector<float> x = random.normals(24 * 32);
    for (size_t n = 0; n < large; ++n) x[32 * (5 * n + 2) + 9 * n] = n % 2 ? 70.0f : -60.0f;
    const Written row(x);
    kernels.quantize_row(&row.task);
    EXPECT_LT(row.scale[0], 5.0f / 127);
    std::vector<double> value(x.size());
    for (size_t i = 0; i < x.size(); ++i) value[i] = double{row.scale[i / 32]} * row.q[i];
    for (size_t n = 0; row.group[n] != kNoOutlier; ++n)
      for (size_t i = 0; i < 4; ++i)
        value[4 * row.group[n] + i] += double{row.outlier_scale[n]} * row.outlier_q[4 * n + i];
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(value[i], double{x[i]}, double{row.scale[0]} * 0.501) << i;
  }
}

// One large value in a block takes nothing from the others' precision, nor from its own.
TEST_P(Quantize, OutliersLeaveFineSteps) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(9);
  std::vector<float> x = random.normals(80 * 32);
  for (size_t b = 0; b < 80; b += 3) x[32 * b + 7 * b % 32] = b % 2 ? 80.0f : -90.0f;
  const Written row(x);
  kernels.quantize_activations(row.task.x, x.size(), row.task.q, row.task.scale,
                               row.task.scaled_sum, row.task.correction);
  EXPECT_GT(row.scale[0], 90.0f / 128);
  kernels.separate_outliers(&row.task);
  size_t n = 0;
  for (size_t b = 0; b < 80; ++b) {
    EXPECT_LT(row.scale[b], 5.0f / 127);
    const bool outlier = b % 3 == 0;
    if (outlier) {
      EXPECT_EQ(row.group[n], 8 * b + 7 * b % 32 / 4);
    }
    double sum = 0;
    for (size_t i = 32 * b; i < 32 * b + 32; ++i) {
      double value = double{row.scale[b]} * row.q[i];
      if (outlier && i / 4 == row.group[n])
        value += double{row.outlier_scale[n]} * row.outlier_q[4 * n + i % 4];
      EXPECT_NEAR(value, double{x[i]}, double{row.scale[b]} * 0.501) << i;
      sum += value;
    }
    EXPECT_NEAR(row.scaled_sum[b], sum, 1e-4);
    n += outlier;
  }
  EXPECT_EQ(row.group[n], kNoOutlier);
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
