#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/rows_support.h"
#include "tests/kernels/simd_probe.h"

namespace mote {

#define ISA(name, supported)               \
  namespace name {                         \
  extern const test::SimdProbe simd_probe; \
  }
#include "kernels/isa.inc"
#undef ISA

namespace test {
namespace {

const SimdProbe& probe_of(const std::string& isa) {
#define ISA(name, supported) \
  if (isa == #name) return name::simd_probe;
#include "kernels/isa.inc"
#undef ISA
  std::abort();
}

// Values that a function meets at its edges, and many others.
std::vector<float> inputs(float low, float high) {
  std::vector<float> x;
  for (int i = 0; i <= 100000; ++i) x.push_back(low + (high - low) * static_cast<float>(i) / 1e5f);
  for (float v : {0.0f, -0.0f, 1.0f, -1.0f, 1e-30f, -1e-30f, 0.5f, 0.625f, -0.625f}) x.push_back(v);
  while (x.size() % 16) x.push_back(low);
  return x;
}

class SimdTest : public testing::TestWithParam<std::string> {
 protected:
  // y = f(x) over all of x.
  static std::vector<float> map(const SimdProbe& probe, void (*f)(float*, const float*),
                                const std::vector<float>& x) {
    std::vector<float> y(x.size());
    for (size_t i = 0; i + probe.lanes <= x.size(); i += probe.lanes) f(&y[i], &x[i]);
    return y;
  }
};

#define MOTE_PROBE_OR_SKIP()        \
  MOTE_KERNELS_OR_SKIP(GetParam()); \
  (void)kernels;                    \
  const SimdProbe& probe = probe_of(GetParam())

TEST_P(SimdTest, ExponentialIsAccurate) {
  MOTE_PROBE_OR_SKIP();
  const std::vector<float> x = inputs(-63.99f, 88.7f), y = map(probe, probe.exp, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = std::fabs(y[i] / std::exp(double(x[i])) - 1);
    worst = error <= worst ? worst : error;
  }
  EXPECT_LE(worst, 2e-7);
  const std::vector<float> below = inputs(-64.0f, 0.0f), z = map(probe, probe.exp_negative, below);
  for (size_t i = 0; i < below.size(); ++i)
    if (below[i] <= 0) expect_close(z[i], std::exp(double(below[i])), 2e-7, 0, i);
}

TEST_P(SimdTest, ExponentialAtItsEdges) {
  MOTE_PROBE_OR_SKIP();
  const float infinity = INFINITY;
  std::vector<float> x = {-64.001f, -87.0f, -104.0f, -1e30f, -infinity, infinity, 89.0f, 1e30f,
                          88.72f,   0.0f,   -0.0f,   NAN,    -NAN,      -64.0f,   1.0f,  88.8f};
  std::vector<float> y = map(probe, probe.exp, x);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(y[i], 0.0f) << x[i];
  for (size_t i : {5, 6, 7, 15}) EXPECT_EQ(y[i], infinity) << x[i];
  expect_close(y[8], std::exp(88.72f), 2e-7, 0, 8);
  EXPECT_EQ(y[9], 1.0f);
  EXPECT_EQ(y[10], 1.0f);
  EXPECT_TRUE(std::isnan(y[11]));
  EXPECT_TRUE(std::isnan(y[12]));
  EXPECT_GT(y[13], 1.6e-28f);
  // NaN of any payload stays NaN.
  const uint32_t bits[] = {0x7f800001, 0x7fc00001, 0xff812345, 0x7fffffff, 0xffffffff, 0x7fabcdef};
  for (size_t i = 0; i < 6; ++i) std::memcpy(&x[i], &bits[i], 4);
  for (auto f : {probe.exp, probe.exp_negative, probe.tanh}) {
    y = map(probe, f, x);
    for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
  }
}

TEST_P(SimdTest, TanhAndErfcAreAccurate) {
  MOTE_PROBE_OR_SKIP();
  std::vector<float> x = inputs(-12.0f, 12.0f);
  std::vector<float> y = map(probe, probe.tanh, x);
  for (size_t i = 0; i < x.size(); ++i) {
    expect_close(y[i], std::tanh(double(x[i])), 3e-7, 0, i);
    if (HasFailure()) break;
  }
  x = inputs(0.0f, 5.0f);
  y = map(probe, probe.erfc_positive, x);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] >= 0) expect_close(y[i], std::erfc(double(x[i])), 1e-6 + 1e-7 * x[i] * x[i], 0, i);
    if (HasFailure()) break;
  }
}

TEST_P(SimdTest, ArithmeticIsExact) {
  MOTE_PROBE_OR_SKIP();
  const bool fused = is_fused(GetParam());
  Random random(1);
  const size_t n = probe.lanes;
  for (int round = 0; round < 300; ++round) {
    const std::vector<float> a = random.normals(n), b = random.normals(n), c = random.normals(n);
    std::vector<float> y(n);
    probe.fma(y.data(), a.data(), b.data(), c.data());
    for (size_t i = 0; i < n; ++i) {
      volatile float product = a[i] * b[i];
      ASSERT_EQ(y[i], fused ? std::fma(a[i], b[i], c[i]) : product + c[i]);
    }
    probe.min(y.data(), a.data(), b.data());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], std::min(a[i], b[i]));
    probe.max(y.data(), a.data(), b.data());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], std::max(a[i], b[i]));
    probe.copy_sign(y.data(), a.data(), b.data());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], std::copysign(a[i], b[i]));
    probe.divide(y.data(), a.data(), b.data());
    for (size_t i = 0; i < n; ++i) {
#if defined(__arm__)  // an approximation of the reciprocal, refined
      if (GetParam() == "neon")
        ASSERT_NEAR(y[i], a[i] / b[i], std::fabs(a[i] / b[i]) * 3e-7);
      else
#endif
        ASSERT_EQ(y[i], a[i] / b[i]);
    }
    probe.select_less(y.data(), a.data(), b.data());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] < b[i] ? a[i] : 2 * b[i]);
    probe.abs(y.data(), a.data());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], std::fabs(a[i]));
    std::vector<float> squares(n);
    for (size_t i = 0; i < n; ++i) squares[i] = std::fabs(a[i]);
    probe.sqrt(y.data(), squares.data());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], std::sqrt(squares[i]));
  }
}

TEST_P(SimdTest, Integers) {
  MOTE_PROBE_OR_SKIP();
  Random random(2);
  const size_t n = probe.lanes;
  std::vector<float> x(n), y(n);
  std::vector<int32_t> k(n), shifted(n);
  for (int round = 0; round < 300; ++round) {
    for (float& v : x) v = round % 2 ? random.uniform(-4e6f, 4e6f) : random.between(-9, 9) / 2.0f;
    probe.round_to_int(k.data(), x.data());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(k[i], static_cast<int32_t>(std::nearbyint(x[i])));
    for (int32_t& v : k) v = static_cast<int32_t>(random.bits());
    probe.to_float(y.data(), k.data());
    probe.shift_left_23(shifted.data(), k.data());
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(y[i], static_cast<float>(k[i]));
      ASSERT_EQ(static_cast<uint32_t>(shifted[i]), static_cast<uint32_t>(k[i]) << 23);
    }
  }
}

TEST_P(SimdTest, OverTheLanes) {
  MOTE_PROBE_OR_SKIP();
  const size_t n = probe.lanes;
  std::vector<float> x(n);
  probe.lane_numbers(x.data());
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(x[i], static_cast<float>(i));
  EXPECT_EQ(probe.sum(x.data()), static_cast<float>(n * (n - 1) / 2));
  for (size_t i = 0; i < n; ++i) {
    std::fill(x.begin(), x.end(), -5.0f);
    x[i] = -2.0f;
    EXPECT_EQ(probe.largest(x.data()), -2.0f) << i;
    EXPECT_EQ(probe.first_lane(x.data()), i ? -5.0f : -2.0f);
  }
}

TEST_P(SimdTest, PartialVectorsTouchNothingElse) {
  MOTE_PROBE_OR_SKIP();
  for (size_t n = 0; n <= probe.lanes; ++n) {
    const std::vector<float> values = Random(n).normals(n);
    const Guarded<float> x = guarded(values, 0);
    Guarded<float> y(n, 0);
    probe.partial(y.data(), x.data(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], values[i]);
    std::vector<float> whole(probe.lanes, 7.0f);
    probe.load_partial(whole.data(), x.data(), n);
    for (size_t i = 0; i < probe.lanes; ++i) ASSERT_EQ(whole[i], i < n ? values[i] : 0.0f);
    Guarded<float> room(probe.lanes, 1);
    std::fill(room.begin(), room.end(), 3.0f);
    probe.partial(room.data(), x.data(), n);
    for (size_t i = 0; i < probe.lanes; ++i) ASSERT_EQ(room[i], i < n ? values[i] : 3.0f);
  }
}

TEST_P(SimdTest, EveryHalf) {
  MOTE_PROBE_OR_SKIP();
  const size_t n = probe.lanes;
  std::vector<uint16_t> x(n), back(n);
  std::vector<float> y(n);
  for (uint32_t first = 0; first < 65536; first += static_cast<uint32_t>(n)) {
    for (size_t i = 0; i < n; ++i) x[i] = static_cast<uint16_t>(first + i);
    probe.load_f16(y.data(), x.data());
    probe.store_f16(back.data(), y.data());
    for (size_t i = 0; i < n; ++i) {
      const float expected = quant::f16_to_f32(x[i]);
      ASSERT_TRUE(same_bits(y[i], expected)) << x[i];
      ASSERT_TRUE(same_bits(probe.f16_to_float(x[i]), expected)) << x[i];
      if (expected == expected) {
        ASSERT_EQ(back[i], x[i]);
        ASSERT_EQ(probe.float_to_f16(expected), x[i]);
      } else {
        ASSERT_TRUE(std::isnan(quant::f16_to_f32(back[i])));
        ASSERT_TRUE(std::isnan(quant::f16_to_f32(probe.float_to_f16(expected))));
      }
    }
    probe.load_bf16(y.data(), x.data());
    for (size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(same_bits(y[i], quant::bf16_to_f32(x[i]))) << x[i];
      ASSERT_TRUE(same_bits(probe.bf16_to_float(x[i]), quant::bf16_to_f32(x[i]))) << x[i];
    }
  }
}

// To nearest, ties to even: each half, the middle to the next one, and the floats on both sides of
// that.
TEST_P(SimdTest, RoundsToHalf) {
  MOTE_PROBE_OR_SKIP();
  const size_t n = probe.lanes;
  std::vector<float> x;
  for (uint32_t half = 0; half < 0x7c00; ++half) {
    const float low = quant::f16_to_f32(static_cast<uint16_t>(half));
    const float high =
        half == 0x7bff ? 65536.0f : quant::f16_to_f32(static_cast<uint16_t>(half + 1));
    const float middle = low + (high - low) / 2;
    for (float v : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      x.push_back(v);
      x.push_back(-v);
    }
  }
  for (float v : {65519.9f, 65520.0f, 1e6f, 3e38f, 1e-9f, 1e-40f, 2.9802322e-8f, 2.98024e-8f})
    x.push_back(v);
  while (x.size() % n) x.push_back(INFINITY);
  std::vector<uint16_t> y(n);
  for (size_t i = 0; i < x.size(); i += n) {
    probe.store_f16(y.data(), &x[i]);
    for (size_t j = 0; j < n; ++j) {
      ASSERT_EQ(y[j], quant::f32_to_f16(x[i + j])) << x[i + j];
      ASSERT_EQ(probe.float_to_f16(x[i + j]), quant::f32_to_f16(x[i + j])) << x[i + j];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, SimdTest, testing::ValuesIn(isa_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace test
}  // namespace mote
