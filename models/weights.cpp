#include "models/weights.h"

#include <cstdio>
#include <cstring>

#include "quant/blocks.h"
#include "quant/packed.h"

namespace mote {
namespace {

enum class Width : uint8_t {
  hidden,
  query,
  key_value,
  feed_forward,
  head,
  query_norm,
  key_norm,
  embedding,
  head_dense,
  labels
};

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
    case Width::embedding:
      return spec.embedding_width;
    case Width::head_dense:
      return spec.head.width;
    case Width::labels:
      return spec.head.labels;
  }
  return 0;
}

// Whether a layer has a use for a tensor.
using Applies = bool (*)(const Spec&, const LayerSpec&);
bool always(const Spec&, const LayerSpec&) { return true; }
bool pre(const Spec& s) {
  return s.norm_place == NormPlace::pre || s.norm_place == NormPlace::both;
}
bool pre_norm(const Spec& s, const LayerSpec& l) { return pre(s) && l.attention_norm; }
bool post_norm(const Spec& s, const LayerSpec&) {
  return s.norm_place == NormPlace::post || s.norm_place == NormPlace::both;
}
bool residual_norm(const Spec& s, const LayerSpec&) { return s.norm_place == NormPlace::residual; }
bool gated(const Spec& s, const LayerSpec&) { return s.gated; }
bool own_feed_forward_norm(const Spec& s, const LayerSpec&) { return pre(s) && !s.parallel; }

struct MatrixRow {
  const char* name;  // behind "blk.<layer>."
  Matrix LayerWeights::*member;
  Width rows, columns;
  Applies needed;
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
  Applies applies;
  uint8_t part = 0;  // which bit of Part; 0: needed wherever it applies

  bool needed(const Spec& spec, const LayerSpec& layer) const {
    return applies(spec, layer) && (spec.always & part) == part;
  }
};
constexpr VectorRow kVectors[] = {
    {"attn_norm.weight", &LayerWeights::attention_norm, Width::hidden, pre_norm},
    {"attn_norm.bias", &LayerWeights::attention_norm_bias, Width::hidden, pre_norm, kNormBias},
    {"attn_q.bias", &LayerWeights::query_bias, Width::query, always, kQueryKeyValueBias},
    {"attn_k.bias", &LayerWeights::key_bias, Width::key_value, always, kQueryKeyValueBias},
    {"attn_v.bias", &LayerWeights::value_bias, Width::key_value, always, kQueryKeyValueBias},
    {"attn_q_norm.weight", &LayerWeights::query_norm, Width::query_norm, always, kQueryKeyNorm},
    {"attn_k_norm.weight", &LayerWeights::key_norm, Width::key_norm, always, kQueryKeyNorm},
    {"attn_output.bias", &LayerWeights::attention_output_bias, Width::hidden, always,
     kAttentionOutputBias},
    {"attn_output_norm.weight", &LayerWeights::attention_residual_norm, Width::hidden,
     residual_norm},
    {"attn_output_norm.bias", &LayerWeights::attention_residual_norm_bias, Width::hidden,
     residual_norm, kNormBias},
    {"post_attention_norm.weight", &LayerWeights::attention_post_norm, Width::hidden, post_norm},
    {"ffn_norm.weight", &LayerWeights::feed_forward_norm, Width::hidden, own_feed_forward_norm},
    {"ffn_norm.bias", &LayerWeights::feed_forward_norm_bias, Width::hidden, own_feed_forward_norm,
     kNormBias},
    {"ffn_gate.bias", &LayerWeights::gate_bias, Width::feed_forward, gated, kFeedForwardBias},
    {"ffn_up.bias", &LayerWeights::up_bias, Width::feed_forward, always, kFeedForwardBias},
    {"ffn_down.bias", &LayerWeights::down_bias, Width::hidden, always, kFeedForwardBias},
    {"post_ffw_norm.weight", &LayerWeights::feed_forward_post_norm, Width::hidden, post_norm},
    {"layer_output_norm.weight", &LayerWeights::feed_forward_residual_norm, Width::hidden,
     residual_norm},
    {"layer_output_norm.bias", &LayerWeights::feed_forward_residual_norm_bias, Width::hidden,
     residual_norm, kNormBias},
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

  Status table(const char* name, size_t rows, size_t columns, bool needed, Table* out) {
    MOTE_TRY(matrix(name, rows, columns, needed, &out->matrix));
    if (*out) out->decode = decode_kernel(kernels_, out->matrix.format);
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
    if (needs_quantized_rows(tensor->format) && columns > quant::kMostRowColumns)
      return file_error(file_, MOTE_ERROR_UNSUPPORTED,
                        "tensor %s: %s: expected at most %zu columns, found %zu", name,
                        format_info(tensor->format).name, quant::kMostRowColumns, columns);
    out->input = needs_quantized_rows(tensor->format)          ? InputKind::rows
                 : needs_quantized_activations(tensor->format) ? InputKind::blocks
                                                               : InputKind::floats;
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

  // Part of a matrix, with another part behind it.
  Status check_part(const char* name, const Matrix& part) const {
    if (!is_packed(part.format) || part.rows % quant::kPackedRows == 0) return kOk;
    return file_error(file_, MOTE_ERROR_UNSUPPORTED,
                      "tensor %s: %s: expected parts of whole tiles of %zu rows, found one of %zu",
                      name, format_info(part.format).name, quant::kPackedRows, part.rows);
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
    if (i + 1 < row.count) MOTE_TRY(binder.check_part(name, matrix));
  }
  return kOk;
}

Status bind_layer(Binder& binder, const Spec& spec, const LayerSpec& layer, LayerWeights* weights) {
  char name[64];
  const uint32_t block = layer.block;
  MOTE_TRY(bind_fused(binder, spec, block, kFused[0], "attn_q.weight", weights));
  if (spec.gated) MOTE_TRY(bind_fused(binder, spec, block, kFused[1], "ffn_gate.weight", weights));
  for (const MatrixRow& row : kMatrices) {
    if (weights->*row.member) continue;
    std::snprintf(name, sizeof name, "blk.%u.%s", block, row.name);
    MOTE_TRY(binder.matrix(name, width(spec, row.rows), width(spec, row.columns),
                           row.needed(spec, layer), &(weights->*row.member)));
  }
  for (const VectorRow& row : kVectors) {
    std::snprintf(name, sizeof name, "blk.%u.%s", block, row.name);
    MOTE_TRY(binder.vector(name, width(spec, row.size), row.needed(spec, layer),
                           &(weights->*row.member)));
  }
  return kOk;
}

// Of a part that is not always there a file has all tensors or none.
Status check_parts(const GgufFile& file, const Spec& spec, const HeapArray<LayerWeights>& layers) {
  struct Place {
    const VectorRow* row = nullptr;
    uint32_t block = 0;
  } with[8], without[8];  // by the bit of Part
  for (uint32_t i = 0; i < spec.layers; ++i) {
    for (const VectorRow& row : kVectors) {
      if (row.part == 0 || !row.applies(spec, spec.layer[i])) continue;
      const int bit = __builtin_ctz(row.part);
      Place& place = layers[i].*row.member ? with[bit] : without[bit];
      if (!place.row) place = {&row, spec.layer[i].block};
      if (with[bit].row && without[bit].row)
        return file_error(file, MOTE_ERROR_BAD_FILE,
                          "tensor blk.%u.%s is missing: there is blk.%u.%s, and they are there "
                          "together or not at all",
                          without[bit].block, without[bit].row->name, with[bit].block,
                          with[bit].row->name);
    }
  }
  return kOk;
}

Status bind_head(Binder& binder, const Spec& spec, HeadWeights* head) {
  const HeadSpec& h = spec.head;
  if (h.dense) {
    const bool norm = h.kind == HeadKind::masked_lm || (spec.always & kHeadNorm);
    MOTE_TRY(binder.matrix("cls.weight", h.width, spec.hidden, true, &head->dense));
    MOTE_TRY(binder.vector("cls.bias", h.width, (spec.always & kHeadBias) != 0, &head->dense_bias));
    MOTE_TRY(binder.vector("cls.norm.weight", h.width, norm, &head->norm));
    MOTE_TRY(binder.vector("cls.norm.bias", h.width, norm && (spec.always & kNormBias),
                           &head->norm_bias));
  }
  const char* output = h.kind == HeadKind::classify ? "cls.output"
                       : h.kind == HeadKind::tag    ? "tag.output"
                       : h.kind == HeadKind::answer ? "qa.output"
                                                    : nullptr;
  if (!output) return kOk;
  char name[64];
  std::snprintf(name, sizeof name, "%s.weight", output);
  MOTE_TRY(binder.matrix(name, h.labels, h.width, true, &head->output));
  std::snprintf(name, sizeof name, "%s.bias", output);
  return binder.vector(name, h.labels, true, &head->output_bias);
}

Status bind_embeddings(Binder& binder, const Spec& spec, Weights* w) {
  const size_t width = spec.embedding_width;
  MOTE_TRY(binder.table("token_embd.weight", spec.vocabulary, width, true, &w->embedding));
  if (spec.position == Position::learned)
    MOTE_TRY(
        binder.table("position_embd.weight", spec.context, width, true, &w->position_embedding));
  if (spec.token_types)
    MOTE_TRY(binder.table("token_types.weight", spec.token_types, width, true,
                          &w->token_type_embedding));
  MOTE_TRY(binder.vector("token_embd_norm.weight", width, spec.embedding_norm, &w->embedding_norm));
  MOTE_TRY(binder.vector("token_embd_norm.bias", width,
                         spec.embedding_norm && (spec.always & kNormBias),
                         &w->embedding_norm_bias));
  const bool projected = width != spec.hidden || (spec.always & kEmbeddingProjection);
  MOTE_TRY(binder.matrix("token_embd_projection.weight", spec.hidden, width, projected,
                         &w->embedding_projection));
  return binder.vector("token_embd_projection.bias", spec.hidden, bool(w->embedding_projection),
                       &w->embedding_projection_bias);
}

Status bind_output(Binder& binder, const Spec& spec, Weights* w) {
  // Sums that are normed need no norm at the end.
  const bool norm = spec.norm_place != NormPlace::residual;
  MOTE_TRY(binder.vector("output_norm.weight", spec.hidden, norm, &w->output_norm));
  MOTE_TRY(binder.vector("output_norm.bias", spec.hidden, norm && (spec.always & kNormBias),
                         &w->output_norm_bias));
  const bool masked = spec.head.kind == HeadKind::masked_lm;
  if (!spec.causal && !masked) return kOk;
  MOTE_TRY(
      binder.matrix("output.weight", spec.vocabulary, spec.embedding_width, false, &w->output));
  if (!w->output) w->output = w->embedding.matrix;
  if (!masked) return kOk;
  return binder.vector("output.bias", spec.vocabulary, (spec.always & kHeadBias) != 0,
                       &w->output_bias);
}

}  // namespace

Status Weights::bind(const GgufFile& file, const Spec& spec, const Kernels& kernels,
                     Allocator& allocator, const Log& log) {
  Binder binder(file, kernels);
  MOTE_TRY(binder.start(allocator));
  MOTE_TRY(layers.allocate(allocator, spec.layers, "layers"));
  MOTE_TRY(bind_embeddings(binder, spec, this));
  MOTE_TRY(bind_output(binder, spec, this));
  MOTE_TRY(bind_head(binder, spec, &head));
  if (spec.position == Position::rope)
    MOTE_TRY(binder.vector("rope_freqs.weight", spec.rope[0].dimensions / 2, false, &rope_factors));
  if (spec.relative_buckets)
    MOTE_TRY(
        binder.table("attn_rel_b.weight", spec.relative_buckets, spec.heads, true, &relative_bias));
  for (uint32_t i = 0; i < spec.layers; ++i) {
    layers[i] = LayerWeights{};
    MOTE_TRY(bind_layer(binder, spec, spec.layer[i], &layers[i]));
  }
  MOTE_TRY(check_parts(file, spec, layers));
  parameters = 0;
  for (const Tensor& tensor : file.tensors()) parameters += tensor.values();
  binder.report(log);
  return kOk;
}

}  // namespace mote
