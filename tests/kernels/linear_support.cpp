#include "linear_support.h"

namespace mote::test {
namespace {

template <class T>
Guarded<T> guarded_prefix(const std::vector<T>& from, size_t count) {
  Guarded<T> out(from.empty() ? 0 : count);
  if (!from.empty() && count) std::memcpy(out.data(), from.data(), count * sizeof(T));
  return out;
}

// Sums of 16 q, as the oracle gives them, to what kernels read.
void to_corrections(std::vector<int32_t>* sums) {
  for (size_t i = 0; i < sums->size(); i += 2) {
    const int32_t first = (*sums)[i], second = (*sums)[i + 1];
    (*sums)[i] = -128 * (first + second);
    (*sums)[i + 1] = -128 * first;
  }
}

}  // namespace

Layer::Layer(Format format_, size_t rows_, size_t columns_, size_t tokens_, bool fused,
             uint64_t seed, size_t refined_)
    : format(format_),
      rows(rows_),
      columns(columns_),
      tokens(tokens_),
      refined(needs_quantized_activations(format_) ? refined_ : 0),
      expected(tokens * rows) {
  Random random(seed);
  weights = random_weights(format, rows * columns, &random);
  bias = random.normals(rows);
  x = random.normals(tokens * columns);
  const bool quantized = needs_quantized_activations(format);
  const size_t blocks = columns / 32;
  if (quantized) {
    q.resize(tokens * columns);
    scale.resize(tokens * blocks);
    scaled_sum.resize(tokens * blocks);
    correction.resize(tokens * blocks * 2);
    for (size_t t = 0; t < tokens; ++t)
      quant::quantize_activations(&x[t * columns], columns, &q[t * columns], &scale[t * blocks],
                                  &scaled_sum[t * blocks], &correction[t * blocks * 2]);
    to_corrections(&correction);
    refined_block.resize(tokens * (refined + 1), kNoBlock);
    refined_q.resize(tokens * refined * 32);
    refined_scale.resize(tokens * refined);
    refined_correction.resize(tokens * refined * 2);
    for (size_t t = 0; t < tokens && refined; ++t)
      quant::refine_activations(&x[t * columns], columns, &q[t * columns], &scale[t * blocks],
                                &scaled_sum[t * blocks], refined, &refined_block[t * (refined + 1)],
                                &refined_q[t * refined * 32], &refined_scale[t * refined],
                                &refined_correction[t * refined * 2]);
    to_corrections(&refined_correction);
  }
  for (size_t t = 0; t < tokens; ++t)
    for (size_t r = 0; r < rows; ++r)
      expected[t * rows + r] = quant::linear_output(
          format, &weights[r * row_bytes()], columns, &x[t * columns],
          quantized ? &q[t * columns] : nullptr, quantized ? &scale[t * blocks] : nullptr,
          quantized ? &scaled_sum[t * blocks] : nullptr, fused);
  for (size_t t = 0; t < tokens && refined; ++t)
    for (size_t r = 0; r < rows; ++r)
      expected[t * rows + r] += quant::linear_refinement(
          format, &weights[r * row_bytes()], refined, &refined_block[t * (refined + 1)],
          &refined_q[t * refined * 32], &refined_scale[t * refined], fused);
}

GuardedActivations::GuardedActivations(const Layer& layer, size_t tokens)
    : x(guarded_prefix(layer.x, tokens * layer.columns)),
      q(guarded_prefix(layer.q, tokens * layer.columns)),
      scale(guarded_prefix(layer.scale, tokens * (layer.columns / 32))),
      scaled_sum(guarded_prefix(layer.scaled_sum, tokens * (layer.columns / 32))),
      correction(guarded_prefix(layer.correction, tokens * (layer.columns / 16))),
      refined_block(guarded_prefix(layer.refined_block, tokens * (layer.refined + 1))),
      refined_q(guarded_prefix(layer.refined_q, tokens * layer.refined * 32)),
      refined_scale(guarded_prefix(layer.refined_scale, tokens * layer.refined)),
      refined_correction(guarded_prefix(layer.refined_correction, tokens * layer.refined * 2)) {
  view.x = x.data();
  view.x_stride = layer.columns;
  view.q = q.data();
  view.scale = scale.data();
  view.scaled_sum = scaled_sum.data();
  view.correction = correction.data();
  view.refined = layer.refined;
  view.refined_block = refined_block.data();
  view.refined_q = refined_q.data();
  view.refined_scale = refined_scale.data();
  view.refined_correction = refined_correction.data();
}

std::vector<float> run_linear(const Kernels& kernels, const Layer& layer, size_t rows,
                              size_t tokens, bool bias, bool accumulate) {
  const std::vector<uint8_t> bytes(layer.weights.begin(),
                                   layer.weights.begin() + rows * layer.row_bytes());
  const auto weights = Guarded<uint8_t>::copy(bytes);
  const auto guarded_bias = guarded_prefix(layer.bias, rows);
  const GuardedActivations activations(layer, tokens);
  Guarded<float> y(tokens * rows);
  for (size_t t = 0; t < tokens; ++t)
    for (size_t r = 0; r < rows; ++r) y[t * rows + r] = old_output(t, r);
  const size_t scratch_bytes = (linear_scratch_bytes(layer.columns) + 63) / 64 * 64;
  GuardedBytes scratch(scratch_bytes);

  LinearTask task;
  task.weights = weights.data();
  task.columns = layer.columns;
  task.rows = task.last_row = rows;
  task.activations = &activations.view;
  task.tokens = tokens;
  task.y = y.data();
  task.y_stride = rows;
  task.bias = bias ? guarded_bias.data() : nullptr;
  task.accumulate = accumulate;
  task.scratch = scratch.data();
  linear_kernel(kernels, layer.format)(&task);
  return std::vector<float>(y.begin(), y.end());
}

void expect_outputs(const Layer& layer, size_t rows, size_t tokens, const std::vector<float>& y,
                    bool bias, bool accumulate) {
  ASSERT_EQ(y.size(), tokens * rows);
  for (size_t t = 0; t < tokens; ++t)
    for (size_t r = 0; r < rows; ++r) {
      float expected = layer.expected[t * layer.rows + r];
      if (bias) expected += layer.bias[r];
      if (accumulate) expected += old_output(t, r);
      ASSERT_TRUE(same_bits(y[t * rows + r], expected))
          << "token " << t << " of " << tokens << ", row " << r << " of " << rows << ", "
          << layer.columns << " columns: expected " << expected << ", found " << y[t * rows + r];
    }
}

}  // namespace mote::test
