// convert: what the settings of LLaMA's relatives become, in each style that published configs
// have, and which are refused. That the models compute what they should is golden/tiny_models_test.
#include <algorithm>
#include <cmath>

#include "tests/tools/checkpoint_support.h"

namespace mote::test {
namespace {

class Families : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_TOOL(); }

  ToolResult convert(const Checkpoint& checkpoint) {
    std::filesystem::remove_all(folder_.path("checkpoint"));
    return run_tool({"convert", checkpoint.write(folder_), "-o", out(), "--type", "f32"});
  }
  std::string bytes(const Checkpoint& checkpoint) {
    const ToolResult result = convert(checkpoint);
    EXPECT_EQ(result.status, 0) << result.err;
    return read_all(out());
  }
  // The keys of what a config with changes becomes; a null takes a setting out.
  Json keys(const std::string& name, const Json& changes = Json::object()) {
    const ToolResult result = convert(changed(name, changes));
    EXPECT_EQ(result.status, 0) << result.err;
    return run_tool({"inspect", "-m", out(), "--json"}).json()["keys"];
  }
  static Checkpoint changed(const std::string& name, const Json& changes) {
    Checkpoint checkpoint = Checkpoint::load(name);
    checkpoint.config.merge_patch(changes);
    return checkpoint;
  }
  std::string out() const { return folder_.path("out.gguf"); }

  TemporaryFolder folder_;
};

#define SKIP_WITHOUT_CASE(name) \
  if (tiny_folder(name).empty()) GTEST_SKIP() << "MOTE_SHARED_DIR names no folder with " << name

struct Family {
  const char* name;
  Json keys;  // beyond those that all have
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

class FamilyKeys : public Families, public testing::WithParamInterface<Family> {};

TEST_P(FamilyKeys, AreWhatReadersExpect) {
  SKIP_WITHOUT_CASE(GetParam().name);
  const Json found = keys(GetParam().name);
  const std::string prefix = found["general.architecture"].get<std::string>() + ".";
  Json own = Json::object();
  for (const auto& [key, value] : found.items())
    if (key.rfind("general.", 0) != 0) own[key] = value;
  for (const char* usual :
       {"vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length",
        "attention.head_count", "attention.head_count_kv", "attention.key_length",
        "attention.value_length", "rope.freq_base"})
    EXPECT_EQ(own.erase(prefix + usual), 1u) << usual;
  for (auto& [key, value] : own.items())
    if (value.is_number_float()) value = std::round(value.get<double>() * 1e6) / 1e6;
  EXPECT_EQ(own, GetParam().keys);
}

const double kEpsilon = 0.002;
INSTANTIATE_TEST_SUITE_P(
    Tiny, FamilyKeys,
    testing::Values(Family{"mistral-sliding-window",
                           {{"llama.attention.layer_norm_rms_epsilon", kEpsilon},
                            {"llama.rope.dimension_count", 24},
                            {"llama.attention.sliding_window", 8}}},
                    Family{"qwen2",
                           {{"qwen2.attention.layer_norm_rms_epsilon", kEpsilon},
                            {"qwen2.rope.dimension_count", 16},
                            {"qwen2.attention.sliding_window", 0}}},
                    Family{"qwen3",
                           {{"qwen3.attention.layer_norm_rms_epsilon", kEpsilon},
                            {"qwen3.rope.dimension_count", 24},
                            {"qwen3.attention.sliding_window", 0}}},
                    Family{"phi3",
                           {{"phi3.attention.layer_norm_rms_epsilon", kEpsilon},
                            {"phi3.rope.dimension_count", 16},
                            {"phi3.attention.sliding_window", 12}}},
                    Family{"smollm3",
                           {{"smollm3.attention.layer_norm_rms_epsilon", kEpsilon},
                            {"smollm3.rope.dimension_count", 8}}},
                    Family{"granite",
                           {{"granite.attention.layer_norm_rms_epsilon", kEpsilon},
                            {"granite.rope.dimension_count", 16},
                            {"granite.embedding_scale", 3.0},
                            {"granite.residual_scale", 0.6},
                            {"granite.attention.scale", 0.2},
                            {"granite.logit_scale", 4.0}}},
                    Family{"olmo2",
                           {{"olmo2.attention.layer_norm_rms_epsilon", kEpsilon},
                            {"olmo2.rope.dimension_count", 16}}},
                    Family{"stablelm",
                           {{"stablelm.attention.layer_norm_epsilon", kEpsilon},
                            {"stablelm.rope.dimension_count", 4},
                            {"stablelm.use_parallel_residual", false}}},
                    Family{"starcoder2",
                           {{"starcoder2.attention.layer_norm_epsilon", kEpsilon},
                            {"starcoder2.rope.dimension_count", 16},
                            {"starcoder2.attention.sliding_window", 10}}},
                    Family{"gemma2",
                           {{"gemma2.attention.layer_norm_rms_epsilon", kEpsilon},
                            {"gemma2.rope.dimension_count", 24},
                            {"gemma2.attention.scale", 0.25},
                            {"gemma2.attn_logit_softcapping", 3.0},
                            {"gemma2.final_logit_softcapping", 1.0},
                            {"gemma2.attention.sliding_window", 8}}},
                    Family{"gemma3-text",
                           {{"gemma3.attention.layer_norm_rms_epsilon", kEpsilon},
                            {"gemma3.rope.dimension_count", 24},
                            {"gemma3.attention.scale", 0.25},
                            {"gemma3.rope.freq_base_swa", 10000.0},
                            {"gemma3.rope.scaling.type", "linear"},
                            {"gemma3.rope.scaling.factor", 8.0},
                            {"gemma3.attention.sliding_window", 8},
                            {"gemma3.attention.sliding_window_pattern", 3}}}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// Settings as transformers wrote them before version 5.
TEST_F(Families, OldConfigsGiveTheSameFile) {
  const std::pair<const char*, Json> olds[] = {
      {"gemma3-text",
       {{"rope_parameters", nullptr},
        {"layer_types", nullptr},
        {"_sliding_window_pattern", nullptr},
        {"rope_theta", 1000000.0},
        {"rope_local_base_freq", 10000.0},
        {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}},
        {"sliding_window_pattern", 3}}},
      {"stablelm",
       {{"rope_parameters", nullptr}, {"rope_theta", 10000}, {"partial_rotary_factor", 0.25}}},
      {"smollm3", {{"rope_parameters", nullptr}, {"rope_theta", 50000.0}}},
      {"phi3", {{"rope_parameters", nullptr}, {"rope_theta", 10000.0}, {"rope_scaling", nullptr}}},
  };
  for (const auto& [name, old] : olds)
    EXPECT_EQ(bytes(changed(name, old)), bytes(Checkpoint::load(name))) << name;
}

// What a class of transformers takes for a setting that config.json does not have.
TEST_F(Families, AbsentSettingsAreTheClassesOwn) {
  const Json gemma = keys("gemma3-text", {{"layer_types", nullptr},
                                          {"sliding_window", nullptr},
                                          {"query_pre_attn_scalar", nullptr},
                                          {"rope_parameters", nullptr},
                                          {"_sliding_window_pattern", nullptr}});
  EXPECT_EQ(gemma["gemma3.attention.sliding_window"], 4096);
  EXPECT_FALSE(gemma.contains("gemma3.attention.sliding_window_pattern"));
  EXPECT_EQ(gemma["gemma3.attention.scale"], 0.0625);
  EXPECT_EQ(gemma["gemma3.rope.freq_base"], 1e6);
  EXPECT_EQ(gemma["gemma3.rope.freq_base_swa"], 1e4);
  EXPECT_EQ(keys("stablelm", {{"rope_parameters", nullptr}})["stablelm.rope.dimension_count"], 4);
  EXPECT_EQ(keys("smollm3", {{"rope_parameters", nullptr}})["smollm3.rope.freq_base"], 2e6);
}

// A window that is null is none, one that is absent is that of the class.
TEST_F(Families, NullIsNotAbsent) {
  Checkpoint checkpoint = Checkpoint::load("gemma3-text");
  checkpoint.config["sliding_window"] = Json();
  ASSERT_EQ(convert(checkpoint).status, 0);
  const Json found = run_tool({"inspect", "-m", out(), "--json"}).json()["keys"];
  EXPECT_EQ(found["gemma3.attention.sliding_window"], 0);
}

TEST_F(Families, LayersWithoutAPeriodAreListed) {
  const Json gemma = keys(
      "gemma3-text", {{"layer_types", {"sliding_attention", "full_attention", "full_attention"}}});
  EXPECT_EQ(gemma["gemma3.attention.sliding_window_pattern"]["first"], Json({true, false, false}));
  const Json full = keys("gemma3-text",
                         {{"layer_types", {"full_attention", "full_attention", "full_attention"}}});
  EXPECT_EQ(full["gemma3.attention.sliding_window"], 0);
}

// GGUF has no key for other layers without rotary positions than every fourth: it is ours, and the
// reader follows it.
TEST_F(Families, LayersWithoutPositions) {
  EXPECT_FALSE(keys("smollm3").contains("mote.rope.layers"));
  EXPECT_EQ(keys("smollm3", {{"no_rope_layers", {1, 1, 0, 1}}})["mote.rope.layers"]["first"],
            Json({true, true, false, true}));
  const Json by_interval = {{"no_rope_layers", nullptr}, {"no_rope_layer_interval", 3}};
  EXPECT_EQ(keys("smollm3", by_interval)["mote.rope.layers"]["first"],
            Json({true, true, false, true}));
  // One layer without positions: what the last token sees is a set, whatever the order.
  Checkpoint one = changed("smollm3", {{"num_hidden_layers", 1}, {"layer_types", nullptr}});
  for (auto item = one.tensors.begin(); item != one.tensors.end();)
    item = item->first.rfind("model.layers.", 0) == 0 && item->first.rfind("model.layers.0.", 0)
               ? one.tensors.erase(item)
               : std::next(item);
  for (const bool turned : {false, true}) {
    one.config["no_rope_layers"] = {turned ? 1 : 0};
    ASSERT_EQ(convert(one).status, 0);
    std::vector<float> logits[2];
    const char* const orders[] = {"5,9,200,7", "200,5,9,7"};
    for (int i = 0; i < 2; ++i) {
      const std::string dump = folder_.path("dump.safetensors");
      ASSERT_EQ(run_tool({"dump", "-m", out(), "-o", dump, "--ids", orders[i], "--positions",
                          "last", "--kv", "f32"})
                    .status,
                0);
      logits[i] = SafeTensors(dump).floats("logits");
    }
    ASSERT_EQ(logits[0].size(), logits[1].size());
    float largest = 0, difference = 0;
    for (size_t i = 0; i < logits[0].size(); ++i) {
      largest = std::max(largest, std::fabs(logits[0][i]));
      difference = std::max(difference, std::fabs(logits[0][i] - logits[1][i]));
    }
    if (turned)
      EXPECT_GT(difference, 1e-2f * largest);
    else
      EXPECT_LT(difference, 1e-5f * largest);
  }
}

// Upper layers of Qwen2 with a window: layer_types, or max_window_layers in older configs.
TEST_F(Families, UpperLayersWithAWindow) {
  SKIP_WITHOUT_CASE("qwen2");
  Json windows = {{"use_sliding_window", true},
                  {"sliding_window", 5},
                  {"max_window_layers", 1},
                  {"layer_types", nullptr}};
  const Json old = keys("qwen2", windows);
  EXPECT_EQ(old["qwen2.attention.sliding_window"], 5);
  EXPECT_EQ(old["qwen2.attention.sliding_window_pattern"]["first"], Json({false, true, true}));
  const std::string expected = read_all(out());
  windows["layer_types"] = {"full_attention", "sliding_attention", "sliding_attention"};
  EXPECT_EQ(bytes(changed("qwen2", windows)), expected);
  windows["use_sliding_window"] = false;
  EXPECT_EQ(keys("qwen2", windows)["qwen2.attention.sliding_window"], 0);
}

struct Refusal {
  const char* name;
  Json change;
  std::vector<const char*> words;
};

const Refusal kRefusals[] = {
    {"phi3", {{"hidden_act", "gelu_new"}}, {"hidden_act", "silu", "gelu_new"}},
    {"phi3",
     {{"rope_parameters", {{"rope_type", "longrope"}, {"factor", 4}}}},
     {"rope_parameters.rope_type", "yarn", "longrope"}},
    {"phi3",
     {{"rope_parameters", nullptr}, {"rope_scaling", {{"type", "su"}}}},
     {"rope_scaling.type", "yarn", "su"}},
    {"phi3",
     {{"rope_parameters", {{"partial_rotary_factor", 0.2}}}},
     {"partial_rotary_factor", "even", "0.2"}},
    {"smollm3",
     {{"rope_scaling", {{"type", "linear"}, {"factor", 8}}}},
     {"rope_scaling", "rope_parameters", "factor 8"}},
    {"smollm3", {{"use_sliding_window", true}}, {"use_sliding_window", "false", "true"}},
    {"smollm3", {{"no_rope_layers", {1, 1, 0}}}, {"no_rope_layers", "4", "[1,1,0]"}},
    {"smollm3", {{"no_rope_layers", {1, 1, 0, 2}}}, {"no_rope_layers", "0 and 1", "2"}},
    {"smollm3",
     {{"layer_types", {"full_attention", "full_attention", "full_attention", "sliding_attention"}}},
     {"layer_types", "full_attention", "sliding_attention"}},
    {"smollm3",
     {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}},
     {"partial_rotary_factor", "expected 1", "0.5"}},
    {"stablelm", {{"qk_layernorm", true}}, {"qk_layernorm", "false", "true"}},
    {"stablelm", {{"quantization_config", {{"bits", 4}}}}, {"quantization_config", "null", "4"}},
    {"stablelm", {{"use_parallel_residual", 1}}, {"use_parallel_residual", "true or false", "1"}},
    // A norm is then one too many.
    {"stablelm", {{"use_parallel_residual", true}}, {"post_attention_layernorm"}},
    {"gemma3-text",
     {{"hidden_activation", "gelu"}},
     {"hidden_activation", "gelu_pytorch_tanh", "\"gelu\""}},
    {"gemma3-text", {{"attn_logit_softcapping", 50.0}}, {"attn_logit_softcapping", "null", "50.0"}},
    {"gemma3-text",
     {{"use_bidirectional_attention", true}},
     {"use_bidirectional_attention", "false", "true"}},
    {"gemma3-text", {{"query_pre_attn_scalar", 0}}, {"query_pre_attn_scalar", "more than 0"}},
    {"gemma3-text",
     {{"layer_types", {"full_attention", "full_attention", "chunked_attention"}}},
     {"layer_types", "sliding_attention", "chunked_attention"}},
    {"gemma3-text",
     {{"rope_parameters", {{"sliding_attention", {{"rope_type", "linear"}}}}}},
     {"rope_parameters.sliding_attention.rope_type", "default", "linear"}},
    // What the reader of the file would refuse.
    {"llama", {{"rms_norm_eps", 1}}, {"rms_norm_eps", "less than 1", "1"}},
    {"llama", {{"rms_norm_eps", -1e-6}}, {"rms_norm_eps", "less than 1", "-1e-06"}},
    {"llama", {{"rope_parameters", {{"rope_theta", 1}}}}, {"rope_theta", "more than 1"}},
    {"llama",
     {{"rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}}}},
     {"rope_parameters.full_attention", "not supported"}},
};

TEST_F(Families, WhatIsNotSupportedIsNamed) {
  for (const Refusal& refusal : kRefusals) {
    const ToolResult result = convert(changed(refusal.name, refusal.change));
    for (const char* word : refusal.words) expect_failure(result, 1, word);
    EXPECT_FALSE(std::filesystem::exists(out())) << refusal.change;
    std::filesystem::remove(out());
  }
}

// A setting that nothing knows may matter: it is shown, and the rest is converted.
TEST_F(Families, UnknownSettingsAreShown) {
  const ToolResult result =
      convert(changed("phi3", {{"mixture_depth", 3}, {"gated_by", false}, {"use_cache", false}}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("config.json: mixture_depth: is not known"), std::string::npos)
      << result.err;
  EXPECT_EQ(result.err.find("gated_by"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("use_cache"), std::string::npos) << result.err;
  for (const char* name : {"llama", "llama-yarn", "phi3", "smollm3", "stablelm", "gemma3-text"})
    EXPECT_EQ(convert(Checkpoint::load(name)).err.find("is not known"), std::string::npos) << name;
}

}  // namespace
}  // namespace mote::test
