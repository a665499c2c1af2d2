// The product of a few rows of floats with rows of a cache, in registers.
#pragma once

#include "kernels/kernels.h"
#include "kernels/simd_bytes.h"

namespace mote {
namespace MOTE_ISA {
namespace {

// Registers hold a tile of sums, a vector of each of its columns and one element of a row.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif
constexpr size_t kTileRows = kLanes == 16 ? 8 : kLanes == 8 ? 6 : 4;
// Vectors per row of a register tile of `rows` rows: a power of two, at most 8.
constexpr int tile_vectors(int rows) {
  int n = 8;
  while (n > 1 && (rows + (rows > 1)) * n + 1 > kRegisters) n /= 2;
  return n;
}

// What the rows are multiplied with: load(i, v) is vector v of its row i, from(v) begins v vectors
// further right, at(i) is where row i lies.
template <class T>
struct FloatRows {
  static constexpr size_t kBytes = sizeof(T);  // of an element
  static constexpr size_t kMostRows = kTileRows;
  static constexpr bool kAlwaysAhead = false;
  const T* data;
  size_t stride;

  MOTE_INLINE F32 load(size_t i, size_t v) const { return read(at(i) + v * kLanes); }
  MOTE_INLINE FloatRows from(size_t v) const { return {data + v * kLanes, stride}; }
  MOTE_INLINE const T* at(size_t i) const { return data + i * stride; }

 private:
  static MOTE_INLINE F32 read(const float* p) { return MOTE_ISA::load(p); }
  static MOTE_INLINE F32 read(const uint16_t* p) { return load_f16(p); }
};

// q8_0 is multiplied with few rows where it lies, its scales converted once a block: a decode step
// then takes as long as with f16, and up to twice that through floats in scratch. More rows share
// those; so do the instruction sets that are slow anyway, for smaller code. An int8 times a f16 is
// exact in a float, so both ways give the same bits.
#if defined(MOTE_SCALAR) || (defined(__SSE2__) && !defined(__AVX2__))
constexpr bool kBytesInPlace = false;
#else
constexpr bool kBytesInPlace = true;
#endif
struct KeyRows {  // a row is a dimension of a panel of positions
  static constexpr size_t kBytes = 1;
  static constexpr size_t kMostRows = 4;
  static constexpr bool kAlwaysAhead = true;  // for smaller code
  const int8_t* data;
  const float* scale;  // [groups][kKeyBlock]

  MOTE_INLINE F32 load(size_t i, size_t v) const {
    return load_i8(at(i) + v * kLanes) *
           MOTE_ISA::load(scale + i / kKvGroup * kKeyBlock + v * kLanes);
  }
  MOTE_INLINE KeyRows from(size_t v) const { return {data + v * kLanes, scale + v * kLanes}; }
  MOTE_INLINE const int8_t* at(size_t i) const { return data + i * kKeyBlock; }
};
struct ValueRows {  // a row is a position; whole vectors only, so one lies in one group
  static constexpr size_t kBytes = 1;
  static constexpr size_t kMostRows = 4;
  static constexpr bool kAlwaysAhead = true;  // for smaller code
  const int8_t* data;
  size_t stride;
  const float* scale;  // [kKeyBlock][groups]
  size_t groups, column;

  MOTE_INLINE F32 load(size_t i, size_t v) const {
    return load_i8(at(i) + v * kLanes) *
           broadcast(scale[i * groups + (column + v * kLanes) / kKvGroup]);
  }
  MOTE_INLINE ValueRows from(size_t v) const {
    return {data + v * kLanes, stride, scale, groups, column + v * kLanes};
  }
  MOTE_INLINE const int8_t* at(size_t i) const { return data + i * stride; }
};

// c[r][j] = c[r][j] * factor[r] + sum over first <= i < last, ascending, of a[r][i] * b[i][j], for
// the lanes of kVectors vectors; without factor c starts from 0. kAhead: what lies `ahead` bytes
// behind will be read soon.
template <int kRows, int kVectors, bool kAhead, class Rows>
MOTE_INLINE void multiply_tile(const float* const* a, size_t first, size_t last, Rows b, float* c,
                               size_t c_stride, const float* factor, size_t ahead) {
  const float* row[kRows];
  F32 sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    row[r] = a[r];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = factor ? load(c + r * c_stride + v * kLanes) * broadcast(factor[r]) : zero();
  }
  for (size_t i = first; i < last; ++i) {
    if (kAhead)
      for (size_t at = 0; at < kVectors * kLanes * Rows::kBytes; at += 64)
        prefetch(reinterpret_cast<const uint8_t*>(b.at(i)) + ahead + at);
    F32 column[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) column[v] = b.load(i, v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F32 x = broadcast(row[r][i]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = fma(x, column[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(c + r * c_stride + v * kLanes, sum[r][v]);
}

// multiply_tile over `vectors` vectors.
template <int kRows, bool kAhead, class Rows>
void multiply_rows(const float* const* a, size_t first, size_t last, Rows b, size_t vectors,
                   float* c, size_t c_stride, const float* factor, size_t ahead) {
  constexpr int kWide = tile_vectors(kRows);
  size_t v = 0;
#define MOTE_TILE(n)                                                                           \
  if constexpr (kWide >= n)                                                                    \
    for (; v + n <= vectors; v += n)                                                           \
  multiply_tile<kRows, n, kAhead>(a, first, last, b.from(v), c + v * kLanes, c_stride, factor, \
                                  ahead)
  MOTE_TILE(8);
  MOTE_TILE(4);
  MOTE_TILE(2);
  MOTE_TILE(1);
#undef MOTE_TILE
}

// rows: 1 .. 4 or kTileRows.
template <class Rows>
void multiply(size_t rows, const float* const* a, size_t first, size_t last, Rows b, size_t vectors,
              float* c, size_t c_stride, const float* factor, size_t ahead) {
  switch (rows) {
#define MOTE_ROWS(n)                                                                       \
  if (Rows::kAlwaysAhead || ahead)                                                         \
    return multiply_rows<n, true>(a, first, last, b, vectors, c, c_stride, factor, ahead); \
  else                                                                                     \
    return multiply_rows<n, false>(a, first, last, b, vectors, c, c_stride, factor, 0)
    case 1:
      MOTE_ROWS(1);
    case 2:
      MOTE_ROWS(2);
    case 3:
      MOTE_ROWS(3);
    case 4:
      MOTE_ROWS(4);
    default:
      if constexpr (Rows::kMostRows > 4) {
        MOTE_ROWS(kTileRows);
      }
#undef MOTE_ROWS
  }
}

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote
