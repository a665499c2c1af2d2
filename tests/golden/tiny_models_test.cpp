// Random models of PyTorch, converted by the tool: hidden states of every layer, logits and greedy
// tokens as in float32. Folders as in goldens/tiny; some of them lie in tests/data/tiny.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/forward_rows.h"
#include "tests/support/safetensors.h"

namespace mote::test {
namespace {

const std::string kTool = MOTE_BINARY_DIR "/tools/mote";

std::string shell_word(const std::string& text) { return "'" + text + "'"; }

// Where the tool is of another processor the build names an emulator.
const std::string kRunTool = MOTE_EMULATOR " " + shell_word(kTool);

// max |a - b| over max |b|.
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!std::isfinite(a[i])) return HUGE_VAL;
    difference = std::max(difference, std::fabs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
  }
  return difference / largest;
}

class TinyModels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("MOTE_SHARED_DIR");
    for (const std::string& base : {shared ? std::string(shared) + "/goldens/tiny/" : std::string(),
                                    std::string(MOTE_TEST_DATA "/tiny/")})
      if (folder_.empty() && !base.empty() &&
          std::filesystem::exists(base + GetParam() + "/golden.safetensors"))
        folder_ = base + GetParam();
    if (folder_.empty())
      GTEST_SKIP() << "MOTE_SHARED_DIR names no folder with goldens/tiny/" << GetParam();
    if (!std::filesystem::exists(kTool)) GTEST_SKIP() << "the command line tool is not built";
    file_ = testing::TempDir() + "mote_tiny_" + GetParam() + "_" + std::to_string(::getpid());
    const std::string command = kRunTool + " convert " + shell_word(folder_) + " -o " +
                                shell_word(file_ + ".gguf") + " --type f32 2>" +
                                shell_word(file_ + ".log");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    golden_ = SafeTensors(folder_ + "/golden.safetensors");
    for (int64_t length : golden_["lengths"].longs())
      lengths_.push_back(static_cast<size_t>(length));
    const auto& ids = golden_["input_ids"];
    const std::vector<int32_t> all = ids.ints();
    const auto width = static_cast<size_t>(ids.shape[1]);
    for (size_t s = 0; s < lengths_.size(); ++s)
      sequences_.emplace_back(all.begin() + static_cast<ptrdiff_t>(s * width),
                              all.begin() + static_cast<ptrdiff_t>(s * width + lengths_[s]));
  }
  void TearDown() override {
    for (const char* ending : {".gguf", ".log", ".out"}) std::remove((file_ + ending).c_str());
  }

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

  std::string folder_, file_;
  SafeTensors golden_;
  std::vector<size_t> lengths_;
  std::vector<std::vector<int32_t>> sequences_;
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
  const std::string command = kRunTool + " dump -m " + shell_word(file_ + ".gguf") + " --input " +
                              shell_word(folder_ + "/golden.safetensors") +
                              " --hidden-states --kv f32 -o " + shell_word(file_ + ".out") + " 2>" +
                              shell_word(file_ + ".log");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const SafeTensors dump(file_ + ".out");
  ASSERT_TRUE(dump.has("logits"));
  EXPECT_EQ(dump["logits"].shape, golden_["logits"].shape);
  std::map<uint32_t, std::vector<float>> hidden;
  for (uint32_t i = 0; dump.has("hidden_states_" + std::to_string(i)); ++i)
    hidden[i] = dump.floats("hidden_states_" + std::to_string(i));
  compare(dump.floats("logits"), hidden, 1e-4, "dump");
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Llama, TinyModels,
                         testing::Values("llama", "llama-tied", "llama3-rope-scaling",
                                         "llama-linear-rope", "llama-yarn"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Relatives, TinyModels,
                         testing::Values("mistral-sliding-window", "qwen2", "qwen3", "phi3",
                                         "smollm3", "granite", "olmo2", "stablelm", "starcoder2",
                                         "gemma2", "gemma3-text"),
                         test_name);

}  // namespace
}  // namespace mote::test
