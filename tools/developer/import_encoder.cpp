// Encoders: a family's body and, for each class of it, a head.
#include <string>

#include "tools/developer/import_architecture.h"

namespace mote::tool {
namespace {

using S = Size;
using K = KeyRule::Kind;
using Tensors = List<TensorRule>;

#define MOTE_BLOCK "blk.#."
#define MOTE_MATRIX(source, target, rows, columns) \
  {source ".weight", target ".weight", rows, columns}, { source ".bias", target ".bias", rows }
#define MOTE_NORM(source, target, size) \
  {source ".weight", target ".weight", size}, { source ".bias", target ".bias", size }
// Of a head's or norm's bias that some classes have not.
#define MOTE_OPTIONAL(source, target, rows, columns) \
  { source, target, rows, columns, Role::plain, kOptional }

// ---- Bodies ----

constexpr TensorRule kBertEmbeddings[] = {
    {"@embeddings.word_embeddings.weight", "token_embd.weight", S::vocabulary, S::embedding},
    {"@embeddings.position_embeddings.weight", "position_embd.weight", S::positions, S::embedding},
    MOTE_NORM("@embeddings.LayerNorm", "token_embd_norm", S::embedding),
};
constexpr TensorRule kTokenTypes[] = {{"@embeddings.token_type_embeddings.weight",
                                       "token_types.weight", S::token_types, S::embedding}};

#define MOTE_LAYER "@encoder.layer.#."
constexpr TensorRule kBertLayers[] = {
    MOTE_MATRIX(MOTE_LAYER "attention.self.query", MOTE_BLOCK "attn_q", S::queries, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.self.key", MOTE_BLOCK "attn_k", S::keys, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.self.value", MOTE_BLOCK "attn_v", S::keys, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.output.dense", MOTE_BLOCK "attn_output", S::hidden,
                S::queries),
    MOTE_NORM(MOTE_LAYER "attention.output.LayerNorm", MOTE_BLOCK "attn_output_norm", S::hidden),
};
constexpr TensorRule kBertFeedForward[] = {
    MOTE_MATRIX(MOTE_LAYER "intermediate.dense", MOTE_BLOCK "ffn_up", S::feed_forward, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "output.dense", MOTE_BLOCK "ffn_down", S::hidden, S::feed_forward),
    MOTE_NORM(MOTE_LAYER "output.LayerNorm", MOTE_BLOCK "layer_output_norm", S::hidden),
};
constexpr TensorRule kMpNetLayers[] = {
    {"@encoder.relative_attention_bias.weight", "attn_rel_b.weight", S::buckets, S::heads},
    MOTE_MATRIX(MOTE_LAYER "attention.attn.q", MOTE_BLOCK "attn_q", S::queries, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.attn.k", MOTE_BLOCK "attn_k", S::keys, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.attn.v", MOTE_BLOCK "attn_v", S::keys, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.attn.o", MOTE_BLOCK "attn_output", S::hidden, S::queries),
    MOTE_NORM(MOTE_LAYER "attention.LayerNorm", MOTE_BLOCK "attn_output_norm", S::hidden),
};
#undef MOTE_LAYER
#define MOTE_LAYER "@transformer.layer.#."
constexpr TensorRule kDistilBertLayers[] = {
    MOTE_MATRIX(MOTE_LAYER "attention.q_lin", MOTE_BLOCK "attn_q", S::queries, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.k_lin", MOTE_BLOCK "attn_k", S::keys, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.v_lin", MOTE_BLOCK "attn_v", S::keys, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.out_lin", MOTE_BLOCK "attn_output", S::hidden, S::queries),
    MOTE_NORM(MOTE_LAYER "sa_layer_norm", MOTE_BLOCK "attn_output_norm", S::hidden),
    MOTE_MATRIX(MOTE_LAYER "ffn.lin1", MOTE_BLOCK "ffn_up", S::feed_forward, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "ffn.lin2", MOTE_BLOCK "ffn_down", S::hidden, S::feed_forward),
    MOTE_NORM(MOTE_LAYER "output_layer_norm", MOTE_BLOCK "layer_output_norm", S::hidden),
};
#undef MOTE_LAYER
#define MOTE_LAYER "@encoder.albert_layer_groups.#.albert_layers.0."
constexpr TensorRule kAlbertLayers[] = {
    MOTE_MATRIX("@encoder.embedding_hidden_mapping_in", "token_embd_projection", S::hidden,
                S::embedding),
    MOTE_MATRIX(MOTE_LAYER "attention.query", MOTE_BLOCK "attn_q", S::queries, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.key", MOTE_BLOCK "attn_k", S::keys, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.value", MOTE_BLOCK "attn_v", S::keys, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "attention.dense", MOTE_BLOCK "attn_output", S::hidden, S::queries),
    MOTE_NORM(MOTE_LAYER "attention.LayerNorm", MOTE_BLOCK "attn_output_norm", S::hidden),
    MOTE_MATRIX(MOTE_LAYER "ffn", MOTE_BLOCK "ffn_up", S::feed_forward, S::hidden),
    MOTE_MATRIX(MOTE_LAYER "ffn_output", MOTE_BLOCK "ffn_down", S::hidden, S::feed_forward),
    MOTE_NORM(MOTE_LAYER "full_layer_layer_norm", MOTE_BLOCK "layer_output_norm", S::hidden),
};
#undef MOTE_LAYER
// Where the embedding has the layers' width there is no projection.
constexpr TensorRule kElectraProjection[] = {
    MOTE_OPTIONAL("@embeddings_project.weight", "token_embd_projection.weight", S::hidden,
                  S::embedding),
    MOTE_OPTIONAL("@embeddings_project.bias", "token_embd_projection.bias", S::hidden, S::none),
};
#define MOTE_LAYER "@encoder.layers.#."
constexpr TensorRule kNomicBertTensors[] = {
    {"@embeddings.word_embeddings.weight", "token_embd.weight", S::vocabulary, S::hidden},
    MOTE_NORM("@emb_ln", "token_embd_norm", S::hidden),
    {MOTE_LAYER "attn.Wqkv.weight", MOTE_BLOCK "attn_qkv.weight", S::query_key_value, S::hidden},
    {MOTE_LAYER "attn.out_proj.weight", MOTE_BLOCK "attn_output.weight", S::hidden, S::queries},
    MOTE_NORM(MOTE_LAYER "norm1", MOTE_BLOCK "attn_output_norm", S::hidden),
    {MOTE_LAYER "mlp.fc11.weight", MOTE_BLOCK "ffn_up.weight", S::feed_forward, S::hidden},
    {MOTE_LAYER "mlp.fc12.weight", MOTE_BLOCK "ffn_gate.weight", S::feed_forward, S::hidden},
    {MOTE_LAYER "mlp.fc2.weight", MOTE_BLOCK "ffn_down.weight", S::hidden, S::feed_forward},
    MOTE_NORM(MOTE_LAYER "norm2", MOTE_BLOCK "layer_output_norm", S::hidden),
};
#undef MOTE_LAYER
#define MOTE_LAYER "@layers.#."
constexpr TensorRule kModernBertTensors[] = {
    {"@embeddings.tok_embeddings.weight", "token_embd.weight", S::vocabulary, S::hidden},
    {"@embeddings.norm.weight", "token_embd_norm.weight", S::hidden},
    MOTE_OPTIONAL("@embeddings.norm.bias", "token_embd_norm.bias", S::hidden, S::none),
    {"@final_norm.weight", "output_norm.weight", S::hidden},
    MOTE_OPTIONAL("@final_norm.bias", "output_norm.bias", S::hidden, S::none),
    {MOTE_LAYER "attn_norm.weight", MOTE_BLOCK "attn_norm.weight", S::hidden, S::none, Role::plain,
     kNotFirst},
    MOTE_OPTIONAL(MOTE_LAYER "attn_norm.bias", MOTE_BLOCK "attn_norm.bias", S::hidden, S::none),
    {MOTE_LAYER "attn.Wqkv.weight", MOTE_BLOCK "attn_qkv.weight", S::query_key_value, S::hidden},
    {MOTE_LAYER "attn.Wo.weight", MOTE_BLOCK "attn_output.weight", S::hidden, S::queries},
    {MOTE_LAYER "mlp_norm.weight", MOTE_BLOCK "ffn_norm.weight", S::hidden},
    MOTE_OPTIONAL(MOTE_LAYER "mlp_norm.bias", MOTE_BLOCK "ffn_norm.bias", S::hidden, S::none),
    {MOTE_LAYER "mlp.Wi.weight", MOTE_BLOCK "ffn_up.weight", S::gate_up, S::hidden},
    {MOTE_LAYER "mlp.Wo.weight", MOTE_BLOCK "ffn_down.weight", S::hidden, S::feed_forward},
};
#undef MOTE_LAYER

// ---- Heads ----

constexpr TensorRule kPoolerIfAny[] = {
    MOTE_OPTIONAL("@pooler.dense.weight", "cls.weight", S::hidden, S::hidden),
    MOTE_OPTIONAL("@pooler.dense.bias", "cls.bias", S::hidden, S::none)};
constexpr TensorRule kPoolerAndClassifier[] = {
    MOTE_MATRIX("@pooler.dense", "cls", S::hidden, S::hidden),
    MOTE_MATRIX("classifier", "cls.output", S::labels, S::hidden)};
constexpr TensorRule kDenseClassifier[] = {
    MOTE_MATRIX("classifier.dense", "cls", S::hidden, S::hidden),
    MOTE_MATRIX("classifier.out_proj", "cls.output", S::labels, S::hidden)};
constexpr TensorRule kTagger[] = {MOTE_MATRIX("classifier", "tag.output", S::labels, S::hidden)};
constexpr TensorRule kSpan[] = {MOTE_MATRIX("qa_outputs", "qa.output", S::span, S::hidden)};

constexpr HeadRule kTokenClassification = {"ForTokenClassification", "tag", kTagger};
constexpr HeadRule kQuestionAnswering = {"ForQuestionAnswering", "answer", kSpan};
constexpr HeadRule kPooled = {"Model", "embed", kPoolerIfAny, "tanh"};
constexpr HeadRule kDenseSequenceClassification = {"ForSequenceClassification", "classify",
                                                   kDenseClassifier, "tanh"};

#define MOTE_TRANSFORM(dense, norm) \
  MOTE_MATRIX(dense, "cls", S::embedding, S::hidden), MOTE_NORM(norm, "cls.norm", S::embedding)
#define MOTE_DECODER(bias, weight)                                             \
  {bias, "output.bias", S::vocabulary}, {                                      \
    weight, "output.weight", S::vocabulary, S::embedding, Role::plain, kUntied \
  }
constexpr TensorRule kBertDecoder[] = {
    MOTE_TRANSFORM("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
    MOTE_DECODER("cls.predictions.bias", "cls.predictions.decoder.weight")};
constexpr TensorRule kRobertaDecoder[] = {MOTE_TRANSFORM("lm_head.dense", "lm_head.layer_norm"),
                                          MOTE_DECODER("lm_head.bias", "lm_head.decoder.weight")};
constexpr HeadRule kRobertaMaskedLm = {"ForMaskedLM", "masked_lm", kRobertaDecoder, "gelu"};

constexpr HeadRule kBertHeads[] = {
    kPooled,
    {"ForSequenceClassification", "classify", kPoolerAndClassifier, "tanh"},
    kTokenClassification,
    kQuestionAnswering,
    {"ForMaskedLM", "masked_lm", kBertDecoder, nullptr, "hidden_act"},
    {"ForPreTraining", "masked_lm", kBertDecoder, nullptr, "hidden_act"},
};
constexpr HeadRule kRobertaHeads[] = {kPooled, kDenseSequenceClassification, kTokenClassification,
                                      kQuestionAnswering, kRobertaMaskedLm};

constexpr TensorRule kDistilBertClassifier[] = {
    MOTE_MATRIX("pre_classifier", "cls", S::hidden, S::hidden),
    MOTE_MATRIX("classifier", "cls.output", S::labels, S::hidden)};
constexpr TensorRule kDistilBertDecoder[] = {
    MOTE_TRANSFORM("vocab_transform", "vocab_layer_norm"),
    MOTE_DECODER("vocab_projector.bias", "vocab_projector.weight")};
constexpr HeadRule kDistilBertHeads[] = {
    {"Model", "embed", {}},
    {"ForSequenceClassification", "classify", kDistilBertClassifier, "relu"},
    kTokenClassification,
    kQuestionAnswering,
    {"ForMaskedLM", "masked_lm", kDistilBertDecoder, nullptr, "activation"},
};

constexpr TensorRule kElectraDecoder[] = {
    MOTE_TRANSFORM("generator_predictions.dense", "generator_predictions.LayerNorm"),
    MOTE_DECODER("generator_lm_head.bias", "generator_lm_head.weight")};
constexpr HeadRule kElectraHeads[] = {
    {"Model", "embed", {}},
    {"ForSequenceClassification", "classify", kDenseClassifier, "gelu"},
    kTokenClassification,
    kQuestionAnswering,
    {"ForMaskedLM", "masked_lm", kElectraDecoder, "gelu"},
};

constexpr TensorRule kAlbertPooler[] = {
    MOTE_OPTIONAL("@pooler.weight", "cls.weight", S::hidden, S::hidden),
    MOTE_OPTIONAL("@pooler.bias", "cls.bias", S::hidden, S::none)};
constexpr TensorRule kAlbertClassifier[] = {
    MOTE_MATRIX("@pooler", "cls", S::hidden, S::hidden),
    MOTE_MATRIX("classifier", "cls.output", S::labels, S::hidden)};
constexpr TensorRule kAlbertDecoder[] = {
    MOTE_TRANSFORM("predictions.dense", "predictions.LayerNorm"),
    MOTE_DECODER("predictions.bias", "predictions.decoder.weight")};
constexpr HeadRule kAlbertHeads[] = {
    {"Model", "embed", kAlbertPooler, "tanh"},
    {"ForSequenceClassification", "classify", kAlbertClassifier, "tanh"},
    kTokenClassification,
    kQuestionAnswering,
    {"ForMaskedLM", "masked_lm", kAlbertDecoder, nullptr, "hidden_act"},
    {"ForPreTraining", "masked_lm", kAlbertDecoder, nullptr, "hidden_act"},
};

#define MOTE_MODERN_HEAD                                                \
  {"head.dense.weight", "cls.weight", S::hidden, S::hidden},            \
      MOTE_OPTIONAL("head.dense.bias", "cls.bias", S::hidden, S::none), \
      {"head.norm.weight", "cls.norm.weight", S::hidden},               \
      MOTE_OPTIONAL("head.norm.bias", "cls.norm.bias", S::hidden, S::none)
constexpr TensorRule kModernBertClassifier[] = {
    MOTE_MODERN_HEAD, MOTE_MATRIX("classifier", "cls.output", S::labels, S::hidden)};
constexpr TensorRule kModernBertTagger[] = {
    MOTE_MODERN_HEAD, MOTE_MATRIX("classifier", "tag.output", S::labels, S::hidden)};
constexpr TensorRule kModernBertSpan[] = {
    MOTE_MODERN_HEAD, MOTE_MATRIX("classifier", "qa.output", S::span, S::hidden)};
constexpr TensorRule kModernBertDecoder[] = {
    MOTE_MODERN_HEAD,
    MOTE_OPTIONAL("decoder.bias", "output.bias", S::vocabulary, S::none),
    {"decoder.weight", "output.weight", S::vocabulary, S::hidden, Role::plain, kUntied}};
constexpr HeadRule kModernBertHeads[] = {
    {"Model", "embed", {}},
    {"ForSequenceClassification", "classify", kModernBertClassifier, nullptr,
     "classifier_activation", "classifier_pooling"},
    {"ForTokenClassification", "tag", kModernBertTagger, nullptr, "classifier_activation"},
    {"ForQuestionAnswering", "answer", kModernBertSpan, nullptr, "classifier_activation"},
    {"ForMaskedLM", "masked_lm", kModernBertDecoder, nullptr, "classifier_activation"},
};
constexpr HeadRule kNomicBertHeads[] = {{"Model", "embed", {}}};

// ---- Families ----

constexpr Tensors kBertTensors[] = {kBertEmbeddings, kTokenTypes, kBertLayers, kBertFeedForward};
constexpr Tensors kDistilBertTensors[] = {kBertEmbeddings, kDistilBertLayers};
constexpr Tensors kElectraTensors[] = {kBertEmbeddings, kTokenTypes, kElectraProjection,
                                       kBertLayers, kBertFeedForward};
constexpr Tensors kAlbertTensors[] = {kBertEmbeddings, kTokenTypes, kAlbertLayers};
constexpr Tensors kMpNetTensors[] = {kBertEmbeddings, kMpNetLayers, kBertFeedForward};
constexpr Tensors kNomicTensors[] = {kTokenTypes, kNomicBertTensors};
constexpr Tensors kModernTensors[] = {kModernBertTensors};

constexpr SwitchRule kEncoderSwitches[] = {{"tie_word_embeddings", true, kUntied, true}};
constexpr KeyRule kLayerNormEpsilon[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", K::epsilon, 1e-12}};
constexpr KeyRule kRobertaEpsilon[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", K::epsilon, 1e-5}};
constexpr KeyRule kNomicEpsilon[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", K::epsilon, 1e-12}};
constexpr KeyRule kModernEpsilon[] = {
    {"norm_eps", "attention.layer_norm_epsilon", K::epsilon, 1e-5}};

constexpr Demand kBertDemands[] = {{"is_decoder", "false"},
                                   {"add_cross_attention", "false"},
                                   {"position_embedding_type", "\"absolute\""},
                                   {"summary_use_proj", "true"},
                                   {"summary_type", "\"first\""},
                                   {"summary_activation", "\"gelu\""}};
constexpr Demand kDistilBertDemands[] = {{"sinusoidal_pos_embds", "false"}};
constexpr Demand kAlbertDemands[] = {{"inner_group_num", "1"},
                                     {"position_embedding_type", "\"absolute\""}};
constexpr Demand kNomicDemands[] = {{"activation_function", "\"swiglu\""},
                                    {"prenorm", "false"},
                                    {"qkv_proj_bias", "false"},
                                    {"mlp_fc1_bias", "false"},
                                    {"mlp_fc2_bias", "false"},
                                    {"causal", "false"},
                                    {"rotary_emb_fraction", "1.0"},
                                    {"rotary_emb_interleaved", "false"},
                                    {"rotary_emb_scale_base", "null"},
                                    {"scale_attn_weights", "true"},
                                    {"use_rms_norm", "false"},
                                    {"parallel_block", "false"},
                                    {"moe_every_n_layers", "0"}};
constexpr Demand kModernDemands[] = {{"attention_bias", "false"}, {"mlp_bias", "false"}};

constexpr RopeRule kNoRope = {false};
constexpr RopeRule kNomicRope = {true, 1000.0, 1.0, false, false, 0, "rotary_emb_base"};
constexpr RopeRule kModernRope = {
    true, 160000.0, 1.0, false, true, 0, "global_rope_theta", "local_rope_theta"};
constexpr WindowRule kModernWindow = {
    WindowRule::Kind::some_layers, nullptr, nullptr, 3, 128, "local_attention",
    "global_attn_every_n_layers",  true};

constexpr Alias kDistilBertAliases[] = {{"num_hidden_layers", "n_layers"},
                                        {"hidden_size", "dim"},
                                        {"intermediate_size", "hidden_dim"},
                                        {"num_attention_heads", "n_heads"}};
constexpr Alias kNomicAliases[] = {
    {"num_hidden_layers", "n_layer"},           {"hidden_size", "n_embd"},
    {"intermediate_size", "n_inner"},           {"num_attention_heads", "n_head"},
    {"max_position_embeddings", "n_positions"}, {"layer_norm_eps", "layer_norm_epsilon"}};

constexpr EncoderRule kBert = {"bert.", kBertHeads};
constexpr EncoderRule kDistilBert = {
    "distilbert.", kDistilBertHeads, "activation", "gelu", false, false, false, false, false,
    1e-12};
constexpr EncoderRule kRoberta = {"roberta.", kRobertaHeads, "hidden_act", "gelu", true, true};
constexpr EncoderRule kElectra = {"electra.", kElectraHeads, "hidden_act", "gelu",
                                  true,       false,         true};
constexpr EncoderRule kAlbert = {"albert.", kAlbertHeads, "hidden_act", "gelu_new",
                                 true,      false,        true,         true};
constexpr EncoderRule kMpNet = {"mpnet.", kRobertaHeads, "hidden_act", "gelu", false,
                                true,     false,         false,        true};
constexpr EncoderRule kNomicBert = {"nomic_bert.", kNomicBertHeads, nullptr, "silu"};
constexpr EncoderRule kModernBert = {"model.", kModernBertHeads, "hidden_activation", "gelu",
                                     false};

constexpr ImportArchitecture family(const char* name, const char* architecture,
                                    List<Tensors> tensors, List<KeyRule> keys, List<Demand> demands,
                                    const EncoderRule* encoder) {
  ImportArchitecture row = {};
  row.class_name = name;
  row.architecture = architecture;
  row.tensors = tensors;
  row.switches = kEncoderSwitches;
  row.keys = keys;
  row.demands = demands;
  row.rope = kNoRope;
  row.encoder = encoder;
  return row;
}
constexpr ImportArchitecture with(ImportArchitecture row, List<Alias> aliases) {
  row.aliases = aliases;
  return row;
}
constexpr ImportArchitecture with(ImportArchitecture row, RopeRule rope, WindowRule window = {}) {
  row.rope = rope;
  row.window = window;
  return row;
}

constexpr ImportArchitecture kFamilies[] = {
    family("Bert", "bert", kBertTensors, kLayerNormEpsilon, kBertDemands, &kBert),
    with(family("DistilBert", "bert", kDistilBertTensors, {}, kDistilBertDemands, &kDistilBert),
         kDistilBertAliases),
    family("Roberta", "bert", kBertTensors, kRobertaEpsilon, kBertDemands, &kRoberta),
    family("XLMRoberta", "bert", kBertTensors, kRobertaEpsilon, kBertDemands, &kRoberta),
    family("Camembert", "bert", kBertTensors, kRobertaEpsilon, kBertDemands, &kRoberta),
    family("Electra", "electra", kElectraTensors, kLayerNormEpsilon, kBertDemands, &kElectra),
    family("Albert", "albert", kAlbertTensors, kLayerNormEpsilon, kAlbertDemands, &kAlbert),
    family("MPNet", "mpnet", kMpNetTensors, kLayerNormEpsilon, {}, &kMpNet),
    with(with(family("NomicBert", "nomic-bert", kNomicTensors, kNomicEpsilon, kNomicDemands,
                     &kNomicBert),
              kNomicAliases),
         kNomicRope),
    with(family("ModernBert", "modern-bert", kModernTensors, kModernEpsilon, kModernDemands,
                &kModernBert),
         kModernRope, kModernWindow),
};

}  // namespace

bool find_import_encoder(const std::string& class_name, bool body,
                         ImportArchitecture* architecture) {
  for (const ImportArchitecture& family : kFamilies)
    for (const HeadRule& head : family.encoder->heads)
      if (class_name == std::string(family.class_name) + head.class_suffix) {
        *architecture = family;
        architecture->head = body ? family.encoder->heads.begin() : &head;
        return true;
      }
  return false;
}

std::string import_encoder_names() {
  std::string names;
  for (const ImportArchitecture& family : kFamilies)
    for (const HeadRule& head : family.encoder->heads)
      names += (names.empty() ? "" : ", ") + std::string(family.class_name) + head.class_suffix;
  return names;
}

}  // namespace mote::tool
