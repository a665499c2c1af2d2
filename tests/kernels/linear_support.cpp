#include "linear_support.h"

#include "quant/packed.h"

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
             uint64_t seed, bool outliers_)
    : format(format_),
      rows(rows_),
      columns(columns_),
      tokens(tokens_),
      outliers(needs_quantized_activations(format_) && outliers_),
      expected(tokens * rows) {
  Random random(seed);
  weights = random_weights(format, rows * columns, &random);
  const bool whole_rows = needs_quantized_rows(format);
  bias = random.normals(rows);
  x = random.normals(tokens * columns);
  // Outliers in all places: in some blocks, in neighbours, in none.
  for (size_t i = 5; outliers && i < x.size(); i += 37 + i % 50) x[i] *= 20.0f;
  const bool quantized = needs_quantized_activations(format);
  const size_t blocks = columns / 32;
  if (quantized) {
    q.resize(tokens * columns);
    scale.resize(tokens * blocks);
    scaled_sum.resize(tokens * blocks);
    correction.resize(tokens * blocks * 2);
    outlier_group.resize(tokens * (blocks + 1), kNoOutlier);
    outlier_q.resize(tokens * blocks * 4);
    outlier_scale.resize(tokens * blocks);
    for (size_t t = 0; t < tokens; ++t) {
      if (whole_rows) {
        const size_t count = quant::quantize_row(
            &x[t * columns], columns, &q[t * columns], &scale[t * blocks], &scaled_sum[t * blocks],
            &correction[t * blocks * 2], &outlier_group[t * (blocks + 1)],
            &outlier_q[t * blocks * 4], &outlier_scale[t * blocks]);
        outliers = outliers || count > 0;
        continue;
      }
      quant::quantize_activations(&x[t * columns], columns, &q[t * columns], &scale[t * blocks],
                                  &scaled_sum[t * blocks], &correction[t * blocks * 2]);
      if (outliers)
        quant::separate_outliers(&x[t * columns], columns, &q[t * columns], &scale[t * blocks],
                                 &scaled_sum[t * blocks], &correction[t * blocks * 2],
                                 &outlier_group[t * (blocks + 1)], &outlier_q[t * blocks * 4],
                                 &outlier_scale[t * blocks]);
    }
    to_corrections(&correction);
    row_correction.resize(tokens);
    for (size_t b = 0; b < tokens * blocks; ++b) row_correction[b / blocks] += correction[2 * b];
    for (size_t n = 0; n < tokens * blocks; ++n) {
      int32_t sum = 0;
      for (size_t i = 0; i < 4; ++i) sum += outlier_q[4 * n + i];
      outlier_correction.push_back(-128 * sum);
    }
  }
  for (size_t t = 0; t < tokens; ++t)
    for (size_t r = 0; r < rows; ++r)
      expected[t * rows + r] = quant::linear_output(
          native_format(format), &weights[r * row_bytes()], columns, &x[t * columns],
          quantized ? &q[t * columns] : nullptr, quantized ? &scale[t * blocks] : nullptr,
          quantized ? &scaled_sum[t * blocks] : nullptr, fused);
  for (size_t t = 0; t < tokens && outliers; ++t) {
    const uint32_t* group = &outlier_group[t * (blocks + 1)];
    size_t count = 0;
    while (group[count] != kNoOutlier) ++count;
    for (size_t r = 0; r < rows; ++r)
      expected[t * rows + r] +=
          quant::linear_outliers(native_format(format), &weights[r * row_bytes()], count, group,
                                 &outlier_q[t * blocks * 4], &outlier_scale[t * blocks], fused);
  }
}

std::vector<uint8_t> Layer::stored(size_t count) const {
  std::vector<uint8_t> bytes(weights.begin(), weights.begin() + count * row_bytes());
  if (is_packed(format)) quant::pack(format, weights.data(), count, columns, bytes.data());
  return bytes;
}

GuardedActivations::GuardedActivations(const Layer& layer, size_t tokens)
    : x(guarded_prefix(layer.x, tokens * layer.columns)),
      q(guarded_prefix(layer.q, tokens * layer.columns)),
      scale(guarded_prefix(layer.scale, tokens * (layer.columns / 32))),
      scaled_sum(guarded_prefix(layer.scaled_sum, tokens * (layer.columns / 32))),
      correction(guarded_prefix(layer.correction, tokens * (layer.columns / 16))),
      outlier_group(guarded_prefix(layer.outlier_group, tokens * (layer.columns / 32 + 1))),
      outlier_q(guarded_prefix(layer.outlier_q, tokens * (layer.columns / 8))),
      outlier_scale(guarded_prefix(layer.outlier_scale, tokens * (layer.columns / 32))),
      outlier_correction(guarded_prefix(layer.outlier_correction, tokens * (layer.columns / 32))),
      row_correction(guarded_prefix(layer.row_correction, tokens)) {
  view.x = x.data();
  view.x_stride = layer.columns;
  view.q = q.data();
  view.scale = scale.data();
  view.scaled_sum = scaled_sum.data();
  view.correction = correction.data();
  view.outliers = layer.outliers;
  view.outlier_group = outlier_group.data();
  view.outlier_q = outlier_q.data();
  view.outlier_scale = outlier_scale.data();
  view.outlier_correction = outlier_correction.data();
  view.row_correction = row_correction.data();
}

std::vector<float> run_linear(const Kernels& kernels, const Layer& layer, size_t rows,
                              size_t tokens, bool bias, bool accumulate) {
  const auto weights = Guarded<uint8_t>::copy(layer.stored(rows));
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
