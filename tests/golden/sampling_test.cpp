// Sampling through mote_generate: what callbacks write into the logits, seeds, threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/api.h"
#include "tests/support/tiny_model.h"

namespace mote::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kFirst = 40, kSecond = 90;

class Sampling : public testing::Test {
 protected:
  Sampling() : bytes_(TinyModel().bytes()), model_(bytes_) {}

  static GenerateOptions sampled(uint32_t tokens, uint64_t seed) {
    GenerateOptions options(tokens);
    options.temperature = 1.2f;
    options.top_p = 0.95f;
    options.seed = seed;
    options.flags = MOTE_GENERATE_IGNORE_END;
    return options;
  }
  // Every way of choosing.
  static std::vector<GenerateOptions> ways() {
    std::vector<GenerateOptions> all(5, sampled(6, 3));
    all[0].temperature = 0;
    all[1].top_p = 0;
    all[2].top_k = 3;
    all[3].min_p = 0.2f;
    all[4].repeat_penalty = 1.5f;
    return all;
  }

  AlignedBytes bytes_;
  Model model_;
  const std::vector<int32_t> ids_ = {10, 20, 30, 40, 50};
};

TEST_F(Sampling, InfinityWinsAndNanNever) {
  Session session(model_, SessionOptions(64, 16, 1));
  for (GenerateOptions options : ways()) {
    options.on_logits = [](void*, float* logits, size_t count) {
      for (size_t i = 0; i < count; i += 2) logits[i + (i + 1 < count)] = kNan;
      logits[kFirst] = logits[kSecond] = HUGE_VALF;
      return 0;
    };
    const Generation got = generate(session, prompt_of(ids_), options);
    ASSERT_EQ(got.status, MOTE_OK) << mote_last_error();
    EXPECT_EQ(got.result.finish, MOTE_FINISH_LENGTH);
    for (int32_t id : got.ids) EXPECT_TRUE(id == kFirst || id == kSecond) << id;
  }
}

TEST_F(Sampling, OneTokenLeftIsChosen) {
  Session session(model_, SessionOptions(64, 16, 1));
  for (GenerateOptions options : ways()) {
    options.on_logits = [](void*, float* logits, size_t count) {
      for (size_t i = 0; i < count; ++i) logits[i] = i % 2 ? kNan : -HUGE_VALF;
      logits[kFirst] = -3e38f;
      return 0;
    };
    const Generation got = generate(session, prompt_of(ids_), options);
    ASSERT_EQ(got.status, MOTE_OK) << mote_last_error();
    EXPECT_EQ(got.ids, std::vector<int32_t>(6, kFirst));
  }
}

// A row without any token to choose, after three good ones: an error that says where; what was
// generated stays, and the session goes on.
TEST_F(Sampling, AnAllBadRowIsAnError) {
  Session session(model_, SessionOptions(64, 16, 1)), clean(model_, SessionOptions(64, 16, 1));
  for (const GenerateOptions& way : ways())
    for (float bad : {kNan, -HUGE_VALF}) {
      struct Script {
        int calls = 0;
        float bad = 0;
      } script;
      script.bad = bad;
      GenerateOptions options = way;
      options.user = &script;
      options.on_text = [](void*, const char*, size_t) { return 0; };
      options.on_logits = [](void* user, float* logits, size_t count) {
        auto* self = static_cast<Script*>(user);
        if (self->calls++ == 3)
          for (size_t i = 0; i < count; ++i) logits[i] = self->bad;
        return 0;
      };
      ASSERT_EQ(mote_session_rewind(session, 0), MOTE_OK);
      const Generation got = generate(session, prompt_of(ids_), options);
      EXPECT_EQ(got.status, MOTE_ERROR_BAD_FILE);
      EXPECT_EQ(got.result.finish, MOTE_FINISH_FAILED);
      EXPECT_NE(std::string(mote_last_error()).find("position 7: no token can be chosen"),
                std::string::npos)
          << mote_last_error();
      ASSERT_EQ(got.ids.size(), 3u);
      EXPECT_EQ(mote_session_position(session), 8u);
      const Generation again = generate(session, prompt_of(ids_), way);
      const Generation expected = generate(clean, prompt_of(ids_), way);
      EXPECT_EQ(again.status, MOTE_OK) << mote_last_error();
      EXPECT_EQ(again.ids, expected.ids);
    }
}

TEST_F(Sampling, TheSameSeedGivesTheSameTextForAnyThreadsAndCache) {
  for (uint32_t kv : {MOTE_KV_F16, MOTE_KV_Q8_0}) {
    Session one(model_, SessionOptions(300, 64, 1, kv));
    const Generation expected = generate(one, prompt_of(ids_), sampled(150, 77));
    ASSERT_EQ(expected.ids.size(), 150u);
    EXPECT_NE(generate(one, prompt_of(ids_), sampled(150, 78)).ids, expected.ids);
    for (uint32_t threads : {1, 2, 3, 5}) {
      Session session(model_, SessionOptions(300, 7, threads, kv));
      for (int time = 0; time < 2; ++time) {  // the second reuses the prompt
        const Generation got = generate(session, prompt_of(ids_), sampled(150, 77));
        EXPECT_EQ(got.ids, expected.ids) << threads << " threads";
        EXPECT_EQ(got.text, expected.text);
      }
    }
  }
}

}  // namespace
}  // namespace mote::test
