#include "models/kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/support/guard_page.h"
#include "tests/support/random.h"

namespace mote::test {
namespace {

struct Settings {
  uint32_t heads = 9, kv_heads = 3, head_dim = 16;
  std::vector<uint32_t> windows = {0};  // per layer
  bool causal = true;
  float cap = 0;
  KvType type = KvType::f16;
  size_t capacity = 700, batch_tokens = 64;
  uint32_t threads = 1;
};

// A cache in memory of exactly the measured size, ending at a guard page and full of NaN.
class Cache {
 public:
  explicit Cache(const Settings& settings) : settings_(settings), spec_(std::make_unique<Spec>()) {
    spec_->layers = static_cast<uint32_t>(settings.windows.size());
    spec_->heads = settings.heads;
    spec_->kv_heads = settings.kv_heads;
    spec_->head_dim = settings.head_dim;
    spec_->causal = settings.causal;
    spec_->attention_cap = settings.cap;
    for (size_t i = 0; i < settings.windows.size(); ++i)
      spec_->layer[i].window = settings.windows[i];
    Arena measure;
    plan(measure);
    memory_ = std::make_unique<GuardedBytes>(measure.used());
    std::memset(memory_->data(), 0xff, memory_->size());
    Arena arena(memory_->data(), memory_->size());
    plan(arena);
    EXPECT_FALSE(arena.failed());
    EXPECT_EQ(arena.left(), 0u);
    EXPECT_TRUE(team_.start(nullptr).ok());
  }
  size_t width() const { return settings_.heads * settings_.head_dim; }
  size_t kv_width() const { return settings_.kv_heads * settings_.head_dim; }
  size_t bytes() const { return memory_->size(); }
  KvCache& cache() { return cache_; }

  // Every layer gets the same tokens [first, last) of q, k, v; results of all layers are appended.
  void append(const std::vector<float>& q, const std::vector<float>& k, const std::vector<float>& v,
              size_t first, size_t last, size_t chunk, std::vector<std::vector<float>>* out) {
    out->resize(settings_.windows.size());
    team_.run([&] {
      for (size_t p = first; p < last; p += chunk) {
        const size_t n = std::min(chunk, last - p);
        for (uint32_t layer = 0; layer < settings_.windows.size(); ++layer) {
          std::vector<float>& y = (*out)[layer];
          y.resize((p + n) * width());
          cache_.attend(team_, *select_kernels(nullptr), layer, p, n, &q[p * width()], width(),
                        &k[p * kv_width()], &v[p * kv_width()], kv_width(), &y[p * width()],
                        width());
        }
      }
    });
  }

 private:
  void plan(Arena& arena) {
    team_.plan(arena, settings_.threads);
    cache_.plan(arena, *spec_, settings_.type, settings_.capacity, settings_.batch_tokens,
                settings_.threads);
  }
  Settings settings_;
  std::unique_ptr<Spec> spec_;
  std::unique_ptr<GuardedBytes> memory_;
  KvCache cache_;
  Team team_;
};

struct Tokens {
  Tokens(const Settings& s, size_t count, uint64_t seed = 5) {
    Random random(seed);
    q = random.normals(count * s.heads * s.head_dim, 2.0f);
    k = random.normals(count * s.kv_heads * s.head_dim);
    v = random.normals(count * s.kv_heads * s.head_dim);
  }
  std::vector<float> q, k, v;
};

using Results = std::vector<std::vector<float>>;

Results run(const Settings& settings, const Tokens& tokens, size_t count, size_t chunk) {
  Cache cache(settings);
  Results out;
  cache.append(tokens.q, tokens.k, tokens.v, 0, count, chunk, &out);
  return out;
}

// Plain attention in double, keys and values as floats.
void expect_right(const Settings& s, const Tokens& tokens, size_t count, const Results& out,
                  double tolerance) {
  const size_t group = s.heads / s.kv_heads, width = s.heads * s.head_dim,
               kv_width = s.kv_heads * s.head_dim;
  for (size_t layer = 0; layer < s.windows.size(); ++layer) {
    double worst = 0;
    for (size_t p = 0; p < count; p += 1 + count / 97)
      for (size_t h = 0; h < s.heads; ++h) {
        const size_t window = s.windows[layer], kv = h / group * s.head_dim;
        std::vector<double> y(s.head_dim, 0.0);
        double total = 0;
        for (size_t j = 0; j < count; ++j) {
          if (s.causal && j > p) continue;
          if (window && (j > p ? j - p : p - j) >= window) continue;
          double score = 0;
          for (size_t i = 0; i < s.head_dim; ++i)
            score +=
                double(tokens.q[p * width + h * s.head_dim + i]) * tokens.k[j * kv_width + kv + i];
          score /= std::sqrt(double(s.head_dim));
          if (s.cap > 0) score = s.cap * std::tanh(score / s.cap);
          const double e = std::exp(score);
          total += e;
          for (size_t i = 0; i < s.head_dim; ++i) y[i] += e * tokens.v[j * kv_width + kv + i];
        }
        for (size_t i = 0; i < s.head_dim; ++i) {
          const double error = std::fabs(y[i] / total - out[layer][p * width + h * s.head_dim + i]);
          worst = error <= worst ? worst : error;  // a NaN fails too
        }
      }
    EXPECT_LE(worst, tolerance) << "layer " << layer;
  }
}

TEST(KvCacheTest, MatchesDoublePrecision) {
  Settings s;
  s.type = KvType::f32;
  s.windows = {0, 100, 16, 1};
  s.batch_tokens = 200;
  const Tokens tokens(s, 600);
  expect_right(s, tokens, 600, run(s, tokens, 600, 200), 5e-6);
  s.type = KvType::f16;
  expect_right(s, tokens, 600, run(s, tokens, 600, 200), 5e-3);
  s.type = KvType::q8_0;
  expect_right(s, tokens, 600, run(s, tokens, 600, 200), 5e-2);
  s.type = KvType::f32;
  s.cap = 4;
  s.threads = 2;
  expect_right(s, tokens, 600, run(s, tokens, 600, 200), 5e-6);
}

TEST(KvCacheTest, BothWaysMatchesDoublePrecision) {
  Settings s;
  s.heads = s.kv_heads = 4;
  s.causal = false;
  s.type = KvType::f32;
  s.windows = {0, 9, 0};
  s.capacity = s.batch_tokens = 300;
  for (size_t count : {1, 13, 64, 300}) {
    const Tokens tokens(s, count);
    expect_right(s, tokens, count, run(s, tokens, count, count), 5e-6);
  }
}

// The bits depend neither on the threads nor on the chunks, for shapes that take every way of
// sharing work.
TEST(KvCacheTest, SameBitsForThreadsAndChunks) {
  struct Heads {
    uint32_t heads, kv_heads, head_dim;
  };
  for (const Heads& h : {Heads{9, 3, 64}, Heads{4, 1, 80}, Heads{1, 1, 256}, Heads{8, 8, 24},
                         Heads{40, 1, 16}, Heads{7, 7, 12}}) {
    Settings s;
    s.heads = h.heads;
    s.kv_heads = h.kv_heads;
    s.head_dim = h.head_dim;
    s.windows = {0, 150};
    s.batch_tokens = 600;
    s.type = h.heads % 2 ? KvType::q8_0 : KvType::f16;
    const Tokens tokens(s, 600);
    const Results expected = run(s, tokens, 600, 600);
    for (uint32_t threads : {1, 2, 3, 5})
      for (size_t chunk : {1, 7, 64, 600}) {
        if (threads == 1 && chunk == 600) continue;
        s.threads = threads;
        s.batch_tokens = chunk;  // another ring size, too
        ASSERT_TRUE(run(s, tokens, 600, chunk) == expected)
            << h.heads << "/" << h.kv_heads << " head_dim " << h.head_dim << " threads " << threads
            << " chunk " << chunk;
      }
  }
}

TEST(KvCacheTest, RewindGivesTheSameBits) {
  Settings s;
  s.windows = {0, 70};
  s.batch_tokens = 32;
  s.threads = 2;
  const Tokens tokens(s, 400), others(s, 400, 6);
  const Results expected = run(s, tokens, 400, 32);
  Cache cache(s);
  Results out;
  cache.append(tokens.q, tokens.k, tokens.v, 0, 300, 32, &out);
  cache.append(others.q, others.k, others.v, 300, 310, 7, &out);
  ASSERT_TRUE(cache.cache().can_rewind(310, 300));
  cache.append(tokens.q, tokens.k, tokens.v, 300, 400, 9, &out);
  EXPECT_TRUE(out == expected);
  ASSERT_TRUE(cache.cache().can_rewind(400, 0));
  cache.append(others.q, others.k, others.v, 0, 350, 32, &out);
  cache.append(tokens.q, tokens.k, tokens.v, 0, 400, 32, &out);
  EXPECT_TRUE(out == expected);
}

// can_rewind() says yes exactly where the ring still holds what the window needs.
TEST(KvCacheTest, KnowsHowFarItCanRewind) {
  Settings s;
  s.windows = {0, 70};
  s.batch_tokens = 32;  // 70 + 31 positions: two blocks
  const Tokens tokens(s, 400);
  Cache cache(s);
  Results out;
  EXPECT_TRUE(cache.cache().can_rewind(0, 0));
  cache.append(tokens.q, tokens.k, tokens.v, 0, 120, 32, &out);
  EXPECT_TRUE(cache.cache().can_rewind(120, 1));
  EXPECT_TRUE(cache.cache().can_rewind(120, 119));
  cache.append(tokens.q, tokens.k, tokens.v, 120, 250, 32, &out);
  // Positions 122 ... 249 are there; a query at 191 sees 122 ... 191.
  EXPECT_TRUE(cache.cache().can_rewind(250, 191));
  EXPECT_FALSE(cache.cache().can_rewind(250, 190));
  EXPECT_FALSE(cache.cache().can_rewind(250, 1));
  EXPECT_TRUE(cache.cache().can_rewind(250, 0));
  // What was overwritten does not come back by rewinding in steps.
  cache.append(tokens.q, tokens.k, tokens.v, 200, 201, 1, &out);
  EXPECT_TRUE(cache.cache().can_rewind(201, 191));
  EXPECT_FALSE(cache.cache().can_rewind(201, 190));
  // From the start everything is fresh.
  cache.append(tokens.q, tokens.k, tokens.v, 0, 100, 32, &out);
  EXPECT_TRUE(cache.cache().can_rewind(100, 3));

  // Each layer by its own ring: one of 300 positions is not cut by its neighbour's 16.
  s.windows = {300, 16};
  Cache mixed(s);
  mixed.append(tokens.q, tokens.k, tokens.v, 0, 250, 32, &out);
  EXPECT_TRUE(mixed.cache().can_rewind(250, 249));
  EXPECT_TRUE(mixed.cache().can_rewind(250, 201));  // 250 - 64 ... of the second
  EXPECT_FALSE(mixed.cache().can_rewind(250, 200));

  s.windows = {0, 0};
  Cache full(s);
  full.append(tokens.q, tokens.k, tokens.v, 0, 250, 32, &out);
  EXPECT_TRUE(full.cache().can_rewind(250, 1));
}

// window 8, prompts of 6, 8, 9 and 17 at once or one by one, then tokens one by one: a query sees
// itself and 7 earlier.
TEST(KvCacheTest, WindowTurnsAtTheRightToken) {
  Settings s;
  s.heads = s.kv_heads = 1;
  s.head_dim = 4;
  s.windows = {8};
  s.type = KvType::f32;
  s.capacity = 256;
  const size_t count = 200;
  Tokens tokens(s, count);
  // Equal scores: the result is the mean of the values seen, and value p is p.
  std::fill(tokens.q.begin(), tokens.q.end(), 0.0f);
  for (size_t p = 0; p < count; ++p)
    for (size_t i = 0; i < 4; ++i) tokens.v[p * 4 + i] = static_cast<float>(p);
  for (size_t prompt : {1, 6, 8, 9, 17, 64})
    for (size_t chunk : {size_t(1), size_t(3), prompt}) {
      Cache cache(s);
      Results out;
      cache.append(tokens.q, tokens.k, tokens.v, 0, prompt, chunk, &out);
      cache.append(tokens.q, tokens.k, tokens.v, prompt, count, 1, &out);
      for (size_t p = 0; p < count; ++p) {
        const double first = p < 8 ? 0 : p - 7.0;
        ASSERT_NEAR(out[0][p * 4], (first + p) / 2, 1e-4) << "token " << p << " prompt " << prompt;
      }
    }
}

TEST(KvCacheTest, MemoryFollowsTheFormula) {
  Settings s;
  s.capacity = 4096;
  s.batch_tokens = 128;
  const size_t per_position = 2 * 3 * 16 * 2;  // keys and values, heads, dimensions, bytes
  const size_t one = Cache(s).bytes();
  s.windows = {0, 0};
  EXPECT_EQ(Cache(s).bytes() - one, 4096 * per_position);
  s.windows = {0, 500};  // 500 + 127 positions: 10 blocks
  EXPECT_EQ(Cache(s).bytes() - one, 640 * per_position);
  s.type = KvType::f32;
  EXPECT_EQ(Cache(s).bytes() - one, (4096 + 2 * 640) * per_position);
  s.head_dim = 64;
  s.type = KvType::f16;
  const size_t half = Cache(s).bytes();
  s.type = KvType::q8_0;  // a byte and 2 / 32 of one instead of two
  EXPECT_EQ(half - Cache(s).bytes(), (4096 + 640) * 2 * 3 * 64 * 15 / 16);
  s.head_dim = 16;
  s.type = KvType::f32;
  s.causal = false;
  s.batch_tokens = s.capacity;
  s.windows = {0};
  const size_t shared = Cache(s).bytes();
  s.windows = {0, 0, 0, 0};
  EXPECT_LE(Cache(s).bytes() - shared, 192u);  // layers share one layer's memory
}

TEST(KvCacheTest, SizesThatOverflowFailTheArena) {
  Spec spec;
  spec.layers = 1;
  spec.heads = spec.kv_heads = 1u << 20;
  spec.head_dim = 1u << 20;
  KvCache cache;
  Arena measure;
  cache.plan(measure, spec, KvType::f16, SIZE_MAX / 2, 512, 1);
  EXPECT_TRUE(measure.failed());
}

}  // namespace
}  // namespace mote::test
