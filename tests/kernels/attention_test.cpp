#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "tests/kernels/attention_support.h"
#include "tests/kernels/kernel_support.h"
#include "tests/support/random.h"
#include "tests/support/safetensors.h"

namespace mote::test {
namespace {

struct Shape {
  size_t head_dim, group, tokens, position;
  size_t window = 0;
  bool causal = true;
  float cap = 0;
};
std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "head_dim " << s.head_dim << " group " << s.group << " tokens " << s.tokens
             << " at " << s.position << " window " << s.window
             << (s.causal ? " causal" : " both ways") << " cap " << s.cap;
}

// Random queries, keys and values of one head, and what the kernel makes of them.
class Problem {
 public:
  Problem(const Kernels& kernels, const Shape& shape, KvType type, size_t blocks, uint64_t seed = 7)
      : kernels(kernels),
        shape(shape),
        type(type),
        last(shape.position + shape.tokens),
        scale(1 / std::sqrt(float(shape.head_dim))),
        cache(kernels, type, shape.head_dim, blocks ? blocks : (last + kKeyBlock - 1) / kKeyBlock) {
    Random random(seed);
    q = random.normals(shape.tokens * shape.group * shape.head_dim, 1.5f);
    k = random.normals(last * shape.head_dim);
    v = random.normals(last * shape.head_dim);
    cache.store(0, last, k.data(), v.data(), shape.head_dim);
  }
  AttentionTask task() const {
    AttentionTask t = cache.task(scale);
    t.q = q.data();
    t.q_stride = t.out_stride = shape.group * shape.head_dim;
    t.out_head_stride = shape.head_dim;
    t.tokens = shape.tokens;
    t.group = shape.group;
    t.position = shape.position;
    t.last_key = last;
    t.causal = shape.causal;
    t.window = shape.window;
    t.cap = shape.cap;
    return t;
  }
  // Runs a task with scratch and results that end at guard pages; results of the last query first.
  void run(AttentionTask t, float* out) const {
    GuardedBytes scratch((attention_scratch_bytes(shape.head_dim) + 63) / 64 * 64);
    std::memset(scratch.data(), 0xff, scratch.size());
    t.scratch = scratch.data();
    t.out = out;
    kernels.attention(&t);
  }
  std::vector<float> run_all() const {
    Guarded<float> out(q.size());
    run(task(), out.data());
    return {out.begin(), out.end()};
  }
  void expect_right(const std::vector<float>& out) const {
    double worst = 0;
    const std::vector<float> keys = as_stored(k, shape.head_dim, type),
                             values = as_stored(v, shape.head_dim, type);
    for (size_t row = 0; row < shape.tokens * shape.group; ++row) {
      const size_t p = shape.position + row / shape.group;
      const auto expected =
          plain_attention(&q[row * shape.head_dim], keys.data(), values.data(), shape.head_dim,
                          last, p, shape.causal, shape.window, scale, shape.cap);
      for (size_t i = 0; i < shape.head_dim; ++i) {
        const double error = std::fabs(out[row * shape.head_dim + i] - expected[i]);
        worst = error <= worst ? worst : error;
      }
    }
    EXPECT_LE(worst, 4e-6);
  }

  const Kernels& kernels;
  Shape shape;
  KvType type;
  size_t last;
  float scale;
  std::vector<float> q, k, v;
  HeadCache cache;
};

const Shape kShapes[] = {
    {64, 3, 1, 0},
    {64, 3, 1, 63},
    {64, 3, 1, 64},
    {64, 3, 1, 300},
    {64, 3, 70, 0},
    {64, 3, 33, 250},
    {64, 1, 19, 5},
    {8, 2, 40, 0},
    {16, 5, 9, 120},
    {24, 2, 21, 60},
    {32, 1, 130, 0, 0, false},
    {32, 1, 7, 0, 0, false},
    {48, 7, 3, 511},
    {80, 1, 13, 66},
    {96, 4, 5, 90},
    {128, 8, 17, 256},
    {256, 4, 3, 600},
    {20, 3, 11, 77},
    {4, 1, 3, 64},
    {5, 2, 9, 61},
    {64, 71, 2, 100},
    {32, 150, 1, 40},
    {64, 3, 40, 200, 16},
    {64, 2, 9, 700, 512},
    {32, 2, 70, 100, 1},
    {64, 4, 90, 10, 64},
    {32, 2, 150, 0, 9, false},
    {64, 2, 80, 130, 0, true, 5.0f},
    {16, 2, 5, 300, 100, true, 30.0f},
};

constexpr KvType kTypes[] = {KvType::f16, KvType::q8_0, KvType::f32};

class AttentionTest : public testing::TestWithParam<std::string> {};

TEST_P(AttentionTest, MatchesDoublePrecision) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  for (KvType type : kTypes)
    for (const Shape& shape : kShapes) {
      if (!shape.causal && shape.position) continue;
      std::ostringstream name;
      name << shape << " " << name_of(type);
      SCOPED_TRACE(name.str());
      Problem problem(kernels, shape, type, 0);
      problem.expect_right(problem.run_all());
    }
}

// One by one, in chunks, head by head, segment by segment: the same bits.
TEST_P(AttentionTest, SplitsGiveTheSameBits) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  for (KvType type : kTypes)
    for (const Shape& shape : kShapes) {
      std::ostringstream name;
      name << shape << " " << name_of(type);
      SCOPED_TRACE(name.str());
      Problem problem(kernels, shape, type, 0);
      const std::vector<float> whole = problem.run_all();
      const size_t width = shape.group * shape.head_dim;
      for (size_t chunk : {1, 3, 7}) {
        std::vector<float> out(whole.size());
        for (size_t t = 0; t < shape.tokens; t += chunk) {
          AttentionTask task = problem.task();
          task.q += t * width;
          task.position += t;
          task.tokens = std::min(chunk, shape.tokens - t);
          if (shape.causal) task.last_key = task.position + task.tokens;
          problem.run(task, out.data() + t * width);
        }
        ASSERT_TRUE(out == whole) << "chunk " << chunk;
      }
      {
        std::vector<float> out(whole.size());
        for (size_t g = 0; g < shape.group; ++g) {
          AttentionTask task = problem.task();
          task.q += g * shape.head_dim;
          task.group = 1;
          problem.run(task, out.data() + g * shape.head_dim);
        }
        ASSERT_TRUE(out == whole) << "head by head";
      }
      const size_t segments = (problem.last + kKeySegment - 1) / kKeySegment;
      const size_t record = shape.head_dim + 2, rows = shape.tokens * shape.group;
      Guarded<float> parts(rows * segments * record), out(whole.size());
      for (size_t s = 0; s < segments; ++s) {
        AttentionTask task = problem.task();
        task.first_key = s * kKeySegment;
        task.last_key = std::min(problem.last, task.first_key + kKeySegment);
        task.partial = true;
        task.out_head_stride = segments * record;
        task.out_stride = shape.group * segments * record;
        problem.run(task, parts.data() + s * record);
      }
      for (size_t row = 0; row < rows; ++row) {
        const AttentionMerge merge{parts.data() + row * segments * record, record, segments,
                                   shape.head_dim, out.data() + row * shape.head_dim};
        kernels.attention_merge(&merge);
      }
      ASSERT_EQ(std::vector<float>(out.begin(), out.end()), whole) << "by segments";
    }
}

// A ring of exactly window + chunk - 1 positions, rounded up to blocks, gives what a full cache
// gives.
TEST_P(AttentionTest, RingEqualsFullCache) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  const size_t head_dim = 16, window = 70, total = 500;
  Random random(3);
  const std::vector<float> q = random.normals(total * head_dim),
                           k = random.normals(total * head_dim),
                           v = random.normals(total * head_dim);
  for (size_t chunk : {size_t(1), size_t(8), size_t(59), size_t(64), size_t(63)}) {
    const KvType type = chunk % 2 ? KvType::q8_0 : KvType::f16;
    const size_t blocks = (window + chunk - 1 + kKeyBlock - 1) / kKeyBlock;
    HeadCache ring(kernels, type, head_dim, blocks);
    HeadCache full(kernels, type, head_dim, (total + kKeyBlock - 1) / kKeyBlock);
    std::vector<uint8_t> scratch(attention_scratch_bytes(head_dim) + 64);
    std::vector<float> from_ring(total * head_dim), from_full(total * head_dim);
    for (size_t p = 0; p < total; p += chunk) {
      const size_t n = std::min(chunk, total - p);
      for (HeadCache* cache : {&ring, &full}) {
        cache->store(p, n, &k[p * head_dim], &v[p * head_dim], head_dim);
        AttentionTask task = cache->task(0.3f);
        task.q = &q[p * head_dim];
        task.q_stride = task.out_stride = task.out_head_stride = head_dim;
        task.tokens = n;
        task.group = 1;
        task.position = p;
        task.last_key = p + n;
        task.window = window;
        task.out = &(cache == &ring ? from_ring : from_full)[p * head_dim];
        task.scratch =
            scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
        kernels.attention(&task);
      }
    }
    EXPECT_TRUE(from_ring == from_full) << "chunk " << chunk;
  }
}

// Keys and values that a query does not see are not in its result, not even as 0 * infinity.
TEST_P(AttentionTest, UnseenInfinitiesDoNotLeak) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  for (size_t window : {size_t(0), size_t(20), size_t(19)}) {
    const Shape shape{32, 3, 40, 50, window};
    Problem problem(kernels, shape, window == 20 ? KvType::f16 : KvType::q8_0, 0);
    const std::vector<float> clean = problem.run_all();
    const size_t bad = 70;
    const std::vector<float> huge(32, 1e30f);
    problem.cache.store(bad, 1, huge.data(), huge.data(), 32);
    const std::vector<float> out = problem.run_all();
    for (size_t t = 0; t < shape.tokens; ++t) {
      if (sees(shape.position + t, bad, true, window)) continue;
      for (size_t i = t * 96; i < (t + 1) * 96; ++i)
        ASSERT_TRUE(same_bits(out[i], clean[i])) << "token " << t << " window " << window;
    }
  }
}

TEST_P(AttentionTest, NothingToSeeGivesZeros) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Problem problem(kernels, {20, 2, 6, 300, 10}, KvType::f16, 0);
  AttentionTask task = problem.task();
  std::vector<float> out(problem.q.size(), 5.0f);
  task.last_key = 0;
  problem.run(task, out.data());
  for (float x : out) ASSERT_EQ(x, 0.0f);
  // Windows reach back to 291 ... 296; only keys below 294 are there.
  task.last_key = 294;
  std::fill(out.begin(), out.end(), 5.0f);
  problem.run(task, out.data());
  for (size_t t = 0; t < 6; ++t)
    for (size_t i = t * 40; i < (t + 1) * 40; ++i)
      ASSERT_EQ(out[i] == 0.0f, t >= 3) << "token " << t;
  // Every score is minus infinity.
  std::fill(problem.q.begin(), problem.q.end(), -std::numeric_limits<float>::infinity());
  std::fill(problem.k.begin(), problem.k.end(), 1.0f);
  problem.cache.store(0, problem.last, problem.k.data(), problem.v.data(), 20);
  for (float x : problem.run_all()) ASSERT_EQ(x, 0.0f);
}

TEST_P(AttentionTest, NanStaysNan) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Problem problem(kernels, {16, 1, 3, 80}, KvType::f32, 0);
  problem.q[16] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> out = problem.run_all();
  for (size_t i = 0; i < 48; ++i) ASSERT_EQ(std::isnan(out[i]), i / 16 == 1) << i;
}

// Peaked scores: one key takes all; no denormals, exact zeros elsewhere.
TEST_P(AttentionTest, OneKeyTakesAll) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Problem problem(kernels, {8, 1, 1, 400}, KvType::f32, 0);
  const size_t chosen = 137;
  for (size_t j = 0; j < problem.last; ++j)
    for (size_t i = 0; i < 8; ++i) problem.k[j * 8 + i] = j == chosen ? 100.0f : -100.0f;
  std::fill(problem.q.begin(), problem.q.end(), 1.0f);
  problem.cache.store(0, problem.last, problem.k.data(), problem.v.data(), 8);
  const std::vector<float> out = problem.run_all();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(out[i], problem.v[chosen * 8 + i]);
}

// What q8_0 cannot hold is not hidden; zeros and tiny numbers are no division by zero.
TEST_P(AttentionTest, GroupsThatScalesCannotSayReadAsNan) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  for (float bad : {infinity, -infinity, nan, -nan, 1e7f, 3e38f, 0.0f, 1e-30f, 5e-6f, 8e6f}) {
    Problem problem(kernels, {64, 1, 1, 0}, KvType::q8_0, 0);
    std::fill(problem.v.begin(), problem.v.begin() + 32, 0.0f);
    problem.v[7] = bad;
    problem.cache.store(0, 1, problem.k.data(), problem.v.data(), 64);
    const std::vector<float> out = problem.run_all();
    for (size_t i = 0; i < 64; ++i) {
      if (i < 32 && !(std::fabs(bad) < 8.2e6f))
        ASSERT_TRUE(std::isnan(out[i])) << bad << " dimension " << i;
      else
        ASSERT_NEAR(out[i], problem.v[i], 0.005f * std::fabs(problem.v[i]) + 0.02f)
            << bad << " dimension " << i;
    }
  }
}

// Reference results of PyTorch with any mask: each query gets a cache of the keys that it sees.
TEST_P(AttentionTest, MatchesGoldenPrimitives) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  const SafeTensors golden(MOTE_TEST_DATA "/primitives.safetensors");
  for (std::string name : {"sdpa_worked", "sdpa_random"}) {
    const auto q = golden.floats(name + ".query"), k = golden.floats(name + ".key"),
               v = golden.floats(name + ".value"), expected = golden.floats(name + ".output");
    const auto mask = golden.ints(name + ".mask");
    const auto& shape = golden[name + ".query"].shape;
    const size_t dim = shape.back(), queries = golden[name + ".mask"].shape[0],
                 keys = golden[name + ".mask"].shape[1], heads = q.size() / dim / queries,
                 value_dim = golden[name + ".value"].shape.back();
    std::vector<uint8_t> scratch(attention_scratch_bytes(dim) + 64);
    for (size_t h = 0; h < heads; ++h)
      for (size_t i = 0; i < queries; ++i) {
        HeadCache cache(kernels, KvType::f32, dim, 1);
        size_t n = 0;
        for (size_t j = 0; j < keys; ++j) {
          if (!mask[i * keys + j]) continue;
          std::vector<float> value(dim, 0.0f);
          std::copy_n(&v[(h * keys + j) * value_dim], value_dim, value.begin());
          cache.store(n++, 1, &k[(h * keys + j) * dim], value.data(), dim);
        }
        std::vector<float> out(dim, 9.0f);
        AttentionTask task = cache.task(1 / std::sqrt(float(dim)));
        task.q = &q[(h * queries + i) * dim];
        task.tokens = task.group = 1;
        task.position = n ? n - 1 : 0;
        task.last_key = n;
        task.out = out.data();
        task.scratch =
            scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
        kernels.attention(&task);
        for (size_t c = 0; c < value_dim; ++c)
          EXPECT_NEAR(out[c], expected[(h * queries + i) * value_dim + c], 2e-6)
              << name << " head " << h << " query " << i;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, AttentionTest, testing::ValuesIn(isa_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mote::test
