// Random linear layers with the outputs that the oracle gives.
#pragma once

#include <vector>

#include "kernel_support.h"
#include "tests/support/guard_page.h"
#include "tests/support/random_weights.h"

namespace mote::test {

// A layer of `rows` x `columns` and activations of `tokens`, with every output.
struct Layer {
  Format format;
  size_t rows, columns, tokens;
  std::vector<uint8_t> weights;  // native, also of a packed format
  std::vector<float> bias;
  std::vector<float> x;
  std::vector<int8_t> q;
  std::vector<float> scale, scaled_sum;
  std::vector<int32_t> correction;
  bool outliers;
  std::vector<uint32_t> outlier_group;
  std::vector<int8_t> outlier_q;
  std::vector<float> outlier_scale;
  std::vector<int32_t> outlier_correction, row_correction;
  std::vector<float> expected;  // [tokens][rows], without bias

  Layer(Format format, size_t rows, size_t columns, size_t tokens, bool fused, uint64_t seed,
        bool outliers = false);
  size_t row_bytes() const { return mote::row_bytes(format, columns); }
  // The first `count` rows as a file holds them.
  std::vector<uint8_t> stored(size_t count) const;
};

// Activations that end at guard pages.
struct GuardedActivations {
  GuardedActivations(const Layer& layer, size_t tokens);
  Guarded<float> x;
  Guarded<int8_t> q;
  Guarded<float> scale, scaled_sum;
  Guarded<int32_t> correction;
  Guarded<uint32_t> outlier_group;
  Guarded<int8_t> outlier_q;
  Guarded<float> outlier_scale;
  Guarded<int32_t> outlier_correction, row_correction;
  Activations view;
};

// Runs the kernel on the first `rows` and `tokens` of the layer with every buffer up against a
// guard page.
std::vector<float> run_linear(const Kernels& kernels, const Layer& layer, size_t rows,
                              size_t tokens, bool bias = false, bool accumulate = false);

// Checks that y is [tokens][rows] of the expected outputs.
void expect_outputs(const Layer& layer, size_t rows, size_t tokens, const std::vector<float>& y,
                    bool bias = false, bool accumulate = false);

// What run_linear finds in y before it accumulates.
inline float old_output(size_t token, size_t row) {
  return 0.25f * static_cast<float>(token) - 0.125f * static_cast<float>(row);
}

}  // namespace mote::test
