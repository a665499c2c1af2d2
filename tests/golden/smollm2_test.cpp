// SmolLM2-135M-Instruct, as people use it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "tests/support/forward_rows.h"

namespace mote::test {
namespace {

class SmolLm2 : public testing::Test {
 protected:
  void SetUp() override {
    const char* models = std::getenv("MOTE_MODELS_DIR");
    if (!models) GTEST_SKIP() << "MOTE_MODELS_DIR is not set: it names a folder with SmolLM2";
    model_ = std::make_unique<Model>(std::string(models) + "/SmolLM2-135M-Instruct.Q4_1.gguf");
    ASSERT_NE(model_->get(), nullptr);
  }

  std::unique_ptr<Model> model_;
};

TEST_F(SmolLm2, KnowsTheCapitalOfFrance) {
  Session session(*model_, SessionOptions(512, 0, 0));
  const mote_message message = {text_of("user"), text_of("What is the capital of France?")};
  mote_prompt prompt{};
  prompt.messages = &message;
  prompt.message_count = 1;
  const Generation got = generate(session, prompt, GenerateOptions(64));
  EXPECT_EQ(got.status, MOTE_OK) << mote_last_error();
  EXPECT_NE(got.text.find("Paris"), std::string::npos) << got.text;
  EXPECT_EQ(got.result.finish, MOTE_FINISH_END) << got.text;
}

// A long prompt in one chunk ends within about one layer's time once it is cancelled.
TEST_F(SmolLm2, CancelWithinALayer) {
  using Clock = std::chrono::steady_clock;
  const auto milliseconds = [](Clock::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  Session session(*model_, SessionOptions(1024, 1024, 2));
  std::vector<int32_t> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(1000 + i * 37 % 40000);
  auto start = Clock::now();
  ASSERT_EQ(mote_session_append(session, ids.data(), ids.size(), 0, nullptr), MOTE_OK)
      << mote_last_error();
  const double whole = milliseconds(Clock::now() - start);
  std::vector<double> delays;
  for (int part = 1; part <= 5; ++part) {
    ASSERT_EQ(mote_session_rewind(session, 0), MOTE_OK);
    Clock::time_point asked;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(whole * part / 8));
      asked = Clock::now();
      mote_session_cancel(session);
    });
    const mote_prompt prompt = prompt_of(ids);
    mote_generate_result result{};
    result.size = sizeof result;
    EXPECT_EQ(mote_generate(session, &prompt, nullptr, &result), MOTE_OK);
    const auto ended = Clock::now();
    other.join();
    EXPECT_EQ(result.finish, MOTE_FINISH_CANCELLED);
    delays.push_back(milliseconds(ended - asked));
  }
  std::sort(delays.begin(), delays.end());
  std::printf(
      "the whole prompt takes %.1f ms, a layer %.1f ms; a cancelled one ends after %.1f ms "
      "(median), %.1f ms (most)\n",
      whole, whole / 30, delays[2], delays[4]);
  EXPECT_LT(delays[2], whole / 4);
}

}  // namespace
}  // namespace mote::test
