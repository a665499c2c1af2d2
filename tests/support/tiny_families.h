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
  GgufBuilder (*build)();  // takes a while
  uint64_t seed = 0;       // another for each
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
  builder.boolean("stablelm.use_parallel_residual", false);
  add_vectors(&builder, "attn_norm.bias", kHidden, 0.0f);
  add_vectors(&builder, "ffn_norm.bias", kHidden, 0.0f);
  builder.tensor("output_norm.bias", {kHidden}, Format::f32, Random(7).normals(kHidden, 0.1f));
  return builder;
}

// ---- Encoders ----

inline void add_matrix(GgufBuilder* builder, const std::string& name, uint64_t rows,
                       uint64_t columns, Format format = Format::f32) {
  Random random(rows + name.size());
  builder->tensor(name, {columns, rows}, format, random.normals(rows * columns, 0.2f));
}
inline void add_vector(GgufBuilder* builder, const std::string& name, uint64_t size, float mean) {
  std::vector<float> values = Random(size + name.size()).normals(size, 0.2f);
  for (float& value : values) value += mean;
  builder->tensor(name, {size}, Format::f32, values);
}

inline GgufBuilder small_encoder(const std::string& name) {
  GgufBuilder builder = of_architecture(name);
  builder.remove_key(name + ".attention.layer_norm_rms_epsilon");
  builder.f32(name + ".attention.layer_norm_epsilon", 1e-5f);
  builder.remove_key("tokenizer.chat_template");
  return builder;
}
// Norms behind the sums, as BERT has them.
inline GgufBuilder small_residual_encoder(const std::string& name, uint64_t width = kHidden) {
  GgufBuilder builder = small_encoder(name);
  rename_in_layers(&builder, "attn_norm.weight", "attn_output_norm.weight");
  rename_in_layers(&builder, "ffn_norm.weight", "layer_output_norm.weight");
  builder.remove_tensor("output_norm.weight");
  add_vectors(&builder, "attn_output_norm.bias", kHidden, 0.0f);
  add_vectors(&builder, "layer_output_norm.bias", kHidden, 0.0f);
  add_vector(&builder, "token_embd_norm.weight", width, 1.0f);
  add_vector(&builder, "token_embd_norm.bias", width, 0.0f);
  return builder;
}
inline GgufBuilder small_bert(const std::string& name, uint64_t width = kHidden) {
  GgufBuilder builder = small_residual_encoder(name, width);
  for (uint32_t i = 0; i < kLayers; ++i)
    builder.remove_tensor("blk." + std::to_string(i) + ".ffn_gate.weight");
  add_vectors(&builder, "attn_q.bias", kQuery, 0.0f);
  add_vectors(&builder, "attn_k.bias", kKeyValue, 0.0f);
  add_vectors(&builder, "attn_v.bias", kKeyValue, 0.0f);
  add_vectors(&builder, "attn_output.bias", kHidden, 0.0f);
  add_vectors(&builder, "ffn_up.bias", 64, 0.0f);
  add_vectors(&builder, "ffn_down.bias", kHidden, 0.0f);
  add_matrix(&builder, "position_embd.weight", 128, width);
  return builder;
}

inline void add_token_types(GgufBuilder* builder) {
  add_matrix(builder, "token_types.weight", 2, kHidden);
  builder->u32("tokenizer.ggml.token_type_count", 2);
}

inline GgufBuilder small_bert_classifier() {
  GgufBuilder builder = small_bert("bert");
  add_token_types(&builder);
  add_matrix(&builder, "cls.weight", kHidden, kHidden, Format::q4_0);
  add_vector(&builder, "cls.bias", kHidden, 0.0f);
  add_matrix(&builder, "cls.output.weight", 3, kHidden);
  add_vector(&builder, "cls.output.bias", 3, 0.0f);
  builder.text("mote.task", "classify");
  builder.text("mote.head.activation", "tanh");
  builder.texts("bert.classifier.output_labels", {"no", "maybe", "yes"});
  return builder;
}

// A narrow embedding, one group of layers, and a masked language model's head.
inline GgufBuilder small_albert() {
  constexpr uint64_t kWidth = 64;
  GgufBuilder builder = small_bert("albert", kWidth);
  const uint64_t vocabulary = builder.find_tensor("token_embd.weight").shape[1];
  builder.remove_tensor("token_embd.weight");
  add_matrix(&builder, "token_embd.weight", vocabulary, kWidth, Format::q8_0);
  add_matrix(&builder, "token_embd_projection.weight", kHidden, kWidth, Format::q4_0);
  add_vector(&builder, "token_embd_projection.bias", kHidden, 0.0f);
  for (GgufBuilder::TensorEntry& tensor : std::vector<GgufBuilder::TensorEntry>(builder.tensors))
    if (tensor.name.rfind("blk.1.", 0) == 0) builder.remove_tensor(tensor.name);
  add_matrix(&builder, "cls.weight", kWidth, kHidden, Format::q8_0);
  add_vector(&builder, "cls.bias", kWidth, 0.0f);
  add_vector(&builder, "cls.norm.weight", kWidth, 1.0f);
  add_vector(&builder, "cls.norm.bias", kWidth, 0.0f);
  add_vector(&builder, "output.bias", vocabulary, 0.0f);
  builder.u32("mote.embedding_width", kWidth);
  builder.u32("mote.layer_groups", 1);
  builder.text("mote.task", "masked_lm");
  builder.text("mote.head.activation", "gelu_tanh");
  return builder;
}

inline GgufBuilder small_mpnet() {
  GgufBuilder builder = small_bert("mpnet");
  add_matrix(&builder, "attn_rel_b.weight", 8, 2);
  builder.u32("mpnet.attention.relative_buckets_count", 8);
  builder.u32("mpnet.pooling_type", 2);
  return builder;
}

inline GgufBuilder small_modern_bert() {
  GgufBuilder builder = small_encoder("modern-bert");
  builder.remove_tensor("blk.0.attn_norm.weight");
  fuse_in_layers(&builder, {"ffn_gate.weight", "ffn_up.weight"}, "ffn_up.weight");
  add_vector(&builder, "token_embd_norm.weight", kHidden, 1.0f);
  add_matrix(&builder, "cls.weight", kHidden, kHidden);
  add_vector(&builder, "cls.norm.weight", kHidden, 1.0f);
  add_matrix(&builder, "tag.output.weight", 5, kHidden);
  add_vector(&builder, "tag.output.bias", 5, 0.0f);
  builder.u32("modern-bert.attention.sliding_window", 6);
  builder.text("mote.task", "tag");
  builder.text("mote.head.activation", "gelu");
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

namespace tiny_internal {

inline GgufBuilder small_sentencepiece() {
  GgufBuilder builder = small_llama();
  use_sentencepiece(&builder);
  return builder;
}

inline GgufBuilder small_yarn() {
  GgufBuilder builder = small_llama();
  builder.text("llama.rope.scaling.type", "yarn");
  builder.f32("llama.rope.scaling.factor", 4.0f);
  builder.u32("llama.rope.scaling.original_context_length", 32);
  return builder;
}

inline GgufBuilder small_qwen2() {
  GgufBuilder builder = of_architecture("qwen2");
  add_vectors(&builder, "attn_q.bias", kQuery, 0.0f);
  add_vectors(&builder, "attn_k.bias", kKeyValue, 0.0f);
  add_vectors(&builder, "attn_v.bias", kKeyValue, 0.0f);
  return builder;
}

inline GgufBuilder small_qwen3() {
  GgufBuilder builder = of_architecture("qwen3");
  add_vectors(&builder, "attn_q_norm.weight", kHead, 1.0f);
  add_vectors(&builder, "attn_k_norm.weight", kHead, 1.0f);
  return builder;
}

inline GgufBuilder small_gemma2() {
  GgufBuilder builder = small_gemma("gemma2");
  use_sentencepiece(&builder);
  return builder;
}

inline GgufBuilder small_gemma3() {
  GgufBuilder builder = small_gemma("gemma3");
  builder.f32("gemma3.rope.freq_base_swa", 5000.0f);
  add_vectors(&builder, "attn_q_norm.weight", kHead, 1.0f);
  add_vectors(&builder, "attn_k_norm.weight", kHead, 1.0f);
  return builder;
}

inline GgufBuilder small_granite() {
  GgufBuilder builder = of_architecture("granite");
  builder.f32("granite.residual_scale", 0.5f);
  return builder;
}

inline GgufBuilder small_olmo2() {
  GgufBuilder builder = of_architecture("olmo2");
  rename_in_layers(&builder, "attn_norm.weight", "post_attention_norm.weight");
  rename_in_layers(&builder, "ffn_norm.weight", "post_ffw_norm.weight");
  add_vectors(&builder, "attn_q_norm.weight", kQuery, 1.0f);
  add_vectors(&builder, "attn_k_norm.weight", kKeyValue, 1.0f);
  return builder;
}

inline GgufBuilder small_phi3() {
  GgufBuilder builder = of_architecture("phi3");
  fuse_in_layers(&builder, {"attn_q.weight", "attn_k.weight", "attn_v.weight"}, "attn_qkv.weight");
  fuse_in_layers(&builder, {"ffn_gate.weight", "ffn_up.weight"}, "ffn_up.weight");
  return builder;
}

inline GgufBuilder small_nomic_bert() {
  GgufBuilder builder = small_residual_encoder("nomic-bert");
  add_token_types(&builder);
  return builder;
}

}  // namespace tiny_internal

inline const std::vector<TinyFamily>& tiny_families() {
  using namespace tiny_internal;
  static const std::vector<TinyFamily> families = [] {
    std::vector<TinyFamily> all = {{"llama", [] { return small_llama(); }},
                                   {"sentencepiece", small_sentencepiece},
                                   {"yarn", small_yarn},
                                   {"qwen2", small_qwen2},
                                   {"qwen3", small_qwen3},
                                   {"gemma2", small_gemma2},
                                   {"gemma3", small_gemma3},
                                   {"granite", small_granite},
                                   {"olmo2", small_olmo2},
                                   {"phi3", small_phi3},
                                   {"smollm3", [] { return of_architecture("smollm3"); }},
                                   {"stablelm", small_stablelm},
                                   {"bert", small_bert_classifier},
                                   {"albert", small_albert},
                                   {"mpnet", small_mpnet},
                                   {"nomic_bert", small_nomic_bert},
                                   {"modern_bert", small_modern_bert},
                                   {"q8_row", [] { return small_llama(Format::q8_row); }}};
    for (size_t i = 0; i < all.size(); ++i) all[i].seed = i;
    return all;
  }();
  return families;
}

}  // namespace mote::test
