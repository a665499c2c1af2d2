// Where a block of kLanes rows lies: the two ways in which a file can hold the weights of a block
// format. Unpackers (unpack.h, unpack_k.h) read every field through one of them.
//
//   Rows(weights, stride, row)  kLanes rows from `row` on; stride: bytes per row
//   kRowVectors                 vectors hold columns of one row, not 4 columns of kLanes rows
//   kStep                       how many blocks further the next block of these rows begins
//   quads(o, out)               out[j] = bytes o + 4 j .. o + 4 j + 3 of each row's block
//   words(o)                    the 4 bytes at o, as integers
//   scale(o), last_scale(o)     the float16 at o; last_scale at the end of a block
//   scales(o, a, b)             the float16 at o and the one at o + 2
//   scales_and_words(a, b, out) scales(0, a, b), out[j] = the words at 4, 8, 12
//   words_and_scale(o, out, a)  out[j] = the words at o, o + 4, o + 8, the last scale behind them
#pragma once

#include "kernels/simd_bits.h"
#include "quant/packed.h"

namespace mote::MOTE_ISA {
namespace {

// As every GGUF reader knows them: row by row. Vectors come from a transpose.
struct NativeRows {
  static constexpr bool kRowVectors = false;
  static constexpr size_t kStep = 1;
  const uint8_t* p;
  size_t stride;

  NativeRows() = default;
  MOTE_INLINE NativeRows(const uint8_t* weights, size_t row_bytes, size_t row)
      : p(weights + row * row_bytes), stride(row_bytes) {}
  MOTE_INLINE void skip(size_t bytes) { p += bytes; }
  MOTE_INLINE void quads(size_t offset, Bytes out[4]) const { load_quads(p + offset, stride, out); }
  MOTE_INLINE Ints words(size_t offset) const { return load_words(p + offset, stride); }
  MOTE_INLINE Floats scale(size_t offset) const { return low_f16(words(offset)); }
  MOTE_INLINE Floats last_scale(size_t offset) const { return high_f16(words(offset - 2)); }
  MOTE_INLINE void scales(size_t offset, Floats* first, Floats* second) const {
    const Ints both = words(offset);
    *first = low_f16(both);
    *second = high_f16(both);
  }
  MOTE_INLINE void scales_and_words(Floats* first, Floats* second, Bytes out[3]) const {
    Bytes quad[4];
    quads(0, quad);
    *first = low_f16(as_ints(quad[0]));
    *second = high_f16(as_ints(quad[0]));
    MOTE_UNROLL
    for (int i = 0; i < 3; ++i) out[i] = quad[i + 1];
  }
  MOTE_INLINE void words_and_scale(size_t offset, Bytes out[3], Floats* last) const {
    Bytes quad[4];  // from two bytes before, so that it ends with the block
    quads(offset - 2, quad);
    *last = high_f16(as_ints(quad[3]));
    MOTE_UNROLL
    for (int i = 0; i < 3; ++i)
      out[i] = bits_or(shift_down(quad[i], 16), shift_up(quad[i + 1], 16));
  }
};

#if defined(MOTE_ROW_VECTORS)
// Row by row without a transpose: quads(o, out) gives out[j] = bytes o .. o + 15 of row j. Where
// weights serve few tokens, adding across vectors costs less.
struct RowVectors : NativeRows {
  static constexpr bool kRowVectors = true;
  using NativeRows::NativeRows;
  MOTE_INLINE void quads(size_t offset, Bytes out[4]) const {
    MOTE_UNROLL
    for (size_t i = 0; i < 4; ++i) out[i] = load_bytes(p + offset + i * stride);
  }
};
#endif

// Transposed beforehand (quant/packed.h): vectors lie in the file. Rows of whole tiles only.
struct PackedRows {
  static constexpr bool kRowVectors = false;
  static constexpr size_t kStep = quant::kPackedRows;
  const uint8_t* p;  // the tile's block
  size_t first;      // of the rows, in the tile

  PackedRows() = default;
  MOTE_INLINE PackedRows(const uint8_t* weights, size_t row_bytes, size_t row)
      : p(weights + row / kStep * kStep * row_bytes), first(row % kStep) {}
  MOTE_INLINE void skip(size_t bytes) { p += bytes; }
  MOTE_INLINE Bytes word_bytes(size_t offset) const {
    return load_bytes(p + kStep * offset + 4 * first);
  }
  MOTE_INLINE void quads(size_t offset, Bytes out[4]) const {
    MOTE_UNROLL
    for (int i = 0; i < 4; ++i) out[i] = word_bytes(offset + 4 * i);
  }
  MOTE_INLINE Ints words(size_t offset) const { return as_ints(word_bytes(offset)); }
  MOTE_INLINE Floats scale(size_t offset) const {
    return load_halves(p + kStep * offset + 2 * first);
  }
  MOTE_INLINE Floats last_scale(size_t offset) const { return scale(offset); }
  MOTE_INLINE void scales(size_t offset, Floats* one, Floats* two) const {
    *one = scale(offset);
    *two = scale(offset + 2);
  }
  MOTE_INLINE void scales_and_words(Floats* one, Floats* two, Bytes out[3]) const {
    scales(0, one, two);
    MOTE_UNROLL
    for (int i = 0; i < 3; ++i) out[i] = word_bytes(4 + 4 * i);
  }
  MOTE_INLINE void words_and_scale(size_t offset, Bytes out[3], Floats* last) const {
    MOTE_UNROLL
    for (int i = 0; i < 3; ++i) out[i] = word_bytes(offset + 4 * i);
    *last = scale(offset + 12);
  }
};

}  // namespace
}  // namespace mote::MOTE_ISA
