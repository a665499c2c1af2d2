#include "models/architectures/keys.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace mote {
namespace {

constexpr uint32_t kMaxWidth = 1u << 20;       // of hidden states and feed-forward
constexpr uint32_t kMaxContext = 1u << 26;     // positions
constexpr uint32_t kMaxVocabulary = 1u << 24;  // tokens
constexpr uint32_t kMaxHeadDim = 1024;

}  // namespace

std::string_view ArchitectureKeys::name(const char* suffix) {
  const int n = std::snprintf(buffer_, sizeof buffer_, "%.*s.%s", int(architecture_.size()),
                              architecture_.data(), suffix);
  return {buffer_, n < int(sizeof buffer_) ? size_t(n) : sizeof buffer_ - 1};
}

Status ArchitectureKeys::u32(const char* suffix, uint32_t* value) {
  return file_.get_u32(name(suffix), value);
}
Status ArchitectureKeys::u32(const char* suffix, uint32_t fallback, uint32_t* value) {
  return file_.get_u32(name(suffix), fallback, value);
}
Status ArchitectureKeys::f32(const char* suffix, float* value) {
  return file_.get_f32(name(suffix), value);
}
Status ArchitectureKeys::f32(const char* suffix, float fallback, float* value) {
  MOTE_TRY(file_.get_f32(name(suffix), fallback, value));
  if (!std::isfinite(*value))
    return file_error(file_, MOTE_ERROR_BAD_FILE, "key %s: expected a finite number, found %g",
                      buffer_, double(*value));
  return kOk;
}
Status ArchitectureKeys::text(const char* suffix, std::string_view fallback,
                              std::string_view* value) {
  return file_.get_text(name(suffix), fallback, value);
}

Status ArchitectureKeys::count(const char* suffix, uint32_t least, uint32_t most, uint32_t* value) {
  MOTE_TRY(u32(suffix, value));
  if (*value < least || *value > most)
    return file_error(file_, MOTE_ERROR_BAD_FILE, "key %s: expected %u..%u, found %u", buffer_,
                      least, most, *value);
  return kOk;
}

Status ArchitectureKeys::vocabulary(Spec* spec) {
  if (file_.find(name("vocab_size")))
    return count("vocab_size", 1, kMaxVocabulary, &spec->vocabulary);
  const GgufKey* tokens = file_.find("tokenizer.ggml.tokens");
  const Tensor* embedding = file_.find_tensor("token_embd.weight");
  const uint64_t size = tokens ? tokens->count : embedding ? embedding->rows() : 0;
  if (size < 1 || size > kMaxVocabulary)
    return file_error(file_, MOTE_ERROR_BAD_FILE,
                      "vocabulary: expected 1..%u tokens by %s, tokenizer.ggml.tokens or "
                      "token_embd.weight, found %llu",
                      kMaxVocabulary, buffer_, static_cast<unsigned long long>(size));
  spec->vocabulary = uint32_t(size);
  return kOk;
}

Status ArchitectureKeys::sizes(Spec* spec) {
  MOTE_TRY(count("block_count", 1, kMaxLayers, &spec->layers));
  MOTE_TRY(count("embedding_length", 1, kMaxWidth, &spec->hidden));
  MOTE_TRY(count("feed_forward_length", 1, kMaxWidth, &spec->feed_forward));
  MOTE_TRY(count("context_length", 1, kMaxContext, &spec->context));
  MOTE_TRY(count("attention.head_count", 1, 4096, &spec->heads));
  MOTE_TRY(u32("attention.head_count_kv", spec->heads, &spec->kv_heads));
  if (spec->kv_heads == 0 || spec->heads % spec->kv_heads)
    return file_error(file_, MOTE_ERROR_BAD_FILE,
                      "key %s: expected a divisor of %u heads, found %u", buffer_, spec->heads,
                      spec->kv_heads);
  MOTE_TRY(u32("attention.key_length", spec->hidden / spec->heads, &spec->head_dim));
  uint32_t value_length = 0;
  MOTE_TRY(u32("attention.value_length", spec->head_dim, &value_length));
  if (value_length != spec->head_dim)
    return file_error(file_, MOTE_ERROR_UNSUPPORTED,
                      "key %s: expected %u as the keys have, found %u (heads of two sizes)",
                      buffer_, spec->head_dim, value_length);
  if (spec->head_dim < 1 || spec->head_dim > kMaxHeadDim)
    return file_error(file_, MOTE_ERROR_BAD_FILE, "head size: expected 1..%u, found %u",
                      kMaxHeadDim, spec->head_dim);
  spec->embedding_width = spec->hidden;
  for (uint32_t i = 0; i < spec->layers; ++i) spec->layer[i].block = uint16_t(i);
  return vocabulary(spec);
}

Status ArchitectureKeys::rope(Spec* spec, float base) {
  Rope* rope = &spec->rope[0];
  MOTE_TRY(rope_base("rope.freq_base", base, &rope->base));
  MOTE_TRY(u32("rope.dimension_count", spec->head_dim, &rope->dimensions));
  if (rope->dimensions == 0 || rope->dimensions % 2 || rope->dimensions > spec->head_dim)
    return file_error(file_, MOTE_ERROR_BAD_FILE,
                      "key %s: expected an even number up to the head size %u, found %u", buffer_,
                      spec->head_dim, rope->dimensions);
  return rope_scaling(rope);
}

Status ArchitectureKeys::rope_base(const char* suffix, float fallback, float* base) {
  MOTE_TRY(f32(suffix, fallback, base));
  if (*base > 1.0f) return kOk;
  return file_error(file_, MOTE_ERROR_BAD_FILE, "key %s: expected more than 1, found %g", buffer_,
                    double(*base));
}

Status ArchitectureKeys::local_rope(Spec* spec, float base) {
  spec->rope[1] = Rope{};
  spec->rope[1].dimensions = spec->rope[0].dimensions;
  return rope_base("rope.freq_base_swa", base, &spec->rope[1].base);
}

Status ArchitectureKeys::rope_scaling(Rope* rope) {
  std::string_view type;
  MOTE_TRY(text("rope.scaling.type", "", &type));
  float factor = 0.0f;
  MOTE_TRY(f32("rope.scaling.factor", 0.0f, &factor));
  if (factor == 0.0f) MOTE_TRY(f32("rope.scale_linear", 0.0f, &factor));
  if (type.empty()) type = factor != 0.0f && factor != 1.0f ? "linear" : "none";
  if (type == "none") return kOk;
  if (!(factor > 0.0f))
    return file_error(file_, MOTE_ERROR_BAD_FILE,
                      "key %s: expected a positive factor of scaling \"%.*s\", found %g",
                      name("rope.scaling.factor").data(), int(type.size()), type.data(),
                      double(factor));
  rope->factor = factor;
  if (type == "linear") {
    rope->scaling = Rope::Scaling::linear;
    return kOk;
  }
  if (type != "yarn" && type != "llama3")
    return file_error(file_, MOTE_ERROR_UNSUPPORTED,
                      "key %s: expected none, linear, yarn or llama3, found \"%.*s\"",
                      name("rope.scaling.type").data(), int(type.size()), type.data());
  MOTE_TRY(count("rope.scaling.original_context_length", 1, kMaxContext, &rope->original_context));
  if (type == "llama3") {
    rope->scaling = Rope::Scaling::llama3;
    MOTE_TRY(f32("rope.scaling.low_freq_factor", 1.0f, &rope->low_frequency));
    MOTE_TRY(f32("rope.scaling.high_freq_factor", 4.0f, &rope->high_frequency));
    if (!(rope->high_frequency > rope->low_frequency) || !(rope->low_frequency > 0.0f))
      return file_error(file_, MOTE_ERROR_BAD_FILE,
                        "key %s: expected more than low_freq_factor %g, found %g", buffer_,
                        double(rope->low_frequency), double(rope->high_frequency));
    return kOk;
  }
  rope->scaling = Rope::Scaling::yarn;
  MOTE_TRY(f32("rope.scaling.yarn_beta_fast", 32.0f, &rope->beta_fast));
  MOTE_TRY(f32("rope.scaling.yarn_beta_slow", 1.0f, &rope->beta_slow));
  // A multiplier of the usual 0.1 ln(factor) + 1, as the ecosystem writes it.
  return f32("rope.scaling.attn_factor", 1.0f, &rope->attention_factor);
}

Status ArchitectureKeys::epsilon(Spec* spec) {
  MOTE_TRY(f32(
      spec->norm == Norm::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
      &spec->norm_epsilon));
  if (!(spec->norm_epsilon >= 0.0f && spec->norm_epsilon < 1.0f))
    return file_error(file_, MOTE_ERROR_BAD_FILE, "key %s: expected 0..1, found %g", buffer_,
                      double(spec->norm_epsilon));
  return kOk;
}

Status ArchitectureKeys::decoder(Spec* spec) {
  MOTE_TRY(sizes(spec));
  MOTE_TRY(epsilon(spec));
  return rope(spec);
}

Status ArchitectureKeys::gemma(Spec* spec) {
  spec->norm_place = NormPlace::both;
  spec->activation = ActivationKind::gelu_tanh;
  MOTE_TRY(decoder(spec));
  spec->embedding_scale = std::sqrt(float(spec->hidden));
  return kOk;
}

Status ArchitectureKeys::windows(uint32_t global_every, Spec* spec, bool global_first) {
  uint32_t window = 0;
  MOTE_TRY(u32("attention.sliding_window", 0, &window));
  if (window > kMaxContext)
    return file_error(file_, MOTE_ERROR_BAD_FILE, "key %s: expected up to %u, found %u", buffer_,
                      kMaxContext, window);
  const GgufKey* pattern = file_.find(name("attention.sliding_window_pattern"));
  const GgufKey* flags = nullptr;
  if (pattern && pattern->type == GgufType::array)
    MOTE_TRY(file_.get_array(buffer_, GgufType::boolean, spec->layers, &flags));
  else if (pattern)
    MOTE_TRY(file_.get_u32(buffer_, &global_every));
  for (uint32_t i = 0; i < spec->layers; ++i) {
    const bool local = flags
                           ? flags->data[i] != 0
                           : global_every == 0 || (i + (global_first ? 0 : 1)) % global_every != 0;
    spec->layer[i].window = local ? window : 0;
  }
  return kOk;
}

}  // namespace mote
