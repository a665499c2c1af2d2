#include "models/transformer.h"

#include <time.h>

#include <algorithm>

namespace mote {

namespace {

constexpr size_t kPanelRows = 32;  // of a matrix, that a thread takes at a time
constexpr size_t kOwnRows = 16;    // a thread has its own rows of so many tokens or more
constexpr size_t kFewTokens = 8;   // up to here reading the weights takes most of the time
// Tokens that go through a feed-forward part at a time: so long batches need no more memory between
// its matrices.
constexpr size_t kFeedForwardTokens = 256;

bool has_post_norms(const Spec& spec) {
  return spec.norm_place == NormPlace::post || spec.norm_place == NormPlace::both;
}

Activations take_activations(Arena& arena, size_t tokens, size_t columns) {
  Activations a;
  a.q = arena.take<int8_t>(tokens, columns);
  a.scale = arena.take<float>(tokens, columns / 32 + 1);
  a.scaled_sum = arena.take<float>(tokens, columns / 32 + 1);
  a.correction = arena.take<int32_t>(tokens, columns / 16 + 1);
  // Separating outliers divides SmolLM2's divergence from float32 activations by four, costs
  // nothing in decoding, which waits for memory, and a tenth of a prompt.
  a.outliers = true;
  a.outlier_group = arena.take<uint32_t>(tokens, columns / 32 + 1);
  a.outlier_q = arena.take<int8_t>(tokens, columns / 8);
  a.outlier_scale = arena.take<float>(tokens, columns / 32);
  a.outlier_correction = arena.take<int32_t>(tokens, columns / 32);
  a.row_correction = arena.take<int32_t>(tokens);
  return a;
}

// What is quantized, from `token` on; the rows that it was made of are at x.
Activations part_of(const Activations& all, size_t columns, size_t token, const float* x,
                    size_t x_stride) {
  const size_t blocks = token * (columns / 32);
  Activations a = all;
  a.x = x;
  a.x_stride = x_stride;
  a.q += token * columns;
  a.scale += blocks;
  a.scaled_sum += blocks;
  a.correction += 2 * blocks;
  a.outlier_group += blocks + token;
  a.outlier_q += 4 * blocks;
  a.outlier_scale += blocks;
  a.outlier_correction += blocks;
  a.row_correction += token;
  return a;
}

}  // namespace

uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

bool Stop::timed_out() const { return deadline_ns && monotonic_ns() >= deadline_ns; }
bool Stop::requested() const {
  return (cancelled && cancelled->load(std::memory_order_relaxed)) || timed_out();
}

void Transformer::plan(Arena& arena, const TransformerModel& model, KvType kv_type, size_t capacity,
                       size_t batch_tokens, uint32_t threads) {
  const Spec& spec = model.spec;
  model_ = &model;
  batch_tokens_ = batch_tokens;
  query_width_ = size_t(spec.heads) * spec.head_dim;
  key_value_width_ = size_t(spec.kv_heads) * spec.head_dim;
  qkv_width_ = std::max<size_t>(
      {query_width_ + 2 * key_value_width_, spec.embedding_width, spec.head.width});
  up_width_ = size_t(spec.feed_forward) * (spec.gated ? 2 : 1);
  const size_t widest =
      std::max<size_t>({spec.hidden, query_width_, spec.embedding_width, spec.head.width});
  const size_t feed_forward_tokens = std::min(batch_tokens, kFeedForwardTokens);

  ids_ = arena.take<int32_t>(batch_tokens);
  positions_ = arena.take<uint32_t>(batch_tokens);
  if (spec.causal) {
    cache_.plan(arena, spec, kv_type, capacity, batch_tokens, threads);
  } else {
    types_ = arena.take<uint8_t>(batch_tokens);
    starts_ = arena.take<uint32_t>(batch_tokens + 1);
    attention_.plan(arena, spec, batch_tokens, threads);
    pooled_ = arena.take<float>(batch_tokens, spec.hidden);
  }
  x_ = arena.take<float>(batch_tokens, spec.hidden);
  normed_ = arena.take<float>(batch_tokens, std::max(spec.hidden, spec.embedding_width));
  qkv_ = arena.take<float>(batch_tokens, qkv_width_);
  attended_ = arena.take<float>(batch_tokens, query_width_);
  gate_up_ = arena.take<float>(feed_forward_tokens, up_width_);
  if (has_post_norms(spec) || spec.residual_scale != 1.0f)
    block_out_ = arena.take<float>(batch_tokens, spec.hidden);
  quantized_ = take_activations(arena, batch_tokens, widest);
  activated_ = take_activations(arena, feed_forward_tokens, spec.feed_forward);
  for (int set = 0; set < 2; ++set) {
    cosine_[set] = arena.take<float>(batch_tokens, model.rope[set].pairs());
    sine_[set] = arena.take<float>(batch_tokens, model.rope[set].pairs());
  }
  // Of the vocabulary a few rows at a time, of labels all.
  if (spec.causal || spec.head.kind == HeadKind::masked_lm)
    logits_ = arena.take<float>(kLogitRows, spec.vocabulary);
  else
    logits_ = arena.take<float>(batch_tokens, spec.head.labels);
  scratch_stride_ =
      (linear_scratch_bytes(std::max<size_t>(widest, spec.feed_forward)) + 63) & ~size_t(63);
  scratch_ = arena.take<uint8_t>(threads, scratch_stride_);
}

void Transformer::place_rows(const Sequence& sequence, size_t first_row, size_t position) {
  for (size_t t = 0; t < sequence.tokens; ++t) {
    ids_[first_row + t] = sequence.ids[t];
    positions_[first_row + t] = static_cast<uint32_t>(position + t);
  }
  if (!types_) return;
  for (size_t t = 0; t < sequence.tokens; ++t)
    types_[first_row + t] = sequence.type_ids ? sequence.type_ids[t] : 0;
}

bool Transformer::forward(Team& team, const int32_t* ids, size_t tokens, size_t position,
                          const Stop& stop, const ForwardSink* sink) {
  place_rows({ids, nullptr, static_cast<uint32_t>(tokens)}, 0, position);
  return run_layers(team, tokens, position, stop, sink);
}

bool Transformer::run_layers(Team& team, size_t tokens, size_t position, const Stop& stop,
                             const ForwardSink* sink) {
  const Spec& spec = model_->spec;
  const Weights& weights = model_->weights;
  sink_ = sink;
  embed(team, tokens);
  for (uint32_t layer = 0; layer < spec.layers; ++layer) {
    if (stop.requested()) {
      sink_ = nullptr;
      return false;
    }
    if (sink && sink->hidden) sink->hidden(sink->user, layer, position, tokens, x_);
    attention_block(team, layer, tokens, position);
    feed_forward_block(team, layer, tokens);
  }
  sink_ = nullptr;
  const bool shown = sink && sink->hidden;
  if (weights.output_norm && (shown || !spec.causal))
    each_row(team, tokens, [&](size_t t) {
      normalize(x_ + t * spec.hidden, weights.output_norm, weights.output_norm_bias,
                normed_ + t * spec.hidden);
    });
  if (shown) sink->hidden(sink->user, spec.layers, position, tokens, hidden());
  return true;
}

void Transformer::add_table_row(const Table& table, size_t index, float* scratch, float* x) const {
  table.look_up(index, scratch);
  model_->kernels->add(x, scratch, table.matrix.columns);
}

// The sum of what token, type and position have, through the norm: [embedding_width].
void Transformer::embed_row(size_t row, float* x) {
  const Spec& spec = model_->spec;
  const Weights& w = model_->weights;
  const size_t width = spec.embedding_width;
  w.embedding.look_up(size_t(ids_[row]), x);
  if (spec.embedding_scale != 1.0f) model_->kernels->scale(x, spec.embedding_scale, width);
  float* scratch = normed_ + row * width;
  if (w.token_type_embedding) add_table_row(w.token_type_embedding, types_[row], scratch, x);
  if (w.position_embedding) add_table_row(w.position_embedding, positions_[row], scratch, x);
  if (w.embedding_norm)
    model_->kernels->layer_norm(x, x, w.embedding_norm, w.embedding_norm_bias, width,
                                spec.norm_epsilon);
}

void Transformer::embed(Team& team, size_t tokens) {
  const Spec& spec = model_->spec;
  const Weights& w = model_->weights;
  const Input first = attention_input(0);
  const bool projected = bool(w.embedding_projection);
  each_row(team, tokens, [&](size_t t) {
    for (int set = 0; set < 2; ++set) {
      const size_t pairs = model_->rope[set].pairs();
      model_->rope[set].angles(positions_[t], cosine_[set] + t * pairs, sine_[set] + t * pairs);
    }
    float* x = projected ? qkv_ + t * qkv_width_ : x_ + t * spec.hidden;
    embed_row(t, x);
    if (!projected)
      prepare(first, t);
    else
      quantize(w.embedding_projection.input, quantized_, x, spec.embedding_width, t);
  });
  if (!projected) return;
  const Product product = {&w.embedding_projection, w.embedding_projection_bias, x_, spec.hidden,
                           false};
  multiply(team, spec.embedding_width, qkv_, qkv_width_, tokens, &product, 1);
  each_row(team, tokens, [&](size_t t) { prepare(first, t); });
}

Transformer::Input Transformer::attention_input(uint32_t layer) const {
  const LayerWeights& w = model_->weights.layers[layer];
  return {w.attention_norm, w.attention_norm_bias, w.attention_norm != nullptr,
          std::max({w.query.input, w.key.input, w.value.input})};
}
// Beside attention it reads attention's own input.
Transformer::Input Transformer::feed_forward_input(uint32_t layer) const {
  const LayerWeights& w = model_->weights.layers[layer];
  const InputKind kind = std::max(w.up.input, w.gate.input);
  if (model_->spec.parallel) return {nullptr, nullptr, w.attention_norm != nullptr, kind};
  return {w.feed_forward_norm, w.feed_forward_norm_bias, w.feed_forward_norm != nullptr, kind};
}

void Transformer::prepare(const Input& input, size_t token) {
  const size_t hidden = model_->spec.hidden;
  const float* x = x_ + token * hidden;
  if (input.norm) normalize(x, input.norm, input.norm_bias, normed_ + token * hidden);
  quantize(input.kind, quantized_, rows_of(input) + token * hidden, hidden, token);
}

void Transformer::normalize(const float* x, const float* weight, const float* bias,
                            float* y) const {
  const Spec& spec = model_->spec;
  if (spec.norm == Norm::rms)
    model_->kernels->rms_norm(y, x, weight, spec.hidden, spec.norm_epsilon);
  else
    model_->kernels->layer_norm(y, x, weight, bias, spec.hidden, spec.norm_epsilon);
}

void Transformer::quantize(InputKind kind, const Activations& to, const float* x, size_t columns,
                           size_t token) {
  if (kind == InputKind::floats) return;
  const Activations row = part_of(to, columns, token, x, columns);
  const OutlierTask task = {x,
                            columns,
                            row.q,
                            row.scale,
                            row.scaled_sum,
                            row.correction,
                            row.outlier_group,
                            row.outlier_q,
                            row.outlier_scale,
                            row.outlier_correction,
                            row.row_correction};
  if (kind == InputKind::rows) return model_->kernels->quantize_row(&task);
  model_->kernels->quantize_activations(x, columns, task.q, task.scale, task.scaled_sum,
                                        task.correction);
  model_->kernels->separate_outliers(&task);
}

void Transformer::quantize_rows(Team& team, const Matrix& matrix, const float* x, size_t stride,
                                size_t rows) {
  if (matrix.input == InputKind::floats) return;
  each_row(team, rows, [&](size_t t) {
    quantize(matrix.input, quantized_, x + t * stride, matrix.columns, t);
  });
}

// Units [range) of kPanelRows rows each, counted over all products.
void Transformer::multiply_units(const Activations& input, size_t columns, Range tokens,
                                 const Product* products, size_t count, Range range,
                                 uint32_t thread) const {
  size_t before = 0;  // units of the products so far
  for (size_t i = 0; i < count; ++i) {
    const Product& product = products[i];
    const Matrix& matrix = *product.matrix;
    const size_t own = (matrix.rows + kPanelRows - 1) / kPanelRows;
    const size_t first = std::max(range.first, before), last = std::min(range.last, before + own);
    if (first < last) {
      LinearTask task;
      task.weights = matrix.data;
      task.columns = columns;
      task.rows = matrix.rows;
      task.first_row = (first - before) * kPanelRows;
      task.last_row = std::min((last - before) * kPanelRows, matrix.rows);
      task.activations = &input;
      task.first_token = tokens.first;
      task.tokens = tokens.size();
      task.y = product.y;
      task.y_stride = product.y_stride;
      task.bias = product.bias;
      task.accumulate = product.accumulate;
      task.scratch = scratch_ + thread * scratch_stride_;
      matrix.linear(&task);
    }
    before += own;
  }
}

void Transformer::multiply(Team& team, size_t columns, const float* x, size_t x_stride,
                           size_t tokens, const Product* products, size_t count) {
  multiply(team, columns, part_of(quantized_, columns, 0, x, x_stride), tokens, products, count);
}

void Transformer::multiply(Team& team, size_t columns, const Activations& input, size_t tokens,
                           const Product* products, size_t count) {
  for (size_t i = 0; sink_ && sink_->input && i < count; ++i)
    sink_->input(sink_->user, products[i].matrix->data, columns, tokens, input.x, input.x_stride);
  size_t units = 0;
  for (size_t i = 0; i < count; ++i)
    units += (products[i].matrix->rows + kPanelRows - 1) / kPanelRows;
  // Few tokens: each thread streams its share of the weights. More: the same, but shares are handed
  // out by and by. Many: each thread has its own rows, which it made before and reads again after.
  const uint32_t threads = team.threads();
  const bool own_rows = tokens >= kOwnRows * threads;
  const size_t grain = tokens <= kFewTokens ? (units + threads - 1) / threads
                                            : std::max<size_t>(1, units / (16 * threads));
  const auto units_of = [&](uint32_t part) { return split(units, 1, part, threads); };
  team.share(
      grain, [&](uint32_t part) { return own_rows ? units : units_of(part).size(); },
      [&](uint32_t part, size_t first, size_t last, uint32_t thread) {
        const size_t start = own_rows ? 0 : units_of(part).first;
        const Range rows = own_rows ? rows_of_part(team, tokens, part) : Range{0, tokens};
        multiply_units(input, columns, rows, products, count, {start + first, start + last},
                       thread);
      });
}

void Transformer::add_to_residual(Team& team, const BlockEnd& end, const Activations& input,
                                  Range rows, const Input* next) {
  const Spec& spec = model_->spec;
  const bool direct = !end.post_norm && spec.residual_scale == 1.0f;
  const size_t tokens = rows.last - rows.first;
  float* to = (direct ? x_ : block_out_) + rows.first * spec.hidden;
  const Product product = {end.matrix, end.bias, to, spec.hidden, direct};
  multiply(team, end.matrix->columns, input, tokens, &product, 1);
  if (direct && !end.residual_norm && (!next || (!next->norm && next->kind == InputKind::floats)))
    return;
  each_row(team, tokens, [&](size_t t) {
    float* x = x_ + (rows.first + t) * spec.hidden;
    if (!direct) {
      float* out = block_out_ + (rows.first + t) * spec.hidden;
      if (end.post_norm) normalize(out, end.post_norm, nullptr, out);
      if (spec.residual_scale != 1.0f)
        model_->kernels->scale(out, spec.residual_scale, spec.hidden);
      model_->kernels->add(x, out, spec.hidden);
    }
    if (end.residual_norm) normalize(x, end.residual_norm, end.residual_norm_bias, x);
    if (next) prepare(*next, rows.first + t);
  });
}

void Transformer::turn_heads(const LayerWeights& weights, const LayerSpec& layer, size_t token) {
  const Spec& spec = model_->spec;
  const Kernels& kernels = *model_->kernels;
  float* query = qkv_ + token * qkv_width_;
  float* key = query + query_width_;
  const bool each = spec.query_norm == QueryNorm::each_head;
  const auto norm_heads = [&](float* x, const float* weight, size_t heads) {
    const size_t size = each ? spec.head_dim : heads * spec.head_dim;
    for (size_t at = 0; weight && at < heads * spec.head_dim; at += size)
      kernels.rms_norm(x + at, x + at, weight, size, spec.norm_epsilon);
  };
  norm_heads(query, weights.query_norm, spec.heads);
  norm_heads(key, weights.key_norm, spec.kv_heads);
  if (spec.position != Position::rope || !layer.rope) return;
  const size_t pairs = model_->rope[layer.rope_set].pairs();
  const float* cosine = cosine_[layer.rope_set] + token * pairs;
  const float* sine = sine_[layer.rope_set] + token * pairs;
  const bool interleaved = spec.rope[layer.rope_set].interleaved;
  kernels.rope(query, spec.heads, spec.head_dim, cosine, sine, pairs, interleaved);
  kernels.rope(key, spec.kv_heads, spec.head_dim, cosine, sine, pairs, interleaved);
}

void Transformer::attention_block(Team& team, uint32_t layer, size_t tokens, size_t position) {
  const Spec& spec = model_->spec;
  const LayerSpec& layer_spec = spec.layer[layer];
  const LayerWeights& w = model_->weights.layers[layer];
  float *key = qkv_ + query_width_, *value = key + key_value_width_;
  const Product products[] = {{&w.query, w.query_bias, qkv_, qkv_width_, false},
                              {&w.key, w.key_bias, key, qkv_width_, false},
                              {&w.value, w.value_bias, value, qkv_width_, false}};
  multiply(team, spec.hidden, rows_of(attention_input(layer)), spec.hidden, tokens, products, 3);
  if (w.query_norm || w.key_norm || (spec.position == Position::rope && layer_spec.rope))
    each_row(team, tokens, [&](size_t t) { turn_heads(w, layer_spec, t); });
  const Kernels& kernels = *model_->kernels;
  if (spec.causal)
    cache_.attend(team, kernels, layer, position, tokens, qkv_, qkv_width_, key, value, qkv_width_,
                  attended_, query_width_);
  else
    attention_.attend(team, kernels, layer_spec.window, model_->relative_bias.zero(),
                      model_->relative_bias.head_stride(), qkv_, key, value, qkv_width_, attended_,
                      query_width_);
  quantize_rows(team, w.attention_output, attended_, query_width_, tokens);
  const BlockEnd end = {&w.attention_output, w.attention_output_bias, w.attention_post_norm,
                        w.attention_residual_norm, w.attention_residual_norm_bias};
  const Input next = feed_forward_input(layer);
  add_to_residual(team, end, part_of(quantized_, query_width_, 0, attended_, query_width_),
                  {0, tokens}, &next);
}

// y = activation(y), or activation(y) * up where up is not null.
void Transformer::activate(ActivationKind kind, float* y, const float* up, size_t n) const {
  const Kernels& k = *model_->kernels;
  switch (kind) {
    case ActivationKind::silu:
      return up ? k.silu_gate(y, y, up, n) : k.silu(y, y, n);
    case ActivationKind::gelu_tanh:
      return up ? k.gelu_tanh_gate(y, y, up, n) : k.gelu_tanh(y, y, n);
    case ActivationKind::gelu_erf:
      return up ? k.gelu_erf_gate(y, y, up, n) : k.gelu_erf(y, y, n);
    case ActivationKind::relu:
      return k.relu(y, y, n);
    case ActivationKind::tanh:
      return k.softcap(y, 1.0f, n);
    case ActivationKind::none:
      return;
  }
}

void Transformer::feed_forward_block(Team& team, uint32_t layer, size_t tokens) {
  for (size_t first = 0; first < tokens; first += kFeedForwardTokens)
    feed_forward_rows(team, layer, {first, std::min(first + kFeedForwardTokens, tokens)});
}

void Transformer::feed_forward_rows(Team& team, uint32_t layer, Range rows) {
  const Spec& spec = model_->spec;
  const LayerWeights& w = model_->weights.layers[layer];
  const size_t width = spec.feed_forward, tokens = rows.last - rows.first;
  Product products[2];
  size_t count = 0;
  if (spec.gated) products[count++] = {&w.gate, w.gate_bias, gate_up_, up_width_, false};
  products[count] = {&w.up, w.up_bias, gate_up_ + count * width, up_width_, false};
  const float* x = rows_of(feed_forward_input(layer)) + rows.first * spec.hidden;
  multiply(team, spec.hidden, part_of(quantized_, spec.hidden, rows.first, x, spec.hidden), tokens,
           products, count + 1);
  each_row(team, tokens, [&](size_t t) {
    float* y = gate_up_ + t * up_width_;
    activate(spec.activation, y, spec.gated ? y + width : nullptr, width);
    quantize(w.down.input, activated_, y, width, t);
  });
  const BlockEnd end = {&w.down, w.down_bias, w.feed_forward_post_norm,
                        w.feed_forward_residual_norm, w.feed_forward_residual_norm_bias};
  const bool last = layer + 1 == spec.layers;
  const Input next = last ? Input{} : attention_input(layer + 1);
  add_to_residual(team, end, part_of(activated_, width, 0, gate_up_, up_width_), rows,
                  last ? nullptr : &next);
}

float* Transformer::logits(Team& team, size_t first, size_t count) {
  const Spec& spec = model_->spec;
  const Weights& weights = model_->weights;
  const bool normed = weights.output_norm != nullptr;
  const float* input = (normed ? normed_ : x_) + first * spec.hidden;
  each_row(team, count, [&](size_t t) {
    const float* x = x_ + (first + t) * spec.hidden;
    if (normed) {
      float* y = normed_ + (first + t) * spec.hidden;
      normalize(x, weights.output_norm, weights.output_norm_bias, y);
      x = y;
    }
    quantize(weights.output.input, quantized_, x, spec.hidden, t);
  });
  const Product product = {&weights.output, nullptr, logits_, spec.vocabulary, false};
  multiply(team, spec.hidden, input, spec.hidden, count, &product, 1);
  if (spec.logit_scale == 1.0f && spec.logit_cap == 0.0f) return logits_;
  each_row(team, count, [&](size_t t) {
    float* row = logits_ + t * spec.vocabulary;
    if (spec.logit_scale != 1.0f) model_->kernels->scale(row, spec.logit_scale, spec.vocabulary);
    if (spec.logit_cap != 0.0f) model_->kernels->softcap(row, spec.logit_cap, spec.vocabulary);
  });
  return logits_;
}

}  // namespace mote
