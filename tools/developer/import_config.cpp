// config.json by an architecture's row of data.
#include <algorithm>
#include <cmath>
#include <optional>

#include "models/spec.h"
#include "tools/developer/import_architecture.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;

// Said of training, of sampling or of the file itself: the model computes the same with any value.
constexpr const char* kNeutral[] = {"architectures",
                                    "model_type",
                                    "dtype",
                                    "torch_dtype",
                                    "transformers_version",
                                    "use_cache",
                                    "_name_or_path",
                                    "auto_map",
                                    "bos_token_id",
                                    "eos_token_id",
                                    "pad_token_id",
                                    "unk_token_id",
                                    "initializer_range",
                                    "attention_dropout",
                                    "attn_pdrop",
                                    "embd_pdrop",
                                    "resid_pdrop",
                                    "hidden_dropout",
                                    "embedding_dropout",
                                    "residual_dropout",
                                    "classifier_dropout",
                                    "pretraining_tp",
                                    "cache_implementation",
                                    "output_attentions",
                                    "output_hidden_states",
                                    "return_dict",
                                    "is_decoder",
                                    "torchscript",
                                    "label2id",
                                    "id2label",
                                    "problem_type",
                                    "_attn_implementation",
                                    "attn_implementation",
                                    "_attn_implementation_autoset",
                                    "use_bfloat16",
                                    "chunk_size_feed_forward",
                                    "tokenizer_class",
                                    "task_specific_params",
                                    "rope_interleaved",
                                    "mlp_dropout",
                                    "attention_probs_dropout_prob",
                                    "hidden_dropout_prob",
                                    "classifier_dropout_prob",
                                    "dropout",
                                    "qa_dropout",
                                    "seq_classif_dropout",
                                    "summary_last_dropout",
                                    "gradient_checkpointing",
                                    "initializer_cutoff_factor",
                                    "cls_token_id",
                                    "sep_token_id",
                                    "mask_token_id",
                                    "sparse_pred_ignore_index",
                                    "layer_norm_type",
                                    "directionality",
                                    "pooler_fc_size",
                                    "pooler_num_attention_heads",
                                    "pooler_num_fc_layers",
                                    "pooler_size_per_head",
                                    "pooler_type",
                                    "num_labels",
                                    "_num_labels",
                                    "gap_size",
                                    "net_structure_type",
                                    "down_scale_factor",
                                    "output_past",
                                    "model_max_length",
                                    "sentence_transformers",
                                    "deterministic_flash_attn",
                                    "reference_compile",
                                    "repad_logits_with_grad",
                                    "decoder_bias",
                                    "dense_seq_output",
                                    "fused_bias_fc",
                                    "fused_dropout_add_ln",
                                    "pad_vocab_size_multiple",
                                    "use_flash_attn",
                                    "use_xentropy",
                                    "summary_type",
                                    "summary_use_proj",
                                    "summary_activation",
                                    "summary_first_dropout",
                                    "summary_proj_to_labels",
                                    "rotary_scaling_factor",
                                    "max_trained_positions",
                                    "classifier_bias",
                                    "classifier_pooling",
                                    "classifier_activation"};

// Read by functions, not by a row of data.
constexpr const char* kRead[] = {
    "num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size", "num_attention_heads",
    "num_key_value_heads", "head_dim", "max_position_embeddings",
    "original_max_position_embeddings", "rope_theta", "rope_scaling", "rope_parameters",
    "rope_local_base_freq", "partial_rotary_factor", "sliding_window", "layer_types",
    "sliding_window_pattern", "_sliding_window_pattern", "use_sliding_window", "max_window_layers",
    "no_rope_layers", "no_rope_layer_interval", "quantization_config", "type_vocab_size",
    // Gemma's classes read hidden_activation instead.
    "hidden_act"};

void read_sizes(const Config& config, const ImportArchitecture& architecture, ImportSizes* sizes) {
  const auto number = [&](const char* key) {
    return config.number(architecture.setting(config, key));
  };
  sizes->layers = sizes->blocks = number("num_hidden_layers");
  if (sizes->layers > kMaxLayers)
    config.fail(architecture.setting(config, "num_hidden_layers"),
                "expected at most " + std::to_string(kMaxLayers));
  sizes->hidden = number("hidden_size");
  sizes->feed_forward = number("intermediate_size");
  sizes->vocabulary = number("vocab_size");
  sizes->heads = number("num_attention_heads");
  sizes->kv_heads = config.number("num_key_value_heads", sizes->heads);
  const bool by_width = !config.has("head_dim") && architecture.head_dim == 0;
  if (by_width && sizes->hidden % sizes->heads != 0)
    config.fail("hidden_size",
                "is not a multiple of num_attention_heads, and there is no head_dim");
  sizes->head_dim =
      by_width ? sizes->hidden / sizes->heads : config.number("head_dim", architecture.head_dim);
  if (sizes->heads % sizes->kv_heads != 0)
    config.fail("num_attention_heads", "is not a multiple of num_key_value_heads");
  for (const SwitchRule& rule : architecture.switches)
    if ((rule.key ? config.boolean(rule.key, rule.fallback) : rule.fallback) != rule.inverted)
      sizes->present |= rule.presence;
}

uint32_t rotary_size(const Config& config, double partial, uint32_t head_dim) {
  const auto rotary = static_cast<uint32_t>(partial * head_dim);
  if (partial == 1.0 && rotary % 2 != 0)
    config.fail("head_dim", "expected an even number, as dimensions turn in pairs, found " +
                                std::to_string(head_dim));
  if (!(partial > 0.0 && partial <= 1.0) || rotary == 0 || rotary % 2 != 0)
    config.fail("partial_rotary_factor",
                "expected a share of a head of " + std::to_string(head_dim) +
                    " that is an even number of dimensions, found " + Json(partial).dump());
  return rotary;
}

void check_demands(const Config& config, List<Demand> demands) {
  for (const Demand& demand : demands) {
    const Json* found = config.find(demand.key);
    if (found && found->dump(-1, ' ', false, Json::error_handler_t::replace) != demand.expected)
      config.fail(demand.key, std::string("expected ") + demand.expected + ", found " +
                                  config.shown(demand.key) +
                                  ", which is not supported for this architecture");
  }
}

bool knows_encoder(const ImportArchitecture& architecture, const std::string& key) {
  if (!architecture.encoder) return false;
  const EncoderRule& rule = *architecture.encoder;
  const HeadRule& head = *architecture.head;
  const auto same = [&](const char* name) { return name && key == name; };
  return same(rule.activation_key) || same(head.activation_key) || same(head.pooling_key) ||
         same(architecture.rope.base_key) || same(architecture.rope.local_base_key) ||
         (rule.embedding_size && key == "embedding_size") ||
         (rule.groups && key == "num_hidden_groups") ||
         (rule.buckets && key == "relative_attention_num_buckets") || key == "local_attention" ||
         key == "global_attn_every_n_layers";
}

// None: nothing is written, and readers take the fallback.
std::optional<GgufKeys::Value> value_of(const Config& config,
                                        const ImportArchitecture& architecture,
                                        const KeyRule& rule) {
  const char* source = architecture.setting(config, rule.source);
  if (rule.kind == KeyRule::Kind::boolean) return config.boolean(source, rule.fallback != 0);
  const bool is_null =
      rule.kind == KeyRule::Kind::cap && config.json().contains(source) && !config.has(source);
  const double value = is_null ? 0.0 : config.real(source, rule.fallback);
  if (rule.kind == KeyRule::Kind::cap && value == 0.0 && rule.fallback == 0.0) return std::nullopt;
  const bool too_much = !(value >= 0.0) || !(static_cast<float>(value) < 1.0f);
  if (rule.kind == KeyRule::Kind::epsilon && too_much)
    config.fail(source, "expected 0 to less than 1, found " + Json(value).dump());
  if (rule.kind != KeyRule::Kind::inverse_root) return static_cast<float>(value);
  if (value <= 0) config.fail(source, "expected more than 0, found " + Json(value).dump());
  return static_cast<float>(1.0 / std::sqrt(value));
}

}  // namespace

void read_architecture(const Config& config, const ImportArchitecture& architecture,
                       ImportSizes* sizes, GgufKeys* keys) {
  constexpr Demand kOfAll[] = {{"quantization_config", "null"}};
  constexpr Demand kOfThoseWithoutWindow[] = {{"sliding_window", "null"}};
  check_demands(config, kOfAll);
  check_demands(config, architecture.demands);
  if (architecture.window.kind == WindowRule::Kind::none &&
      config.boolean("use_sliding_window", true))
    check_demands(config, kOfThoseWithoutWindow);
  read_sizes(config, architecture, sizes);
  const std::string prefix = std::string(architecture.architecture) + ".";
  keys->set(prefix + "vocab_size", sizes->vocabulary);
  keys->set(prefix + "context_length",
            config.number(architecture.setting(config, "max_position_embeddings")));
  keys->set(prefix + "embedding_length", sizes->hidden);
  keys->set(prefix + "block_count", sizes->layers);
  keys->set(prefix + "feed_forward_length", sizes->feed_forward);
  keys->set(prefix + "attention.head_count", sizes->heads);
  keys->set(prefix + "attention.head_count_kv", sizes->kv_heads);
  keys->set(prefix + "attention.key_length", sizes->head_dim);
  keys->set(prefix + "attention.value_length", sizes->head_dim);
  for (const KeyRule& rule : architecture.keys)
    if (const auto value = value_of(config, architecture, rule))
      keys->set(prefix + rule.target, *value);
  if (architecture.encoder) read_encoder(config, architecture, sizes, keys);
  if (architecture.rope.present) {
    const RopeSettings rope = read_rope(config, architecture.rope);
    sizes->rotary = rotary_size(config, rope.partial, sizes->head_dim);
    keys->set(prefix + "rope.dimension_count", sizes->rotary);
    set_rope_keys(config, rope, architecture.architecture, keys);
  }
  set_layer_keys(config, architecture, sizes->layers, keys);
}

std::vector<std::string> unknown_settings(const Config& config,
                                          const ImportArchitecture& architecture) {
  const auto known = [&](const std::string& key) {
    const auto same = [&](const char* name) { return name && key == name; };
    return std::any_of(std::begin(kNeutral), std::end(kNeutral), same) ||
           std::any_of(std::begin(kRead), std::end(kRead), same) ||
           std::any_of(architecture.aliases.begin(), architecture.aliases.end(),
                       [&](const Alias& alias) { return same(alias.own); }) ||
           knows_encoder(architecture, key) ||
           std::any_of(architecture.switches.begin(), architecture.switches.end(),
                       [&](const SwitchRule& rule) { return same(rule.key); }) ||
           std::any_of(architecture.keys.begin(), architecture.keys.end(),
                       [&](const KeyRule& rule) { return same(rule.source); }) ||
           std::any_of(architecture.demands.begin(), architecture.demands.end(),
                       [&](const Demand& demand) { return same(demand.key); });
  };
  std::vector<std::string> unknown;
  for (const auto& [key, value] : config.json().items())
    // What is switched off by null or false adds nothing.
    if (!value.is_null() && value.dump(-1, ' ', false, Json::error_handler_t::replace) != "false" &&
        !known(key))
      unknown.push_back(key);
  return unknown;
}

}  // namespace mote::tool
