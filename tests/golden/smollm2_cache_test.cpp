// The cache of a real model: what q8_0 costs, and a state that another process goes on from.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "tests/support/safetensors.h"
#include "tests/support/session_state.h"

namespace mote::test {
namespace {

class SmolLm2Cache : public testing::Test {
 protected:
  void SetUp() override {
    const char* models = std::getenv("MOTE_MODELS_DIR");
    if (!models) GTEST_SKIP() << "MOTE_MODELS_DIR is not set: it names a folder with SmolLM2";
    model_ = std::make_unique<Model>(std::string(models) + "/SmolLM2-135M-Instruct.Q4_1.gguf");
    ASSERT_NE(model_->get(), nullptr);
  }
  // False where they are not at hand.
  bool read_references() {
    const char* shared = std::getenv("MOTE_SHARED_DIR");
    const std::string path =
        std::string(shared ? shared : "") + "/goldens/real/smollm2.safetensors";
    if (!shared || !std::filesystem::exists(path)) return false;
    tensors_ = SafeTensors(path);
    return true;
  }
  // Of the reference's windows of 512 tokens, all but the first of each.
  std::vector<float> eval_nll(uint32_t kv) {
    const auto ids = tensors_.ints("eval.ids");
    const size_t windows = ids.size() / 512;
    std::vector<float> nll(windows * 511);
    Session session(*model_, SessionOptions(512, 0, 2, kv));
    for (size_t w = 0; w < windows; ++w)
      EXPECT_EQ(mote_score(session, ids.data() + w * 512, 512, nll.data() + w * 511), MOTE_OK)
          << mote_last_error();
    return nll;
  }

  std::unique_ptr<Model> model_;
  SafeTensors tensors_;
};

// A cache of a little more than half the size costs next to nothing.
TEST_F(SmolLm2Cache, LikelihoodWithQ8Cache) {
  if (!read_references())
    GTEST_SKIP() << "MOTE_SHARED_DIR is not set: it names a folder with goldens/real";
  const std::vector<float> half = eval_nll(MOTE_KV_F16), eighth = eval_nll(MOTE_KV_Q8_0);
  ASSERT_EQ(half.size(), eighth.size());
  double sum = 0, expected = 0, squares = 0;
  for (size_t i = 0; i < half.size(); ++i) {
    sum += eighth[i];
    expected += half[i];
    squares += std::pow(eighth[i] - half[i], 2);
  }
  const double n = static_cast<double>(half.size());
  std::printf("mean NLL %.5f with q8_0, %.5f with f16 (%+.4f %%), rms of the difference %.4f\n",
              sum / n, expected / n, (sum / expected - 1) * 100, std::sqrt(squares / n));
  EXPECT_LE(std::fabs(sum / expected - 1), 0.002);
  EXPECT_LE(std::sqrt(squares / n), 0.12);
}

// Saved in the middle of an answer, restored by another process: its tokens and logits go on as
// they would have.
TEST_F(SmolLm2Cache, ContinuesInANewProcess) {
  namespace fs = std::filesystem;
  const char* child = child_argument();
  const std::string folder =
      child ? child
            : (fs::temp_directory_path() / ("mote_smollm2_" + std::to_string(::getpid()))).string();
  const std::string text = "The history of the steam engine begins in the first century, when";
  const auto go_on = [&](mote_session* session, std::vector<int32_t> ids) {
    GenerateOptions options(24);
    options.temperature = 0.8f;
    options.seed = 7;
    const Generation got = generate(session, prompt_of(ids), options);
    EXPECT_EQ(got.result.reused_tokens, got.result.prompt_tokens - 1);
    ids.insert(ids.end(), got.ids.begin(), got.ids.end());
    const float* logits = nullptr;
    EXPECT_EQ(mote_session_append(session, ids.data(), 5, 0, &logits), MOTE_OK);
    std::vector<uint8_t> bytes(4 * ids.size() + 4 * model_spec(*model_).vocabulary);
    std::memcpy(bytes.data(), ids.data(), 4 * ids.size());
    std::memcpy(bytes.data() + 4 * ids.size(), logits, 4 * model_spec(*model_).vocabulary);
    return bytes;
  };
  if (child) {
    Session session(*model_, SessionOptions(256, 64, 1));
    std::vector<int32_t> ids(read_bytes(folder + "/ids").size() / 4);
    std::memcpy(ids.data(), read_bytes(folder + "/ids").data(), ids.size() * 4);
    ASSERT_EQ(restore(session, read_bytes(folder + "/state")), MOTE_OK) << mote_last_error();
    write_bytes(folder + "/rows", go_on(session, ids));
    return;
  }
  fs::create_directory(folder);
  Session session(*model_, SessionOptions(256, 64, 2));
  std::vector<int32_t> ids = tokenize(session, text);
  const Generation first = generate(session, prompt_of(ids), GenerateOptions(30));
  ids.insert(ids.end(), first.ids.begin(), first.ids.end());
  const auto start = std::chrono::steady_clock::now();
  const auto state = saved(session);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  std::printf("state of %zu tokens: %zu bytes, saved in %.1f ms\n", ids.size(), state.size(),
              time.count());
  std::vector<uint8_t> id_bytes(4 * ids.size());
  std::memcpy(id_bytes.data(), ids.data(), id_bytes.size());
  write_bytes(folder + "/ids", id_bytes);
  write_bytes(folder + "/state", state);
  const auto expected = go_on(session, ids);
  EXPECT_TRUE(run_test_again("SmolLm2Cache.ContinuesInANewProcess", folder));
  EXPECT_TRUE(read_bytes(folder + "/rows") == expected);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace mote::test
