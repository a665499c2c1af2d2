// SmolLM2-135M-Instruct, as people use it: the Q4_1 file against references computed in float32
// from the same weights (goldens/real).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/forward_rows.h"
#include "tests/support/safetensors.h"
#include "tests/support/session_state.h"

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
  // The references; false (and the test is skipped) where they are not at hand.
  bool read_references() {
    const char* shared = std::getenv("MOTE_SHARED_DIR");
    const std::string folder = shared ? std::string(shared) + "/goldens/real/" : "";
    if (!shared || !std::filesystem::exists(folder + "smollm2.json")) return false;
    std::ifstream(folder + "smollm2.json") >> json_;
    tensors_ = SafeTensors(folder + "smollm2.safetensors");
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
  nlohmann::json json_;
  SafeTensors tensors_;
};

#define NEED_REFERENCES() \
  if (!read_references()) \
  GTEST_SKIP() << "MOTE_SHARED_DIR is not set: it names a folder with goldens/real"

std::vector<double> log_softmax(const float* logits, size_t count) {
  double sum = 0;
  const double most = *std::max_element(logits, logits + count);
  for (size_t i = 0; i < count; ++i) sum += std::exp(logits[i] - most);
  std::vector<double> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = logits[i] - most - std::log(sum);
  return out;
}

// KL divergence of the reference from these logits, in nats.
double divergence(const std::vector<float>& reference, const std::vector<float>& logits) {
  const auto p = log_softmax(reference.data(), reference.size()),
             q = log_softmax(logits.data(), logits.size());
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
  return sum;
}

TEST_F(SmolLm2, PromptsTokenizeAsTheReference) {
  NEED_REFERENCES();
  Session session(*model_, SessionOptions(2048, 64, 1));
  for (const auto& prompt : json_["prompts"])
    EXPECT_EQ(tokenize(session, prompt["text"].get<std::string>(),
                       MOTE_TOKENIZE_SPECIAL | MOTE_TOKENIZE_FRAME),
              prompt["ids"].get<std::vector<int32_t>>())
        << prompt["id"];
}

TEST_F(SmolLm2, LastPositionIsClose) {
  NEED_REFERENCES();
  double sum = 0;
  int count = 0, clear = 0;
  for (const auto& prompt : json_["prompts"]) {
    const auto id = prompt["id"].get<std::string>();
    const auto ids = prompt["ids"].get<std::vector<int32_t>>();
    Session session(*model_, SessionOptions(1024, 0, 2));
    const Rows rows = forward_rows(*model_, session, ids.data(), ids.size(), 0, false, true, true);
    const auto reference = tensors_.floats(id + ".logits_last");
    ASSERT_EQ(rows.logits.size(), reference.size());
    const double kl = divergence(reference, rows.logits);
    sum += kl;
    ++count;
    std::vector<float> sorted = reference;
    std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end(), std::greater<>());
    const float margin = *std::max_element(reference.begin(), reference.end()) - sorted[1];
    std::printf("%s: KL %.5f, margin of the reference %.3f\n", id.c_str(), kl,
                static_cast<double>(margin));
    if (margin <= 0.3f) continue;
    ++clear;
    EXPECT_EQ(std::max_element(rows.logits.begin(), rows.logits.end()) - rows.logits.begin(),
              std::max_element(reference.begin(), reference.end()) - reference.begin())
        << id << ", margin " << margin;
  }
  EXPECT_GE(count, 7);
  EXPECT_GE(clear, 4);
  std::printf("mean KL %.5f\n", sum / count);
  EXPECT_LE(sum / count, 0.005);
}

// The reference's own continuation, fed back in: the same choice wherever it was clear.
TEST_F(SmolLm2, ClearGreedyChoicesAreTheSame) {
  NEED_REFERENCES();
  size_t steps = 0, clear = 0;
  for (const auto& prompt : json_["prompts"]) {
    auto ids = prompt["ids"].get<std::vector<int32_t>>();
    const auto greedy = prompt["greedy_ids"].get<std::vector<int32_t>>();
    const auto margins = prompt["greedy_margins"].get<std::vector<float>>();
    Session session(*model_, SessionOptions(1024, 0, 2));
    if (ids.size() > 1) {
      ASSERT_EQ(mote_session_append(session, ids.data(), ids.size() - 1, 0, nullptr), MOTE_OK);
    }
    std::vector<int32_t> rest = {ids.back()};
    rest.insert(rest.end(), greedy.begin(), greedy.end() - 1);
    const Rows rows = forward_rows(*model_, session, rest.data(), rest.size());
    for (size_t i = 0; i < greedy.size(); ++i) {
      ++steps;
      if (margins[i] <= 0.5f) continue;
      ++clear;
      const float* row = rows.logits.data() + i * rows.vocabulary;
      EXPECT_EQ(std::max_element(row, row + rows.vocabulary) - row, greedy[i])
          << prompt["id"] << " step " << i << " margin " << margins[i];
    }
  }
  std::printf("%zu steps, %zu of them clear\n", steps, clear);
  EXPECT_GE(clear, 200u);
}

TEST_F(SmolLm2, LikelihoodOfTheEvalText) {
  NEED_REFERENCES();
  const auto ids = tensors_.ints("eval.ids");
  {
    std::ifstream file(std::string(std::getenv("MOTE_SHARED_DIR")) + "/goldens/real/eval.txt",
                       std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    SessionOptions options(8192, 16, 1);
    options.text_bytes = static_cast<uint32_t>(text.size());
    Session session(*model_, options);
    EXPECT_EQ(tokenize(session, text), ids) << "the text does not give the reference's tokens";
  }
  const auto reference = tensors_.floats("eval.nll");
  const std::vector<float> nll = eval_nll(MOTE_KV_F16);
  ASSERT_EQ(reference.size(), nll.size());
  double sum = 0, expected = 0, squares = 0;
  for (size_t i = 0; i < nll.size(); ++i) {
    sum += nll[i];
    expected += reference[i];
    squares += std::pow(nll[i] - reference[i], 2);
  }
  const double n = static_cast<double>(reference.size());
  std::printf("mean NLL %.5f, reference %.5f (%+.3f %%), rms of the difference per token %.4f\n",
              sum / n, expected / n, (sum / expected - 1) * 100, std::sqrt(squares / n));
  EXPECT_NEAR(expected / n, json_["eval"]["mean_nll"].get<double>(), 1e-4);
  EXPECT_LE(std::fabs(sum / expected - 1), 0.0015);
  EXPECT_LE(std::sqrt(squares / n), 0.12);
}

// A cache of a little more than half the size costs next to nothing.
TEST_F(SmolLm2, LikelihoodWithQ8Cache) {
  NEED_REFERENCES();
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
TEST_F(SmolLm2, ContinuesInANewProcess) {
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
  EXPECT_TRUE(run_test_again("SmolLm2.ContinuesInANewProcess", folder));
  EXPECT_TRUE(read_bytes(folder + "/rows") == expected);
  fs::remove_all(folder);
}

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
  EXPECT_LT(delays[2], whole / 30 * 2 + 10);
}

}  // namespace
}  // namespace mote::test
