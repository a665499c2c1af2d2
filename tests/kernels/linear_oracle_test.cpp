// Every linear kernel of every instruction set gives the oracle's bits, whatever the shape.
#include <algorithm>

#include "linear_support.h"

namespace mote::test {
namespace {

using Parameters = std::tuple<std::string, Format>;

class LinearOracle : public testing::TestWithParam<Parameters> {
 protected:
  const std::string isa_ = std::get<0>(GetParam());
  const Format format_ = std::get<1>(GetParam());
  const size_t block_ = format_info(format_).values;
};

std::string name_of(const testing::TestParamInfo<Parameters>& info) {
  return std::get<0>(info.param) + "_" + format_info(std::get<1>(info.param)).name;
}

constexpr size_t kRows = 70, kTokens = 20;

TEST_P(LinearOracle, EveryNumberOfRows) {
  MOTE_KERNELS_OR_SKIP(isa_);
  const Layer layer(format_, kRows, 3 * block_, kTokens, is_fused(isa_), 1);
  for (size_t rows = 1; rows <= kRows; ++rows)
    for (const size_t tokens : {1, 2, 3, 4, 7})
      ASSERT_NO_FATAL_FAILURE(
          expect_outputs(layer, rows, tokens, run_linear(kernels, layer, rows, tokens)));
}

TEST_P(LinearOracle, EveryNumberOfTokens) {
  MOTE_KERNELS_OR_SKIP(isa_);
  const Layer layer(format_, kRows, 2 * block_, kTokens, is_fused(isa_), 2);
  for (size_t tokens = 0; tokens <= kTokens; ++tokens)
    for (const size_t rows : {1, 16, 33, 64, 70})
      ASSERT_NO_FATAL_FAILURE(
          expect_outputs(layer, rows, tokens, run_linear(kernels, layer, rows, tokens)));
}

TEST_P(LinearOracle, EveryNumberOfColumns) {
  MOTE_KERNELS_OR_SKIP(isa_);
  for (size_t blocks = 1; blocks <= (block_ == 1 ? 40u : 19u); ++blocks) {
    const Layer layer(format_, 35, blocks * block_, 8, is_fused(isa_), 100 + blocks);
    for (const size_t tokens : {1, 2, 3, 4, 8})
      for (const size_t rows : {5, 32, 35})
        ASSERT_NO_FATAL_FAILURE(
            expect_outputs(layer, rows, tokens, run_linear(kernels, layer, rows, tokens)));
  }
}

TEST_P(LinearOracle, Outliers) {
  MOTE_KERNELS_OR_SKIP(isa_);
  const Layer layer(format_, 51, 7 * block_, 14, is_fused(isa_), 40, true);
  if (layer.outliers) {
    EXPECT_NE(std::count(layer.outlier_scale.begin(), layer.outlier_scale.end(), 0.0f),
              std::ptrdiff_t(layer.outlier_scale.size()));
  }
  for (const size_t tokens : {1, 2, 3, 4, 5, 8, 14})
    for (const size_t rows : {1, 16, 32, 51})
      ASSERT_NO_FATAL_FAILURE(expect_outputs(
          layer, rows, tokens, run_linear(kernels, layer, rows, tokens, true, true), true, true));
}

TEST_P(LinearOracle, BiasAndAccumulate) {
  MOTE_KERNELS_OR_SKIP(isa_);
  const Layer layer(format_, 51, 2 * block_, 9, is_fused(isa_), 3);
  for (const bool bias : {false, true})
    for (const bool accumulate : {false, true})
      for (const size_t tokens : {1, 4, 9})
        for (const size_t rows : {7, 48, 51})
          ASSERT_NO_FATAL_FAILURE(expect_outputs(
              layer, rows, tokens, run_linear(kernels, layer, rows, tokens, bias, accumulate), bias,
              accumulate));
}

// Rows and tokens may be computed in any pieces: same bits, and nothing outside a piece is written.
TEST_P(LinearOracle, PiecesOfRowsAndTokens) {
  MOTE_KERNELS_OR_SKIP(isa_);
  const size_t rows = 150, tokens = 13, y_stride = rows + 3;
  const Layer layer(format_, rows, 2 * block_, tokens, is_fused(isa_), 4);
  const std::vector<uint8_t> weights = layer.stored(rows);
  const GuardedActivations activations(layer, tokens);
  const GuardedBytes scratch((linear_scratch_bytes(layer.columns) + 63) / 64 * 64);
  constexpr float kUntouched = -12345.0f;
  const size_t row_pieces[][2] = {{0, 32}, {32, 96}, {96, 150}, {0, 128}, {128, 150}};
  const size_t token_pieces[][2] = {{0, 13}, {0, 1}, {3, 5}, {5, 8}, {9, 13}, {4, 12}};
  for (const auto& [first_row, last_row] : row_pieces)
    for (const auto& [first_token, last_token] : token_pieces) {
      std::vector<float> y(tokens * y_stride, kUntouched);
      LinearTask task;
      task.weights = weights.data();
      task.columns = layer.columns;
      task.rows = rows;
      task.first_row = first_row;
      task.last_row = last_row;
      task.activations = &activations.view;
      task.first_token = first_token;
      task.tokens = last_token - first_token;
      task.y = y.data();
      task.y_stride = y_stride;
      task.scratch = const_cast<uint8_t*>(scratch.data());
      linear_kernel(kernels, format_)(&task);
      for (size_t t = 0; t < tokens; ++t)
        for (size_t r = 0; r < y_stride; ++r) {
          const bool inside = t >= first_token && t < last_token && r >= first_row && r < last_row;
          const float expected = inside ? layer.expected[t * rows + r] : kUntouched;
          ASSERT_TRUE(same_bits(y[t * y_stride + r], expected))
              << "token " << t << " row " << r << ", piece of rows " << first_row << ".."
              << last_row << ", tokens " << first_token << ".." << last_token;
        }
    }
}

// Tensors start anywhere in a file that a caller holds in memory.
TEST_P(LinearOracle, MisalignedWeights) {
  MOTE_KERNELS_OR_SKIP(isa_);
  const Layer layer(format_, 48, 3 * block_, 6, is_fused(isa_), 5);
  const std::vector<uint8_t> stored = layer.stored(48);
  const GuardedActivations activations(layer, 6);
  const GuardedBytes scratch((linear_scratch_bytes(layer.columns) + 63) / 64 * 64);
  for (size_t shift = 0; shift < 64; shift += shift < 4 ? 1 : 7)
    for (const size_t tokens : {1, 6}) {
      std::vector<uint8_t> bytes(stored.size() + 128);
      auto* weights = reinterpret_cast<uint8_t*>(
          (reinterpret_cast<uintptr_t>(bytes.data()) + 63) / 64 * 64 + shift);
      std::memcpy(weights, stored.data(), stored.size());
      std::vector<float> y(tokens * 48);
      LinearTask task;
      task.weights = weights;
      task.columns = layer.columns;
      task.rows = task.last_row = 48;
      task.activations = &activations.view;
      task.tokens = tokens;
      task.y = y.data();
      task.y_stride = 48;
      task.scratch = const_cast<uint8_t*>(scratch.data());
      linear_kernel(kernels, format_)(&task);
      ASSERT_NO_FATAL_FAILURE(expect_outputs(layer, 48, tokens, y)) << "shift " << shift;
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, LinearOracle,
                         testing::Combine(testing::ValuesIn(isa_names()),
                                          testing::ValuesIn(linear_formats())),
                         name_of);

}  // namespace
}  // namespace mote::test
