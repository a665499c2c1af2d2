// Attention over rows of keys and values as they lie, without a cache, and with a bias by distance.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/attention_support.h"
#include "tests/kernels/kernel_support.h"
#include "tests/support/random.h"

namespace mote::test {
namespace {

struct Shape {
  size_t head_dim, group, tokens, window = 0;
};
constexpr Shape kShapes[] = {{32, 1, 1},     {32, 1, 8},       {64, 3, 20},  {32, 1, 64},
                             {16, 2, 65},    {24, 1, 130},     {5, 2, 70},   {64, 1, 300},
                             {32, 1, 40, 9}, {48, 2, 270, 65}, {8, 1, 33, 1}};

// Queries, keys and values of one key/value head in rows that hold more, the last at a guard page.
class RowsProblem {
 public:
  RowsProblem(const Kernels& kernels, const Shape& shape)
      : kernels(kernels),
        shape(shape),
        stride((shape.group + 2) * shape.head_dim + 3),
        rows(shape.tokens * stride - 3) {
    Random random(11);
    const std::vector<float> values = random.normals(rows.size(), 1.2f);
    std::copy(values.begin(), values.end(), rows.data());
  }
  const float* keys() const { return rows.data() + shape.group * shape.head_dim; }
  const float* values() const { return keys() + shape.head_dim; }

  AttentionTask task() const {
    AttentionTask t = {};
    t.q = rows.data();
    t.q_stride = t.rows_stride = stride;
    t.tokens = t.last_key = shape.tokens;
    t.group = shape.group;
    t.head_dim = t.out_head_stride = shape.head_dim;
    t.out_stride = shape.group * shape.head_dim;
    t.key_rows = keys();
    t.value_rows = values();
    t.window = shape.window;
    t.scale = 1 / std::sqrt(float(shape.head_dim));
    return t;
  }
  std::vector<float> run(AttentionTask t) const {
    GuardedBytes scratch((attention_scratch_bytes(shape.head_dim) + 63) / 64 * 64);
    std::memset(scratch.data(), 0xff, scratch.size());
    Guarded<float> out(t.tokens * t.out_stride);
    t.scratch = scratch.data();
    t.out = out.data();
    kernels.attention(&t);
    return {out.begin(), out.end()};
  }

  const Kernels& kernels;
  Shape shape;
  size_t stride;
  Guarded<float> rows;
};

class AttentionRowsTest : public testing::TestWithParam<std::string> {};

TEST_P(AttentionRowsTest, SameBitsAsFromACache) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.tokens);
    const RowsProblem problem(kernels, shape);
    AttentionTask t = problem.task();
    const std::vector<float> out = problem.run(t);
    const size_t blocks = (shape.tokens + kKeyBlock - 1) / kKeyBlock;
    HeadCache cache(kernels, KvType::f32, shape.head_dim, blocks);
    cache.store(0, shape.tokens, problem.keys(), problem.values(), problem.stride);
    t.key_rows = t.value_rows = nullptr;
    t.keys = cache.keys();
    t.values = cache.values();
    t.blocks = blocks;
    t.type = KvType::f32;
    EXPECT_TRUE(problem.run(t) == out);
  }
}

TEST_P(AttentionRowsTest, BiasMatchesDoublePrecision) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.tokens);
    const RowsProblem problem(kernels, shape);
    // Distances that are seen, and the slack around them, between guard pages.
    const size_t reach = shape.tokens - 1 + kBiasSlack;
    Guarded<float> bias(shape.group * (2 * reach + 1));
    Random random(5);
    const std::vector<float> values = random.normals(bias.size(), 2.0f);
    std::copy(values.begin(), values.end(), bias.data());
    AttentionTask t = problem.task();
    t.bias = bias.data() + reach;
    t.bias_stride = 2 * reach + 1;
    const std::vector<float> out = problem.run(t);
    std::vector<float> k, v;
    for (size_t j = 0; j < shape.tokens; ++j) {
      k.insert(k.end(), problem.keys() + j * problem.stride,
               problem.keys() + j * problem.stride + shape.head_dim);
      v.insert(v.end(), problem.values() + j * problem.stride,
               problem.values() + j * problem.stride + shape.head_dim);
    }
    double worst = 0;
    for (size_t row = 0; row < shape.tokens * shape.group; ++row) {
      const size_t p = row / shape.group, g = row % shape.group;
      const float* own = t.bias + g * t.bias_stride - p;
      const auto expected =
          plain_attention(t.q + p * t.q_stride + g * shape.head_dim, k.data(), v.data(),
                          shape.head_dim, shape.tokens, p, false, shape.window, t.scale, 0, own);
      for (size_t i = 0; i < shape.head_dim; ++i) {
        const double error = std::fabs(out[row * shape.head_dim + i] - expected[i]);
        worst = error <= worst ? worst : error;
      }
    }
    EXPECT_LE(worst, 4e-6);
  }
}

// A part of the queries gives the bits that all together give.
TEST_P(AttentionRowsTest, PartsGiveTheSameBits) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.tokens);
    const RowsProblem problem(kernels, shape);
    const AttentionTask all = problem.task();
    const std::vector<float> out = problem.run(all);
    for (size_t first = 0, step = 1; first < shape.tokens; first += step, step = step % 13 + 3) {
      AttentionTask part = all;
      part.position = first;
      part.tokens = std::min(step, shape.tokens - first);
      part.q += first * part.q_stride;
      const std::vector<float> got = problem.run(part);
      EXPECT_EQ(
          std::memcmp(got.data(), out.data() + first * all.out_stride, got.size() * sizeof(float)),
          0)
          << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, AttentionRowsTest, testing::ValuesIn(isa_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mote::test
