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

// Refines `refined` blocks of what was quantized.
void expect_same_refinement(const Kernels& kernels, const std::vector<float>& values,
                            const std::vector<int8_t>& q, const std::vector<float>& scale,
                            const std::vector<float>& scaled_sum, size_t refined) {
  std::vector<float> expected_sum = scaled_sum, expected_scale(refined);
  std::vector<uint32_t> expected_block(refined);
  std::vector<int8_t> expected_q(refined * 32);
  std::vector<int32_t> sum16(2 * refined);
  quant::refine_activations(values.data(), values.size(), q.data(), scale.data(),
                            expected_sum.data(), refined, expected_block.data(), expected_q.data(),
                            expected_scale.data(), sum16.data());
  const auto x = Guarded<float>::copy(values);
  Guarded<uint32_t> block(refined + 1);
  Guarded<int8_t> refined_q(refined * 32);
  Guarded<float> refined_scale(refined), sum(scaled_sum.size());
  Guarded<int32_t> correction(2 * refined);
  std::copy(scaled_sum.begin(), scaled_sum.end(), sum.data());
  const RefineTask task = {
      x.data(), values.size(), q.data(),         scale.data(),         sum.data(),
      refined,  block.data(),  refined_q.data(), refined_scale.data(), correction.data()};
  kernels.refine_activations(&task);
  ASSERT_EQ(block[refined], kNoBlock);
  for (size_t n = 0; n < refined; ++n) {
    ASSERT_EQ(block[n], expected_block[n]) << "block " << n << " of " << refined;
    ASSERT_TRUE(same_bits(refined_scale[n], expected_scale[n]));
    ASSERT_EQ(correction[2 * n], -128 * (sum16[2 * n] + sum16[2 * n + 1]));
    ASSERT_EQ(correction[2 * n + 1], -128 * sum16[2 * n]);
  }
  for (size_t i = 0; i < refined * 32; ++i) ASSERT_EQ(refined_q[i], expected_q[i]) << i;
  for (size_t b = 0; b < scaled_sum.size(); ++b) ASSERT_TRUE(same_bits(sum[b], expected_sum[b]));
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
  for (const size_t refined : {size_t{0}, (blocks + 5) / 6, blocks / 2, blocks})
    ASSERT_NO_FATAL_FAILURE(
        expect_same_refinement(kernels, values, expected_q, expected_scale, expected_sum, refined));
}

// Two int8 vectors leave a 254th of the error of one.
TEST_P(Quantize, RefinementLeavesLittle) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(9);
  const std::vector<float> x = random.normals(4 * 32);
  std::vector<int8_t> q(x.size()), refined_q(x.size());
  std::vector<float> scale(4), scaled_sum(4), step(4);
  std::vector<int32_t> correction(8), refined_correction(8);
  std::vector<uint32_t> block(5);
  kernels.quantize_activations(x.data(), x.size(), q.data(), scale.data(), scaled_sum.data(),
                               correction.data());
  const RefineTask task = {
      x.data(), x.size(),     q.data(),         scale.data(), scaled_sum.data(),
      4,        block.data(), refined_q.data(), step.data(),  refined_correction.data()};
  kernels.refine_activations(&task);
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = double{scale[i / 32]} * q[i] + double{step[i / 32]} * refined_q[i];
    EXPECT_NEAR(value, double{x[i]}, double{scale[i / 32]} * 0.51 / 254) << i;
  }
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
