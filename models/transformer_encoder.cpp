// The forward pass over many sequences, and what heads make of its rows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/transformer.h"

namespace mote {
namespace {

// x / |x|; zeros stay.
void to_length_one(float* x, size_t n) {
  double squares = 0.0;
  for (size_t i = 0; i < n; ++i) squares += double(x[i]) * double(x[i]);
  if (!(squares > 0.0)) return;
  const auto factor = float(1.0 / std::sqrt(squares));
  for (size_t i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace

bool Transformer::encode(Team& team, const Sequence* sequences, size_t count, const Stop& stop,
                         const ForwardSink* sink) {
  size_t tokens = 0;
  for (size_t s = 0; s < count; ++s) {
    starts_[s] = static_cast<uint32_t>(tokens);
    place_rows(sequences[s], tokens, 0);
    tokens += sequences[s].tokens;
  }
  starts_[count] = static_cast<uint32_t>(tokens);
  attention_.begin(starts_, count);
  sequences_ = count;
  tokens_ = tokens;
  return run_layers(team, tokens, 0, stop, sink);
}

const float* Transformer::hidden() const { return model_->weights.output_norm ? normed_ : x_; }

void Transformer::pool(Team& team, Pooling pooling, bool normalize) {
  const size_t n = model_->spec.hidden;
  const float* rows = hidden();
  each_row(team, sequences_, [&](size_t s) {
    const size_t first = starts_[s], last = starts_[s + 1];
    float* out = pooled_ + s * n;
    std::memcpy(out, rows + (pooling == Pooling::last ? last - 1 : first) * n, n * sizeof *out);
    if (pooling == Pooling::mean) {
      for (size_t r = first + 1; r < last; ++r) model_->kernels->add(out, rows + r * n, n);
      model_->kernels->scale(out, 1.0f / float(last - first), n);
    } else if (pooling == Pooling::max) {
      for (size_t r = first + 1; r < last; ++r)
        for (size_t i = 0; i < n; ++i) out[i] = std::max(out[i], rows[r * n + i]);
    }
    if (normalize) to_length_one(out, n);
  });
}

const float* Transformer::pooled(Team& team, Pooling pooling) {
  pool(team, pooling, false);
  return pooled_;
}

const float* Transformer::head_rows(Team& team, const float* rows, size_t count, size_t* stride) {
  const Spec& spec = model_->spec;
  const HeadWeights& head = model_->weights.head;
  *stride = spec.hidden;
  if (!head.dense) return rows;
  const size_t width = spec.head.width;
  quantize_rows(team, head.dense, rows, spec.hidden, count);
  const Product product = {&head.dense, head.dense_bias, qkv_, qkv_width_, false};
  multiply(team, spec.hidden, rows, spec.hidden, count, &product, 1);
  each_row(team, count, [&](size_t t) {
    float* y = qkv_ + t * qkv_width_;
    activate(spec.head.activation, y, nullptr, width);
    if (head.norm)
      model_->kernels->layer_norm(y, y, head.norm, head.norm_bias, width, spec.norm_epsilon);
  });
  *stride = qkv_width_;
  return qkv_;
}

const float* Transformer::head_logits(Team& team, const Matrix& output, const float* bias,
                                      const float* rows, size_t count) {
  size_t stride = 0;
  rows = head_rows(team, rows, count, &stride);
  quantize_rows(team, output, rows, stride, count);
  const Product product = {&output, bias, logits_, output.rows, false};
  multiply(team, output.columns, rows, stride, count, &product, 1);
  return logits_;
}

const float* Transformer::sequence_logits(Team& team) {
  const HeadWeights& head = model_->weights.head;
  pool(team, model_->spec.head.pooling, model_->spec.head.normalize);
  return head_logits(team, head.output, head.output_bias, pooled_, sequences_);
}

const float* Transformer::token_logits(Team& team) {
  const HeadWeights& head = model_->weights.head;
  return head_logits(team, head.output, head.output_bias, hidden(), tokens_);
}

const float* Transformer::masked_logits(Team& team, const uint32_t* rows, size_t count) {
  const Weights& w = model_->weights;
  const size_t n = model_->spec.hidden;
  for (size_t i = 0; i < count; ++i)
    std::memcpy(pooled_ + i * n, hidden() + rows[i] * n, n * sizeof(float));
  return head_logits(team, w.output, w.output_bias, pooled_, count);
}

const float* Transformer::pooler_output(Team& team) {
  const HeadSpec& head = model_->spec.head;
  if (head.kind != HeadKind::none || !head.dense) return nullptr;
  pool(team, Pooling::cls, false);
  size_t stride = 0;
  const float* rows = head_rows(team, pooled_, sequences_, &stride);
  for (size_t s = 0; s < sequences_; ++s)
    std::memcpy(pooled_ + s * head.width, rows + s * stride, head.width * sizeof(float));
  return pooled_;
}

}  // namespace mote
