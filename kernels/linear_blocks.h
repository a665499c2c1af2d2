// Linear layers with weights in blocks and int8 activations. Few tokens: a tile of rows is
// unpacked in registers and multiplied at once. Many tokens: it is unpacked into a panel, which
// then serves all tokens.
#pragma once

#include "kernels/linear_panels.h"

namespace mote::MOTE_ISA {
namespace {

// sums[t] += 32 columns of kLanes rows times token t.
template <class F, int kTokens>
MOTE_INLINE void multiply_block(const Block& block, const BlockActivations& x,
                                const TokenOffsets<kTokens>& offsets, Floats* sums, int pitch) {
  // Short chains where one would be long: waiting instructions fill the scheduler, and the loads
  // behind them start late.
  constexpr int kChains = (kTokens == 1 ? 4 : kTokens <= 3 ? 2 : F::kGroups) / F::kGroups;
  BlockDot<F, kChains> dots[kTokens];
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t) dots[t].begin(x, offsets.at[t]);
  MOTE_UNROLL
  for (int i = 0; i < 8; ++i) {
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t) dots[t].step(i, block.w[i], x.block(offsets.at[t]));
  }
  MOTE_UNROLL
  for (int t = 0; t < kTokens; ++t) {
    const size_t at = offsets.at[t];
    const Floats dot = dots[t].finish(x, at, block.scale);
    Floats& sum = sums[t * pitch];
    sum = fma(multiply(dot, x.scale_at(at)), block.d, sum);
    sum = add_minimums<F>(sum, block.m, x, at);
  }
}

// 4 columns of kLanes rows.
template <class F>
MOTE_INLINE Bytes columns_of(const Block& block, size_t group) {
  if constexpr (!F::kRowVectors) {
    return block.w[group];
  } else {
    const auto* half = reinterpret_cast<const uint8_t*>(&block.w[group / 4 * 4]);
    return as_bytes(load_words(half + group % 4 * 4, sizeof(Bytes)));
  }
}

// sums += an outlier's 4 columns of kLanes rows. Out of line: few blocks have one.
template <class F>
__attribute__((noinline)) void multiply_outlier(const Block& block, const Outliers& x,
                                                float* sums) {
  store_floats(sums, add_outlier<F>(load_floats(sums), columns_of<F>(block, *x.group % 8), block.d,
                                    block.scale, block.m, x));
}

// Whole tiles of rows [first_row, last_row).
template <class F, int kTokens>
void few_tokens(const LinearTask& task, size_t token, size_t first_row, size_t last_row) {
  using Rows = typename F::Rows;
  constexpr size_t kRuns = F::kValues / 32, kRunBytes = kTileRows * F::kBytes / kRuns;
  const BlockActivations first_block(*task.activations, task.columns, token);
  TokenOffsets<kTokens> offsets(first_block.pitch);
  const size_t blocks = task.columns / F::kValues, stride = blocks * F::kBytes;
  for (size_t row = first_row; row < last_row; row += kTileRows) {
    const uint8_t* base = task.weights + row * stride;
    const uint8_t* ahead = base + 2 * kTileRows * stride;
    Floats sums[kTokens][kTileVectors];
    MOTE_UNROLL
    for (int t = 0; t < kTokens; ++t)
      for (int v = 0; v < kTileVectors; ++v) sums[t][v] = set_float(0);
    OutliersOfTokens<kTokens> outliers;
    float outlier_sums[kTokens][kTileRows];
    if (task.activations->outliers) std::memset(outlier_sums, 0, sizeof outlier_sums);
    outliers.start(*task.activations, task.columns, token);
    BlockActivations x = first_block;
    for (size_t b = 0; b < blocks; ++b, base += Rows::kStep * F::kBytes) {
      typename F::Raw raw[kTileVectors];
      MOTE_UNROLL
      for (int v = 0; v < kTileVectors; ++v) raw[v].load(Rows(base, stride, v * kLanes));
      for (size_t run = 0; run < kRuns; ++run, ahead += kRunBytes, x.next_block()) {
        offsets.pin();
        MOTE_UNROLL
        for (size_t i = 0; i < kRunBytes; i += 64) prefetch(ahead + i);
        const size_t at = b * kRuns + run;
        MOTE_UNROLL
        for (int v = 0; v < kTileVectors; ++v) {
          Block block;
          raw[v].unpack(run, &block);
          multiply_block<F, kTokens>(block, x, offsets, &sums[0][v], kTileVectors);
          if (at != outliers.block) continue;
          const Block copy = block;  // so that all others stay in registers
          for (int t = 0; t < kTokens; ++t)
            if (outliers.token[t].block() == at)
              multiply_outlier<F>(copy, outliers.token[t], outlier_sums[t] + v * kLanes);
        }
        if (at == outliers.block) outliers.next();
      }
    }
    if (task.activations->outliers) add_rows(outlier_sums[0], sums);
    float spill[kTokens][kTileRows];
    spill_tile(sums, spill);
    write_tile(task, token, row, kTileRows, spill);
  }
}

// At most this many tokens go without a panel. More do not fit the registers beside the unpacked
// weights, or make too much code; with blocks of 256, whose words go through memory anyway, a panel
// costs little more.
#if defined(MOTE_ISA_scalar)
constexpr int kFewTokens = 0;
#elif defined(__AVX2__) || defined(__aarch64__)
constexpr int kFewTokens = 4;
#else
constexpr int kFewTokens = 1;
#endif

template <class F, int kTokens>
MOTE_INLINE bool few_tokens_upto(const LinearTask& task, size_t last_row) {
  if constexpr (kTokens == 0) {
    return task.tokens == 0;
  } else {
    if (task.tokens != kTokens) return few_tokens_upto<F, kTokens - 1>(task, last_row);
    few_tokens<F, kTokens>(task, task.first_token, task.first_row, last_row);
    return true;
  }
}

// A format as few tokens read it.
template <class F>
struct FewTokens {
  using type = F;
};
#if defined(MOTE_ROW_VECTORS)
template <>
struct FewTokens<formats::q4_0> {
  using type = formats::Q4_0<RowVectors>;
};
template <>
struct FewTokens<formats::q4_1> {
  using type = formats::Q4_1<RowVectors>;
};
template <>
struct FewTokens<formats::q8_0> {
  using type = formats::Q8_0<RowVectors>;
};
template <>
struct FewTokens<formats::iq4_nl> {
  using type = formats::Iq4Nl<RowVectors>;
};
#endif

// Either way gives the same bits.
template <class F>
void linear_blocks(const LinearTask& task) {
  const size_t whole = task.first_row + (task.last_row - task.first_row) / kTileRows * kTileRows;
  constexpr int kFew = F::kRowScaled ? 0 : F::kValues == 32 || kFewTokens == 0 ? kFewTokens : 1;
  const bool few = few_tokens_upto<typename FewTokens<F>::type, kFew>(task, whole);
  const size_t rest = few ? whole : task.first_row;
  if (rest == task.last_row || task.tokens == 0) return;
  if (task.tokens <= kFetchTokens)
    several_tokens<F>(task, rest);
  else
    many_tokens<F>(task, rest);
}

template <class F>
struct Native;
template <template <class> class Format, class Rows>
struct Native<Format<Rows>> {
  using type = Format<NativeRows>;
};

// The rows behind the last whole tile are native.
template <class F>
void linear_packed_blocks(const LinearTask& task) {
  static_assert(kTileRows == PackedRows::kStep);
  const size_t tiled = task.rows / kTileRows * kTileRows;
  LinearTask part = task;
  part.last_row = minimum(task.last_row, tiled);
  if (part.first_row < part.last_row) linear_blocks<F>(part);
  if (task.last_row <= tiled) return;
  part.first_row = task.first_row > tiled ? task.first_row : tiled;
  part.last_row = task.last_row;
  linear_blocks<typename Native<F>::type>(part);
}

}  // namespace
}  // namespace mote::MOTE_ISA
