#include "tools/developer/import_architecture.h"

#include <cstring>

namespace mote::tool {
namespace {

using S = Size;
using K = KeyRule::Kind;
using W = WindowRule::Kind;

#define MOTE_LAYER "model.layers.#."
#define MOTE_BLOCK "blk.#."

constexpr TensorRule kEnds[] = {
    {"model.embed_tokens.weight", "token_embd.weight", S::vocabulary, S::hidden},
    {"model.norm.weight", "output_norm.weight", S::hidden, S::none, Role::norm},
    {"lm_head.weight", "output.weight", S::vocabulary, S::hidden, Role::plain, kUntied},
};
constexpr TensorRule kAttention[] = {
    {MOTE_LAYER "self_attn.q_proj.weight", MOTE_BLOCK "attn_q.weight", S::queries, S::hidden,
     Role::head_rows},
    {MOTE_LAYER "self_attn.q_proj.bias", MOTE_BLOCK "attn_q.bias", S::queries, S::none,
     Role::head_rows, kQkvBias},
    {MOTE_LAYER "self_attn.k_proj.weight", MOTE_BLOCK "attn_k.weight", S::keys, S::hidden,
     Role::head_rows},
    {MOTE_LAYER "self_attn.k_proj.bias", MOTE_BLOCK "attn_k.bias", S::keys, S::none,
     Role::head_rows, kQkvBias},
    {MOTE_LAYER "self_attn.v_proj.weight", MOTE_BLOCK "attn_v.weight", S::keys, S::hidden},
    {MOTE_LAYER "self_attn.v_proj.bias", MOTE_BLOCK "attn_v.bias", S::keys, S::none, Role::plain,
     kQkvBias},
    {MOTE_LAYER "self_attn.o_proj.weight", MOTE_BLOCK "attn_output.weight", S::hidden, S::queries},
    {MOTE_LAYER "self_attn.o_proj.bias", MOTE_BLOCK "attn_output.bias", S::hidden, S::none,
     Role::plain, kOutputBias},
};
constexpr TensorRule kFusedAttention[] = {
    {MOTE_LAYER "self_attn.qkv_proj.weight", MOTE_BLOCK "attn_qkv.weight", S::query_key_value,
     S::hidden},
    {MOTE_LAYER "self_attn.o_proj.weight", MOTE_BLOCK "attn_output.weight", S::hidden, S::queries},
};
constexpr TensorRule kFeedForward[] = {
    {MOTE_LAYER "mlp.gate_proj.weight", MOTE_BLOCK "ffn_gate.weight", S::feed_forward, S::hidden},
    {MOTE_LAYER "mlp.gate_proj.bias", MOTE_BLOCK "ffn_gate.bias", S::feed_forward, S::none,
     Role::plain, kMlpBias},
    {MOTE_LAYER "mlp.up_proj.weight", MOTE_BLOCK "ffn_up.weight", S::feed_forward, S::hidden},
    {MOTE_LAYER "mlp.up_proj.bias", MOTE_BLOCK "ffn_up.bias", S::feed_forward, S::none, Role::plain,
     kMlpBias},
    {MOTE_LAYER "mlp.down_proj.weight", MOTE_BLOCK "ffn_down.weight", S::hidden, S::feed_forward},
    {MOTE_LAYER "mlp.down_proj.bias", MOTE_BLOCK "ffn_down.bias", S::hidden, S::none, Role::plain,
     kMlpBias},
};
constexpr TensorRule kFusedFeedForward[] = {
    {MOTE_LAYER "mlp.gate_up_proj.weight", MOTE_BLOCK "ffn_up.weight", S::gate_up, S::hidden},
    {MOTE_LAYER "mlp.down_proj.weight", MOTE_BLOCK "ffn_down.weight", S::hidden, S::feed_forward},
};
constexpr TensorRule kPlainFeedForward[] = {
    {MOTE_LAYER "mlp.c_fc.weight", MOTE_BLOCK "ffn_up.weight", S::feed_forward, S::hidden},
    {MOTE_LAYER "mlp.c_fc.bias", MOTE_BLOCK "ffn_up.bias", S::feed_forward, S::none, Role::plain,
     kMlpBias},
    {MOTE_LAYER "mlp.c_proj.weight", MOTE_BLOCK "ffn_down.weight", S::hidden, S::feed_forward},
    {MOTE_LAYER "mlp.c_proj.bias", MOTE_BLOCK "ffn_down.bias", S::hidden, S::none, Role::plain,
     kMlpBias},
};

// Norms: before both blocks, ...
constexpr TensorRule kNormsBefore[] = {
    {MOTE_LAYER "input_layernorm.weight", MOTE_BLOCK "attn_norm.weight", S::hidden, S::none,
     Role::norm},
    {MOTE_LAYER "post_attention_layernorm.weight", MOTE_BLOCK "ffn_norm.weight", S::hidden, S::none,
     Role::norm, kFeedForwardNorm},
};
constexpr TensorRule kNormBiases[] = {
    {"model.norm.bias", "output_norm.bias", S::hidden},
    {MOTE_LAYER "input_layernorm.bias", MOTE_BLOCK "attn_norm.bias", S::hidden},
    {MOTE_LAYER "post_attention_layernorm.bias", MOTE_BLOCK "ffn_norm.bias", S::hidden, S::none,
     Role::plain, kFeedForwardNorm},
};
// ... behind both, ...
constexpr TensorRule kNormsBehind[] = {
    {MOTE_LAYER "post_attention_layernorm.weight", MOTE_BLOCK "post_attention_norm.weight",
     S::hidden, S::none, Role::norm},
    {MOTE_LAYER "post_feedforward_layernorm.weight", MOTE_BLOCK "post_ffw_norm.weight", S::hidden,
     S::none, Role::norm},
};
// ... and, with those, before too;
constexpr TensorRule kNormsBeforeToo[] = {
    {MOTE_LAYER "input_layernorm.weight", MOTE_BLOCK "attn_norm.weight", S::hidden, S::none,
     Role::norm},
    {MOTE_LAYER "pre_feedforward_layernorm.weight", MOTE_BLOCK "ffn_norm.weight", S::hidden,
     S::none, Role::norm},
};
// of each head, or of all at once.
constexpr TensorRule kHeadNorms[] = {
    {MOTE_LAYER "self_attn.q_norm.weight", MOTE_BLOCK "attn_q_norm.weight", S::head, S::none,
     Role::norm},
    {MOTE_LAYER "self_attn.k_norm.weight", MOTE_BLOCK "attn_k_norm.weight", S::head, S::none,
     Role::norm},
};
constexpr TensorRule kAllHeadsNorms[] = {
    {MOTE_LAYER "self_attn.q_norm.weight", MOTE_BLOCK "attn_q_norm.weight", S::queries, S::none,
     Role::norm},
    {MOTE_LAYER "self_attn.k_norm.weight", MOTE_BLOCK "attn_k_norm.weight", S::keys, S::none,
     Role::norm},
};

using Tensors = List<TensorRule>;
constexpr Tensors kLlamaTensors[] = {kEnds, kNormsBefore, kAttention, kFeedForward};
constexpr Tensors kQwen3Tensors[] = {kEnds, kNormsBefore, kAttention, kHeadNorms, kFeedForward};
constexpr Tensors kPhi3Tensors[] = {kEnds, kNormsBefore, kFusedAttention, kFusedFeedForward};
constexpr Tensors kOlmo2Tensors[] = {kEnds, kNormsBehind, kAttention, kAllHeadsNorms, kFeedForward};
constexpr Tensors kStableLmTensors[] = {kEnds, kNormsBefore, kNormBiases, kAttention, kFeedForward};
constexpr Tensors kStarCoder2Tensors[] = {kEnds, kNormsBefore, kNormBiases, kAttention,
                                          kPlainFeedForward};
constexpr Tensors kGemma2Tensors[] = {kEnds, kNormsBeforeToo, kNormsBehind, kAttention,
                                      kFeedForward};
constexpr Tensors kGemma3Tensors[] = {kEnds,      kNormsBeforeToo, kNormsBehind,
                                      kAttention, kHeadNorms,      kFeedForward};

constexpr SwitchRule kUntiedByDefault = {"tie_word_embeddings", false, kUntied, true};
constexpr SwitchRule kTiedByDefault = {"tie_word_embeddings", true, kUntied, true};
constexpr SwitchRule kTwoNorms = {nullptr, true, kFeedForwardNorm};
constexpr SwitchRule kAttentionBias = {"attention_bias", false, kQkvBias | kOutputBias};
constexpr SwitchRule kMlpBiases = {"mlp_bias", false, kMlpBias};

constexpr SwitchRule kLlamaSwitches[] = {kUntiedByDefault, kTwoNorms, kAttentionBias, kMlpBiases};
constexpr SwitchRule kSmolLm3Switches[] = {kTiedByDefault, kTwoNorms, kAttentionBias, kMlpBiases};
constexpr SwitchRule kPlainSwitches[] = {kUntiedByDefault, kTwoNorms};
constexpr SwitchRule kQwen2Switches[] = {kUntiedByDefault, kTwoNorms, {nullptr, true, kQkvBias}};
constexpr SwitchRule kQwen3Switches[] = {kUntiedByDefault, kTwoNorms, kAttentionBias};
constexpr SwitchRule kOlmo2Switches[] = {kUntiedByDefault, kAttentionBias};
constexpr SwitchRule kGemmaSwitches[] = {kTiedByDefault, kAttentionBias};
constexpr SwitchRule kStableLmSwitches[] = {
    kUntiedByDefault,
    {"use_qkv_bias", false, kQkvBias},
    {"use_parallel_residual", false, kFeedForwardNorm, true},
};
constexpr SwitchRule kStarCoder2Switches[] = {
    kTiedByDefault, kTwoNorms, {"use_bias", true, kQkvBias | kOutputBias | kMlpBias}};

constexpr KeyRule kRmsEpsilon = {"rms_norm_eps", "attention.layer_norm_rms_epsilon", K::epsilon,
                                 1e-6};
constexpr KeyRule kRmsEpsilonOfPhi = {"rms_norm_eps", "attention.layer_norm_rms_epsilon",
                                      K::epsilon, 1e-5};
constexpr KeyRule kScoreScale = {"query_pre_attn_scalar", "attention.scale", K::inverse_root, 256};
constexpr KeyRule kLlamaKeys[] = {kRmsEpsilon};
constexpr KeyRule kPhi3Keys[] = {kRmsEpsilonOfPhi};  // and OLMo 2
constexpr KeyRule kGraniteKeys[] = {
    kRmsEpsilon,
    {"embedding_multiplier", "embedding_scale", K::real, 1.0},
    {"residual_multiplier", "residual_scale", K::real, 1.0},
    {"attention_multiplier", "attention.scale", K::real, 1.0},
    {"logits_scaling", "logit_scale", K::real, 1.0},
};
constexpr KeyRule kStableLmKeys[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", K::epsilon, 1e-5},
    {"use_parallel_residual", "use_parallel_residual", K::boolean, 0},
};
constexpr KeyRule kStarCoder2Keys[] = {
    {"norm_epsilon", "attention.layer_norm_epsilon", K::epsilon, 1e-5}};
constexpr KeyRule kGemma2Keys[] = {
    kRmsEpsilon,
    kScoreScale,
    {"attn_logit_softcapping", "attn_logit_softcapping", K::cap, 50.0},
    {"final_logit_softcapping", "final_logit_softcapping", K::cap, 30.0},
};
constexpr KeyRule kGemma3Keys[] = {
    kRmsEpsilon,
    kScoreScale,
    {"final_logit_softcapping", "final_logit_softcapping", K::cap, 0.0},
};

constexpr Demand kSilu = {"hidden_act", "\"silu\""};
constexpr Demand kGelu = {"hidden_activation", "\"gelu_pytorch_tanh\""};
constexpr Demand kCausal = {"use_bidirectional_attention", "false"};
constexpr Demand kLlamaDemands[] = {kSilu};
constexpr Demand kSmolLm3Demands[] = {kSilu, {"use_sliding_window", "false"}};
constexpr Demand kStableLmDemands[] = {kSilu, {"qk_layernorm", "false"}};
constexpr Demand kStarCoder2Demands[] = {{"hidden_act", "\"gelu_pytorch_tanh\""}};
constexpr Demand kGemma2Demands[] = {kGelu, kCausal};
constexpr Demand kGemma3Demands[] = {kGelu, kCausal, {"attn_logit_softcapping", "null"}};

constexpr WindowRule kNoWindow = {};
constexpr WindowRule kWindow = {W::every_layer};
constexpr WindowRule kMistralWindow = {W::every_layer, nullptr, nullptr, 0, 4096};
constexpr WindowRule kUpperLayers = {W::some_layers, "use_sliding_window", "max_window_layers", 0,
                                     4096};
constexpr WindowRule kSecondLayers = {W::some_layers, nullptr, nullptr, 2, 4096};
constexpr WindowRule kFiveOfSix = {W::some_layers, nullptr, nullptr, 6, 4096};

constexpr RopeRule kWholeHead = {};
constexpr RopeRule kMaybePart = {true, 10000.0, 1.0, true};
constexpr RopeRule kQuarter = {true, 10000.0, 0.25, true};
constexpr RopeRule kThreeOfFour = {true, 2000000.0, 1.0, false, false, 4};
constexpr RopeRule kTwoBases = {true, 1000000.0, 1.0, false, true};

constexpr ImportArchitecture kArchitectures[] = {
    {"LlamaForCausalLM", "llama", kLlamaTensors, kLlamaSwitches, kLlamaKeys, kLlamaDemands, true},
    {"MistralForCausalLM", "llama", kLlamaTensors, kPlainSwitches, kLlamaKeys, kLlamaDemands, true,
     0.0f, 0, kMistralWindow},
    {"Qwen2ForCausalLM", "qwen2", kLlamaTensors, kQwen2Switches, kLlamaKeys, kLlamaDemands, false,
     0.0f, 0, kUpperLayers},
    {"Qwen3ForCausalLM", "qwen3", kQwen3Tensors, kQwen3Switches, kLlamaKeys, kLlamaDemands, false,
     0.0f, 128, kUpperLayers},
    {"Phi3ForCausalLM", "phi3", kPhi3Tensors, kPlainSwitches, kPhi3Keys, kLlamaDemands, false, 0.0f,
     0, kWindow, kMaybePart},
    {"SmolLM3ForCausalLM", "smollm3", kLlamaTensors, kSmolLm3Switches, kLlamaKeys, kSmolLm3Demands,
     true, 0.0f, 0, kNoWindow, kThreeOfFour},
    {"GraniteForCausalLM", "granite", kLlamaTensors, kLlamaSwitches, kGraniteKeys, kLlamaDemands,
     true},
    {"Olmo2ForCausalLM", "olmo2", kOlmo2Tensors, kOlmo2Switches, kPhi3Keys, kLlamaDemands, false},
    {"StableLmForCausalLM", "stablelm", kStableLmTensors, kStableLmSwitches, kStableLmKeys,
     kStableLmDemands, false, 0.0f, 0, kNoWindow, kQuarter},
    {"Starcoder2ForCausalLM", "starcoder2", kStarCoder2Tensors, kStarCoder2Switches,
     kStarCoder2Keys, kStarCoder2Demands, false, 0.0f, 0, kWindow},
    {"Gemma2ForCausalLM", "gemma2", kGemma2Tensors, kGemmaSwitches, kGemma2Keys, kGemma2Demands,
     false, 1.0f, 256, kSecondLayers, kWholeHead},
    {"Gemma3ForCausalLM", "gemma3", kGemma3Tensors, kGemmaSwitches, kGemma3Keys, kGemma3Demands,
     false, 1.0f, 256, kFiveOfSix, kTwoBases},
};

#undef MOTE_LAYER
#undef MOTE_BLOCK

}  // namespace

ImportArchitecture find_import_architecture(const HuggingFaceFolder& folder) {
  const Config& config = folder.config();
  std::string found = "none";
  if (const auto* names = config.find("architectures");
      names && names->is_array() && !names->empty() && (*names)[0].is_string())
    found = (*names)[0].get<std::string>();
  for (const ImportArchitecture& architecture : kArchitectures)
    if (found == architecture.class_name) return architecture;
  ImportArchitecture encoder;
  if (find_import_encoder(found, is_sentence_model(folder), &encoder)) return encoder;
  std::string known;
  for (const ImportArchitecture& architecture : kArchitectures)
    known += std::string(architecture.class_name) + ", ";
  config.fail("architectures",
              "expected one of " + known + import_encoder_names() + ", found " + found);
}

const char* ImportArchitecture::setting(const Config& config, const char* usual) const {
  for (const Alias& alias : aliases)
    if (std::strcmp(alias.usual, usual) == 0 && config.has(alias.own)) return alias.own;
  return usual;
}

}  // namespace mote::tool
