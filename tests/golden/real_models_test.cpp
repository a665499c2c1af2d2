// Real models from files as people have them, against references computed in float32 from the same
// weights (goldens/real).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/support/forward_rows.h"
#include "tests/support/safetensors.h"

namespace mote::test {
namespace {

struct Case {
  const char *name, *file, *references;
  double nll;  // how far the mean may be off, relatively
};

class Reference : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const char *models = std::getenv("MOTE_MODELS_DIR"), *shared = std::getenv("MOTE_SHARED_DIR");
    if (!models) GTEST_SKIP() << "MOTE_MODELS_DIR is not set: it names a folder with real models";
    const std::string file = std::string(models) + "/" + GetParam().file;
    if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
    const std::string folder = shared ? std::string(shared) + "/goldens/real/" : "";
    if (!shared || !std::filesystem::exists(folder))
      GTEST_SKIP() << "MOTE_SHARED_DIR is not set: it names a folder with goldens/real";
    std::ifstream(folder + GetParam().references + ".json") >> json_;
    tensors_ = SafeTensors(folder + GetParam().references + ".safetensors");
    model_ = std::make_unique<Model>(file);
    ASSERT_NE(model_->get(), nullptr) << mote_last_error();
    const auto first = tensors_.ints("eval.ids").at(0);
    // Where the model adds a token in front, every prompt has it.
    begin_ = json_["prompts"][0]["ids"][0] == first && json_["prompts"][1]["ids"][0] == first
                 ? first
                 : -1;
  }

  std::unique_ptr<Model> model_;
  nlohmann::json json_;
  SafeTensors tensors_;
  int32_t begin_ = -1;
};

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

TEST_P(Reference, PromptsTokenizeAsTheReference) {
  Session session(*model_, SessionOptions(2048, 64, 1));
  for (const auto& prompt : json_["prompts"])
    EXPECT_EQ(tokenize(session, prompt["text"].get<std::string>(),
                       MOTE_TOKENIZE_SPECIAL | MOTE_TOKENIZE_FRAME),
              prompt["ids"].get<std::vector<int32_t>>())
        << prompt["id"];
}

TEST_P(Reference, LastPositionIsClose) {
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
TEST_P(Reference, ClearGreedyChoicesAreTheSame) {
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
  EXPECT_GE(clear, steps / 3);
}

TEST_P(Reference, LikelihoodOfTheEvalText) {
  auto ids = tensors_.ints("eval.ids");
  {
    std::ifstream file(std::string(std::getenv("MOTE_SHARED_DIR")) + "/goldens/real/eval.txt",
                       std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    SessionOptions options(8192, 16, 1);
    options.text_bytes = static_cast<uint32_t>(text.size());
    Session session(*model_, options);
    EXPECT_EQ(tokenize(session, text, begin_ >= 0 ? MOTE_TOKENIZE_FRAME : 0), ids)
        << "the text does not give the reference's tokens";
  }
  const auto reference = tensors_.floats("eval.nll");
  const size_t windows = ids.size() / 512;
  ASSERT_EQ(reference.size(), windows * 511);
  Session session(*model_, SessionOptions(512, 0, 2));
  double sum = 0, expected = 0, squares = 0;
  for (size_t w = 0; w < windows; ++w) {
    std::vector<float> nll(511);
    if (begin_ >= 0) ids[w * 512] = begin_;
    ASSERT_EQ(mote_score(session, ids.data() + w * 512, 512, nll.data()), MOTE_OK)
        << mote_last_error();
    for (size_t i = 0; i < 511; ++i) {
      sum += nll[i];
      expected += reference[w * 511 + i];
      squares += std::pow(nll[i] - reference[w * 511 + i], 2);
    }
  }
  const double n = static_cast<double>(reference.size());
  std::printf("mean NLL %.5f, reference %.5f (%+.3f %%), rms of the difference per token %.4f\n",
              sum / n, expected / n, (sum / expected - 1) * 100, std::sqrt(squares / n));
  EXPECT_NEAR(expected / n, json_["eval"]["mean_nll"].get<double>(), 1e-4);
  EXPECT_LE(std::fabs(sum / expected - 1), GetParam().nll);
  EXPECT_LE(std::sqrt(squares / n), 0.12);
}

INSTANTIATE_TEST_SUITE_P(
    RealModels, Reference,
    testing::Values(Case{"SmolLm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2", 0.0015},
                    Case{"Gemma3", "gemma-3-270m-q4_k_m.gguf", "gemma3", 0.002}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mote::test
