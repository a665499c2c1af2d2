// The many-token loop of linear_blocks.h: a tile of rows is unpacked into a panel, which then
// serves all tokens.
#pragma once

#include "kernels/block_activations.h"

namespace mote::MOTE_ISA {
namespace {

// A panel holds kPanelVectors * kLanes rows; a block of it is [8][kPanelVectors] vectors of
// weights, then the scales and, if the format has them, the minimums. kPanelTokens x kPanelVectors
// dot products and sums fill the registers.
#if defined(MOTE_ISA_scalar)
constexpr int kPanelVectors = 1, kPanelTokens = 1;
#elif defined(__AVX512BW__)
constexpr int kPanelVectors = 2, kPanelTokens = 6;
#elif defined(__AVX2__)
constexpr int kPanelVectors = 2, kPanelTokens = 3;
#elif defined(MOTE_MULTIPLY_PAIRS)
constexpr int kPanelVectors = 2, kPanelTokens = 6;
#elif defined(__aarch64__)
constexpr int kPanelVectors = 4, kPanelTokens = 3;
#else
constexpr int kPanelVectors = 2, kPanelTokens = 2;
#endif
constexpr size_t kPanelRows = kPanelVectors * kLanes;
constexpr size_t kVectorBytes = sizeof(Bytes);
static_assert(32 % kPanelRows == 0);

template <class F>
constexpr size_t panel_block_bytes() {
  return (8 + 1 + F::kHasMinimum) * kPanelVectors * kVectorBytes;
}

// Panels of unsigned bytes have the same offset for all formats that have one: the one whose
// correction is stored.
template <class F>
constexpr bool kRaised = kByteOffset != 0 && F::kOffset != 0;

template <class F>
MOTE_INLINE void fill_panel_block(const uint8_t* p, size_t stride, uint8_t* panel) {
  Block block;
  F::unpack(p, stride, &block);
  MOTE_UNROLL
  for (int i = 0; i < 8; ++i)
    if constexpr (kRaised<F> && F::kOffset != kByteOffset)
      block.w[i] = raise(block.w[i], kByteOffset - F::kOffset);
#if defined(MOTE_MULTIPLY_PAIRS)
  MOTE_UNROLL
  for (int i = 0; i < 8; i += 2) {
    const Bytes even = block.w[i];
    block.w[i] = first_rows(even, block.w[i + 1]);
    block.w[i + 1] = last_rows(even, block.w[i + 1]);
  }
#endif
  MOTE_UNROLL
  for (int i = 0; i < 8; ++i) store_bytes(panel + i * kPanelVectors * kVectorBytes, block.w[i]);
  auto* scales = reinterpret_cast<float*>(panel + 8 * kPanelVectors * kVectorBytes);
  store_floats(scales, block.d);
  if constexpr (F::kHasMinimum) store_floats(scales + kPanelRows, block.m);
}

// Rows beyond the `rows` that are left become zeros.
template <class F>
void fill_panel(const uint8_t* p, size_t rows, size_t blocks, uint8_t* panel) {
  const size_t stride = blocks * F::kBytes;
  for (int v = 0; v < kPanelVectors; ++v, p += kLanes * stride, panel += kVectorBytes) {
    const size_t first = v * kLanes, left = rows > first ? minimum(rows - first, kLanes) : 0;
    uint8_t* out = panel;
    if (left == kLanes) {
      const uint8_t* ahead = p + kPanelRows * stride;
      for (size_t b = 0; b < blocks; ++b, out += panel_block_bytes<F>()) {
        MOTE_UNROLL
        for (size_t i = 0; i < kLanes * F::kBytes; i += 64)
          prefetch(ahead + b * kLanes * F::kBytes + i);
        fill_panel_block<F>(p + b * F::kBytes, stride, out);
      }
      continue;
    }
    uint8_t copy[kLanes * F::kBytes];
    for (size_t b = 0; b < blocks; ++b, out += panel_block_bytes<F>()) {
      copy_rows(p + b * F::kBytes, stride, left, F::kBytes, F::kBytes, copy);
      fill_panel_block<F>(copy, F::kBytes, out);
    }
  }
}

// Four columns of vector v of a panel's block.
MOTE_INLINE Bytes panel_weights(const uint8_t* block, int i, int v) {
#if defined(MOTE_MULTIPLY_PAIRS)
  const Bytes low = load_bytes(block + ((i & ~1) * kPanelVectors + v) * kVectorBytes);
  const Bytes high = load_bytes(block + ((i | 1) * kPanelVectors + v) * kVectorBytes);
  return as_bytes(rows_of_token(as_floats(low), as_floats(high), i % 2));
#else
  return load_bytes(block + (i * kPanelVectors + v) * kVectorBytes);
#endif
}

// sums [tokens][kPanelRows] += the refined blocks of each token.
template <class F>
__attribute__((noinline)) void add_panel_refined(const uint8_t* panel,
                                                 const Activations& activations, size_t token,
                                                 int tokens, float* sums) {
  constexpr Weights kWeights = kRaised<F> ? Weights::bytes : F::kWeights;
  constexpr int kOffset = kRaised<F> ? kByteOffset : F::kOffset;
  for (int t = 0; t < tokens; ++t, sums += kPanelRows) {
    RefinedBlocks refined;
    refined.start(activations, token + t);
    Floats sum[kPanelVectors];
    MOTE_UNROLL
    for (int v = 0; v < kPanelVectors; ++v) sum[v] = set_float(0);
    for (size_t n = 0; n < activations.refined; ++n, refined.next()) {
      const uint8_t* block = panel + *refined.block * panel_block_bytes<F>();
      const auto* scales = reinterpret_cast<const float*>(block + 8 * kPanelVectors * kVectorBytes);
      const Ints first = refined.x.template first<kOffset>(0);
      Dot<kWeights, 2> dots[kPanelVectors];
      MOTE_UNROLL
      for (int v = 0; v < kPanelVectors; ++v) dots[v].begin(first);
      MOTE_UNROLL
      for (int i = 0; i < 8; ++i) {
        MOTE_UNROLL
        for (int v = 0; v < kPanelVectors; ++v)
          dots[v].step(i, panel_weights(block, i, v), refined.x.block(0));
      }
      const Floats scale = refined.x.scale_at(0);
      MOTE_UNROLL
      for (int v = 0; v < kPanelVectors; ++v)
        sum[v] = fma(multiply(to_float(dots[v].finish(first)), scale),
                     load_floats(scales + v * kLanes), sum[v]);
    }
    MOTE_UNROLL
    for (int v = 0; v < kPanelVectors; ++v)
      store_floats(sums + v * kLanes, add(load_floats(sums + v * kLanes), sum[v]));
  }
}

#if defined(MOTE_MULTIPLY_PAIRS)

// sums = a panel times kTokens tokens, two rows by two tokens at a time; an odd last token is its
// own partner.
template <class F, int kTokens>
MOTE_INLINE void multiply_panel_blocks(const uint8_t* panel, BlockActivations x,
                                       Floats (&sums)[kTokens][kPanelVectors]) {
  constexpr int kPairs = (kTokens + 1) / 2;
  TokenOffsets<kTokens> offsets(x.pitch);
  Floats products[kPairs][kPanelVectors][2];  // [row][token] of rows 0, 1 and of rows 2, 3
  MOTE_UNROLL
  for (int p = 0; p < kPairs; ++p)
    for (int v = 0; v < kPanelVectors; ++v) products[p][v][0] = products[p][v][1] = set_float(0);
  const uint8_t* end = panel + x.blocks * panel_block_bytes<F>();
  for (; panel != end; panel += panel_block_bytes<F>(), x.next_block()) {
    offsets.pin();
    Ints dots[kPairs][kPanelVectors][2];
    MOTE_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const size_t a = offsets.at[2 * p], b = offsets.at[minimum(2 * p + 1, kTokens - 1)];
      const Ints first = by_token(x.first<F::kOffset>(a), x.first<F::kOffset>(b));
      for (int v = 0; v < kPanelVectors; ++v) dots[p][v][0] = dots[p][v][1] = first;
    }
    MOTE_UNROLL
    for (int i = 0; i < 8; i += 2) {
      Bytes w[kPanelVectors][2];
      MOTE_UNROLL
      for (int v = 0; v < kPanelVectors; ++v) {
        w[v][0] = load_bytes(panel + (i * kPanelVectors + v) * kVectorBytes);
        w[v][1] = load_bytes(panel + ((i + 1) * kPanelVectors + v) * kVectorBytes);
      }
      MOTE_UNROLL
      for (int p = 0; p < kPairs; ++p) {
        const size_t a = offsets.at[2 * p], b = offsets.at[minimum(2 * p + 1, kTokens - 1)];
        const Bytes q = two_tokens(x.q + 8 * a + 4 * i, x.q + 8 * b + 4 * i);
        MOTE_UNROLL
        for (int v = 0; v < kPanelVectors; ++v) {
          dots[p][v][0] = multiply_two_by_two(dots[p][v][0], w[v][0], q);
          dots[p][v][1] = multiply_two_by_two(dots[p][v][1], w[v][1], q);
        }
      }
    }
    const auto* scales = reinterpret_cast<const float*>(panel + 8 * kPanelVectors * kVectorBytes);
    MOTE_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const size_t a = offsets.at[2 * p], b = offsets.at[minimum(2 * p + 1, kTokens - 1)];
      const Floats scale = by_token(x.scale_at(a), x.scale_at(b));
      MOTE_UNROLL
      for (int v = 0; v < kPanelVectors; ++v) {
        const Floats d = load_floats(scales + v * kLanes);
        Floats& low = products[p][v][0];
        Floats& high = products[p][v][1];
        low = fma(multiply(to_float(dots[p][v][0]), scale), first_twice(d), low);
        high = fma(multiply(to_float(dots[p][v][1]), scale), last_twice(d), high);
        if constexpr (F::kHasMinimum) {
          const Floats m = load_floats(scales + kPanelRows + v * kLanes);
          const Floats sum = by_token(x.scaled_sum_at(a), x.scaled_sum_at(b));
          low = fma(first_twice(m), sum, low);
          high = fma(last_twice(m), sum, high);
        }
      }
    }
  }
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    MOTE_UNROLL
    for (int v = 0; v < kPanelVectors; ++v)
      sums[t][v] = rows_of_token(products[t / 2][v][0], products[t / 2][v][1], t % 2);
  }
}

#elif defined(MOTE_ISA_scalar)

// A panel is one row, a block of it 32 consecutive bytes: compilers vectorize this dot product.
template <class F, int kTokens>
MOTE_INLINE void multiply_panel_blocks(const uint8_t* panel, BlockActivations x,
                                       Floats (&sums)[kTokens][kPanelVectors]) {
  static_assert(kTokens == 1 && kPanelVectors == 1);
  float sum = 0;
  const uint8_t* end = panel + x.blocks * panel_block_bytes<F>();
  for (; panel != end; panel += panel_block_bytes<F>(), x.next_block()) {
    const auto* w = reinterpret_cast<const int8_t*>(panel);
    int32_t dot = 0;
    for (int k = 0; k < 32; ++k) dot += w[k] * x.q[k];
    dot += x.first<F::kOffset>(0);
    sum = fma(to_float(dot) * x.scale_at(0), read<float>(panel + 32), sum);
    if constexpr (F::kHasMinimum) sum = fma(read<float>(panel + 36), x.scaled_sum_at(0), sum);
  }
  sums[0][0] = sum;
}

#else

// sums = a panel times kTokens tokens.
template <class F, int kTokens>
MOTE_INLINE void multiply_panel_blocks(const uint8_t* panel, BlockActivations x,
                                       Floats (&sums)[kTokens][kPanelVectors]) {
  constexpr Weights kWeights = kRaised<F> ? Weights::bytes : F::kWeights;
  constexpr int kOffset = kRaised<F> ? kByteOffset : F::kOffset;
  TokenOffsets<kTokens> offsets(x.pitch);
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t)
    for (int v = 0; v < kPanelVectors; ++v) sums[t][v] = set_float(0);
  const uint8_t* end = panel + x.blocks * panel_block_bytes<F>();
  for (; panel != end; panel += panel_block_bytes<F>(), x.next_block()) {
    offsets.pin();
    Dot<kWeights, 1> dots[kTokens][kPanelVectors];
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const Ints first = x.first<kOffset>(offsets.at[t]);
      for (int v = 0; v < kPanelVectors; ++v) dots[t][v].begin(first);
    }
    MOTE_UNROLL
    for (int i = 0; i < 8; ++i) {
      Bytes w[kPanelVectors];
      MOTE_UNROLL
      for (int v = 0; v < kPanelVectors; ++v)
        w[v] = load_bytes(panel + (i * kPanelVectors + v) * kVectorBytes);
      MOTE_UNROLL
      for (int t = 0; t < kTokens; ++t) {
        MOTE_UNROLL
        for (int v = 0; v < kPanelVectors; ++v) dots[t][v].step(i, w[v], x.block(offsets.at[t]));
      }
    }
    const auto* scales = reinterpret_cast<const float*>(panel + 8 * kPanelVectors * kVectorBytes);
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const size_t at = offsets.at[t];
      const Floats scale = x.scale_at(at);
      MOTE_UNROLL
      for (int v = 0; v < kPanelVectors; ++v) {
        const Floats dot = to_float(dots[t][v].finish(x.first<kOffset>(at)));
        sums[t][v] = fma(multiply(dot, scale), load_floats(scales + v * kLanes), sums[t][v]);
        if constexpr (F::kHasMinimum)
          sums[t][v] =
              fma(load_floats(scales + kPanelRows + v * kLanes), x.scaled_sum_at(at), sums[t][v]);
      }
    }
  }
}

#endif

template <class F, int kTokens>
void multiply_panel(const uint8_t* panel, const LinearTask& task, size_t token, size_t row) {
  Floats sums[kTokens][kPanelVectors];
  multiply_panel_blocks<F>(panel, BlockActivations(*task.activations, task.columns, token), sums);
  float spill[kTokens][kPanelRows];
  spill_tile(sums, spill);
  if (task.activations->refined)
    add_panel_refined<F>(panel, *task.activations, token, kTokens, spill[0]);
  write_tile(task, token, row, minimum(kPanelRows, task.last_row - row), spill);
}

// The tokens that do not fill kPanelTokens.
template <class F, int kTokens>
MOTE_INLINE void multiply_panel_rest(const uint8_t* panel, const LinearTask& task, size_t token,
                                     size_t tokens, size_t row) {
  if constexpr (kTokens > 0) {
    if (tokens == kTokens) return multiply_panel<F, kTokens>(panel, task, token, row);
    multiply_panel_rest<F, kTokens - 1>(panel, task, token, tokens, row);
  }
}

template <class F>
void many_tokens(const LinearTask& task, size_t first_row) {
  const size_t blocks = task.columns / 32, stride = blocks * F::kBytes;
  const size_t end = task.first_token + task.tokens;
  for (size_t row = first_row; row < task.last_row; row += kPanelRows) {
    fill_panel<F>(task.weights + row * stride, task.last_row - row, blocks, task.scratch);
    size_t token = task.first_token;
    for (; token + kPanelTokens <= end; token += kPanelTokens)
      multiply_panel<F, kPanelTokens>(task.scratch, task, token, row);
    multiply_panel_rest<F, kPanelTokens - 1>(task.scratch, task, token, end - token, row);
  }
}

}  // namespace
}  // namespace mote::MOTE_ISA
