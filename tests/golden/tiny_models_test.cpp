// Random models of PyTorch, converted by the tool: hidden states of every layer, logits and greedy
// tokens as in float32. Folders as in goldens/tiny; some of them lie in tests/data/tiny.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/support/forward_rows.h"
#include "tests/support/tiny_folder.h"

namespace mote::test {
namespace {

class TinyModels : public TinyFolder {
 protected:
  // All sequences, packed as in the golden file.
  void compare(const std::vector<float>& logits,
               const std::map<uint32_t, std::vector<float>>& hidden, double tolerance,
               const std::string& what) {
    EXPECT_LE(relative_error(logits, golden_.floats("logits")), tolerance) << what;
    size_t layers = 0;
    while (golden_.has("hidden_states_" + std::to_string(layers))) ++layers;
    EXPECT_GE(layers, 2u);
    ASSERT_EQ(hidden.size(), layers) << what;
    for (size_t i = 0; i < layers; ++i)
      EXPECT_LE(relative_error(hidden.at(static_cast<uint32_t>(i)),
                               golden_.floats("hidden_states_" + std::to_string(i))),
                tolerance)
          << what << ", hidden states " << i;
  }
};

TEST_P(TinyModels, HiddenStatesAndLogits) {
  const Model model(file_ + ".gguf");
  ASSERT_NE(model.get(), nullptr);
  struct Run {
    uint32_t kv, threads, chunk;
    double tolerance;
  };
  for (const Run& run : {Run{MOTE_KV_F32, 1, 0, 1e-4}, Run{MOTE_KV_F32, 2, 7, 1e-4},
                         Run{MOTE_KV_F16, 2, 0, 2e-3}, Run{MOTE_KV_F16, 1, 1, 2e-3}}) {
    std::vector<float> logits;
    std::map<uint32_t, std::vector<float>> hidden;
    for (const auto& ids : sequences_) {
      Session session(model,
                      SessionOptions(static_cast<uint32_t>(ids.size()), 0, run.threads, run.kv));
      const Rows rows = forward_rows(model, session, ids.data(), ids.size(), run.chunk, true);
      logits.insert(logits.end(), rows.logits.begin(), rows.logits.end());
      for (const auto& [index, states] : rows.hidden)
        hidden[index].insert(hidden[index].end(), states.begin(), states.end());
    }
    compare(logits, hidden, run.tolerance,
            "cache " + std::to_string(run.kv) + ", chunk " + std::to_string(run.chunk));
  }
}

TEST_P(TinyModels, GreedyTokens) {
  const Model model(file_ + ".gguf");
  ASSERT_NE(model.get(), nullptr);
  const std::vector<int32_t> expected = golden_.ints("greedy");
  Session session(model, SessionOptions(0, 0, 2, MOTE_KV_F32));
  GenerateOptions options(static_cast<uint32_t>(expected.size()));
  options.flags = MOTE_GENERATE_IGNORE_END;
  const Generation got = generate(session, prompt_of(sequences_[0]), options);
  EXPECT_EQ(got.status, MOTE_OK) << mote_last_error();
  EXPECT_EQ(got.ids, expected);
}

// The likelihood of a text, from mote_score, equals that of the reference logits.
TEST_P(TinyModels, Score) {
  const Model model(file_ + ".gguf");
  ASSERT_NE(model.get(), nullptr);
  const std::vector<float> logits = golden_.floats("logits");
  const auto vocabulary = static_cast<size_t>(golden_["logits"].shape[1]);
  size_t row = 0;
  for (const auto& ids : sequences_) {
    Session session(model, SessionOptions(64, 16, 1, MOTE_KV_F32));
    std::vector<float> nll(ids.size());
    ASSERT_EQ(mote_score(session, ids.data(), ids.size(), nll.data()), MOTE_OK)
        << mote_last_error();
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const float* r = logits.data() + (row + i) * vocabulary;
      double sum = 0, most = *std::max_element(r, r + vocabulary);
      for (size_t v = 0; v < vocabulary; ++v) sum += std::exp(r[v] - most);
      EXPECT_NEAR(nll[i], std::log(sum) + most - r[ids[i + 1]], 1e-3) << i;
    }
    row += ids.size();
  }
}

// The tool's dump has the names and the packing of the golden file.
TEST_P(TinyModels, Dump) {
  run("dump -m " + shell_word(file_ + ".gguf") + " --input " +
      shell_word(folder_ + "/golden.safetensors") + " --hidden-states --kv f32 -o " +
      shell_word(file_ + ".out"));
  const SafeTensors dump(file_ + ".out");
  ASSERT_TRUE(dump.has("logits"));
  EXPECT_EQ(dump["logits"].shape, golden_["logits"].shape);
  std::map<uint32_t, std::vector<float>> hidden;
  for (uint32_t i = 0; dump.has("hidden_states_" + std::to_string(i)); ++i)
    hidden[i] = dump.floats("hidden_states_" + std::to_string(i));
  compare(dump.floats("logits"), hidden, 1e-4, "dump");
}

INSTANTIATE_TEST_SUITE_P(Llama, TinyModels,
                         testing::Values("llama", "llama-tied", "llama3-rope-scaling",
                                         "llama-linear-rope", "llama-yarn"),
                         tiny_name);
INSTANTIATE_TEST_SUITE_P(Relatives, TinyModels,
                         testing::Values("mistral-sliding-window", "qwen2", "qwen3", "phi3",
                                         "smollm3", "granite", "olmo2", "stablelm", "starcoder2",
                                         "gemma2", "gemma3-text"),
                         tiny_name);

}  // namespace
}  // namespace mote::test
