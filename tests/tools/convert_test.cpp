// convert: Hugging Face folders of the llama family against their float32 references, in every
// style they come in.
#include <filesystem>
#include "tests/tools/checkpoint_support.h"

namespace mote::test {
namespace {

class Convert : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_TOOL(); }

  ToolResult convert(const std::string& folder, Words more = {}) {
    more.insert(more.begin(), {"convert", folder, "-o", out()});
    return run_tool(more);
  }
  std::string out() const { return folder_.path("out.gguf"); }
  std::string bytes(const std::string& folder, Words more = {}) {
    const ToolResult result = convert(folder, more);
    EXPECT_EQ(result.status, 0) << result.err;
    return read_all(out());
  }
  // A folder that cannot be converted leaves no file.
  void expect_refused(const Checkpoint& checkpoint, const std::string& what, Words more = {}) {
    const ToolResult result = convert(checkpoint.write(folder_), more);
    expect_failure(result, 1, what);
    EXPECT_FALSE(std::filesystem::exists(out())) << what;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      EXPECT_EQ(entry.path().filename(), "checkpoint");
    std::filesystem::remove_all(folder_.path("checkpoint"));
  }

  TemporaryFolder folder_;
};

std::string tiny(const std::string& name) { return MOTE_TEST_DATA "/tiny/" + name; }

class ConvertGolden : public Convert, public testing::WithParamInterface<const char*> {};

TEST_P(ConvertGolden, MatchesTheReference) {
  ASSERT_EQ(convert(tiny(GetParam())).status, 0);
  const std::string reference = tiny(GetParam()) + "/golden.safetensors";
  const ToolResult exact =
      run_tool({"compare", "-m", out(), "--reference", reference, "--tolerance", "1e-4", "--json"});
  EXPECT_EQ(exact.status, 0) << exact.err << exact.out;
  const Json json = exact.json();
  EXPECT_EQ(json["layers"].back()["name"], "logits");
  EXPECT_EQ(json["greedy"]["equal"], 24);
  const ToolResult half = run_tool({"compare", "-m", out(), "--reference", reference, "--tolerance",
                                    "2e-3", "--kv", "f16", "--chunk", "7"});
  EXPECT_EQ(half.status, 0) << half.err << half.out;
}
INSTANTIATE_TEST_SUITE_P(Tiny, ConvertGolden,
                         testing::Values("llama", "llama-tied", "llama3-rope-scaling",
                                         "llama-linear-rope", "llama-yarn"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

// rope_theta, rope_scaling and torch_dtype instead of rope_parameters and dtype.
TEST_P(ConvertGolden, OldConfigGivesTheSameFile) {
  const std::string expected = bytes(Checkpoint::load(GetParam()).write(folder_));
  Checkpoint old = Checkpoint::load(GetParam());
  Json rope = old.config["rope_parameters"];
  old.config.erase("rope_parameters");
  old.config["torch_dtype"] = old.config["dtype"];
  old.config.erase("dtype");
  old.config["rope_theta"] = rope["rope_theta"];
  rope.erase("rope_theta");
  if (rope["rope_type"] == "default") {
    rope = nullptr;
  } else if (rope["rope_type"] == "linear") {  // the oldest name
    rope["type"] = rope["rope_type"];
    rope.erase("rope_type");
  }
  old.config["rope_scaling"] = rope;
  EXPECT_EQ(bytes(old.write(folder_)), expected);
}

TEST_F(Convert, ShardsGiveTheSameFile) {
  const Checkpoint checkpoint = Checkpoint::load("llama");
  const std::string whole = bytes(checkpoint.write(folder_, "checkpoint"));
  std::filesystem::remove_all(folder_.path("checkpoint"));
  EXPECT_EQ(bytes(checkpoint.write(folder_, "checkpoint", 3)), whole);
}

TEST_F(Convert, TypesKeepVectorsAndFitRows) {
  const std::string folder = tiny("llama");
  const std::map<std::string, std::pair<std::string, std::string>> expected = {
      {"f32", {"f32", "f32"}},       {"f16", {"f16", "f16"}},        {"bf16", {"bf16", "bf16"}},
      {"q8_0", {"q8_0", "q8_0"}},    {"q4_0", {"q4_0", "q8_0"}},     {"q4_1", {"q4_1", "q8_0"}},
      {"q5_1", {"q5_1", "q8_0"}},    {"iq4_nl", {"iq4_nl", "q8_0"}}, {"q6_k", {"q8_0", "q8_0"}},
      {"q8_row", {"q8_row", "q8_0"}}};
  for (const auto& [type, formats] : expected) {
    ASSERT_EQ(convert(folder, {"--type", type}).status, 0) << type;
    const Json json = run_tool({"inspect", "-m", out(), "--json"}).json();
    for (const Json& tensor : json["tensors"]) {
      const std::string name = tensor["name"];
      const std::string wanted = tensor["shape"].size() == 1 ? "f32"
                                 : name == "output.weight"   ? formats.second
                                                             : formats.first;
      EXPECT_EQ(tensor["type"], wanted) << name << " of " << type;
    }
    // Rounded weights still give the reference's shape of things.
    const Json errors =
        run_tool({"compare", "-m", out(), "--reference", folder + "/golden.safetensors", "--json"})
            .json();
    EXPECT_LT(errors["layers"].back()["log10_relative_l2"].get<double>(),
              type.find('q') != std::string::npos ? -0.2 : -1.9)
        << type;
  }
}

TEST_F(Convert, RowsThatAreNoBlocksBecomeF16) {
  Checkpoint checkpoint = Checkpoint::load("llama");
  // A feed-forward of 90: rows of ffn_down are not whole blocks of 32.
  checkpoint.config["intermediate_size"] = 90;
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (name.find("mlp.") == std::string::npos) continue;
    for (int64_t& size : tensor.shape)
      if (size == 96) size = 90;
    tensor.bytes.resize(tensor.count() * 4);
  }
  const ToolResult result = convert(checkpoint.write(folder_), {"--type", "q8_0"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("3 tensors"), std::string::npos) << result.err;
  size_t seen = 0;
  const Json shown = run_tool({"inspect", "-m", out(), "--json"}).json();
  for (const Json& tensor : shown["tensors"])
    if (tensor["name"] == "blk.1.ffn_down.weight") {
      EXPECT_EQ(tensor["type"], "f16");
      ++seen;
    }
  EXPECT_EQ(seen, 1u);
}

TEST_F(Convert, HalfCheckpointsStayWhatTheyAre) {
  Checkpoint checkpoint = Checkpoint::load("llama");
  for (auto& [name, tensor] : checkpoint.tensors) {
    const std::vector<uint8_t> wide = tensor.bytes;
    tensor.bytes.clear();
    for (size_t i = 0; i < wide.size(); i += 4)
      tensor.bytes.insert(tensor.bytes.end(), {wide[i + 2], wide[i + 3]});
    tensor.dtype = "BF16";
  }
  ASSERT_EQ(convert(checkpoint.write(folder_)).status, 0);
  const Json shown = run_tool({"inspect", "-m", out(), "--json"}).json();
  ASSERT_FALSE(shown["tensors"].empty());
  for (const Json& tensor : shown["tensors"])
    EXPECT_EQ(tensor["type"], tensor["shape"].size() == 1 ? "f32" : "bf16");
}

TEST_F(Convert, TensorsThatDoNotFitAreNamed) {
  const std::string q_proj = "model.layers.1.self_attn.q_proj.weight";
  Checkpoint missing = Checkpoint::load("llama");
  missing.tensors.erase(q_proj);
  expect_refused(missing, q_proj);
  Checkpoint extra = Checkpoint::load("llama");
  extra.tensors["model.layers.0.mlp.router.weight"] = extra.tensors["model.norm.weight"];
  expect_refused(extra, "model.layers.0.mlp.router.weight");
  Checkpoint shape = Checkpoint::load("llama");
  shape.tensors[q_proj].shape = {32, 128};
  expect_refused(shape, q_proj);
  Checkpoint type = Checkpoint::load("llama");
  type.tensors[q_proj].dtype = "I32";
  expect_refused(type, q_proj);
  Checkpoint bias = Checkpoint::load("llama");
  bias.config["attention_bias"] = true;
  expect_refused(bias, "q_proj.bias");
  Checkpoint infinite = Checkpoint::load("llama");
  infinite.tensors[q_proj].bytes[3] = 0x7f;
  infinite.tensors[q_proj].bytes[2] = 0xc0;
  expect_refused(infinite, "blk.1.attn_q.weight", {"--no-tokenizer"});
}

TEST_F(Convert, TiedCopiesAndOldTablesAreSkipped) {
  Checkpoint tied = Checkpoint::load("llama-tied");
  const std::string expected = bytes(tied.write(folder_));
  tied.tensors["lm_head.weight"] = tied.tensors["model.embed_tokens.weight"];
  tied.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
      "F32", {8}, std::vector<uint8_t>(32)};
  EXPECT_EQ(bytes(tied.write(folder_)), expected);
}

TEST_F(Convert, ConfigsThatDoNotFitAreNamed) {
  const std::pair<Json, const char*> changes[] = {
      {{{"architectures", {"WhaleForCausalLM"}}}, "LlamaForCausalLM"},
      {{{"architectures", nullptr}}, "architectures"},
      {{{"hidden_size", nullptr}}, "hidden_size"},
      {{{"hidden_size", -64}}, "hidden_size"},
      {{{"num_hidden_layers", "three"}}, "num_hidden_layers"},
      {{{"num_key_value_heads", 3}}, "num_key_value_heads"},
      {{{"head_dim", 15}}, "head_dim"},
      {{{"hidden_act", "relu"}}, "hidden_act"},
      {{{"sliding_window", 128}}, "sliding_window"},
      {{{"rope_parameters", {{"rope_type", "longrope"}}}}, "rope_type"},
      {{{"rope_parameters", {{"rope_type", "linear"}}}}, "factor"},
      {{{"rope_parameters", 7}}, "rope_parameters"},
      {{{"vocab_size", 301}}, "embed_tokens"},
  };
  for (const auto& [change, what] : changes) {
    Checkpoint checkpoint = Checkpoint::load("llama");
    checkpoint.config.merge_patch(change);
    for (const auto& [key, value] : change.items())
      if (value.is_null()) checkpoint.config.erase(key);
    expect_refused(checkpoint, what);
  }
}

TEST_F(Convert, KeepsItsOwnInput) {
  const std::string copy = folder_.path("copy");
  std::filesystem::copy(tiny("llama"), copy);
  for (const char* name : {"/model.safetensors", "/config.json"}) {
    const ToolResult result = run_tool({"convert", copy, "-o", copy + name});
    EXPECT_EQ(result.status, 1);
    EXPECT_NE(result.err.find("is a file of the folder to convert"), std::string::npos)
        << result.err;
    EXPECT_EQ(std::filesystem::file_size(copy + name),
              std::filesystem::file_size(tiny("llama") + name));
  }
  EXPECT_EQ(run_tool({"convert", copy, "-o", copy + "/model.gguf"}).status, 0);
  EXPECT_EQ(run_tool({"convert", copy, "-o", copy + "/model.gguf"}).status, 0);
}

TEST_F(Convert, FoldersThatAreNone) {
  expect_failure(convert("/nowhere"), 1, "/nowhere");
  expect_failure(convert(folder_.path()), 1, "config.json");
  folder_.write("config.json", "{\"a\":");
  expect_failure(convert(folder_.path()), 1, "config.json");
  folder_.write("config.json", Checkpoint::load("llama").config.dump());
  expect_failure(convert(folder_.path()), 1, "model.safetensors");
  folder_.write("pytorch_model.bin", "x");
  expect_failure(convert(folder_.path()), 1, "save_pretrained");
}

TEST_F(Convert, DamagedShardsAreNamed) {
  const Checkpoint checkpoint = Checkpoint::load("llama");
  const std::string folder = checkpoint.write(folder_, "checkpoint", 2);
  const std::string index_path = folder + "/model.safetensors.index.json";
  const Json index = Json::parse(read_all(index_path));
  const auto refuse = [&](const char* tensor, const Json& value, const std::string& what) {
    Json changed = index;
    changed["weight_map"][tensor] = value;
    folder_.write("checkpoint/model.safetensors.index.json", changed.dump());
    expect_failure(convert(folder), 1, what);
  };
  refuse("lm_head.weight", "../model-0.safetensors", "lm_head.weight");
  refuse("lm_head.weight", 5, "lm_head.weight");
  refuse("lm_head.weight", "model-9.safetensors", "model-9.safetensors");
  refuse("model.none", "model-0.safetensors", "model.none");
  folder_.write("checkpoint/model.safetensors.index.json", index.dump());
  std::filesystem::remove(folder + "/model-1.safetensors");
  expect_failure(convert(folder), 1, "model-1.safetensors");
}

TEST_F(Convert, DamagedSafetensorsAreNamed) {
  Checkpoint checkpoint = Checkpoint::load("llama-linear-rope");
  const std::string folder = checkpoint.write(folder_),
                    good = safetensors_bytes(checkpoint.tensors);
  const auto refuse = [&](const std::string& bytes, const std::string& what) {
    folder_.write("checkpoint/model.safetensors", bytes);
    expect_failure(convert(folder), 1, what);
  };
  refuse("", "model.safetensors");
  refuse(good.substr(0, 7), "model.safetensors");
  refuse(good.substr(0, 100), "header");
  refuse(good.substr(0, good.size() - 1), "behind the end");
  refuse(good + "x", "the file at");
  std::string huge = good;
  huge[7] = '\x7f';
  refuse(huge, "header");
  const auto with_header = [](const std::string& header, const std::string& body) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
    return bytes + header + body;
  };
  const std::string body(8, 'x');
  refuse(with_header("[]", body), "JSON object");
  refuse(with_header(R"({"a": 5})", body), "tensor a");
  refuse(with_header(R"({"a": {"dtype": "F31", "shape": [2], "data_offsets": [0, 8]}})", body),
         "dtype");
  refuse(with_header(R"({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})", body),
         "shape");
  refuse(
      with_header(
          R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 8]}})",
          body),
      "too large");
  refuse(with_header(R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", body),
         "do not agree");
  refuse(with_header(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})", body),
         "ascending");
  refuse(with_header(R"({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})", body),
         "behind the end");
  refuse(with_header(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},)"
                     R"( "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
                     body),
         "overlap");
}

}  // namespace
}  // namespace mote::test
