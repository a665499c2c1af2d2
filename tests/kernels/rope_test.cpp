#include <gtest/gtest.h>

#include "tests/kernels/rows_support.h"
#include "tests/support/safetensors.h"

namespace mote::test {
namespace {

class RopeTest : public testing::TestWithParam<std::string> {};

TEST_P(RopeTest, MatchesDoublePrecision) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(1);
  for (bool interleaved : {false, true})
    for (size_t pairs = 1; pairs <= 40; ++pairs)
      for (size_t rest : {0, 3}) {  // elements of a head that do not turn
        const size_t heads = 3, stride = 2 * pairs + rest;
        const std::vector<float> x = random.normals(heads * stride);
        std::vector<float> cosine(pairs), sine(pairs);
        for (size_t i = 0; i < pairs; ++i) {
          const double angle = random.uniform(-7.0f, 7.0f);
          cosine[i] = static_cast<float>(std::cos(angle));
          sine[i] = static_cast<float>(std::sin(angle));
        }
        Guarded<float> y = guarded(x, 0);
        const Guarded<float> c = guarded(cosine, 0), s = guarded(sine, 0);
        kernels.rope(y.data(), heads, stride, c.data(), s.data(), pairs, interleaved);
        std::vector<double> expected(x.begin(), x.end());
        for (size_t h = 0; h < heads; ++h)
          for (size_t i = 0; i < pairs; ++i) {
            const size_t a = h * stride + (interleaved ? 2 * i : i),
                         b = h * stride + (interleaved ? 2 * i + 1 : i + pairs);
            expected[a] = double(x[a]) * cosine[i] - double(x[b]) * sine[i];
            expected[b] = double(x[b]) * cosine[i] + double(x[a]) * sine[i];
          }
        for (size_t i = 0; i < x.size(); ++i) expect_close(y[i], expected[i], 1e-7, 6e-7, i);
        if (HasFailure()) FAIL() << "pairs " << pairs << " interleaved " << interleaved;
      }
}

TEST_P(RopeTest, MatchesGoldenPrimitives) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  const SafeTensors golden(MOTE_TEST_DATA "/primitives.safetensors");
  const std::vector<float> input = golden.floats("rope.input");
  const size_t dim = input.size(), pairs = dim / 2;
  for (std::string layout : {"half", "interleaved"})
    for (std::string base : {"1e4", "1e6"}) {
      const std::string name = "rope." + layout + ".base_" + base;
      const std::vector<float> cosine = golden.floats(name + ".cos"),
                               sine = golden.floats(name + ".sin");
      const std::vector<double> expected = golden[name + ".output"].doubles();
      for (size_t p = 0; p < expected.size() / dim; ++p) {
        std::vector<float> c(pairs), s(pairs), x = input;
        for (size_t i = 0; i < pairs; ++i) {
          const size_t at = p * dim + (layout == "half" ? i : 2 * i);
          c[i] = cosine[at];
          s[i] = sine[at];
        }
        kernels.rope(x.data(), 1, dim, c.data(), s.data(), pairs, layout == "interleaved");
        for (size_t i = 0; i < dim; ++i) expect_close(x[i], expected[p * dim + i], 1e-6, 1e-6, i);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Isa, RopeTest, testing::ValuesIn(isa_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mote::test
