// Tiny models of every architecture and tokenizer, made from TinyModel: what files have that run
// into each part of the readers and of the forward pass.
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gguf_builder.h"
#include "tests/support/random.h"
#include "tests/support/tiny_model.h"

namespace mote::test {

struct TinyFamily {
  std::string name;
  GgufBuilder builder;
  uint64_t seed = 0;  // another for each
};

namespace tiny_internal {

constexpr uint32_t kHidden = 32, kQuery = 32, kKeyValue = 16, kHead = 16, kLayers = 2;

inline GgufBuilder small_llama(Format matrices = Format::q4_0) {
  TinyModel tiny;
  tiny.layers = kLayers, tiny.hidden = kHidden, tiny.heads = 2, tiny.kv_heads = 1;
  tiny.head_dim = kHead, tiny.feed_forward = 64, tiny.context = 128;
  tiny.matrices = matrices;
  return tiny.builder();
}

inline GgufBuilder of_architecture(const std::string& name) {
  const std::string prefix = "llama.";
  GgufBuilder builder = small_llama();
  builder.text("general.architecture", name);
  for (GgufBuilder::Key& key : builder.keys)
    if (key.name.compare(0, prefix.size(), prefix) == 0)
      key.name = name + "." + key.name.substr(prefix.size());
  return builder;
}

// A vector in each layer, around `mean`.
inline void add_vectors(GgufBuilder* builder, const std::string& name, uint64_t size, float mean) {
  Random random(size + name.size());
  for (uint32_t i = 0; i < kLayers; ++i) {
    std::vector<float> values = random.normals(size, 0.2f);
    for (float& value : values) value += mean;
    builder->tensor("blk." + std::to_string(i) + "." + name, {size}, Format::f32, values);
  }
}

inline void rename_in_layers(GgufBuilder* builder, const std::string& from, const std::string& to) {
  for (uint32_t i = 0; i < kLayers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    builder->find_tensor(prefix + from).name = prefix + to;
  }
}

// Stacks the matrices into the first one, which gets the name `fused`.
inline void fuse_in_layers(GgufBuilder* builder, const std::vector<std::string>& parts,
                           const std::string& fused) {
  for (uint32_t i = 0; i < kLayers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    GgufBuilder::TensorEntry whole = builder->find_tensor(prefix + parts[0]);
    whole.name = prefix + fused;
    for (size_t part = 1; part < parts.size(); ++part) {
      const GgufBuilder::TensorEntry& more = builder->find_tensor(prefix + parts[part]);
      whole.shape[1] += more.shape[1];
      whole.data.insert(whole.data.end(), more.data.begin(), more.data.end());
    }
    for (const std::string& part : parts) builder->remove_tensor(prefix + part);
    builder->tensors.push_back(whole);
  }
}

inline GgufBuilder small_gemma(const std::string& name) {
  GgufBuilder builder = of_architecture(name);
  add_vectors(&builder, "post_attention_norm.weight", kHidden, 1.0f);
  add_vectors(&builder, "post_ffw_norm.weight", kHidden, 1.0f);
  builder.u32(name + ".attention.sliding_window", 8);
  builder.f32(name + ".final_logit_softcapping", 30.0f);
  return builder;
}

inline GgufBuilder small_stablelm() {
  GgufBuilder builder = of_architecture("stablelm");
  builder.remove_key("stablelm.attention.layer_norm_rms_epsilon");
  builder.f32("stablelm.attention.layer_norm_epsilon", 1e-5f);
  builder.u32("stablelm.rope.dimension_count", 4);
  add_vectors(&builder, "attn_norm.bias", kHidden, 0.0f);
  add_vectors(&builder, "ffn_norm.bias", kHidden, 0.0f);
  builder.tensor("output_norm.bias", {kHidden}, Format::f32, Random(7).normals(kHidden, 0.1f));
  return builder;
}

}  // namespace tiny_internal

// Replaces the tokenizer by SentencePiece's: all bytes and a few pieces, some of them special.
inline void use_sentencepiece(GgufBuilder* builder) {
  for (const char* key : {"tokenizer.ggml.merges", "tokenizer.ggml.pre"}) builder->remove_key(key);
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.emplace_back(text);
    types.push_back(6);
  }
  for (const char* text : {"▁", "▁t", "h", "e", "▁the", "he", "l", "o", "ll", "llo", "wör", "▁▁"}) {
    tokens.emplace_back(text);
    types.push_back(1);
  }
  tokens.emplace_back("[user]");
  types.push_back(4);
  std::vector<float> scores;
  for (size_t i = 0; i < tokens.size(); ++i) scores.push_back(-static_cast<float>(i));
  builder->text("tokenizer.ggml.model", "llama");
  builder->texts("tokenizer.ggml.tokens", tokens);
  builder->array("tokenizer.ggml.token_type", GgufType::i32, types);
  builder->array("tokenizer.ggml.scores", GgufType::f32, scores);
  builder->u32("tokenizer.ggml.bos_token_id", 1);
  builder->u32("tokenizer.ggml.eos_token_id", 2);
  builder->boolean("tokenizer.ggml.add_bos_token", true);
}

inline std::vector<TinyFamily> tiny_families() {
  using namespace tiny_internal;
  std::vector<TinyFamily> all;
  const auto add = [&](const char* name, GgufBuilder builder) -> GgufBuilder& {
    all.push_back({name, std::move(builder), all.size()});
    return all.back().builder;
  };
  add("llama", small_llama());
  use_sentencepiece(&add("sentencepiece", small_llama()));
  GgufBuilder& scaled = add("yarn", small_llama());
  scaled.text("llama.rope.scaling.type", "yarn");
  scaled.f32("llama.rope.scaling.factor", 4.0f);
  scaled.u32("llama.rope.scaling.original_context_length", 32);
  add_vectors(&add("qwen2", of_architecture("qwen2")), "attn_q.bias", kQuery, 0.0f);
  GgufBuilder& qwen3 = add("qwen3", of_architecture("qwen3"));
  add_vectors(&qwen3, "attn_q_norm.weight", kHead, 1.0f);
  add_vectors(&qwen3, "attn_k_norm.weight", kHead, 1.0f);
  use_sentencepiece(&add("gemma2", small_gemma("gemma2")));
  add("gemma3", small_gemma("gemma3")).f32("gemma3.rope.freq_base_swa", 5000.0f);
  add("granite", of_architecture("granite")).f32("granite.residual_scale", 0.5f);
  GgufBuilder& olmo2 = add("olmo2", of_architecture("olmo2"));
  rename_in_layers(&olmo2, "attn_norm.weight", "post_attention_norm.weight");
  rename_in_layers(&olmo2, "ffn_norm.weight", "post_ffw_norm.weight");
  add_vectors(&olmo2, "attn_q_norm.weight", kQuery, 1.0f);
  add_vectors(&olmo2, "attn_k_norm.weight", kKeyValue, 1.0f);
  GgufBuilder& phi3 = add("phi3", of_architecture("phi3"));
  fuse_in_layers(&phi3, {"attn_q.weight", "attn_k.weight", "attn_v.weight"}, "attn_qkv.weight");
  fuse_in_layers(&phi3, {"ffn_gate.weight", "ffn_up.weight"}, "ffn_up.weight");
  add("smollm3", of_architecture("smollm3"));
  add("stablelm", small_stablelm());
  return all;
}

}  // namespace mote::test
