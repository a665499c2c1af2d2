#include <gtest/gtest.h>

#include "tests/kernels/rows_support.h"
#include "tests/support/safetensors.h"

namespace mote::test {
namespace {

class NormTest : public testing::TestWithParam<std::string> {};

TEST_P(NormTest, RmsMatchesDoublePrecision) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(1);
  for_each_row([&](size_t n, size_t slack) {
    const std::vector<float> x = random.normals(n, 3.0f), weight = random.normals(n);
    const Guarded<float> in = guarded(x, slack), w = guarded(weight, slack);
    Guarded<float> y(n, slack);
    kernels.rms_norm(y.data(), in.data(), w.data(), n, 1e-5f);
    double squares = 0;
    for (float v : x) squares += double(v) * v;
    const double factor = 1 / std::sqrt(squares / n + 1e-5);
    for (size_t i = 0; i < n; ++i) expect_close(y[i], x[i] * factor * weight[i], 1e-6, 0, i);
    Guarded<float> same = guarded(x, slack);
    kernels.rms_norm(same.data(), same.data(), w.data(), n, 1e-5f);
    for (size_t i = 0; i < n; ++i) ASSERT_TRUE(same_bits(same[i], y[i])) << "in place, " << i;
  });
}

TEST_P(NormTest, LayerMatchesDoublePrecision) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(2);
  for_each_row([&](size_t n, size_t slack) {
    std::vector<float> x = random.normals(n);
    for (float& v : x) v += 50.0f;  // the variance must not come from squares of these
    const std::vector<float> weight = random.normals(n), bias = random.normals(n);
    const Guarded<float> in = guarded(x, slack), w = guarded(weight, slack),
                         b = guarded(bias, slack);
    double mean = 0, variance = 0;
    for (float v : x) mean += v;
    mean /= n;
    for (float v : x) variance += (v - mean) * (v - mean);
    const double factor = 1 / std::sqrt(variance / n + 1e-3);
    for (const float* with : {b.data(), static_cast<const float*>(nullptr)}) {
      Guarded<float> y(n, slack);
      kernels.layer_norm(y.data(), in.data(), w.data(), with, n, 1e-3f);
      for (size_t i = 0; i < n; ++i)
        expect_close(y[i], (x[i] - mean) * factor * weight[i] + (with ? bias[i] : 0), 1e-6,
                     1e-7 + 50 * 1e-7 * factor * std::fabs(weight[i]), i);
      Guarded<float> same = guarded(x, slack);
      kernels.layer_norm(same.data(), same.data(), w.data(), with, n, 1e-3f);
      for (size_t i = 0; i < n; ++i) ASSERT_TRUE(same_bits(same[i], y[i])) << "in place, " << i;
    }
  });
}

TEST_P(NormTest, SpecialValues) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  for (size_t n : {3, 40}) {
    std::vector<float> x(n, 0.0f), weight(n, 2.0f), y(n);
    kernels.rms_norm(y.data(), x.data(), weight.data(), n, 1e-5f);
    for (float v : y) EXPECT_EQ(v, 0.0f);
    std::fill(x.begin(), x.end(), 7.0f);
    kernels.layer_norm(y.data(), x.data(), weight.data(), nullptr, n, 1e-12f);
    for (float v : y) EXPECT_EQ(v, 0.0f);
    x[n - 1] = NAN;
    kernels.rms_norm(y.data(), x.data(), weight.data(), n, 1e-5f);
    for (float v : y) EXPECT_TRUE(std::isnan(v));
    kernels.layer_norm(y.data(), x.data(), weight.data(), nullptr, n, 1e-5f);
    for (float v : y) EXPECT_TRUE(std::isnan(v));
  }
}

TEST_P(NormTest, MatchesGoldenPrimitives) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  const SafeTensors golden(MOTE_TEST_DATA "/primitives.safetensors");
  const std::vector<float> x = golden.floats("norm.input"), weight = golden.floats("norm.weight"),
                           bias = golden.floats("norm.bias");
  const size_t n = weight.size();
  struct Case {
    const char* name;
    bool layer;
    float eps;
  };
  for (const Case& c :
       {Case{"rms_norm.eps_1e-6", false, 1e-6f}, Case{"rms_norm.eps_1e-5", false, 1e-5f},
        Case{"layer_norm.eps_1e-5", true, 1e-5f}, Case{"layer_norm.eps_1e-12", true, 1e-12f}}) {
    SCOPED_TRACE(c.name);
    const std::vector<float> expected = golden.floats(c.name);
    std::vector<float> y(n);
    ASSERT_EQ(expected.size(), x.size());
    for (size_t row = 0; row < x.size() / n; ++row) {
      if (c.layer)
        kernels.layer_norm(y.data(), &x[row * n], weight.data(), bias.data(), n, c.eps);
      else
        kernels.rms_norm(y.data(), &x[row * n], weight.data(), n, c.eps);
      for (size_t i = 0; i < n; ++i) expect_close(y[i], expected[row * n + i], 2e-6, 2e-6, i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, NormTest, testing::ValuesIn(isa_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mote::test
