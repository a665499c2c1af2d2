#include "models/weights.h"

#include <cstdio>
#include <cstring>

namespace mote {
namespace {

enum class Width : uint8_t { hidden, query, key_value, feed_forward, head, query_norm, key_norm };

size_t width(const Spec& spec, Width w) {
  switch (w) {
    case Width::hidden:
      return spec.hidden;
    case Width::query:
      return size_t(spec.heads) * spec.head_dim;
    case Width::key_value:
      return size_t(spec.kv_heads) * spec.head_dim;
    case Width::feed_forward:
      return spec.feed_forward;
    case Width::query_norm:
      return width(spec, spec.query_norm == QueryNorm::each_head ? Width::head : Width::query);
    case Width::key_norm:
      return width(spec, spec.query_norm == QueryNorm::each_head ? Width::head : Width::key_value);
    case Width::head:
      return spec.head_dim;
  }
  return 0;
}

using Needed = bool (*)(const Spec&);
bool always(const Spec&) { return true; }
bool never(const Spec&) { return false; }
bool pre_norm(const Spec& s) { return s.norm_place != NormPlace::post; }
bool post_norm(const Spec& s) { return s.norm_place != NormPlace::pre; }
bool gated(const Spec& s) { return s.gated; }
bool own_feed_forward_norm(const Spec& s) { return pre_norm(s) && !s.parallel; }

struct MatrixRow {
  const char* name;  // behind "blk.<layer>."
  Matrix LayerWeights::*member;
  Width rows, columns;
  Needed needed;
};
constexpr MatrixRow kMatrices[] = {
    {"attn_q.weight", &LayerWeights::query, Width::query, Width::hidden, always},
    {"attn_k.weight", &LayerWeights::key, Width::key_value, Width::hidden, always},
    {"attn_v.weight", &LayerWeights::value, Width::key_value, Width::hidden, always},
    {"attn_output.weight", &LayerWeights::attention_output, Width::hidden, Width::query, always},
    {"ffn_gate.weight", &LayerWeights::gate, Width::feed_forward, Width::hidden, gated},
    {"ffn_up.weight", &LayerWeights::up, Width::feed_forward, Width::hidden, always},
    {"ffn_down.weight", &LayerWeights::down, Width::hidden, Width::feed_forward, always},
};

struct VectorRow {
  const char* name;
  const float* LayerWeights::*member;
  Width size;
  Needed needed;
};
constexpr VectorRow kVectors[] = {
    {"attn_norm.weight", &LayerWeights::attention_norm, Width::hidden, pre_norm},
    {"attn_norm.bias", &LayerWeights::attention_norm_bias, Width::hidden, never},
    {"attn_q.bias", &LayerWeights::query_bias, Width::query, never},
    {"attn_k.bias", &LayerWeights::key_bias, Width::key_value, never},
    {"attn_v.bias", &LayerWeights::value_bias, Width::key_value, never},
    {"attn_q_norm.weight", &LayerWeights::query_norm, Width::query_norm, never},
    {"attn_k_norm.weight", &LayerWeights::key_norm, Width::key_norm, never},
    {"attn_output.bias", &LayerWeights::attention_output_bias, Width::hidden, never},
    {"post_attention_norm.weight", &LayerWeights::attention_post_norm, Width::hidden, post_norm},
    {"ffn_norm.weight", &LayerWeights::feed_forward_norm, Width::hidden, own_feed_forward_norm},
    {"ffn_norm.bias", &LayerWeights::feed_forward_norm_bias, Width::hidden, never},
    {"ffn_gate.bias", &LayerWeights::gate_bias, Width::feed_forward, never},
    {"ffn_up.bias", &LayerWeights::up_bias, Width::feed_forward, never},
    {"ffn_down.bias", &LayerWeights::down_bias, Width::hidden, never},
    {"post_ffw_norm.weight", &LayerWeights::feed_forward_post_norm, Width::hidden, post_norm},
};

// Matrices that some files store as one, above each other.
struct FusedRow {
  const char* name;
  Matrix LayerWeights::*member[3];
  Width rows[3];
  size_t count;
};
constexpr FusedRow kFused[] = {
    {"attn_qkv.weight",
     {&LayerWeights::query, &LayerWeights::key, &LayerWeights::value},
     {Width::query, Width::key_value, Width::key_value},
     3},
    {"ffn_up.weight",
     {&LayerWeights::gate, &LayerWeights::up, nullptr},
     {Width::feed_forward, Width::feed_forward, Width::feed_forward},
     2},
};

// Finds tensors, checks them, and remembers which were read.
class Binder {
 public:
  Binder(const GgufFile& file, const Kernels& kernels) : file_(file), kernels_(kernels) {}

  Status start(Allocator& allocator) {
    MOTE_TRY(used_.allocate(allocator, file_.tensors().size(), "tensor marks"));
    if (used_.size()) std::memset(used_.data(), 0, used_.size());
    return kOk;
  }

  bool has(const char* name) const { return file_.find_tensor(name) != nullptr; }
  const Tensor* look(const char* name) const { return file_.find_tensor(name); }

  Status matrix(const char* name, size_t rows, size_t columns, bool needed, Matrix* out) {
    const Tensor* tensor = nullptr;
    MOTE_TRY(find(name, needed, &tensor));
    if (!tensor) return kOk;
    if (tensor->columns() != columns || tensor->rows() != rows || tensor->dimensions > 2)
      return file_error(file_, MOTE_ERROR_BAD_FILE,
                        "tensor %s: expected shape [%zu, %zu], found [%llu, %llu] in %u dimensions",
                        name, columns, rows, static_cast<unsigned long long>(tensor->columns()),
                        static_cast<unsigned long long>(tensor->rows()), tensor->dimensions);
    out->linear = linear_kernel(kernels_, tensor->format);
    if (!out->linear)
      return file_error(file_, MOTE_ERROR_UNSUPPORTED, "tensor %s: format %s has no kernels here",
                        name, format_info(tensor->format).name);
    out->data = tensor->data;
    out->format = tensor->format;
    out->rows = rows;
    out->columns = columns;
    out->quantized_input = needs_quantized_activations(tensor->format);
    return kOk;
  }

  Status vector(const char* name, size_t size, bool needed, const float** out) {
    const Tensor* tensor = nullptr;
    MOTE_TRY(find(name, needed, &tensor));
    if (!tensor) return kOk;
    if (tensor->values() != size || tensor->columns() != size)
      return file_error(file_, MOTE_ERROR_BAD_FILE,
                        "tensor %s: expected %zu values, found %llu in %u dimensions", name, size,
                        static_cast<unsigned long long>(tensor->values()), tensor->dimensions);
    if (tensor->format != Format::f32)
      return file_error(file_, MOTE_ERROR_UNSUPPORTED, "tensor %s: expected format f32, found %s",
                        name, format_info(tensor->format).name);
    *out = reinterpret_cast<const float*>(tensor->data);
    return kOk;
  }

  // Warns of tensors that nothing has read.
  void report(const Log& log) const {
    for (size_t i = 0; i < used_.size(); ++i)
      if (!used_[i])
        log.write(MOTE_LOG_WARNING, "%.*s: tensor %.*s is not used", int(file_.name().size()),
                  file_.name().data(), int(file_.tensors()[i].name.size()),
                  file_.tensors()[i].name.data());
  }

 private:
  Status find(const char* name, bool needed, const Tensor** out) {
    *out = file_.find_tensor(name);
    if (*out) used_[size_t(*out - file_.tensors().data())] = 1;
    if (!*out && needed)
      return file_error(file_, MOTE_ERROR_BAD_FILE, "tensor %s is missing", name);
    return kOk;
  }

  const GgufFile& file_;
  const Kernels& kernels_;
  HeapArray<uint8_t> used_;
};

// Splits a fused matrix where the file has it and lacks the first part by itself.
Status bind_fused(Binder& binder, const Spec& spec, uint32_t layer, const FusedRow& row,
                  const char* part, LayerWeights* weights) {
  char name[64];
  std::snprintf(name, sizeof name, "blk.%u.%s", layer, part);
  if (binder.has(name)) return kOk;
  std::snprintf(name, sizeof name, "blk.%u.%s", layer, row.name);
  // With the rows of one part only it is not fused: then the first part is what the file lacks.
  const Tensor* fused = binder.look(name);
  if (!fused || fused->rows() == width(spec, row.rows[row.count - 1])) return kOk;
  size_t rows = 0;
  for (size_t i = 0; i < row.count; ++i) rows += width(spec, row.rows[i]);
  Matrix whole;
  MOTE_TRY(binder.matrix(name, rows, spec.hidden, true, &whole));
  for (size_t i = 0; i < row.count; ++i) {
    Matrix& matrix = weights->*row.member[i];
    matrix = whole;
    matrix.rows = width(spec, row.rows[i]);
    whole.data += matrix.rows * row_bytes(whole.format, whole.columns);
  }
  return kOk;
}

Status bind_layer(Binder& binder, const Spec& spec, uint32_t layer, LayerWeights* weights) {
  char name[64];
  MOTE_TRY(bind_fused(binder, spec, layer, kFused[0], "attn_q.weight", weights));
  if (spec.gated) MOTE_TRY(bind_fused(binder, spec, layer, kFused[1], "ffn_gate.weight", weights));
  for (const MatrixRow& row : kMatrices) {
    if (weights->*row.member) continue;
    std::snprintf(name, sizeof name, "blk.%u.%s", layer, row.name);
    MOTE_TRY(binder.matrix(name, width(spec, row.rows), width(spec, row.columns), row.needed(spec),
                           &(weights->*row.member)));
  }
  for (const VectorRow& row : kVectors) {
    std::snprintf(name, sizeof name, "blk.%u.%s", layer, row.name);
    MOTE_TRY(binder.vector(name, width(spec, row.size), row.needed(spec), &(weights->*row.member)));
  }
  return kOk;
}

}  // namespace

Status Weights::bind(const GgufFile& file, const Spec& spec, const Kernels& kernels,
                     Allocator& allocator, const Log& log) {
  Binder binder(file, kernels);
  MOTE_TRY(binder.start(allocator));
  MOTE_TRY(layers.allocate(allocator, spec.layers, "layers"));
  MOTE_TRY(binder.matrix("token_embd.weight", spec.vocabulary, spec.hidden, true, &embedding));
  decode_embedding = decode_kernel(kernels, embedding.format);
  MOTE_TRY(binder.vector("output_norm.weight", spec.hidden, spec.norm_place != NormPlace::post,
                         &output_norm));
  MOTE_TRY(binder.vector("output_norm.bias", spec.hidden, false, &output_norm_bias));
  MOTE_TRY(binder.matrix("output.weight", spec.vocabulary, spec.hidden, false, &output));
  if (!output) output = embedding;
  if (spec.position == Position::rope)
    MOTE_TRY(binder.vector("rope_freqs.weight", spec.rope[0].dimensions / 2, false, &rope_factors));
  for (uint32_t i = 0; i < spec.layers; ++i) {
    layers[i] = LayerWeights{};
    MOTE_TRY(bind_layer(binder, spec, i, &layers[i]));
  }
  parameters = 0;
  for (const Tensor& tensor : file.tensors()) parameters += tensor.values();
  binder.report(log);
  return kOk;
}

}  // namespace mote
