#include "models/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace mote {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class SamplerTest : public testing::Test {
 protected:
  SamplerTest() : kernels_(*select_kernels(std::getenv("MOTE_ISA"))) {
    options_.size = sizeof options_;
    options_.temperature = 1;
  }

  void start(size_t vocabulary) {
    Arena measure;
    sampler_.plan(measure, vocabulary);
    EXPECT_LE(measure.used(), 8 * vocabulary + Arena::kAlignment);
    memory_.assign(measure.used() + Arena::kAlignment, 0xCD);
    const size_t skew = reinterpret_cast<uintptr_t>(memory_.data()) % Arena::kAlignment;
    Arena arena(memory_.data() + (Arena::kAlignment - skew) % Arena::kAlignment, measure.used());
    sampler_.plan(arena, vocabulary);
    EXPECT_FALSE(arena.failed());
    ASSERT_TRUE(Sampler::check(options_).ok());
    sampler_.start(options_);
  }

  int32_t choose(std::vector<float> logits, const std::vector<int32_t>& history = {}) {
    int32_t token = -1;
    status_ = sampler_.choose(kernels_, logits.data(), history.data(), history.size(), &token);
    return status_.ok() ? token : -1;
  }

  // How often each token is chosen.
  std::vector<double> shares(const std::vector<float>& logits,
                             const std::vector<int32_t>& history = {}, int draws = 20000) {
    start(logits.size());
    std::vector<double> counts(logits.size());
    for (int i = 0; i < draws; ++i) {
      const int32_t token = choose(logits, history);
      EXPECT_GE(token, 0);
      if (token >= 0) counts[static_cast<size_t>(token)] += 1.0 / draws;
    }
    return counts;
  }

  const Kernels& kernels_;
  mote_generate_options options_{};
  Sampler sampler_;
  std::vector<uint8_t> memory_;
  Status status_;
};

// The definition, step by step and in double, of the probability of each token.
std::vector<double> reference(const std::vector<float>& logits,
                              const mote_generate_options& options,
                              const std::vector<int32_t>& history) {
  std::vector<double> x(logits.begin(), logits.end());
  const size_t window = options.repeat_window ? options.repeat_window : 64;
  std::map<int32_t, bool> seen;
  for (size_t i = history.size() - std::min(history.size(), window); i < history.size(); ++i) {
    if (options.repeat_penalty <= 0 || seen[history[i]]) continue;
    seen[history[i]] = true;
    double& value = x[static_cast<size_t>(history[i])];
    value = value > 0 ? value / options.repeat_penalty : value * options.repeat_penalty;
  }
  std::vector<size_t> order(x.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
  if (options.top_k && options.top_k < order.size()) order.resize(options.top_k);
  std::vector<double> weights(x.size());
  const auto total = [&] {
    double sum = 0;
    for (size_t id : order) sum += weights[id];
    return sum;
  };
  for (size_t id : order) weights[id] = std::exp((x[id] - x[order[0]]) / options.temperature);
  if (options.top_p > 0) {
    const double all = total();
    double sum = 0;
    size_t kept = 0;
    while (kept < order.size() && sum < all * options.top_p) sum += weights[order[kept++]];
    order.resize(kept);
  }
  if (options.min_p > 0)
    while (weights[order.back()] < options.min_p) order.pop_back();
  std::vector<double> result(x.size());
  const double all = total();
  for (size_t id : order) result[id] = weights[id] / all;
  return result;
}

TEST(Philox, KnownAnswers) {  // of the authors' library Random123
  const struct {
    uint32_t counter[4], key[2], expected[4];
  } cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const auto& one : cases) {
    const Philox random = philox(one.counter, one.key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(random.words[i], one.expected[i]);
  }
}

TEST_F(SamplerTest, MatchesTheDefinition) {
  const std::vector<float> logits = {1.5f, -0.5f, 3.0f, 2.9f, 0.0f, 2.0f, -4.0f, 1.0f};
  const std::vector<int32_t> history = {6, 6, 0, 2, 2, 1, 2};
  struct Setting {
    float temperature;
    uint32_t top_k;
    float top_p, min_p, penalty;
    uint32_t window;
  };
  const Setting settings[] = {
      {1, 0, 0, 0, 0, 0},    {0.5f, 0, 0, 0, 0, 0},          {2, 0, 0, 0, 0, 0},
      {1, 3, 0, 0, 0, 0},    {1, 100, 0, 0, 0, 0},           {1, 0, 0.6f, 0, 0, 0},
      {1, 0, 1, 0, 0, 0},    {1, 0, 0.001f, 0, 0, 0},        {1, 0, 0, 0.3f, 0, 0},
      {1, 0, 0, 1, 0, 0},    {1, 0, 0, 0, 1.5f, 0},          {1, 0, 0, 0, 1.5f, 2},
      {1, 0, 0, 0, 0.5f, 0}, {0.7f, 4, 0.8f, 0.2f, 1.3f, 5}, {1.5f, 6, 0.9f, 0.05f, 1.1f, 3},
  };
  for (const Setting& setting : settings) {
    options_.temperature = setting.temperature;
    options_.top_k = setting.top_k;
    options_.top_p = setting.top_p;
    options_.min_p = setting.min_p;
    options_.repeat_penalty = setting.penalty;
    options_.repeat_window = setting.window;
    options_.seed = 42;
    const std::vector<double> expected = reference(logits, options_, history),
                              found = shares(logits, history);
    for (size_t i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 0.015) << "token " << i;
      if (expected[i] == 0) {
        EXPECT_EQ(found[i], 0) << "token " << i;
      }
    }
  }
}

// A vocabulary in which the growing pieces of top_p and the cuts of top_k all come into play.
TEST_F(SamplerTest, LargeVocabulary) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(20000);
  for (float& logit : logits) logit = std::round(normal(random) * 8) / 8;  // with many ties
  for (const float top_p : {0.1f, 0.5f, 0.95f, 0.9999f}) {
    for (const uint32_t top_k : {0u, 1u, 40u, 1000u, 19999u}) {
      options_.top_p = top_p;
      options_.top_k = top_k;
      const std::vector<double> expected = reference(logits, options_, {});
      start(logits.size());
      for (int i = 0; i < 30; ++i) {
        const int32_t token = choose(logits);
        ASSERT_GE(token, 0);
        // Sums of floats: the token right at the edge may fall to either side.
        const float edge = logits[static_cast<size_t>(token)];
        bool near = expected[static_cast<size_t>(token)] > 0;
        for (size_t k = 0; k < logits.size() && !near; ++k)
          near = expected[k] > 0 && logits[k] <= edge + 0.125f;
        EXPECT_TRUE(near) << token;
      }
    }
  }
}

TEST_F(SamplerTest, Greedy) {
  options_.temperature = 0;
  start(6);
  EXPECT_EQ(choose({1, 5, 3, 5, -2, 0}), 1);
  EXPECT_EQ(choose({kNan, -kInfinity, -3, kNan, -2, -kInfinity}), 4);
  EXPECT_EQ(sampler_.state().drawn, 0u);
  options_.repeat_penalty = 2;
  start(6);
  EXPECT_EQ(choose({1, 5, 3, 4, -2, 0}, {1}), 3);
  EXPECT_EQ(choose({1, 5, 2, 2, -2, 0}, {1, 1, 1}), 1);            // once, not three times
  EXPECT_EQ(choose({-1, -3, -3, -3, -2.5f, -9}, {0, 0}), 0);       // times two: -2
  EXPECT_EQ(choose({-1, -3, -3, -3, -1.5f, -9}, {0, -5, 99}), 4);  // ids of no token do not matter
  options_.repeat_window = 1;
  start(6);
  EXPECT_EQ(choose({1, 5, 3, 4, -2, 0}, {1, 3}), 1);
}

TEST_F(SamplerTest, NotFinite) {
  for (const float temperature : {0.0f, 1.0f}) {
    for (const uint32_t top_k : {0u, 2u}) {
      for (const float top_p : {0.0f, 0.9f}) {
        options_.temperature = temperature;
        options_.top_k = top_k;
        options_.top_p = top_p;
        options_.min_p = top_p / 2;
        start(5);
        for (int i = 0; i < 200; ++i) {
          EXPECT_EQ(choose({kNan, -kInfinity, -1e38f, kNan, -kInfinity}), 2);
          EXPECT_EQ(choose({kNan, 1e38f, 1, kInfinity, -kInfinity}), 3);
          const int32_t infinite = choose({kInfinity, 5, kNan, -kInfinity, kInfinity});
          EXPECT_TRUE(infinite == 0 || infinite == 4);
          const int32_t any = choose({3e38f, -3e38f, kNan, 3e38f, 0});
          EXPECT_TRUE(any == 0 || any == 3);
        }
        EXPECT_EQ(choose({kNan, -kInfinity, kNan, kNan, -kInfinity}), -1);
        EXPECT_EQ(status_.code(), MOTE_ERROR_BAD_FILE);
        EXPECT_NE(std::string(last_error()).find("5 logits"), std::string::npos);
        EXPECT_EQ(choose({0, -kInfinity, kNan, kNan, -kInfinity}), 0);  // goes on
      }
    }
  }
}

// Finite logits stay finite, whatever the penalty: no token is lost or forced by an overflow.
TEST_F(SamplerTest, PenaltyDoesNotOverflow) {
  options_.repeat_penalty = 2;
  start(3);
  EXPECT_EQ(choose({-kInfinity, -3e38f, kNan}, {1}), 1);
  EXPECT_EQ(choose({-kInfinity, 1, kNan}, {0, 2}), 1);
  options_.repeat_penalty = 0.25f;
  start(3);
  EXPECT_EQ(choose({3e38f, kInfinity, 0}, {0}), 1);
}

TEST_F(SamplerTest, SeedAndState) {
  const std::vector<float> logits(100, 1.0f);
  const auto sequence = [&](uint64_t seed) {
    options_.seed = seed;
    start(logits.size());
    std::vector<int32_t> tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(choose(logits));
    return tokens;
  };
  const std::vector<int32_t> first = sequence(7);
  EXPECT_EQ(sequence(7), first);
  EXPECT_NE(sequence(8), first);
  EXPECT_NE(sequence(7 + (uint64_t{1} << 32)), first);
  options_.seed = 7;
  start(logits.size());
  for (int i = 0; i < 20; ++i) choose(logits);
  const Sampler::State saved = sampler_.state();
  EXPECT_EQ(saved.drawn, 20u);
  sampler_.start(options_);
  sampler_.restore(saved);
  for (size_t i = 20; i < 50; ++i) EXPECT_EQ(choose(logits), first[i]);
}

TEST_F(SamplerTest, ExtremeTemperatures) {
  options_.temperature = 1e-40f;
  EXPECT_NEAR(shares({1, 2, 1.9999f, 0}, {}, 100)[1], 1, 1e-9);
  options_.temperature = 2e38f;
  for (const double share : shares({100, -100, 50, 0})) EXPECT_NEAR(share, 0.25, 0.02);
}

TEST_F(SamplerTest, WrongOptions) {
  const float wrong[] = {-1, kNan, kInfinity, -kInfinity};
  const struct {
    float mote_generate_options::*field;
    const char* name;
  } fields[] = {{&mote_generate_options::temperature, "temperature"},
                {&mote_generate_options::top_p, "top_p"},
                {&mote_generate_options::min_p, "min_p"},
                {&mote_generate_options::repeat_penalty, "repeat_penalty"}};
  for (const auto& field : fields) {
    for (const float value : wrong) {
      mote_generate_options options{};
      options.*field.field = value;
      EXPECT_EQ(Sampler::check(options).code(), MOTE_ERROR_ARGUMENT);
      EXPECT_NE(std::string(last_error()).find(field.name), std::string::npos) << last_error();
    }
  }
  mote_generate_options options{};
  EXPECT_TRUE(Sampler::check(options).ok());
  options.top_p = 1.01f;
  EXPECT_FALSE(Sampler::check(options).ok());
}

}  // namespace
}  // namespace mote
