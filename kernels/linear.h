// What the two families of linear kernels share: the tiles and how a finished tile is written.
#pragma once

#include "kernels/kernels.h"
#include "kernels/unpack_k.h"

namespace mote::MOTE_ISA {
namespace {

// Weight rows whose vectors are all in registers or L1 at once.
constexpr size_t kTileRows = 16;
constexpr int kTileVectors = kTileRows / kLanes;

constexpr size_t minimum(size_t a, size_t b) { return a < b ? a : b; }

// Copies `bytes` bytes of each of `rows` rows, so that a vector may be loaded where the matrix
// ends. Rows from `rows` to kLanes become zeros, and so do the bytes from `bytes` to `pitch`.
MOTE_INLINE void copy_rows(const uint8_t* p, size_t stride, size_t rows, size_t bytes, size_t pitch,
                           uint8_t* out) {
  std::memset(out, 0, kLanes * pitch);
  for (size_t r = 0; r < rows && r < kLanes; ++r)
    std::memcpy(out + r * pitch, p + r * stride, bytes);
}

// y = sums (+ bias) (+ y) for `rows` rows from `row` on and `tokens` tokens, `pitch` sums apart.
// Out of line: one copy serves all loops.
__attribute__((noinline)) void write_rows(const LinearTask& task, size_t token, size_t tokens,
                                          size_t row, size_t rows, const float* sums,
                                          size_t pitch) {
  const float* bias = task.bias ? task.bias + row : nullptr;
  const size_t whole = rows / kLanes * kLanes;
  float* y = task.y + token * task.y_stride + row;
  for (size_t t = 0; t < tokens; ++t, y += task.y_stride, sums += pitch) {
    for (size_t r = 0; r < whole; r += kLanes) {
      Floats sum = load_floats(sums + r);
      if (bias) sum = add(sum, load_floats(bias + r));
      if (task.accumulate) sum = add(sum, load_floats(y + r));
      store_floats(y + r, sum);
    }
    for (size_t r = whole; r < rows; ++r) {
      float sum = sums[r];
      if (bias) sum += bias[r];
      if (task.accumulate) sum += y[r];
      y[r] = sum;
    }
  }
}

// Vectors [token][kVectors] to memory.
template <int kTokens, int kVectors>
MOTE_INLINE void spill_tile(const Floats (&sums)[kTokens][kVectors],
                            float (&spill)[kTokens][kVectors * kLanes]) {
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    MOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) store_floats(spill[t] + v * kLanes, sums[t][v]);
  }
}

// Writes a tile of tokens from `token` on, rows from `row` on.
template <size_t kTokens, size_t kRows>
MOTE_INLINE void write_tile(const LinearTask& task, size_t token, size_t row, size_t rows,
                            const float (&sums)[kTokens][kRows]) {
  write_rows(task, token, kTokens, row, rows, sums[0], kRows);
}

}  // namespace
}  // namespace mote::MOTE_ISA
