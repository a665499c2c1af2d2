// dump: shapes, packing and values of what it writes.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "tests/support/safetensors.h"
#include "tests/tools/tool_support.h"

namespace mote::test {
namespace {

class Dump : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_TOOL();
    ASSERT_EQ(run_tool({"convert", folder("llama"), "-o", model()}).status, 0);
  }
  static std::string folder(const std::string& name) { return MOTE_TEST_DATA "/tiny/" + name; }
  std::string model() const { return folder_.path("llama.gguf"); }
  SafeTensors dump(Words words) {
    const std::string out = folder_.path("dump.safetensors");
    words.insert(words.begin(), {"dump", "-m", model(), "-o", out});
    const ToolResult result = run_tool(words);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, "");
    return SafeTensors(out);
  }

  TemporaryFolder folder_;
};

TEST_F(Dump, GoldenInputGivesPackedTensors) {
  const std::string golden_path = folder("llama") + "/golden.safetensors";
  const SafeTensors golden(golden_path);
  const SafeTensors found = dump({"--input", golden_path, "--hidden-states"});
  EXPECT_EQ(found["lengths"].longs(), golden["lengths"].longs());
  for (const char* name :
       {"hidden_states_0", "hidden_states_1", "hidden_states_2", "hidden_states_3", "logits"}) {
    ASSERT_EQ(found[name].shape, golden[name].shape) << name;
    const std::vector<float> a = found.floats(name), b = golden.floats(name);
    float largest = 0, worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::fabs(b[i]));
      worst = std::max(worst, std::fabs(a[i] - b[i]));
    }
    EXPECT_LE(worst, 1e-4f * largest) << name;
  }
}

// A name that belongs to something else than a file keeps what it has.
TEST_F(Dump, LeavesPipesAndFoldersAlone) {
  const std::string pipe = folder_.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& out : {pipe, folder_.path("")}) {
    const ToolResult result = run_tool({"dump", "-m", model(), "--ids", "1", "-o", out});
    EXPECT_EQ(result.status, 1);
    EXPECT_NE(result.err.find("expected a file or nothing there"), std::string::npos) << result.err;
  }
  struct stat found;
  ASSERT_EQ(stat(pipe.c_str(), &found), 0);
  EXPECT_TRUE(S_ISFIFO(found.st_mode));
}

TEST_F(Dump, ChunksGiveTheSameBytes) {
  const std::string golden = folder("llama") + "/golden.safetensors";
  const SafeTensors whole = dump({"--input", golden, "--hidden-states"});
  for (const char* chunk : {"1", "7"}) {
    const SafeTensors parts =
        dump({"--input", golden, "--hidden-states", "--chunk", chunk, "-t", "2"});
    for (const auto& [name, tensor] : whole.all())
      EXPECT_EQ(parts[name].bytes, tensor.bytes) << name;
  }
}

TEST_F(Dump, LastPositionOnly) {
  const SafeTensors all = dump({"--ids", "1,5,9,200", "--hidden-states"});
  const SafeTensors last = dump({"--ids", "1,5,9,200", "--hidden-states", "--positions", "last"});
  EXPECT_EQ(all["logits"].shape, (std::vector<int64_t>{4, 300}));
  EXPECT_EQ(last["logits"].shape, (std::vector<int64_t>{1, 300}));
  EXPECT_EQ(last["lengths"].longs(), std::vector<int64_t>{4});
  for (const char* name : {"logits", "hidden_states_0", "hidden_states_3"}) {
    const std::vector<float> rows = all.floats(name), row = last.floats(name);
    EXPECT_EQ(std::vector<float>(rows.end() - static_cast<ptrdiff_t>(row.size()), rows.end()), row)
        << name;
  }
  EXPECT_FALSE(dump({"--ids", "1"}).has("hidden_states_0"));
}

TEST_F(Dump, TextGivesTheLogitsOfItsIds) {
  const std::string tiny = write_tiny_model(folder_);
  const std::string a = folder_.path("a"), b = folder_.path("b");
  const std::string ids =
      run_tool({"tokenize", "-m", tiny, "the sea", "--json"}).json()["ids"].dump();
  ASSERT_EQ(run_tool({"dump", "-m", tiny, "-p", "the sea", "-o", a}).status, 0);
  ASSERT_EQ(run_tool({"dump", "-m", tiny, "--ids", ids, "-o", b}).status, 0);
  EXPECT_EQ(read_all(a), read_all(b));
  // Greedy decoding takes the largest of these.
  const std::vector<float> logits = SafeTensors(a).floats("logits");
  const std::vector<float> last(logits.end() - 300, logits.end());
  const auto best = std::max_element(last.begin(), last.end()) - last.begin();
  ASSERT_NE(best, 2) << "the end token, which is never given out";
  const Json json = run_tool({"generate", "-m", tiny, "--ids", ids, "-n", "1", "--json"}).json();
  EXPECT_EQ(json["tokens"], Json({best}));
}

TEST_F(Dump, FaultsLeaveNoFile) {
  const std::string out = folder_.path("none");
  expect_failure(run_tool({"dump", "-m", model(), "--ids", "1,300", "-o", out}), 1, "300");
  expect_failure(run_tool({"dump", "-m", model(), "-p", "x", "-o", out}), 1, "tokenizer");
  expect_failure(run_tool({"dump", "-m", model(), "--input", model(), "-o", out}), 1, model());
  expect_failure(run_tool({"dump", "-m", model(), "--ids", "1", "-o", "/nowhere/x"}), 1,
                 "/nowhere");
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path().filename(), "llama.gguf");
}

TEST_F(Dump, ComparePlotsAndRefuses) {
  const std::string golden = folder("llama") + "/golden.safetensors",
                    plot = folder_.path("errors.svg");
  ASSERT_EQ(run_tool({"compare", "-m", model(), "--reference", golden, "--plot", plot}).status, 0);
  EXPECT_EQ(read_all(plot).rfind("<svg", 0), 0u);
  expect_failure(
      run_tool({"compare", "-m", model(), "--reference", golden, "--tolerance", "1e-12"}), 1,
      "hidden_states_1");
  expect_failure(run_tool({"compare", "-m", model(), "--reference",
                           folder("llama-linear-rope") + "/golden.safetensors"}),
                 1, "expected");
}

}  // namespace
}  // namespace mote::test
