// A whole LLaMA model with a byte-level BPE tokenizer and a ChatML template, small enough to be
// built in a test: random weights, but real formats, real tokens and every code path of a big one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/gguf_builder.h"
#include "tests/support/random_weights.h"

namespace mote::test {

struct TinyModel {
  uint32_t layers = 3, hidden = 96, heads = 6, kv_heads = 2, head_dim = 16, feed_forward = 160;
  uint32_t context = 1024, window = 0;
  Format matrices = Format::q4_1, embedding = Format::q8_0;
  bool tied = true, weights = true, tokenizer = true, chat_template = true;
  uint64_t seed = 1;

  static constexpr int32_t kEndOfText = 0, kStartOfTurn = 1, kEndOfTurn = 2, kFirstByte = 3;

  GgufBuilder builder() const;
  Bytes bytes() const { return builder().build(); }

  // Pairs that merge, in order of rank. The token of a merge is what both sides make together.
  static const std::vector<std::string>& merges();
  // As the file stores them: bytes in the alphabet of GPT-2.
  static std::vector<std::string> tokens();
  // The token that stands for one byte.
  static int32_t byte_token(uint8_t byte);
};

namespace tiny_internal {

inline std::string utf8(uint32_t code) {
  std::string out;
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 63));
  }
  return out;
}

// GPT-2 writes a byte as the character of that code where it is printable, all others as 256, 257,
// ...
inline std::vector<uint32_t> byte_alphabet() {
  std::vector<uint32_t> code(256);
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b > 32 && b < 127) || (b > 160 && b < 256 && b != 173);
    code[b] = printable ? b : next++;
  }
  return code;
}

}  // namespace tiny_internal

inline const std::vector<std::string>& TinyModel::merges() {
  // Ġ is the space; Ã © make é; ð Ł are the first half of an emoji.
  static const std::vector<std::string> list = {
      "Ġ t", "h e", "i n", "e r",   "a n", "Ġt he", "o n",  "Ġ a", "r e",  "Ġ s",   "Ġ o",
      "a t", "e n", "o r", "Ġ c",   "i s", "Ġ w",   "o u",  "l l", "in g", "Ġa n",  "e d",
      "l e", "t h", "Ġ b", "Ġ f",   "Ġ p", "Ġo f",  "Ġ in", "e s", "Ġ m",  "Ġan d", "i t",
      "Ã ©", "ð Ł", "Ġ Ġ", "ĠĠ ĠĠ", "a l", "a r",   "a s",  "Ċ Ċ"};
  return list;
}

inline std::vector<std::string> TinyModel::tokens() {
  std::vector<std::string> list = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (uint32_t code : tiny_internal::byte_alphabet()) list.push_back(tiny_internal::utf8(code));
  for (const std::string& merge : merges()) {
    const size_t space = merge.find(' ');
    list.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  return list;
}

inline int32_t TinyModel::byte_token(uint8_t byte) { return kFirstByte + byte; }

inline GgufBuilder TinyModel::builder() const {
  GgufBuilder out;
  const auto vocabulary = tokens();
  out.text("general.architecture", "llama");
  out.text("general.name", "tiny");
  if (weights) {
    out.u32("llama.block_count", layers);
    out.u32("llama.context_length", context);
    out.u32("llama.embedding_length", hidden);
    out.u32("llama.feed_forward_length", feed_forward);
    out.u32("llama.attention.head_count", heads);
    out.u32("llama.attention.head_count_kv", kv_heads);
    out.u32("llama.rope.dimension_count", head_dim);
    out.f32("llama.rope.freq_base", 10000.0f);
    out.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    out.u32("llama.vocab_size", static_cast<uint32_t>(vocabulary.size()));
    if (window) out.u32("llama.attention.sliding_window", window);
    if (head_dim * heads != hidden) {
      out.u32("llama.attention.key_length", head_dim);
      out.u32("llama.attention.value_length", head_dim);
    }
  }
  if (tokenizer) {
    out.text("tokenizer.ggml.model", "gpt2");
    out.text("tokenizer.ggml.pre", "smollm");
    out.texts("tokenizer.ggml.tokens", vocabulary);
    std::vector<int32_t> types(vocabulary.size(), 1);
    types[kEndOfText] = types[kStartOfTurn] = types[kEndOfTurn] = 3;
    out.array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, types);
    out.texts("tokenizer.ggml.merges", merges());
    out.u32("tokenizer.ggml.bos_token_id", kStartOfTurn);
    out.u32("tokenizer.ggml.eos_token_id", kEndOfTurn);
    out.boolean("tokenizer.ggml.add_bos_token", false);
  }
  if (chat_template && tokenizer)
    out.text("tokenizer.chat_template",
             "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
             "message['content'] + "
             "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
             "'<|im_start|>assistant\n' "
             "}}{% endif %}");
  if (!weights) return out;

  Random random(seed);
  const auto add_matrix = [&](const std::string& name, uint64_t rows, uint64_t columns,
                              Format format, float deviation) {
    if (quant::can_encode(format))
      out.tensor(name, {columns, rows}, format, random.normals(rows * columns, deviation));
    else
      out.raw_tensor(name, {columns, rows}, format,
                     random_weights(format, rows * columns, &random));
  };
  const auto add_norm = [&](const std::string& name) {
    std::vector<float> weight = random.normals(hidden, 0.2f);
    for (float& value : weight) value += 1.0f;
    out.tensor(name, {hidden}, Format::f32, weight);
  };
  add_matrix("token_embd.weight", vocabulary.size(), hidden, embedding, 0.25f);
  if (!tied) add_matrix("output.weight", vocabulary.size(), hidden, embedding, 0.25f);
  add_norm("output_norm.weight");
  const uint32_t query = heads * head_dim, key_value = kv_heads * head_dim;
  for (uint32_t i = 0; i < layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    add_norm(prefix + "attn_norm.weight");
    add_matrix(prefix + "attn_q.weight", query, hidden, matrices, 0.15f);
    add_matrix(prefix + "attn_k.weight", key_value, hidden, matrices, 0.15f);
    add_matrix(prefix + "attn_v.weight", key_value, hidden, matrices, 0.15f);
    add_matrix(prefix + "attn_output.weight", hidden, query, matrices, 0.15f);
    add_norm(prefix + "ffn_norm.weight");
    add_matrix(prefix + "ffn_gate.weight", feed_forward, hidden, matrices, 0.15f);
    add_matrix(prefix + "ffn_up.weight", feed_forward, hidden, matrices, 0.15f);
    add_matrix(prefix + "ffn_down.weight", hidden, feed_forward, matrices, 0.1f);
  }
  return out;
}

}  // namespace mote::test
