#include "models/transformer.h"

#include <time.h>

#include <algorithm>

namespace mote {

namespace {

// Every sixth block of a layer's input and every second of the head's gets a second int8 vector:
// those with the largest scales. On SmolLM2 that divides the divergence from float32 activations by
// seven, costs nothing in decoding, which waits for memory, and a fifth of a prompt's matrix
// products.
constexpr size_t kLayerRefinement = 6, kHeadRefinement = 2;

constexpr size_t kPanelRows = 32;  // of a matrix, that a thread takes at a time
constexpr size_t kManyTokens = 5;  // from here on weights are unpacked once for all tokens

size_t refined_blocks(size_t columns, size_t refinement) {
  return std::min((columns / 32 + refinement - 1) / refinement, kMaxRefinableBlocks);
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
  qkv_width_ = query_width_ + 2 * key_value_width_;
  up_width_ = size_t(spec.feed_forward) * (spec.gated ? 2 : 1);
  const size_t widest = std::max({size_t(spec.hidden), query_width_, size_t(spec.feed_forward)});

  cache_.plan(arena, spec, kv_type, capacity, batch_tokens, threads);
  x_ = arena.take<float>(batch_tokens, spec.hidden);
  normed_ = arena.take<float>(batch_tokens, spec.hidden);
  qkv_ = arena.take<float>(batch_tokens, qkv_width_);
  attended_ = arena.take<float>(batch_tokens, query_width_);
  gate_up_ = arena.take<float>(batch_tokens, up_width_);
  if (spec.norm_place != NormPlace::pre || spec.residual_scale != 1.0f)
    block_out_ = arena.take<float>(batch_tokens, spec.hidden);
  quantized_.q = arena.take<int8_t>(batch_tokens, widest);
  quantized_.scale = arena.take<float>(batch_tokens, widest / 32 + 1);
  quantized_.scaled_sum = arena.take<float>(batch_tokens, widest / 32 + 1);
  quantized_.correction = arena.take<int32_t>(batch_tokens, widest / 16 + 1);
  size_t refined = 0;
  if (__builtin_mul_overflow(batch_tokens, refined_blocks(widest, kLayerRefinement) + 1, &refined))
    refined = SIZE_MAX;
  refined = std::max(refined, kLogitRows * (refined_blocks(spec.hidden, kHeadRefinement) + 1));
  quantized_.refined_block = arena.take<uint32_t>(refined);
  quantized_.refined_q = arena.take<int8_t>(refined, 32);
  quantized_.refined_scale = arena.take<float>(refined);
  quantized_.refined_correction = arena.take<int32_t>(refined, 2);
  for (int set = 0; set < 2; ++set) {
    cosine_[set] = arena.take<float>(batch_tokens, model.rope[set].pairs());
    sine_[set] = arena.take<float>(batch_tokens, model.rope[set].pairs());
  }
  logits_ = arena.take<float>(kLogitRows, spec.vocabulary);
  scratch_stride_ = (linear_scratch_bytes(widest) + 63) & ~size_t(63);
  scratch_ = arena.take<uint8_t>(threads, scratch_stride_);
}

// Calls work(token) for every token; a single one is not worth waking anybody.
template <class Work>
void Transformer::each_token(Team& team, size_t tokens, const Work& work) const {
  constexpr size_t kGrain = 4;
  if (tokens == 1) return work(size_t(0));
  size_t next = 0;
  team.parallel([&](uint32_t, uint32_t) {
    for (;;) {
      const size_t first = __atomic_fetch_add(&next, kGrain, __ATOMIC_RELAXED);
      if (first >= tokens) return;
      for (size_t token = first; token < std::min(first + kGrain, tokens); ++token) work(token);
    }
  });
}

bool Transformer::forward(Team& team, const int32_t* ids, size_t tokens, size_t position,
                          const Stop& stop, const ForwardSink* sink) {
  const Spec& spec = model_->spec;
  embed(team, ids, tokens, position);
  for (uint32_t layer = 0; layer < spec.layers; ++layer) {
    if (stop.requested()) return false;
    if (sink && sink->hidden) sink->hidden(sink->user, layer, position, tokens, x_);
    attention_block(team, layer, tokens, position);
    feed_forward_block(team, layer, tokens);
  }
  if (sink && sink->hidden) {
    const Weights& weights = model_->weights;
    each_token(team, tokens, [&](size_t t) {
      normalize(x_ + t * spec.hidden, weights.output_norm, weights.output_norm_bias,
                normed_ + t * spec.hidden);
    });
    sink->hidden(sink->user, spec.layers, position, tokens, normed_);
  }
  return true;
}

void Transformer::embed(Team& team, const int32_t* ids, size_t tokens, size_t position) {
  const Spec& spec = model_->spec;
  const Matrix& embedding = model_->weights.embedding;
  const size_t row = row_bytes(embedding.format, embedding.columns);
  each_token(team, tokens, [&](size_t t) {
    float* x = x_ + t * spec.hidden;
    model_->weights.decode_embedding(x, embedding.data + size_t(ids[t]) * row, spec.hidden);
    if (spec.embedding_scale != 1.0f) model_->kernels->scale(x, spec.embedding_scale, spec.hidden);
    for (int set = 0; set < 2; ++set) {
      const size_t pairs = model_->rope[set].pairs();
      model_->rope[set].angles(position + t, cosine_[set] + t * pairs, sine_[set] + t * pairs);
    }
  });
}

void Transformer::normalize(const float* x, const float* weight, const float* bias,
                            float* y) const {
  const Spec& spec = model_->spec;
  if (spec.norm == Norm::rms)
    model_->kernels->rms_norm(y, x, weight, spec.hidden, spec.norm_epsilon);
  else
    model_->kernels->layer_norm(y, x, weight, bias, spec.hidden, spec.norm_epsilon);
}

void Transformer::quantize(const float* x, size_t columns, size_t token) {
  const size_t blocks = columns / 32;
  const Activations& a = quantized_;
  const size_t refined = a.refined;
  int8_t* q = a.q + token * columns;
  float *scale = a.scale + token * blocks, *scaled_sum = a.scaled_sum + token * blocks;
  model_->kernels->quantize_activations(x, columns, q, scale, scaled_sum,
                                        a.correction + token * 2 * blocks);
  const RefineTask task = {x,
                           columns,
                           q,
                           scale,
                           scaled_sum,
                           refined,
                           a.refined_block + token * (refined + 1),
                           a.refined_q + token * refined * 32,
                           a.refined_scale + token * refined,
                           a.refined_correction + token * refined * 2};
  model_->kernels->refine_activations(&task);
}

// Units [range) of kPanelRows rows each, counted over all products.
void Transformer::multiply_units(const Activations& input, size_t columns, size_t tokens,
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
      task.tokens = tokens;
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
  Activations input = quantized_;
  input.x = x;
  input.x_stride = x_stride;
  size_t units = 0;
  for (size_t i = 0; i < count; ++i)
    units += (products[i].matrix->rows + kPanelRows - 1) / kPanelRows;
  // Few tokens: each thread streams its share of the weights. Many: shares are handed out by and
  // by, as cores are seldom equally fast.
  const size_t grain = tokens < kManyTokens ? (units + team.threads() - 1) / team.threads()
                                            : std::max<size_t>(1, units / (16 * team.threads()));
  size_t next = 0;
  team.parallel([&](uint32_t thread, uint32_t) {
    for (;;) {
      const size_t first = __atomic_fetch_add(&next, grain, __ATOMIC_RELAXED);
      if (first >= units) return;
      multiply_units(input, columns, tokens, products, count,
                     {first, std::min(first + grain, units)}, thread);
    }
  });
}

void Transformer::add_to_residual(Team& team, const Matrix& matrix, const float* bias,
                                  const float* post_norm, const float* input, size_t input_stride,
                                  size_t tokens) {
  const Spec& spec = model_->spec;
  const bool direct = !post_norm && spec.residual_scale == 1.0f;
  const Product product = {&matrix, bias, direct ? x_ : block_out_, spec.hidden, direct};
  multiply(team, matrix.columns, input, input_stride, tokens, &product, 1);
  if (direct) return;
  each_token(team, tokens, [&](size_t t) {
    float* out = block_out_ + t * spec.hidden;
    if (post_norm) normalize(out, post_norm, nullptr, out);
    if (spec.residual_scale != 1.0f) model_->kernels->scale(out, spec.residual_scale, spec.hidden);
    model_->kernels->add(x_ + t * spec.hidden, out, spec.hidden);
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
  const LayerWeights& w = model_->weights.layers[layer];
  const bool quantized =
      w.query.quantized_input || w.key.quantized_input || w.value.quantized_input;
  const bool pre = w.attention_norm != nullptr;
  quantized_.refined = refined_blocks(spec.hidden, kLayerRefinement);
  each_token(team, tokens, [&](size_t t) {
    const float* x = x_ + t * spec.hidden;
    if (pre) {
      normalize(x, w.attention_norm, w.attention_norm_bias, normed_ + t * spec.hidden);
      x = normed_ + t * spec.hidden;
    }
    if (quantized) quantize(x, spec.hidden, t);
  });
  const Product products[] = {
      {&w.query, w.query_bias, qkv_, qkv_width_, false},
      {&w.key, w.key_bias, qkv_ + query_width_, qkv_width_, false},
      {&w.value, w.value_bias, qkv_ + query_width_ + key_value_width_, qkv_width_, false}};
  multiply(team, spec.hidden, pre ? normed_ : x_, spec.hidden, tokens, products, 3);
  each_token(team, tokens, [&](size_t t) { turn_heads(w, spec.layer[layer], t); });
  cache_.attend(team, *model_->kernels, layer, position, tokens, qkv_, qkv_width_,
                qkv_ + query_width_, qkv_ + query_width_ + key_value_width_, qkv_width_, attended_,
                query_width_);
  quantized_.refined = refined_blocks(query_width_, kLayerRefinement);
  if (w.attention_output.quantized_input)
    each_token(team, tokens,
               [&](size_t t) { quantize(attended_ + t * query_width_, query_width_, t); });
  add_to_residual(team, w.attention_output, w.attention_output_bias, w.attention_post_norm,
                  attended_, query_width_, tokens);
}

// gate_up row -> activation(gate) * up (or activation(up)), in place, quantized for the down
// matrix.
void Transformer::activate(size_t token) {
  const Spec& spec = model_->spec;
  const Kernels& k = *model_->kernels;
  const size_t n = spec.feed_forward;
  float* y = gate_up_ + token * up_width_;
  switch (spec.activation) {
    case ActivationKind::silu:
      spec.gated ? k.silu_gate(y, y, y + n, n) : k.silu(y, y, n);
      break;
    case ActivationKind::gelu_tanh:
      spec.gated ? k.gelu_tanh_gate(y, y, y + n, n) : k.gelu_tanh(y, y, n);
      break;
    case ActivationKind::gelu_erf:
      spec.gated ? k.gelu_erf_gate(y, y, y + n, n) : k.gelu_erf(y, y, n);
      break;
    case ActivationKind::relu:
      k.relu(y, y, n);
      break;
  }
}

void Transformer::feed_forward_block(Team& team, uint32_t layer, size_t tokens) {
  const Spec& spec = model_->spec;
  const LayerWeights& w = model_->weights.layers[layer];
  const bool quantized = w.up.quantized_input || w.gate.quantized_input;
  const bool pre = w.feed_forward_norm != nullptr || spec.parallel;
  quantized_.refined = refined_blocks(spec.hidden, kLayerRefinement);
  each_token(team, tokens, [&](size_t t) {
    const float* x = x_ + t * spec.hidden;
    if (pre) {
      if (!spec.parallel)  // else attention's own input
        normalize(x, w.feed_forward_norm, w.feed_forward_norm_bias, normed_ + t * spec.hidden);
      x = normed_ + t * spec.hidden;
    }
    if (quantized) quantize(x, spec.hidden, t);
  });
  Product products[2];
  size_t count = 0;
  if (spec.gated) products[count++] = {&w.gate, w.gate_bias, gate_up_, up_width_, false};
  products[count] = {&w.up, w.up_bias, gate_up_ + count * spec.feed_forward, up_width_, false};
  multiply(team, spec.hidden, pre ? normed_ : x_, spec.hidden, tokens, products, count + 1);
  quantized_.refined = refined_blocks(spec.feed_forward, kLayerRefinement);
  each_token(team, tokens, [&](size_t t) {
    activate(t);
    if (w.down.quantized_input) quantize(gate_up_ + t * up_width_, spec.feed_forward, t);
  });
  add_to_residual(team, w.down, w.down_bias, w.feed_forward_post_norm, gate_up_, up_width_, tokens);
}

float* Transformer::logits(Team& team, size_t first, size_t count) {
  const Spec& spec = model_->spec;
  const Weights& weights = model_->weights;
  const bool normed = weights.output_norm != nullptr;
  const float* input = (normed ? normed_ : x_) + first * spec.hidden;
  quantized_.refined = refined_blocks(spec.hidden, kHeadRefinement);
  each_token(team, count, [&](size_t t) {
    const float* x = x_ + (first + t) * spec.hidden;
    if (normed) {
      float* y = normed_ + (first + t) * spec.hidden;
      normalize(x, weights.output_norm, weights.output_norm_bias, y);
      x = y;
    }
    if (weights.output.quantized_input) quantize(x, spec.hidden, t);
  });
  const Product product = {&weights.output, nullptr, logits_, spec.vocabulary, false};
  multiply(team, spec.hidden, input, spec.hidden, count, &product, 1);
  if (spec.logit_scale == 1.0f && spec.logit_cap == 0.0f) return logits_;
  each_token(team, count, [&](size_t t) {
    float* row = logits_ + t * spec.vocabulary;
    if (spec.logit_scale != 1.0f) model_->kernels->scale(row, spec.logit_scale, spec.vocabulary);
    if (spec.logit_cap != 0.0f) model_->kernels->softcap(row, spec.logit_cap, spec.vocabulary);
  });
  return logits_;
}

}  // namespace mote
