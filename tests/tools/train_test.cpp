// mote train as its users run it: a tiny encoder, a few texts, and the file it writes.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/gguf.h"
#include "core/mapped_file.h"
#include "tests/tools/checkpoint_support.h"

namespace mote::test {
namespace {

// The words of the tests' texts, as a WordPiece vocabulary of the tiny model's 300 tokens.
std::string vocabulary() {
  std::string text;
  size_t lines = 0;
  for (const char* token :
       {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "lamp",   "light", "on", "off",
        "the",   "turn",  "red",   "rain",  "sun",    "snow",   "will",  "it", "today",
        "cold",  "play",  "jazz",  "song",  "loud",   "please", "rock"})
    text += std::string(token) + "\n", ++lines;
  for (; lines < 300; ++lines) text += "[unused" + std::to_string(lines) + "]\n";
  return text;
}

constexpr const char* kTexts =
    "light\tlamp on\nlight\tturn the light on\nlight\tlight off please\nlight\tred lamp\n"
    "light\tturn off the lamp\nlight\tthe lamp please\n"
    "weather\twill it rain\nweather\tsun today\nweather\tcold snow today\nweather\tis it cold\n"
    "weather\train or snow\nweather\twill the sun be out\n"
    "music\tplay jazz\nmusic\ta loud song\nmusic\tplay the song\nmusic\trock please\n"
    "music\tjazz or rock\nmusic\tplay it loud\n";

class Train : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_TOOL();
    Checkpoint checkpoint = Checkpoint::load("bert-masked-lm");
    checkpoint.files["vocab.txt"] = vocabulary();
    encoder_ = folder_.path("encoder.gguf");
    const ToolResult result = run_tool({"convert", checkpoint.write(folder_), "-o", encoder_});
    ASSERT_EQ(result.status, 0) << result.err;
    data_ = folder_.write("texts.tsv", kTexts);
  }

  std::string out(const std::string& name = "out.gguf") const { return folder_.path(name); }
  ToolResult train(Words more, const std::string& data = "") const {
    more.insert(more.begin(),
                {"train", "-m", encoder_, "--data", data.empty() ? data_ : data, "-o", out()});
    return run_tool(more);
  }
  void expect_refused(const std::string& texts, const std::string& what, Words more = {}) const {
    expect_failure(train(more, folder_.write("bad.tsv", texts)), 1, what);
    EXPECT_FALSE(std::filesystem::exists(out()));
  }

  TemporaryFolder folder_;
  std::string encoder_, data_;
};

TEST_F(Train, WritesAClassifierThatClassifies) {
  const ToolResult result =
      train({"--json", "--validate", "0.34", "--l2", "0.01", "--test", data_});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json report = result.json();
  EXPECT_EQ(report["labels"], Json({"light", "music", "weather"}));
  EXPECT_EQ(report["texts"], 18);
  EXPECT_EQ(report["training_texts"], 12);
  EXPECT_EQ(report["confusion"].size(), 3u);
  for (const char* key : {"accuracy", "macro_f1", "calibration_error", "temperature"})
    EXPECT_TRUE(report[key].is_number()) << key;
  EXPECT_TRUE(report["baseline"]["accuracy"].is_number());
  // The final head has seen these texts.
  EXPECT_GE(report["test"]["accuracy"], 0.9);

  // The file gives what the report says of it: alone, the head's texts are all that it knows.
  size_t right = 0, texts = 0;
  std::string lines;
  std::vector<std::string> labels;
  std::istringstream stream(kTexts);
  for (std::string line; std::getline(stream, line); ++texts) {
    labels.push_back(line.substr(0, line.find('\t')));
    lines += line.substr(line.find('\t') + 1) + "\n";
  }
  const ToolResult classified =
      run_tool({"classify", "-m", out(), "--file", folder_.write("lines.txt", lines), "--json"});
  ASSERT_EQ(classified.status, 0) << classified.err;
  const std::vector<Json> found = classified.json_lines();
  ASSERT_EQ(found.size(), texts);
  for (size_t i = 0; i < texts; ++i) {
    right += found[i]["labels"][0]["label"] == labels[i];
    double sum = 0;
    for (const Json& label : found[i]["labels"]) sum += label["score"].get<double>();
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  EXPECT_NEAR(double(right) / double(texts), report["test"]["accuracy"].get<double>(), 1e-9);
}

TEST_F(Train, TheEncoderStaysAsItIs) {
  ASSERT_EQ(train({"--l2", "1"}).status, 0);
  Allocator allocator;
  MappedFile before, after;
  GgufFile encoder, classifier;
  ASSERT_TRUE(before.open(encoder_.c_str(), 0, allocator).ok());
  ASSERT_TRUE(after.open(out().c_str(), 0, allocator).ok());
  ASSERT_TRUE(encoder.open(before.data(), before.size(), "encoder", allocator).ok());
  ASSERT_TRUE(classifier.open(after.data(), after.size(), "classifier", allocator).ok());
  size_t same = 0;
  for (const Tensor& tensor : encoder.tensors()) {
    const bool head = tensor.name.substr(0, 4) == "cls.";
    const Tensor* kept = classifier.find_tensor(tensor.name);
    if (head) continue;
    ASSERT_TRUE(kept) << tensor.name;
    EXPECT_EQ(kept->format, tensor.format);
    ASSERT_EQ(kept->bytes, tensor.bytes);
    EXPECT_TRUE(std::equal(tensor.data, tensor.data + tensor.bytes, kept->data)) << tensor.name;
    ++same;
  }
  EXPECT_GT(same, 30u);
  EXPECT_EQ(classifier.tensors().size(), same + 2);
  const Tensor* weight = classifier.find_tensor("cls.output.weight");
  ASSERT_TRUE(weight);
  EXPECT_EQ(weight->columns(), 64u);
  EXPECT_EQ(weight->rows(), 3u);
  for (const GgufKey& key : encoder.keys()) {
    if (key.name == "mote.task" || key.name.substr(0, 10) == "mote.head.") continue;
    const GgufKey* kept = classifier.find(key.name);
    ASSERT_TRUE(kept) << key.name;
    EXPECT_TRUE(key.bytes == kept->bytes && std::equal(key.data, key.data + key.bytes, kept->data));
  }
}

TEST_F(Train, SameFileForAnyNumberOfThreads) {
  ASSERT_EQ(train({"-t", "1", "--class-weights", "balanced"}).status, 0);
  const std::string one = read_all(out());
  ASSERT_EQ(train({"-t", "3", "--class-weights", "balanced"}).status, 0);
  EXPECT_EQ(read_all(out()), one);
}

// Another label set on a classifier: the old head goes.
TEST_F(Train, AClassifierIsAnEncoderToo) {
  ASSERT_EQ(train({"--l2", "1"}).status, 0);
  const std::string two = folder_.write(
      "two.jsonl",
      "{\"label\": \"b\", \"text\": \"lamp on\"}\n{\"label\": \"b\", \"text\": \"red lamp\"}\n"
      "{\"label\": \"a\", \"text\": \"jazz\"}\n{\"label\": \"a\", \"text\": \"rock\"}\n");
  const ToolResult result = run_tool(
      {"train", "-m", out(), "--data", two, "-o", out("two.gguf"), "--validate", "0", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.json()["measured_on"], "cross-validation");
  const ToolResult classified = run_tool({"classify", "-m", out("two.gguf"), "red lamp", "--json"});
  ASSERT_EQ(classified.status, 0) << classified.err;
  EXPECT_EQ(classified.json()["labels"].size(), 2u);
  EXPECT_EQ(classified.json()["labels"][0]["label"], "b");
}

TEST_F(Train, FaultsOfTheDataAreNamed) {
  expect_refused("a\tone\n", "expected at least two labels, found only 'a'");
  expect_refused("a\tone\na\ttwo\nb\tthree\n", "label 'a': expected at least 3 different texts");
  expect_refused("a\tone\na\n", "bad.tsv: line 2: expected 2 fields");
  const std::string test = folder_.write("test.tsv", "light\tx\nother\ty\n");
  expect_refused(kTexts, "test.tsv: line 2: label 'other' does not occur", {"--test", test});
  expect_failure(train({}, folder_.path("none.tsv")), 1, "none.tsv");
  expect_failure(train({}, folder_.write("x.txt", "a\tb\n")), 2, ".tsv");
  expect_failure(train({"--validate", "1"}), 2, "--validate");
  expect_failure(train({"--l2", "0"}), 2, "--l2");
  expect_failure(train({"--test", "-"}, "-"), 2, "- may be given once");
}

TEST_F(Train, AFolderThatIsNotThereIsToldBeforeAnyWork) {
  expect_failure(run_tool({"train", "-m", encoder_, "--data", data_, "-o", out("none/out.gguf")}),
                 1, "there is no folder");
}

TEST_F(Train, TheEncodersFileIsNotOverwritten) {
  const std::string before = read_all(encoder_);
  expect_failure(run_tool({"train", "-m", encoder_, "--data", data_, "-o", encoder_}), 1,
                 "is an input too");
  EXPECT_EQ(read_all(encoder_), before);
}

TEST_F(Train, RepeatedTextsAndContradictionsAreTold) {
  const ToolResult result =
      train({"--json", "--l2", "1"},
            folder_.write("more.tsv", std::string(kTexts) + "light\tlamp on\nmusic\tlamp on\n"));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.json()["duplicates"], 1);
  EXPECT_EQ(result.json()["texts"], 19);
  EXPECT_THAT(result.err, testing::HasSubstr("lines 1 and 20: light and music"));
}

// The report is what cannot be written, and why is said however late it shows.
TEST_F(Train, AFullDiskIsNamed) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const std::string err = folder_.path("err");
  const std::string command = tool_path() + " train -m '" + encoder_ + "' --data '" + data_ +
                              "' -o '" + out() + "' --l2 1 >/dev/full 2>'" + err + "'";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_THAT(read_all(err), testing::HasSubstr("stdout: cannot write: No space left"));
}

TEST_F(Train, AGeneratorIsRefused) {
  expect_failure(run_tool({"train", "-m", write_tiny_model(folder_), "--data", data_, "-o", out()}),
                 1, "no encoder");
}

}  // namespace
}  // namespace mote::test
