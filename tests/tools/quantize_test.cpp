// quantize: formats and mixtures, what stays as it is, and what is refused without a trace.
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "tests/support/tiny_families.h"
#include "tests/support/tiny_model.h"
#include "tests/tools/tool_support.h"

namespace mote::test {
namespace {

class Quantize : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_TOOL(); }

  std::string write(const GgufBuilder& file, const std::string& name = "in.gguf") const {
    const Bytes bytes = file.build();
    return folder_.write(name, std::string(bytes.begin(), bytes.end()));
  }
  std::string out() const { return folder_.path("out.gguf"); }
  ToolResult quantize(const std::string& in, const std::string& type, Words more = {}) const {
    more.insert(more.begin(), {"quantize", in, out(), "--type", type});
    return run_tool(more);
  }
  // Format by tensor, as the file has it.
  std::map<std::string, std::string> formats(const std::string& in, const std::string& type,
                                             const Words& more = {}) const {
    const ToolResult result = quantize(in, type, more);
    EXPECT_EQ(result.status, 0) << result.err;
    std::map<std::string, std::string> found;
    const Json shown = run_tool({"inspect", "-m", out(), "--json"}).json();
    for (const Json& tensor : shown["tensors"]) found[tensor["name"]] = tensor["type"];
    return found;
  }
  void expect_refused(const std::string& in, const std::string& type, const std::string& what,
                      const Words& more = {}) const {
    expect_failure(quantize(in, type, more), 1, what);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      EXPECT_EQ(entry.path().string(), in) << what;
  }

  TemporaryFolder folder_;
};

TinyModel float_model() {
  TinyModel model;
  model.matrices = model.embedding = Format::f32;
  return model;
}

// A file of weights only: what mixtures decide by is names and sizes.
GgufBuilder layers_of(uint32_t layers, uint64_t columns, bool tied = false) {
  GgufBuilder file;
  file.text("general.architecture", "llama");
  file.u32("general.file_type", 0);
  file.u32("llama.attention.head_count", 4);
  file.u32("llama.attention.head_count_kv", 2);
  file.text("some.key", "kept");
  Random random(3);
  const auto add = [&](const std::string& name) {
    file.tensor(name, {columns, 2}, Format::f32, random.normals(columns * 2, 0.1f));
  };
  add("token_embd.weight");
  if (!tied) add("output.weight");
  add("position_embd.weight");
  file.tensor("output_norm.weight", {columns}, Format::f32, random.normals(columns));
  for (uint32_t i = 0; i < layers; ++i)
    for (const char* part :
         {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
      add("blk." + std::to_string(i) + "." + part + ".weight");
  return file;
}

TEST_F(Quantize, EveryTypeKeepsTheModel) {
  const std::string in = write(float_model().builder());
  std::map<std::string, double> errors;
  for (const char* type :
       {"f32", "f16", "bf16", "q8_0", "q8_row", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}) {
    const ToolResult result = quantize(in, type, {"--json", "-t", "2"});
    ASSERT_EQ(result.status, 0) << result.err;
    const Json json = result.json();
    EXPECT_EQ(json["type"], type);
    EXPECT_EQ(json["bytes"], std::filesystem::file_size(out()));
    for (const Json& tensor : json["tensors"]) {
      EXPECT_EQ(tensor["from"], "f32");
      const bool matrix = tensor["to"] != "f32";
      EXPECT_EQ(tensor["rmse"].get<double>() > 0, matrix) << tensor;
      if (tensor["name"] == "blk.1.ffn_up.weight") errors[type] = tensor["rmse"];
    }
    const ToolResult run = run_tool({"generate", "-m", out(), "-p", "the", "-n", "3", "--json"});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.json()["generated_tokens"], 3);
  }
  EXPECT_EQ(errors["f32"], 0);
  EXPECT_LT(errors["f16"], errors["bf16"]);
  EXPECT_LT(errors["bf16"], errors["q8_0"]);
  EXPECT_LT(errors["q8_0"], errors["q8_row"]);
  EXPECT_LT(errors["q8_row"], errors["q5_1"]);
  EXPECT_LT(errors["q5_1"], errors["q5_0"]);
  EXPECT_LT(errors["q5_0"], errors["q4_1"]);
  EXPECT_LT(errors["q4_1"], errors["iq4_nl"]);
  EXPECT_LT(errors["iq4_nl"], errors["q4_0"]);
  EXPECT_LT(errors["q4_0"], 0.02);  // of a deviation of 0.15
}

TEST_F(Quantize, MixturesGiveBitsWhereTheEcosystemDoes) {
  const std::string in = write(layers_of(16, 256));
  struct Expected {
    const char *type, *most, *head, *value, *output, *down;  // a letter for each of 16 layers
  };
  // 2 .. 6: q2_k .. q6_k
  const Expected expected[] = {
      {"q2_k", "2", "6", "3333333333333333", "3333333333333333", "3333333333333333"},
      {"q2_k_s", "2", "6", "2222222222222222", "2222222222222222", "4422222222222222"},
      {"q3_k_s", "3", "6", "3333333333333333", "3333333333333333", "3333333333333333"},
      {"q3_k_m", "3", "6", "5544444444444444", "4444444444444444", "5444444444444444"},
      {"q3_k_l", "3", "6", "5555555555555555", "5555555555555555", "5555555555555555"},
      {"q4_k_s", "4", "6", "5555444444444444", "4444444444444444", "5544444444444444"},
      {"q4_k_m", "4", "6", "6644644644644666", "4444444444444444", "6644644644644666"},
      {"q5_k_s", "5", "6", "5555555555555555", "5555555555555555", "5555555555555555"},
      {"q5_k_m", "5", "6", "6655655655655666", "5555555555555555", "6655655655655666"},
      {"q6_k", "6", "6", "6666666666666666", "6666666666666666", "6666666666666666"}};
  for (const Expected& e : expected) {
    auto found = formats(in, e.type);
    const auto name = [](char letter) { return std::string("q") + letter + "_k"; };
    EXPECT_EQ(found["token_embd.weight"], name(*e.most)) << e.type;
    EXPECT_EQ(found["output.weight"], name(*e.head)) << e.type;
    EXPECT_EQ(found["position_embd.weight"], "f32") << e.type;
    EXPECT_EQ(found["output_norm.weight"], "f32") << e.type;
    for (int i = 0; i < 16; ++i) {
      const std::string layer = "blk." + std::to_string(i) + ".";
      for (const char* part : {"attn_q", "attn_k", "ffn_gate", "ffn_up"})
        EXPECT_EQ(found[layer + part + ".weight"], name(*e.most)) << e.type << " " << layer << part;
      EXPECT_EQ(found[layer + "attn_v.weight"], name(e.value[i])) << e.type << " " << i;
      EXPECT_EQ(found[layer + "attn_output.weight"], name(e.output[i])) << e.type << " " << i;
      EXPECT_EQ(found[layer + "ffn_down.weight"], name(e.down[i])) << e.type << " " << i;
    }
  }
  EXPECT_EQ(formats(in, "iq4_xs")["blk.1.ffn_down.weight"], "q5_k");
  EXPECT_EQ(formats(in, "iq4_xs")["blk.2.ffn_down.weight"], "iq4_xs");
  EXPECT_EQ(formats(in, "q4_0")["output.weight"], "q6_k");
  EXPECT_EQ(formats(in, "q8_0")["output.weight"], "q8_0");
  EXPECT_EQ(formats(in, "q4_k")["blk.0.ffn_down.weight"], "q6_k");  // q4_k_m
  EXPECT_EQ(formats(in, "q4_k", {"--pure"})["blk.0.ffn_down.weight"], "q4_k");
  EXPECT_EQ(formats(in, "q4_k", {"--pure"})["output.weight"], "q4_k");
}

TEST_F(Quantize, TheEmbeddingIsTheHeadWhereThereIsNone) {
  const std::string in = write(layers_of(1, 256, true));
  EXPECT_EQ(formats(in, "q4_0")["token_embd.weight"], "q6_k");
  EXPECT_EQ(formats(in, "q4_0", {"--pure"})["token_embd.weight"], "q4_0");
}

TEST_F(Quantize, FewKeyHeadsGetMoreBits) {
  GgufBuilder file = layers_of(1, 256);
  file.u32("llama.attention.head_count_kv", 1);
  const std::string in = write(file);
  EXPECT_EQ(formats(in, "q2_k")["blk.0.attn_v.weight"], "q4_k");
  EXPECT_EQ(formats(in, "iq4_nl")["blk.0.attn_v.weight"], "q5_k");
}

TEST_F(Quantize, RowsThatAreNoBlocksFallBackAloud) {
  const std::map<std::string, std::string> expected = {{"q2_k", "iq4_nl"},   {"q3_k_s", "iq4_nl"},
                                                       {"iq4_xs", "iq4_nl"}, {"q4_k_s", "q5_0"},
                                                       {"q5_k_s", "q5_1"},   {"q6_k", "q8_0"}};
  const std::string in = write(layers_of(1, 96));
  for (const auto& [type, format] : expected) {
    const ToolResult result = quantize(in, type, {"--json", "--pure"});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.err.find("rows of 96"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("warning: 9 tensors"), std::string::npos) << result.err;
    const Json summary = result.json();
    for (const Json& tensor : summary["tensors"]) {
      if (tensor["name"] == "output_norm.weight" || tensor["name"] == "position_embd.weight") {
        EXPECT_FALSE(tensor.contains("wanted"));
        continue;
      }
      EXPECT_EQ(tensor["to"], format) << tensor;
      EXPECT_EQ(tensor["wanted"], type.substr(0, type[0] == 'q' ? 4 : 6));
    }
  }
  const std::string odd = write(layers_of(1, 90), "odd.gguf");
  EXPECT_EQ(formats(odd, "q4_0")["blk.0.ffn_up.weight"], "f16");
  // What mote would not read it does not write.
  EXPECT_EQ(formats(in, "q8_row")["blk.0.ffn_up.weight"], "q8_row");
  const std::string wide = write(layers_of(1, 65568), "wide.gguf");
  EXPECT_EQ(formats(wide, "q8_row")["blk.0.ffn_up.weight"], "q8_0");
  EXPECT_EQ(formats(wide, "q8_row-packed")["blk.0.ffn_up.weight"], "q8_0");  // of two rows
}

TEST_F(Quantize, KeysAreKept) {
  const std::string in = write(layers_of(1, 256));
  ASSERT_EQ(quantize(in, "q4_k_s").status, 0);
  const auto keys = [](const std::string& path) {
    std::map<std::string, Json> found;
    const Json shown = run_tool({"inspect", "-m", path, "--json"}).json();
    for (const auto& [name, value] : shown["keys"].items()) found[name] = value;
    return found;
  };
  auto before = keys(in), after = keys(out());
  EXPECT_EQ(before["some.key"], after["some.key"]);
  EXPECT_NE(before["general.file_type"], after["general.file_type"]);
  EXPECT_NE(after["general.file_type"].dump().find("14"), std::string::npos);
  EXPECT_EQ(after.count("general.quantization_version"), 1u);
  EXPECT_EQ(after.size(), before.size() + 1);
}

TEST_F(Quantize, QuantizedFilesAreQuantizedAgainOnDemandOnly) {
  const std::string in = write(TinyModel().builder());  // q4_1, embedding q8_0
  expect_refused(in, "q4_0", "is q4_1 already: quantizing it again to q4_0");
  const ToolResult forced = quantize(in, "q4_0", {"--requantize", "--json"});
  ASSERT_EQ(forced.status, 0) << forced.err;
  EXPECT_NE(forced.err.find("warning: "), std::string::npos);
  // To numbers and back: the same bits are not promised, but next to nothing is lost.
  const std::string plain = folder_.path("plain.gguf");
  ASSERT_EQ(run_tool({"quantize", in, plain, "--type", "f32"}).status, 0);
  const ToolResult back = quantize(plain, "q4_1", {"--json"});
  ASSERT_EQ(back.status, 0) << back.err;
  const Json summary = back.json();
  for (const Json& tensor : summary["tensors"]) EXPECT_LT(tensor["rmse"], 0.002) << tensor;
}

TEST_F(Quantize, TensorsOfTheSameFormatAreCopied) {
  TinyModel model;
  model.matrices = model.embedding = Format::q8_0;
  const std::string in = write(model.builder());
  ASSERT_EQ(quantize(in, "q8_0").status, 0);
  const std::string first = read_all(out());
  ASSERT_EQ(run_tool({"quantize", out(), folder_.path("twice.gguf"), "--type", "q8_0"}).status, 0);
  EXPECT_EQ(read_all(folder_.path("twice.gguf")), first);
}

TEST_F(Quantize, OptionsOfTypesDoNotApplyToPacking) {
  const std::string in = write(TinyModel().builder());
  for (const char* type : {"packed", "unpacked"})
    for (const Words& option :
         {Words{"--pure"}, Words{"--requantize"}, Words{"--calibrate", "text"}})
      expect_failure(quantize(in, type, option), 2,
                     option[0] + " does not apply to --type " + type);
  EXPECT_FALSE(std::filesystem::exists(out()));
}

// There and back gives the same file; what cannot be packed says why.
TEST_F(Quantize, PackedKeepsTheBits) {
  TinyModel model;
  model.tied = false;
  const std::string in = write(model.builder());  // q4_1, embedding and head q8_0
  ASSERT_EQ(quantize(in, "unpacked").status, 0);
  const std::string native = read_all(out());
  const Words run = {"generate", "-m", out(), "--ids", "5,6,7", "-n", "9", "--json"};
  const Json expected = run_tool(run).json()["tokens"];

  const ToolResult packed = quantize(in, "packed", {"--json"});
  ASSERT_EQ(packed.status, 0) << packed.err;
  EXPECT_NE(packed.err.find("not packed: only looked up"), std::string::npos) << packed.err;
  const Json summary = packed.json();
  for (const Json& tensor : summary["tensors"]) {
    EXPECT_EQ(tensor["rmse"], 0);
    if (tensor["name"] == "token_embd.weight") {
      EXPECT_EQ(tensor["to"], "q8_0");
      EXPECT_EQ(tensor["not_packed"], "only looked up");
    } else if (tensor["from"] != "f32") {
      EXPECT_EQ(tensor["to"], tensor["from"].get<std::string>() + "_packed") << tensor;
    }
  }
  EXPECT_EQ(run_tool(run).json()["tokens"], expected);
  const std::string file = folder_.path("packed.gguf");
  std::filesystem::rename(out(), file);
  EXPECT_NE(read_all(file), native);
  EXPECT_EQ(formats(file, "packed")["output.weight"], "q8_0_packed");
  EXPECT_EQ(read_all(out()), read_all(file));
  ASSERT_EQ(quantize(file, "unpacked").status, 0);
  EXPECT_EQ(read_all(out()), native);

  // To other formats as from the native file.
  ASSERT_EQ(quantize(file, "f16").status, 0);
  const std::string plain = read_all(out());
  ASSERT_EQ(quantize(in, "f16").status, 0);
  EXPECT_EQ(read_all(out()), plain);
  expect_failure(quantize(file, "q4_0"), 1, "is q8_0 already");
}

TEST_F(Quantize, PackedTypes) {
  const std::string in = write(float_model().builder());
  ASSERT_EQ(quantize(in, "q4_0").status, 0);
  const std::string native = read_all(out());
  auto found = formats(in, "q4_0-packed");
  EXPECT_EQ(found["blk.0.ffn_up.weight"], "q4_0_packed");
  EXPECT_EQ(found["blk.0.attn_norm.weight"], "f32");
  const std::string file = folder_.path("packed.gguf");
  std::filesystem::rename(out(), file);
  ASSERT_EQ(quantize(file, "q4_0").status, 0);
  EXPECT_EQ(read_all(out()), native);
  expect_failure(quantize(in, "f16-packed"), 2, "expected one of");
  expect_failure(quantize(in, "-packed"), 2, "expected one of");
}

TEST_F(Quantize, ThreadsChangeNothing) {
  const std::string in = write(layers_of(2, 512));
  ASSERT_EQ(quantize(in, "q3_k_m", {"-t", "1"}).status, 0);
  const std::string one = read_all(out());
  ASSERT_EQ(quantize(in, "q3_k_m", {"-t", "3"}).status, 0);
  EXPECT_EQ(read_all(out()), one);
}

// Errors move to inputs that the text does not use: the plain error grows, and the model's own
// outputs come closer.
TEST_F(Quantize, CalibrationWeighsByTheText) {
  TinyModel model = float_model();
  model.hidden = 96;
  const std::string in = write(model.builder());
  std::string text;
  for (int i = 0; i < 40; ++i) text += "the cat and the other one of the " + std::to_string(i);
  const std::string file = folder_.write("text.txt", text);
  const auto errors = [&](const Words& more) {
    std::map<std::string, double> found;
    Words words = more;
    words.push_back("--json");
    const ToolResult result = quantize(in, "q4_0", words);
    EXPECT_EQ(result.status, 0) << result.err;
    const Json json = result.json();
    for (const Json& tensor : json["tensors"]) found[tensor["name"]] = tensor["rmse"];
    return found;
  };
  auto plain = errors({}), weighted = errors({"--calibrate", file});
  for (const auto& [name, error] : plain) {
    if (error > 0) {
      EXPECT_GT(weighted[name], error) << name;
      EXPECT_LT(weighted[name], 1.5 * error) << name;
    }
  }
  const std::string calibrated = read_all(out());
  ASSERT_EQ(quantize(in, "q4_0", {"--calibrate", file, "-t", "2"}).status, 0);
  EXPECT_EQ(read_all(out()), calibrated);
}

TEST_F(Quantize, CalibrationNeedsATextAndAModel) {
  TinyModel model = float_model();
  model.tokenizer = false;
  const std::string in = write(model.builder());
  const TemporaryFolder other;
  const std::string text = other.write("text.txt", "a text");
  expect_refused(in, "q4_0", "tokenizer", {"--calibrate", text});
  write(float_model().builder());
  expect_refused(in, "q4_0", "no-such-file", {"--calibrate", folder_.path("no-such-file")});
  expect_refused(in, "q4_0", "found no tokens", {"--calibrate", other.write("empty.txt", "")});
  write(tiny_internal::small_bert_classifier());
  expect_refused(in, "q4_0", "--calibrate is for generators",
                 {"--calibrate", text, "--requantize"});
}

TEST_F(Quantize, BadValuesAreRefusedByName) {
  for (const float bad : {std::nanf(""), HUGE_VALF}) {
    GgufBuilder file = layers_of(1, 256);
    auto& tensor = file.find_tensor("blk.0.ffn_down.weight");
    std::memcpy(&tensor.data[4 * 300], &bad, 4);
    const std::string in = write(file);
    expect_refused(in, "q4_k_m", "blk.0.ffn_down.weight: holds a value that is not finite");
  }
  GgufBuilder file = layers_of(1, 256);
  const float large = 1e6f;
  std::memcpy(&file.find_tensor("blk.0.attn_q.weight").data[8], &large, 4);
  const std::string in = write(file);
  expect_refused(in, "f16", "blk.0.attn_q.weight: holds 1000000");
  EXPECT_EQ(quantize(in, "q8_0").status, 0);
  EXPECT_EQ(quantize(in, "bf16").status, 0);
}

// Scales of blocks are f16.
TEST_F(Quantize, ValuesTooLargeForAScaleAreRefused) {
  GgufBuilder file = layers_of(1, 256);
  const float large = 1e30f;
  std::memcpy(&file.find_tensor("blk.0.attn_q.weight").data[8], &large, 4);
  const std::string in = write(file);
  for (const char* type : {"q8_0", "q4_0", "q4_1", "q4_k_m", "q2_k", "q6_k"})
    expect_refused(in, type, "blk.0.attn_q.weight: holds 1e+30, which is too large for q");
}

TEST_F(Quantize, DamagedAndOddInputIsRefused) {
  const Bytes bytes = layers_of(1, 256).build();
  const std::string in = folder_.path("in.gguf");
  for (const size_t size : {size_t{0}, size_t{3}, size_t{100}, bytes.size() - 40}) {
    folder_.write("in.gguf", std::string(bytes.begin(), bytes.begin() + ptrdiff_t(size)));
    expect_refused(in, "q4_0", in);
  }
  folder_.write("in.gguf", std::string(bytes.begin(), bytes.end()));
  expect_failure(run_tool({"quantize", in, in, "--type", "q4_0"}), 1, "is an input too");
  expect_failure(run_tool({"quantize", in, folder_.path(), "--type", "q4_0"}), 1, "directory");
  expect_failure(run_tool({"quantize", folder_.path("none"), out(), "--type", "q4_0"}), 1, "none");
  expect_failure(quantize(in, "q9"), 2, "q4_k_m");
  EXPECT_EQ(read_all(in), std::string(bytes.begin(), bytes.end()));
}

// A limit on the size of files stands in for a full disk.
TEST_F(Quantize, FullDiskLeavesNothing) {
  GgufBuilder file;
  Random random(1);
  file.text("general.architecture", "llama");
  file.tensor("token_embd.weight", {1024, 1024}, Format::f16, random.normals(1024 * 1024));
  const std::string in = write(file);
  const std::string before = folder_.write("out.gguf", "before");
  rlimit usual;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  rlimit limit = usual;
  limit.rlim_cur = 100 << 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const ToolResult result = quantize(in, "f32");
  setrlimit(RLIMIT_FSIZE, &usual);
  expect_failure(result, 1, out());
  EXPECT_EQ(read_all(out()), "before");
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    ++files;
  EXPECT_EQ(files, 2u);
}

}  // namespace
}  // namespace mote::test
