#include <gtest/gtest.h>

#include "tests/kernels/rows_support.h"
#include "tests/support/safetensors.h"

namespace mote::test {
namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_erf(double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }
double relu(double x) { return x < 0 ? 0 : x; }

struct Activation {
  const char* name;
  double (*reference)(double);
  void (*Kernels::*plain)(float*, const float*, size_t);
  void (*Kernels::*gate)(float*, const float*, const float*, size_t);
};
const Activation kActivations[] = {
    {"silu", silu, &Kernels::silu, &Kernels::silu_gate},
    {"gelu_tanh", gelu_tanh, &Kernels::gelu_tanh, &Kernels::gelu_tanh_gate},
    {"gelu_erf", gelu_erf, &Kernels::gelu_erf, &Kernels::gelu_erf_gate},
    {"relu", relu, &Kernels::relu, nullptr},
};

class ActivationTest : public testing::TestWithParam<std::string> {};

TEST_P(ActivationTest, MatchesDoublePrecision) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(1);
  for (const Activation& a : kActivations) {
    SCOPED_TRACE(a.name);
    for_each_row([&](size_t n, size_t slack) {
      const std::vector<float> x = random.normals(n, 4.0f), up = random.normals(n);
      const Guarded<float> in = guarded(x, slack), other = guarded(up, slack);
      Guarded<float> y(n, slack);
      (kernels.*a.plain)(y.data(), in.data(), n);
      for (size_t i = 0; i < n; ++i) expect_close(y[i], a.reference(x[i]), 2e-6, 1e-9, i);
      Guarded<float> same = guarded(x, slack);
      (kernels.*a.plain)(same.data(), same.data(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_TRUE(same_bits(same[i], y[i])) << "in place, " << i;
      if (!a.gate) return;
      Guarded<float> gated(n, slack);
      (kernels.*a.gate)(gated.data(), in.data(), other.data(), n);
      for (size_t i = 0; i < n; ++i)
        ASSERT_TRUE(same_bits(gated[i], y[i] * up[i])) << "gated, " << i;
    });
  }
}

// Element i does not depend on where the row ends.
TEST_P(ActivationTest, TailsGiveTheSameBits) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(2);
  const std::vector<float> x = random.normals(64, 3.0f);
  for (const Activation& a : kActivations) {
    std::vector<float> whole(64), part(64);
    (kernels.*a.plain)(whole.data(), x.data(), 64);
    for (size_t n = 1; n < 64; ++n) {
      (kernels.*a.plain)(part.data(), x.data(), n);
      for (size_t i = 0; i < n; ++i)
        ASSERT_TRUE(same_bits(part[i], whole[i])) << a.name << " " << n;
    }
  }
}

TEST_P(ActivationTest, FineSteps) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  std::vector<float> x, y;
  for (int i = -200000; i <= 200000; ++i) x.push_back(static_cast<float>(i) * 1e-4f);
  y.resize(x.size());
  for (const Activation& a : kActivations) {
    (kernels.*a.plain)(y.data(), x.data(), x.size());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = a.reference(x[i]);
      const double error = std::fabs(y[i] - expected) / std::max(1.0, std::fabs(expected));
      worst = error <= worst ? worst : error;
    }
    EXPECT_LE(worst, 3e-7) << a.name;
  }
}

TEST_P(ActivationTest, SpecialValues) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  const float infinity = INFINITY;
  for (const Activation& a : kActivations) {
    SCOPED_TRACE(a.name);
    const std::vector<float> x = {infinity, NAN,   0.0f,    -0.0f, 1e30f,
                                  -1e30f,   3e38f, -100.0f, 1e-40f};
    std::vector<float> y(x.size());
    (kernels.*a.plain)(y.data(), x.data(), x.size());
    EXPECT_EQ(y[0], infinity);
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], 0.0f);
    EXPECT_EQ(y[4], 1e30f);
    EXPECT_EQ(y[5], 0.0f);
    EXPECT_EQ(y[6], 3e38f);
    EXPECT_NEAR(y[7], 0.0f, 1e-30f);
    EXPECT_LE(std::fabs(y[8]), 1e-40f);
  }
}

TEST_P(ActivationTest, MatchesGoldenPrimitives) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  const SafeTensors golden(MOTE_TEST_DATA "/primitives.safetensors");
  const std::vector<float> x = golden.floats("activation.input");
  for (const Activation& a : kActivations) {
    SCOPED_TRACE(a.name);
    const std::vector<float> expected = golden.floats(std::string("activation.") + a.name);
    std::vector<float> y(x.size());
    (kernels.*a.plain)(y.data(), x.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) expect_close(y[i], expected[i], 1e-6, 1e-6, i);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, ActivationTest, testing::ValuesIn(isa_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mote::test
