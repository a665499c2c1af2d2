// Linear layers with float weights and activations: one chain of multiply-adds per output over
// ascending columns, many outputs at once. Few tokens and many tokens as in linear_blocks.h.
#pragma once

#include "kernels/linear.h"

namespace mote::MOTE_ISA {
namespace {

// ---- few tokens ----

// Vectors of rows in flight: enough chains to hide the latency, no more than the registers hold.
template <int kTokens>
constexpr int float_tile_vectors() {
  return kLanes == 16 ? 2 : kLanes == 8 ? (kTokens == 1 ? 4 : 2) : kLanes == 4 ? 4 : 8;
}

// sums += one column; x points at it in the first token.
template <int kTokens, int kVectors>
MOTE_INLINE void multiply_column(Floats w, const float* x, size_t x_stride, Floats* sums) {
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t)
    sums[t * kVectors] = fma(set_float(x[t * x_stride]), w, sums[t * kVectors]);
}

// Rows [first_row, last_row), whole tiles of 32.
template <class F, int kTokens>
void few_tokens_float(const LinearTask& task, size_t token, size_t first_row, size_t last_row) {
  constexpr int kVectors = float_tile_vectors<kTokens>();
  constexpr size_t kRows = kVectors * kLanes;
  static_assert(32 % kRows == 0);
  const size_t stride = task.columns * F::kValueBytes, x_stride = task.activations->x_stride;
  const size_t whole = task.columns / F::kColumns * F::kColumns;
  const float* x = task.activations->x + token * x_stride;
  for (size_t row = first_row; row < last_row; row += kRows) {
    const uint8_t* base = task.weights + row * stride;
    const uint8_t* ahead = base + 2 * kRows * stride;
    Floats sums[kTokens][kVectors];
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t)
      for (int v = 0; v < kVectors; ++v) sums[t][v] = set_float(0);
    for (size_t c = 0; c < whole; c += F::kColumns) {
      MOTE_UNROLL
      for (size_t i = 0; i < kRows * 16; i += 64) prefetch(ahead + c * F::kValueBytes * kRows + i);
      MOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Floats w[F::kColumns];
        F::unpack(base + c * F::kValueBytes + v * kLanes * stride, stride, w);
        MOTE_UNROLL
        for (int i = 0; i < F::kColumns; ++i)
          multiply_column<kTokens, kVectors>(w[i], x + c + i, x_stride, &sums[0][v]);
      }
    }
    if (whole < task.columns) {
      MOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        uint8_t copy[kLanes * 16];
        copy_rows(base + whole * F::kValueBytes + v * kLanes * stride, stride, kLanes,
                  (task.columns - whole) * F::kValueBytes, 16, copy);
        Floats w[F::kColumns];
        F::unpack(copy, 16, w);
        for (size_t i = 0; i < task.columns - whole; ++i)
          multiply_column<kTokens, kVectors>(w[i], x + whole + i, x_stride, &sums[0][v]);
      }
    }
    float spill[kTokens][kRows];
    spill_tile(sums, spill);
    write_tile(task, token, row, kRows, spill);
  }
}

// ---- many tokens ----

// A panel is [columns][kFloatPanelVectors] vectors.
#if defined(MOTE_ISA_scalar)
constexpr int kFloatPanelVectors = 2, kFloatPanelTokens = 4;
#elif defined(__AVX2__)
constexpr int kFloatPanelVectors = 2, kFloatPanelTokens = 6;
#elif defined(__aarch64__)
constexpr int kFloatPanelVectors = 4, kFloatPanelTokens = 6;
#else
constexpr int kFloatPanelVectors = 2, kFloatPanelTokens = 4;
#endif
constexpr size_t kFloatPanelRows = kFloatPanelVectors * kLanes;
static_assert(32 % kFloatPanelRows == 0);

template <class F>
void fill_float_panel(const uint8_t* p, size_t rows, size_t columns, float* panel) {
  const size_t stride = columns * F::kValueBytes;
  for (int v = 0; v < kFloatPanelVectors; ++v, p += kLanes * stride, panel += kLanes) {
    const size_t first = v * kLanes, left = rows > first ? minimum(rows - first, kLanes) : 0;
    const uint8_t* ahead = p + kFloatPanelRows * stride;
    float* out = panel;
    for (size_t c = 0; c < columns; c += F::kColumns) {
      const uint8_t* from = p + c * F::kValueBytes;
      const size_t count = minimum(columns - c, F::kColumns);
      Floats w[F::kColumns];
      if (left == kLanes && count == F::kColumns) {
        MOTE_UNROLL
        for (size_t i = 0; i < kLanes * 16; i += 64)
          prefetch(ahead + c * F::kValueBytes * kLanes + i);
        F::unpack(from, stride, w);
      } else {
        uint8_t copy[kLanes * 16];
        copy_rows(from, stride, left, count * F::kValueBytes, 16, copy);
        F::unpack(copy, 16, w);
      }
      MOTE_UNROLL
      for (size_t i = 0; i < F::kColumns; ++i)
        if (i < count) store_floats(out + i * kFloatPanelRows, w[i]);
      out += F::kColumns * kFloatPanelRows;
    }
  }
}

template <int kTokens>
void multiply_float_panel(const float* panel, const LinearTask& task, size_t token, size_t row) {
  const size_t x_stride = task.activations->x_stride;
  const float* x = task.activations->x + token * x_stride;
  Floats sums[kTokens][kFloatPanelVectors];
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t)
    for (int v = 0; v < kFloatPanelVectors; ++v) sums[t][v] = set_float(0);
  for (size_t c = 0; c < task.columns; ++c, panel += kFloatPanelRows) {
    Floats w[kFloatPanelVectors];
    MOTE_UNROLL
    for (int v = 0; v < kFloatPanelVectors; ++v) w[v] = load_floats(panel + v * kLanes);
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const Floats value = set_float(x[t * x_stride + c]);
      MOTE_UNROLL
      for (int v = 0; v < kFloatPanelVectors; ++v) sums[t][v] = fma(value, w[v], sums[t][v]);
    }
  }
  float spill[kTokens][kFloatPanelRows];
  spill_tile(sums, spill);
  write_tile(task, token, row, minimum(kFloatPanelRows, task.last_row - row), spill);
}

template <int kTokens>
MOTE_INLINE void multiply_float_panel_rest(const float* panel, const LinearTask& task, size_t token,
                                           size_t tokens, size_t row) {
  if constexpr (kTokens > 0) {
    if (tokens == kTokens) return multiply_float_panel<kTokens>(panel, task, token, row);
    multiply_float_panel_rest<kTokens - 1>(panel, task, token, tokens, row);
  }
}

template <class F>
void many_tokens_float(const LinearTask& task, size_t first_row) {
  const size_t stride = task.columns * F::kValueBytes;
  const size_t end = task.first_token + task.tokens;
  auto* panel = reinterpret_cast<float*>(task.scratch);
  for (size_t row = first_row; row < task.last_row; row += kFloatPanelRows) {
    fill_float_panel<F>(task.weights + row * stride, task.last_row - row, task.columns, panel);
    size_t token = task.first_token;
    for (; token + kFloatPanelTokens <= end; token += kFloatPanelTokens)
      multiply_float_panel<kFloatPanelTokens>(panel, task, token, row);
    multiply_float_panel_rest<kFloatPanelTokens - 1>(panel, task, token, end - token, row);
  }
}

#if defined(MOTE_ISA_scalar)
constexpr size_t kFewFloatTokens = 1;
#elif defined(__AVX2__) || defined(__aarch64__)
constexpr size_t kFewFloatTokens = 2;
#else
constexpr size_t kFewFloatTokens = 1;
#endif

// Either way gives the same bits.
template <class F>
void linear_floats(const LinearTask& task) {
  size_t rest = task.first_row;
  if (task.tokens <= kFewFloatTokens) {
    rest += (task.last_row - task.first_row) / 32 * 32;
    if (task.tokens == 1) few_tokens_float<F, 1>(task, task.first_token, task.first_row, rest);
    if constexpr (kFewFloatTokens >= 2)
      if (task.tokens == 2) few_tokens_float<F, 2>(task, task.first_token, task.first_row, rest);
  }
  if (rest < task.last_row && task.tokens > 0) many_tokens_float<F>(task, rest);
}

}  // namespace
}  // namespace mote::MOTE_ISA
