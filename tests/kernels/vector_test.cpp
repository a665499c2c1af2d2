#include <gtest/gtest.h>

#include "tests/kernels/rows_support.h"
#include "tests/support/safetensors.h"

namespace mote::test {
namespace {

constexpr float kInfinity = INFINITY;

class VectorTest : public testing::TestWithParam<std::string> {};

TEST_P(VectorTest, AddAndScaleAreExact) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(1);
  for_each_row([&](size_t n, size_t slack) {
    const std::vector<float> x = random.normals(n), y = random.normals(n);
    const Guarded<float> in = guarded(x, slack);
    Guarded<float> out = guarded(y, slack);
    kernels.add(out.data(), in.data(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], y[i] + x[i]) << i;
    Guarded<float> scaled = guarded(y, slack);
    kernels.scale(scaled.data(), 1.7f, n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(scaled[i], y[i] * 1.7f) << i;
  });
}

TEST_P(VectorTest, SoftcapMatchesDoublePrecision) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(2);
  for_each_row([&](size_t n, size_t slack) {
    for (float deviation : {0.1f, 20.0f, 200.0f}) {
      const std::vector<float> x = random.normals(n, deviation);
      Guarded<float> y = guarded(x, slack);
      kernels.softcap(y.data(), 30.0f, n);
      for (size_t i = 0; i < n; ++i) expect_close(y[i], 30 * std::tanh(x[i] / 30.0), 6e-7, 0, i);
    }
  });
  std::vector<float> y = {kInfinity, -kInfinity, NAN, 0.0f, 1e30f};
  kernels.softcap(y.data(), 30.0f, y.size());
  EXPECT_EQ(y[0], 30.0f);
  EXPECT_EQ(y[1], -30.0f);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 0.0f);
  EXPECT_EQ(y[4], 30.0f);
}

TEST_P(VectorTest, SoftmaxMatchesDoublePrecision) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(3);
  for_each_row([&](size_t n, size_t slack) {
    std::vector<float> x = random.normals(n, 5.0f);
    for (float& v : x) v += 700.0f;
    const Guarded<float> in = guarded(x, slack);
    Guarded<float> y(n, slack);
    kernels.softmax(y.data(), in.data(), n);
    const double top = *std::max_element(x.begin(), x.end());
    double total = 0;
    for (float v : x) total += std::exp(v - top);
    for (size_t i = 0; i < n; ++i) expect_close(y[i], std::exp(x[i] - top) / total, 1e-6, 1e-27, i);
    Guarded<float> same = guarded(x, slack);
    kernels.softmax(same.data(), same.data(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_TRUE(same_bits(same[i], y[i])) << "in place, " << i;
  });
}

TEST_P(VectorTest, SoftmaxOfSpecialValues) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  for (size_t n : {1, 5, 40}) {
    std::vector<float> x(n, -kInfinity), y(n, 9.0f);
    kernels.softmax(y.data(), x.data(), n);
    for (float v : y) EXPECT_EQ(v, 0.0f) << n;
    x[n / 2] = -1e30f;
    kernels.softmax(y.data(), x.data(), n);
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], i == n / 2 ? 1.0f : 0.0f) << n;
    x[n - 1] = NAN;
    kernels.softmax(y.data(), x.data(), n);
    EXPECT_TRUE(std::isnan(y[n - 1]));
  }
}

TEST_P(VectorTest, SoftmaxMatchesGoldenPrimitives) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  const SafeTensors golden(MOTE_TEST_DATA "/primitives.safetensors");
  const std::vector<float> x = golden.floats("softmax.input"), p = golden.floats("softmax.output"),
                           log_p = golden.floats("log_softmax.output");
  for (size_t row = 0; row < x.size(); row += 4) {
    float y[4];
    kernels.softmax(y, &x[row], 4);
    const float total = kernels.log_sum_exp(&x[row], 4);
    for (size_t i = 0; i < 4; ++i) {
      expect_close(y[i], p[row + i], 1e-6, 1e-9, row + i);
      expect_close(x[row + i] - total, log_p[row + i], 1e-6, 1e-6 + 1e-7 * std::fabs(total),
                   row + i);
    }
  }
}

TEST_P(VectorTest, LogSumExpMatchesDoublePrecision) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(4);
  for_each_row([&](size_t n, size_t slack) {
    const std::vector<float> x = random.normals(n, 5.0f);
    const Guarded<float> in = guarded(x, slack);
    double total = 0;
    for (float v : x) total += std::exp(double(v));
    expect_close(kernels.log_sum_exp(in.data(), n), std::log(total), 2e-7, 2e-7, n);
  });
  const std::vector<float> flat(200000, 1.0f);
  expect_close(kernels.log_sum_exp(flat.data(), flat.size()), 1 + std::log(200000.0), 1e-7, 0, 0);
  const float infinite[] = {1.0f, kInfinity, 2.0f};
  EXPECT_EQ(kernels.log_sum_exp(infinite, 3), kInfinity);
  const float nothing[] = {-kInfinity, -kInfinity};
  EXPECT_EQ(kernels.log_sum_exp(nothing, 2), -kInfinity);
  const float nan[] = {1.0f, NAN, 2.0f, 3.0f, 4.0f};
  EXPECT_TRUE(std::isnan(kernels.log_sum_exp(nan, 5)));
}

TEST_P(VectorTest, ArgmaxFindsTheFirst) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(5);
  for_each_row([&](size_t n, size_t slack) {
    std::vector<float> x(n);
    for (float& v : x) v = static_cast<float>(random.below(8)) - 20.0f;  // many ties
    const Guarded<float> in = guarded(x, slack);
    const size_t expected = std::max_element(x.begin(), x.end()) - x.begin();
    ASSERT_EQ(kernels.argmax(in.data(), n), expected);
    x[expected] = NAN;
    std::vector<float> clean = x;
    clean[expected] = -kInfinity;
    const Guarded<float> with_nan = guarded(x, slack);
    ASSERT_EQ(kernels.argmax(with_nan.data(), n),
              n == 1 ? 1 : size_t(std::max_element(clean.begin(), clean.end()) - clean.begin()));
  });
  EXPECT_EQ(kernels.argmax(nullptr, 0), 0u);
  for (size_t n : {1, 4, 37, 3000}) {
    EXPECT_EQ(kernels.argmax(std::vector<float>(n, -kInfinity).data(), n), n);
    EXPECT_EQ(kernels.argmax(std::vector<float>(n, NAN).data(), n), n);
    for (size_t at : {size_t(0), n / 2, n - 1}) {
      std::vector<float> x(n, NAN);
      x[at] = -3.0f;
      EXPECT_EQ(kernels.argmax(x.data(), n), at);
      x[at] = kInfinity;
      EXPECT_EQ(kernels.argmax(x.data(), n), at);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, VectorTest, testing::ValuesIn(isa_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mote::test
