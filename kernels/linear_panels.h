// The many-token loop of linear_blocks.h: a tile of rows is unpacked into a panel, which then
// serves all tokens.
#pragma once

#include "kernels/block_dot.h"

namespace mote::MOTE_ISA {
namespace {

// A panel holds kPanelVectors * kLanes rows; 32 columns of it are [8][kPanelVectors] vectors of
// weights, then the scales and, if the format has them, the minimums and the scales of 16 columns
// each. kPanelTokens x kPanelVectors
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

// What a panel is, whatever format it came from: formats that are alike share the loops. Unsigned
// bytes have the same offset for all formats that have one: the one whose correction is stored.
template <Weights weights, int offset, int minimums, int groups, bool row_scaled>
struct PanelForm {
  static constexpr Weights kWeights = weights;
  static constexpr int kOffset = offset, kMinimums = minimums, kGroups = groups;
  static constexpr bool kRowVectors = false, kRowScaled = row_scaled;
  static constexpr int kScaleVectors = 1 + minimums + (groups == 2 ? 2 : 0);
  static constexpr size_t kWeightBytes = 8 * kPanelVectors * kVectorBytes;
  static constexpr size_t kBytes = kWeightBytes + kScaleVectors * kPanelRows * sizeof(float);
  // Where the scales of vector v are: of all 32 columns, minimum i, those of 16 columns.
  static MOTE_INLINE const float* scale(const uint8_t* block, int v) {
    return reinterpret_cast<const float*>(block + kWeightBytes) + v * kLanes;
  }
  static MOTE_INLINE Floats d(const uint8_t* block, int v) { return load_floats(scale(block, v)); }
  static MOTE_INLINE void minimums_at(const uint8_t* block, int v, Floats* out) {
    MOTE_UNROLL
    for (int i = 0; i < minimums; ++i) out[i] = load_floats(scale(block, v) + (1 + i) * kPanelRows);
  }
  static MOTE_INLINE void group_scales(const uint8_t* block, int v, Floats* out) {
    MOTE_UNROLL
    for (int i = 0; i < (groups == 2 ? 2 : 0); ++i)
      out[i] = load_floats(scale(block, v) + (1 + minimums + i) * kPanelRows);
  }
};
template <class F>
constexpr bool kRaised = kByteOffset != 0 && F::kOffset != 0;
template <class F>
using PanelOf =
    PanelForm<kByteOffset != 0 ? Weights::bytes : F::kWeights,
              kRaised<F> ? kByteOffset : F::kOffset, F::kMinimums, F::kGroups, F::kRowScaled>;

template <class F>
MOTE_INLINE void fill_panel_run(const typename F::Raw& raw, size_t run, uint8_t* panel) {
  Block block;
  raw.unpack(run, &block);
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
  auto* scales = reinterpret_cast<float*>(panel + PanelOf<F>::kWeightBytes);
  store_floats(scales, block.d);
  MOTE_UNROLL
  for (int i = 0; i < F::kMinimums; ++i) store_floats(scales += kPanelRows, block.m[i]);
  if constexpr (F::kGroups == 2) {
    store_floats(scales += kPanelRows, block.scale[0]);
    store_floats(scales + kPanelRows, block.scale[1]);
  }
}

// One block of a vector of rows.
template <class F>
MOTE_INLINE uint8_t* fill_panel_block(const typename F::Rows& rows, uint8_t* panel) {
  typename F::Raw raw;
  raw.load(rows);
  for (size_t run = 0; run < F::kValues / 32; ++run, panel += PanelOf<F>::kBytes)
    fill_panel_run<F>(raw, run, panel);
  return panel;
}

// Rows from `row` on. Meanwhile the first `fetched` vectors of the next panel's rows are fetched.
// What is beyond the `rows` that are left becomes zeros; a packed matrix ends with a whole tile.
template <class F>
void fill_panel(const uint8_t* weights, size_t row, size_t rows, size_t blocks, int fetched,
                uint8_t* panel) {
  using Rows = typename F::Rows;
  const size_t stride = blocks * F::kBytes;
  for (int v = 0; v < kPanelVectors; ++v, row += kLanes, panel += kVectorBytes) {
    const size_t first = v * kLanes, left = rows > first ? minimum(rows - first, kLanes) : 0;
    uint8_t* out = panel;
    if (left == kLanes) {
      Rows from(weights, stride, row);
      const uint8_t* ahead = weights + (row + kPanelRows) * stride;
      for (size_t b = 0; b < blocks; ++b, from.skip(Rows::kStep * F::kBytes)) {
        if (v < fetched) {
          MOTE_UNROLL
          for (size_t i = 0; i < kLanes * F::kBytes; i += 64)
            prefetch(ahead + b * kLanes * F::kBytes + i);
        }
        out = fill_panel_block<F>(from, out);
      }
      continue;
    }
    constexpr size_t kCopied = Rows::kStep == 1 ? kLanes : Rows::kStep;
    uint8_t copy[kCopied * F::kBytes];
    std::memset(copy, 0, sizeof copy);
    for (size_t b = 0; b < blocks; ++b) {
      if constexpr (Rows::kStep == 1)
        copy_rows(weights + row * stride + b * F::kBytes, stride, left, F::kBytes, F::kBytes, copy);
      out = fill_panel_block<F>(Rows(copy, F::kBytes, 0), out);
    }
  }
}

// Weights that are needed soon.
struct Ahead {
  const uint8_t* at = nullptr;
  size_t bytes = 0;  // for each of a panel's blocks
  MOTE_INLINE void fetch() {
    for (size_t i = 0; i < bytes; i += 64) prefetch(at + i);
    at += bytes;
  }
};

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

// sums [tokens][kPanelRows] += the outliers of each token.
template <class P>
__attribute__((noinline)) void add_panel_outliers(const uint8_t* panel,
                                                  const Activations& activations, size_t columns,
                                                  size_t token, int tokens, float* sums) {
  for (int t = 0; t < tokens; ++t, sums += kPanelRows) {
    Outliers x;
    x.start(activations, columns, token + t);
    Floats sum[kPanelVectors];
    MOTE_UNROLL
    for (int v = 0; v < kPanelVectors; ++v) sum[v] = set_float(0);
    for (; *x.group != kNoOutlier; x.next()) {
      const uint8_t* block = panel + x.block() * P::kBytes;
      MOTE_UNROLL
      for (int v = 0; v < kPanelVectors; ++v) {
        Floats group_scale[2], m[2];
        P::group_scales(block, v, group_scale);
        P::minimums_at(block, v, m);
        sum[v] = add_outlier<P>(sum[v], panel_weights(block, *x.group % 8, v),
                                P::d(P::kRowScaled ? panel : block, v), group_scale, m, x);
      }
    }
    MOTE_UNROLL
    for (int v = 0; v < kPanelVectors; ++v)
      store_floats(sums + v * kLanes, add(load_floats(sums + v * kLanes), sum[v]));
  }
}

#if defined(MOTE_MULTIPLY_PAIRS)

// One value per token of a pair.
template <int kGroups, int kGroup>
MOTE_INLINE Ints pair_sums_of(const BlockActivations& x, size_t a, size_t b) {
  return by_token(x.sum_at<kGroups, kGroup>(a), x.sum_at<kGroups, kGroup>(b));
}

template <class P, int kGroup>
MOTE_INLINE Ints first_of_pair(const BlockActivations& x, size_t a, size_t b) {
  return by_token(x.first<P::kOffset, P::kGroups, kGroup>(a),
                  x.first<P::kOffset, P::kGroups, kGroup>(b));
}

MOTE_INLINE Floats twice(Floats v, int last) { return last ? last_twice(v) : first_twice(v); }

// products[row pair] += 32 columns of vector v for a pair of tokens; dots: [kGroups][row pair].
template <class P>
MOTE_INLINE void add_pair(const uint8_t* panel, int v, const BlockActivations& x, size_t a,
                          size_t b, const Ints (&dots)[P::kGroups][2], Floats* products) {
  const Floats scale = by_token(x.scale_at(a), x.scale_at(b)), d = P::d(panel, v);
  Floats group_scale[2], m[2];
  P::group_scales(panel, v, group_scale);
  P::minimums_at(panel, v, m);
  MOTE_UNROLL
  for (int half = 0; half < 2; ++half) {
    Floats dot = to_float(dots[0][half]);
    if constexpr (P::kGroups == 2)
      dot = fma(to_float(dots[1][half]), twice(group_scale[1], half),
                multiply(dot, twice(group_scale[0], half)));
    Floats sum = fma(multiply(dot, scale), twice(d, half), products[half]);
    if constexpr (P::kMinimums == 1)
      sum = fma(twice(m[0], half), by_token(x.scaled_sum_at(a), x.scaled_sum_at(b)), sum);
    if constexpr (P::kMinimums == 2) {
      const Floats first = multiply(to_float(pair_sums_of<2, 0>(x, a, b)), scale);
      const Floats second = multiply(to_float(pair_sums_of<2, 1>(x, a, b)), scale);
      sum = fma(twice(m[1], half), second, fma(twice(m[0], half), first, sum));
    }
    products[half] = sum;
  }
}

// dots += one block of a panel times kTokens tokens.
template <class P, int kTokens>
MOTE_INLINE void multiply_panel_block(
    const uint8_t* panel, const BlockActivations& x, const TokenOffsets<kTokens>& offsets,
    Ints (&dots)[(kTokens + 1) / 2][kPanelVectors][P::kGroups][2]) {
  MOTE_UNROLL
  for (int i = 0; i < 8; i += 2) {
    const int g = i * P::kGroups / 8;
    Bytes w[kPanelVectors][2];
    MOTE_UNROLL
    for (int v = 0; v < kPanelVectors; ++v) {
      w[v][0] = load_bytes(panel + (i * kPanelVectors + v) * kVectorBytes);
      w[v][1] = load_bytes(panel + ((i + 1) * kPanelVectors + v) * kVectorBytes);
    }
    MOTE_UNROLL
    for (int p = 0; p < (kTokens + 1) / 2; ++p) {
      const size_t a = offsets.at[2 * p], b = offsets.at[minimum(2 * p + 1, kTokens - 1)];
      const Bytes q = two_tokens(x.q + 8 * a + 4 * i, x.q + 8 * b + 4 * i);
      MOTE_UNROLL
      for (int v = 0; v < kPanelVectors; ++v) {
        dots[p][v][g][0] = multiply_two_by_two(dots[p][v][g][0], w[v][0], q);
        dots[p][v][g][1] = multiply_two_by_two(dots[p][v][g][1], w[v][1], q);
      }
    }
  }
}

// sums of tokens from products of pairs of rows and tokens.
template <int kTokens>
MOTE_INLINE void split_pairs(const Floats (&products)[(kTokens + 1) / 2][kPanelVectors][2],
                             Floats (&sums)[kTokens][kPanelVectors]) {
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    MOTE_UNROLL
    for (int v = 0; v < kPanelVectors; ++v)
      sums[t][v] = rows_of_token(products[t / 2][v][0], products[t / 2][v][1], t % 2);
  }
}

// sums = a panel times kTokens tokens, two rows by two tokens at a time; an odd last token is its
// own partner.
template <class P, int kTokens, bool kFetch>
MOTE_INLINE void multiply_panel_blocks(const uint8_t* panel, BlockActivations x, Ahead ahead,
                                       Floats (&sums)[kTokens][kPanelVectors]) {
  constexpr int kPairs = (kTokens + 1) / 2;
  TokenOffsets<kTokens> offsets(x.pitch);
  Floats products[kPairs][kPanelVectors][2];  // [row][token] of rows 0, 1 and of rows 2, 3
  MOTE_UNROLL
  for (int p = 0; p < kPairs; ++p)
    for (int v = 0; v < kPanelVectors; ++v) products[p][v][0] = products[p][v][1] = set_float(0);
  const uint8_t* end = panel + x.blocks * P::kBytes;
  for (; panel != end; panel += P::kBytes, x.next_block()) {
    offsets.pin();
    if constexpr (kFetch) ahead.fetch();
    Ints dots[kPairs][kPanelVectors][P::kGroups][2];
    MOTE_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const size_t a = offsets.at[2 * p], b = offsets.at[minimum(2 * p + 1, kTokens - 1)];
      const Ints first[2] = {first_of_pair<P, 0>(x, a, b),
                             first_of_pair<P, P::kGroups - 1>(x, a, b)};
      for (int v = 0; v < kPanelVectors; ++v)
        for (int g = 0; g < P::kGroups; ++g) dots[p][v][g][0] = dots[p][v][g][1] = first[g];
    }
    multiply_panel_block<P, kTokens>(panel, x, offsets, dots);
    MOTE_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const size_t a = offsets.at[2 * p], b = offsets.at[minimum(2 * p + 1, kTokens - 1)];
      MOTE_UNROLL
      for (int v = 0; v < kPanelVectors; ++v)
        add_pair<P>(panel, v, x, a, b, dots[p][v], products[p][v]);
    }
  }
  split_pairs<kTokens>(products, sums);
}

// The same where a row has one scale: one dot product of all columns.
template <class P, int kTokens, bool kFetch>
MOTE_INLINE void multiply_panel_rows(const uint8_t* panel, BlockActivations x, Ahead ahead,
                                     Floats (&sums)[kTokens][kPanelVectors]) {
  constexpr int kPairs = (kTokens + 1) / 2;
  TokenOffsets<kTokens> offsets(x.pitch);
  const uint8_t* const first = panel;
  const BlockActivations row = x;
  Ints dots[kPairs][kPanelVectors][1][2];
  MOTE_UNROLL
  for (int p = 0; p < kPairs; ++p) {
    const Ints start = by_token(x.row_first<P::kOffset>(2 * p),
                                x.row_first<P::kOffset>(minimum(2 * p + 1, kTokens - 1)));
    for (int v = 0; v < kPanelVectors; ++v) dots[p][v][0][0] = dots[p][v][0][1] = start;
  }
  const uint8_t* end = panel + x.blocks * P::kBytes;
  for (; panel != end; panel += P::kBytes, x.next_block()) {
    offsets.pin();
    if constexpr (kFetch) ahead.fetch();
    multiply_panel_block<P, kTokens>(panel, x, offsets, dots);
  }
  Floats products[kPairs][kPanelVectors][2];
  MOTE_UNROLL
  for (int p = 0; p < kPairs; ++p) {
    const size_t a = offsets.at[2 * p], b = offsets.at[minimum(2 * p + 1, kTokens - 1)];
    MOTE_UNROLL
    for (int v = 0; v < kPanelVectors; ++v) {
      products[p][v][0] = products[p][v][1] = set_float(0);
      add_pair<P>(first, v, row, a, b, dots[p][v], products[p][v]);
    }
  }
  split_pairs<kTokens>(products, sums);
}

#elif defined(MOTE_ISA_scalar)

// The dot product of `columns` consecutive bytes: compilers vectorize it.
MOTE_INLINE int32_t plain_dot(const int8_t* w, const int8_t* q, int columns) {
  int32_t dot = 0;
  for (int k = 0; k < columns; ++k) dot += w[k] * q[k];
  return dot;
}

// A panel is one row.
template <class P, int kTokens, bool kFetch>
MOTE_INLINE void multiply_panel_blocks(const uint8_t* panel, BlockActivations x, Ahead ahead,
                                       Floats (&sums)[kTokens][kPanelVectors]) {
  static_assert(kTokens == 1 && kPanelVectors == 1);
  float sum = 0;
  const uint8_t* end = panel + x.blocks * P::kBytes;
  for (; panel != end; panel += P::kBytes, x.next_block()) {
    if constexpr (kFetch) ahead.fetch();
    constexpr int kColumns = 32 / P::kGroups;
    const auto* w = reinterpret_cast<const int8_t*>(panel);
    Floats group_scale[2], m[2];
    P::group_scales(panel, 0, group_scale);
    P::minimums_at(panel, 0, m);
    float dot = to_float(plain_dot(w, x.q, kColumns) + x.first<P::kOffset, P::kGroups, 0>(0));
    if constexpr (P::kGroups == 2) {
      const float second =
          to_float(plain_dot(w + 16, x.q + 16, 16) + x.first<P::kOffset, P::kGroups, 1>(0));
      dot = fma(second, group_scale[1], multiply(dot, group_scale[0]));
    }
    sum = fma(multiply(dot, x.scale_at(0)), P::d(panel, 0), sum);
    sum = add_minimums<P>(sum, m, x, 0);
  }
  sums[0][0] = sum;
}

template <class P, int kTokens, bool kFetch>
MOTE_INLINE void multiply_panel_rows(const uint8_t* panel, BlockActivations x, Ahead,
                                     Floats (&sums)[kTokens][kPanelVectors]) {
  const float scale = P::d(panel, 0), x_scale = x.scale_at(0);
  const uint8_t* end = panel + x.blocks * P::kBytes;
  int32_t dot = 0;
  for (; panel != end; panel += P::kBytes, x.next_block())
    dot += plain_dot(reinterpret_cast<const int8_t*>(panel), x.q, 32);
  sums[0][0] = fma(multiply(to_float(dot), x_scale), scale, set_float(0));
}

#else

// One block of a panel times kTokens tokens.
template <class P, int kTokens>
MOTE_INLINE void multiply_panel_block(const uint8_t* panel, const BlockActivations& x,
                                      const TokenOffsets<kTokens>& offsets,
                                      BlockDot<P, 1> (&dots)[kTokens][kPanelVectors]) {
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
}

// sums = a panel times kTokens tokens.
template <class P, int kTokens, bool kFetch>
MOTE_INLINE void multiply_panel_blocks(const uint8_t* panel, BlockActivations x, Ahead ahead,
                                       Floats (&sums)[kTokens][kPanelVectors]) {
  TokenOffsets<kTokens> offsets(x.pitch);
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t)
    for (int v = 0; v < kPanelVectors; ++v) sums[t][v] = set_float(0);
  const uint8_t* end = panel + x.blocks * P::kBytes;
  for (; panel != end; panel += P::kBytes, x.next_block()) {
    offsets.pin();
    if constexpr (kFetch) ahead.fetch();
    BlockDot<P, 1> dots[kTokens][kPanelVectors];
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t)
      for (int v = 0; v < kPanelVectors; ++v) dots[t][v].begin(x, offsets.at[t]);
    multiply_panel_block<P, kTokens>(panel, x, offsets, dots);
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const size_t at = offsets.at[t];
      const Floats scale = x.scale_at(at);
      MOTE_UNROLL
      for (int v = 0; v < kPanelVectors; ++v) {
        Floats group_scale[2], m[2];
        P::group_scales(panel, v, group_scale);
        P::minimums_at(panel, v, m);
        const Floats dot = dots[t][v].finish(x, at, group_scale);
        sums[t][v] = fma(multiply(dot, scale), P::d(panel, v), sums[t][v]);
        sums[t][v] = add_minimums<P>(sums[t][v], m, x, at);
      }
    }
  }
}

// The same where a row has one scale: one dot product of all columns.
template <class P, int kTokens, bool kFetch>
MOTE_INLINE void multiply_panel_rows(const uint8_t* panel, BlockActivations x, Ahead ahead,
                                     Floats (&sums)[kTokens][kPanelVectors]) {
  TokenOffsets<kTokens> offsets(x.pitch);
  Floats scales[kPanelVectors];
  MOTE_UNROLL
  for (int v = 0; v < kPanelVectors; ++v) scales[v] = P::d(panel, v);
  const uint8_t* scale = x.scale;
  Ints totals[kTokens][kPanelVectors];
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t)
    for (int v = 0; v < kPanelVectors; ++v) totals[t][v] = x.row_first<P::kOffset>(t);
  const uint8_t* end = panel + x.blocks * P::kBytes;
  for (; panel != end; panel += P::kBytes, x.next_block()) {
    offsets.pin();
    if constexpr (kFetch) ahead.fetch();
    BlockDot<P, 1> dots[kTokens][kPanelVectors];
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t)
      for (int v = 0; v < kPanelVectors; ++v) dots[t][v].begin_row(totals[t][v]);
    multiply_panel_block<P, kTokens>(panel, x, offsets, dots);
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t)
      for (int v = 0; v < kPanelVectors; ++v) totals[t][v] = dots[t][v].finish_row(totals[t][v]);
  }
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    const Floats x_scale = set_float(read<float>(scale + offsets.at[t]));
    MOTE_UNROLL
    for (int v = 0; v < kPanelVectors; ++v)
      sums[t][v] = fma(multiply(to_float(totals[t][v]), x_scale), scales[v], set_float(0));
  }
}

#endif

template <class P, int kTokens, bool kFetch>
void multiply_panel(const uint8_t* panel, const LinearTask& task, Ahead ahead, size_t token,
                    size_t row) {
  Floats sums[kTokens][kPanelVectors];
  const BlockActivations x(*task.activations, task.columns, token);
  if constexpr (P::kRowScaled)
    multiply_panel_rows<P, kTokens, kFetch>(panel, x, ahead, sums);
  else
    multiply_panel_blocks<P, kTokens, kFetch>(panel, x, ahead, sums);
  float spill[kTokens][kPanelRows];
  spill_tile(sums, spill);
  if (task.activations->outliers)
    add_panel_outliers<P>(panel, *task.activations, task.columns, token, kTokens, spill[0]);
  write_tile(task, token, row, minimum(kPanelRows, task.last_row - row), spill);
}

// Any number of tokens up to kTokens.
template <class P, int kTokens>
MOTE_INLINE void multiply_panel_upto(const uint8_t* panel, const LinearTask& task, Ahead ahead,
                                     size_t token, size_t tokens, size_t row) {
  if constexpr (kTokens > 0) {
    if (tokens == kTokens) return multiply_panel<P, kTokens, true>(panel, task, ahead, token, row);
    multiply_panel_upto<P, kTokens - 1>(panel, task, ahead, token, tokens, row);
  }
}

// Up to so many tokens take no longer than the memory needs for the next panel.
constexpr size_t kFetchTokens = 8;

template <class F>
void many_tokens(const LinearTask& task, size_t first_row) {
  using P = PanelOf<F>;
  const size_t blocks = task.columns / F::kValues, end = task.first_token + task.tokens;
  for (size_t row = first_row; row < task.last_row; row += kPanelRows) {
    fill_panel<F>(task.weights, row, task.last_row - row, blocks, kPanelVectors, task.scratch);
    size_t token = task.first_token;
    for (; token + kPanelTokens <= end; token += kPanelTokens)
      multiply_panel<P, kPanelTokens, false>(task.scratch, task, {}, token, row);
    multiply_panel_upto<P, kPanelTokens - 1>(task.scratch, task, {}, token, end - token, row);
  }
}

// The same for up to kFetchTokens. Tiles of equal numbers of tokens; each fetches a part of the
// next panel.
template <class F>
void several_tokens(const LinearTask& task, size_t first_row) {
  using P = PanelOf<F>;
  const size_t blocks = task.columns / F::kValues, stride = blocks * F::kBytes;
  const size_t tiles = (task.tokens + kPanelTokens - 1) / kPanelTokens;
  const size_t end = task.first_token + task.tokens;
  for (size_t row = first_row; row < task.last_row; row += kPanelRows) {
    fill_panel<F>(task.weights, row, task.last_row - row, blocks, 1, task.scratch);
    // The vectors of the next panel that fill_panel() has left.
    Ahead ahead;
    ahead.at = task.weights + (row + kPanelRows + kLanes) * stride;
    ahead.bytes = (kPanelVectors - 1) * kLanes * F::kBytes / (F::kValues / 32) / tiles;
    for (size_t token = task.first_token, left = tiles; left > 0; --left) {
      const size_t now = (end - token + left - 1) / left;
      multiply_panel_upto<P, kPanelTokens>(task.scratch, task, ahead, token, now, row);
      ahead.at += ahead.bytes * (task.columns / 32);
      token += now;
    }
  }
}

}  // namespace
}  // namespace mote::MOTE_ISA
