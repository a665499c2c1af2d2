#include "tools/developer/import_architecture.h"

#include <algorithm>
#include <cstring>

#include "tools/failure.h"

namespace mote::tool {
namespace {

using S = Size;
using P = Presence;
using A = Arrange;

constexpr TensorRule kLlamaTensors[] = {
    {"model.embed_tokens.weight", "token_embd.weight", S::vocabulary, S::hidden, P::always,
     A::as_is},
    {"model.norm.weight", "output_norm.weight", S::hidden, S::none, P::always, A::as_is},
    {"lm_head.weight", "output.weight", S::vocabulary, S::hidden, P::untied, A::as_is},
    {"model.layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", S::hidden, S::none,
     P::always, A::as_is},
    {"model.layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight", S::queries, S::hidden,
     P::always, A::interleave_heads},
    {"model.layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias", S::queries, S::none,
     P::attention_bias, A::interleave_heads},
    {"model.layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight", S::keys, S::hidden, P::always,
     A::interleave_heads},
    {"model.layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias", S::keys, S::none,
     P::attention_bias, A::interleave_heads},
    {"model.layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight", S::keys, S::hidden, P::always,
     A::as_is},
    {"model.layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias", S::keys, S::none,
     P::attention_bias, A::as_is},
    {"model.layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight", S::hidden, S::queries,
     P::always, A::as_is},
    {"model.layers.#.self_attn.o_proj.bias", "blk.#.attn_output.bias", S::hidden, S::none,
     P::attention_bias, A::as_is},
    {"model.layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight", S::hidden, S::none,
     P::always, A::as_is},
    {"model.layers.#.mlp.gate_proj.weight", "blk.#.ffn_gate.weight", S::feed_forward, S::hidden,
     P::always, A::as_is},
    {"model.layers.#.mlp.gate_proj.bias", "blk.#.ffn_gate.bias", S::feed_forward, S::none,
     P::mlp_bias, A::as_is},
    {"model.layers.#.mlp.up_proj.weight", "blk.#.ffn_up.weight", S::feed_forward, S::hidden,
     P::always, A::as_is},
    {"model.layers.#.mlp.up_proj.bias", "blk.#.ffn_up.bias", S::feed_forward, S::none, P::mlp_bias,
     A::as_is},
    {"model.layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight", S::hidden, S::feed_forward,
     P::always, A::as_is},
    {"model.layers.#.mlp.down_proj.bias", "blk.#.ffn_down.bias", S::hidden, S::none, P::mlp_bias,
     A::as_is},
};

// Sizes and keys that every decoder of this kind has.
void read_decoder(const Config& config, const std::string& architecture, ImportSizes* sizes,
                  GgufKeys* keys) {
  sizes->layers = config.number("num_hidden_layers");
  sizes->hidden = config.number("hidden_size");
  sizes->feed_forward = config.number("intermediate_size");
  sizes->vocabulary = config.number("vocab_size");
  sizes->heads = config.number("num_attention_heads");
  sizes->kv_heads = config.number("num_key_value_heads", sizes->heads);
  if (!config.has("head_dim") && sizes->hidden % sizes->heads != 0)
    config.fail("hidden_size",
                "is not a multiple of num_attention_heads, and there is no head_dim");
  sizes->head_dim = config.number("head_dim", sizes->hidden / sizes->heads);
  if (sizes->heads % sizes->kv_heads != 0)
    config.fail("num_attention_heads", "is not a multiple of num_key_value_heads");
  sizes->tied_embeddings = config.boolean("tie_word_embeddings", false);
  const std::string prefix = architecture + ".";
  keys->set(prefix + "vocab_size", sizes->vocabulary);
  keys->set(prefix + "context_length", config.number("max_position_embeddings"));
  keys->set(prefix + "embedding_length", sizes->hidden);
  keys->set(prefix + "block_count", sizes->layers);
  keys->set(prefix + "feed_forward_length", sizes->feed_forward);
  keys->set(prefix + "attention.head_count", sizes->heads);
  keys->set(prefix + "attention.head_count_kv", sizes->kv_heads);
  keys->set(prefix + "attention.key_length", sizes->head_dim);
  keys->set(prefix + "attention.value_length", sizes->head_dim);
  keys->set(prefix + "attention.layer_norm_rms_epsilon",
            static_cast<float>(config.real("rms_norm_eps", 1e-6)));
  keys->set(prefix + "rope.dimension_count", sizes->head_dim);
  set_rope_keys(config, read_rope(config), architecture, keys);
}

void read_llama(const Config& config, ImportSizes* sizes, GgufKeys* keys) {
  read_decoder(config, "llama", sizes, keys);
  if (sizes->head_dim % 2 != 0) config.fail("head_dim", "is odd, so it cannot turn in pairs");
  sizes->attention_bias = config.boolean("attention_bias", false);
  sizes->mlp_bias = config.boolean("mlp_bias", false);
  const std::string activation = config.text("hidden_act", "silu");
  if (activation != "silu") config.fail("hidden_act", "expected silu, found " + activation);
  if (config.has("sliding_window"))
    config.fail("sliding_window", "attention over a window is not supported for this architecture");
  if (config.real("partial_rotary_factor", 1.0) != 1.0)
    config.fail("partial_rotary_factor", "is not supported for this architecture");
}

template <size_t N>
constexpr ImportArchitecture row(const char* class_name, const char* architecture,
                                 const TensorRule (&tensors)[N],
                                 void (*read)(const Config&, ImportSizes*, GgufKeys*)) {
  return {class_name, architecture, tensors, N, read};
}

constexpr ImportArchitecture kArchitectures[] = {
    row("LlamaForCausalLM", "llama", kLlamaTensors, read_llama),
    row("MistralForCausalLM", "llama", kLlamaTensors, read_llama),
};

uint64_t size_of(Size size, const ImportSizes& sizes) {
  switch (size) {
    case S::hidden:
      return sizes.hidden;
    case S::queries:
      return uint64_t{sizes.heads} * sizes.head_dim;
    case S::keys:
      return uint64_t{sizes.kv_heads} * sizes.head_dim;
    case S::feed_forward:
      return sizes.feed_forward;
    case S::vocabulary:
      return sizes.vocabulary;
    case S::none:
      break;
  }
  return 0;
}

bool expected(Presence presence, const ImportSizes& sizes) {
  switch (presence) {
    case P::always:
      return true;
    case P::untied:
      return !sizes.tied_embeddings;
    case P::attention_bias:
      return sizes.attention_bias;
    case P::mlp_bias:
      return sizes.mlp_bias;
  }
  return false;
}

std::string with_layer(const char* pattern, uint32_t layer) {
  std::string name = pattern;
  const size_t at = name.find('#');
  return at == std::string::npos ? name : name.replace(at, 1, std::to_string(layer));
}

// Old checkpoints hold tables that are computed and not learned, and tied ones a copy of the
// embedding.
bool is_redundant(const std::string& name, const ImportSizes& sizes) {
  const auto ends_with = [&](const char* end) {
    const size_t length = std::strlen(end);
    return name.size() >= length && name.compare(name.size() - length, length, end) == 0;
  };
  return ends_with(".rotary_emb.inv_freq") || (sizes.tied_embeddings && name == "lm_head.weight");
}

class Matcher {
 public:
  Matcher(const HuggingFaceFolder& folder, const ImportSizes& sizes)
      : folder_(folder), sizes_(sizes) {}

  void take(const TensorRule& rule, uint32_t layer) {
    if (!expected(rule.presence, sizes_)) return;
    const std::string name = with_layer(rule.source, layer);
    const auto found = folder_.weights().find(name);
    if (found == folder_.weights().end()) return missing_.push_back(name);
    used_.push_back(name);
    ImportTensor tensor;
    tensor.target = with_layer(rule.target, layer);
    tensor.source = found->second;
    tensor.vector = rule.columns == S::none;
    tensor.table = rule.rows == S::vocabulary;
    if (rule.arrange == A::interleave_heads) tensor.interleaved_head = sizes_.head_dim;
    std::vector<uint64_t> shape = {size_of(rule.rows, sizes_)};
    if (!tensor.vector) shape.push_back(size_of(rule.columns, sizes_));
    tensor.rows = shape[0];
    tensor.columns = tensor.vector ? 1 : shape[1];
    const SafetensorsEntry& entry = *tensor.source.entry;
    if (entry.shape != shape) {
      SafetensorsEntry wanted = entry;
      wanted.shape = shape;
      throw Failure(tensor.source.file->path() + ": tensor " + name + ": expected " +
                    wanted.describe() + " by config.json, found " + entry.describe());
    }
    if (entry.dtype != "F32" && entry.dtype != "F16" && entry.dtype != "BF16" &&
        entry.dtype != "F64")
      throw Failure(tensor.source.file->path() + ": tensor " + name +
                    ": expected F32, F16, BF16 or F64, found " + entry.describe());
    tensors_.push_back(std::move(tensor));
  }

  std::vector<ImportTensor> finish() {
    if (!missing_.empty()) throw Failure(folder_.path() + ": missing tensors: " + list(missing_));
    std::sort(used_.begin(), used_.end());
    std::vector<std::string> extra;
    for (const auto& [name, weight] : folder_.weights())
      if (!std::binary_search(used_.begin(), used_.end(), name) && !is_redundant(name, sizes_))
        extra.push_back(name);
    if (!extra.empty())
      throw Failure(folder_.path() +
                    ": tensors that config.json does not account for: " + list(extra));
    return std::move(tensors_);
  }

 private:
  static std::string list(const std::vector<std::string>& names) {
    constexpr size_t kShown = 5;
    std::string text;
    for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i ? ", " : "") + names[i];
    return names.size() <= kShown
               ? text
               : text + " and " + std::to_string(names.size() - kShown) + " more";
  }

  const HuggingFaceFolder& folder_;
  const ImportSizes& sizes_;
  std::vector<ImportTensor> tensors_;
  std::vector<std::string> used_, missing_;
};

}  // namespace

const ImportArchitecture& find_import_architecture(const Config& config) {
  std::string found = "none";
  if (const auto* names = config.find("architectures");
      names && names->is_array() && !names->empty() && (*names)[0].is_string())
    found = (*names)[0].get<std::string>();
  for (const ImportArchitecture& architecture : kArchitectures)
    if (found == architecture.class_name) return architecture;
  std::string known;
  for (const ImportArchitecture& architecture : kArchitectures)
    known += (known.empty() ? "" : ", ") + std::string(architecture.class_name);
  config.fail("architectures", "expected one of " + known + ", found " + found);
}

std::vector<ImportTensor> match_tensors(const HuggingFaceFolder& folder,
                                        const ImportArchitecture& architecture,
                                        const ImportSizes& sizes) {
  Matcher matcher(folder, sizes);
  const auto each = [&](bool layered, uint32_t layer) {
    for (size_t i = 0; i < architecture.tensor_count; ++i)
      if ((std::strchr(architecture.tensors[i].source, '#') != nullptr) == layered)
        matcher.take(architecture.tensors[i], layer);
  };
  each(false, 0);
  for (uint32_t layer = 0; layer < sizes.layers; ++layer) each(true, layer);
  return matcher.finish();
}

}  // namespace mote::tool
