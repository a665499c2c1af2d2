// A weight format is an unpacker, nothing more: how the next few columns of kLanes rows become
// vectors. The loops of linear_blocks.h and linear_floats.h know no formats. Layouts:
// quant/blocks.h. Rows is NativeRows or PackedRows: where they lie is all that these differ in.
#pragma once

#include "kernels/block_rows.h"

namespace mote::MOTE_ISA {
namespace {

// quant::kIq4Levels, with the offset of weight_bytes.
#define LEVEL(v) static_cast<int8_t>((v) + kByteOffset)
constexpr int8_t kIq4Weights[16] = {LEVEL(-127), LEVEL(-104), LEVEL(-83), LEVEL(-65),
                                    LEVEL(-49),  LEVEL(-35),  LEVEL(-22), LEVEL(-10),
                                    LEVEL(1),    LEVEL(13),   LEVEL(25),  LEVEL(38),
                                    LEVEL(53),   LEVEL(69),   LEVEL(89),  LEVEL(113)};
#undef LEVEL

// 32 columns of a block format: w[i] holds columns 4 i .. 4 i + 3; with row vectors, w[4 h + r]
// those from 16 h on of row r. A value is d * (w - offset) + m; with two groups of 16 columns d *
// scale[group] * (w - offset) + m[group].
struct Block {
  Bytes w[8];
  Floats d, m[2], scale[2];
};

// What the loops need to know of a format. Values are kBytes bytes for kValues, and:
//   kWeights, kOffset   kind and offset of w (simd_int8.h)
//   kMinimums           how many m the 32 columns have: 0, 1 or 2
//   kRowScaled          whether d is that of all the row's blocks, and so is the activations' scale
//   kGroups             1, or 2 where scale[group] has to multiply the dot products of 16 columns
//   Raw                 load(rows) takes kLanes rows of a block; unpack(run, out) gives columns
//                       32 run .. 32 run + 31
template <class BlockRows, size_t bytes, size_t values, Weights weights, int offset, int minimums,
          int groups = 1>
struct BlockFormat {
  using Rows = BlockRows;
  static constexpr size_t kBytes = bytes, kValues = values;
  static constexpr Weights kWeights = weights;
  static constexpr int kOffset = offset, kMinimums = minimums, kGroups = groups;
  static constexpr bool kRowVectors = BlockRows::kRowVectors, kRowScaled = false;
};

// Blocks of 32 are unpacked straight from memory.
template <class Rows>
struct InPlace {
  Rows rows;
  MOTE_INLINE void load(const Rows& from) { rows = from; }
};

template <class Rows>
MOTE_INLINE void unpack_nibbles(const Rows& rows, size_t offset, Block* out) {
  Bytes quads[4];
  rows.quads(offset, quads);
  MOTE_UNROLL
  for (int i = 0; i < 4; ++i) {
    out->w[i] = low_nibbles(quads[i]);
    out->w[i + 4] = high_nibbles(quads[i]);
  }
}

template <class Rows>
MOTE_INLINE void unpack_five_bits(const Rows& rows, size_t low, Ints high, Block* out) {
  unpack_nibbles(rows, low, out);
  MOTE_UNROLL
  for (int i = 0; i < 8; ++i) out->w[i] = with_fifth_bit(out->w[i], as_bytes(high), i);
}

namespace formats {

template <class R>
struct Q4_0 : BlockFormat<R, 18, 32, Weights::nibbles, 8, 0> {
  struct Raw : InPlace<R> {
    using InPlace<R>::rows;
    MOTE_INLINE void unpack(size_t, Block* out) const {
      out->d = rows.scale(0);
      unpack_nibbles(rows, 2, out);
    }
  };
};

template <class R>
struct Q4_1 : BlockFormat<R, 20, 32, Weights::nibbles, 0, 1> {
  struct Raw : InPlace<R> {
    using InPlace<R>::rows;
    MOTE_INLINE void unpack(size_t, Block* out) const {
      rows.scales(0, &out->d, out->m);
      unpack_nibbles(rows, 4, out);
    }
  };
};

template <class R>
struct Q5_0 : BlockFormat<R, 22, 32, Weights::five_bits, 16, 0> {
  struct Raw : InPlace<R> {
    using InPlace<R>::rows;
    MOTE_INLINE void unpack(size_t, Block* out) const {
      out->d = rows.scale(0);
      unpack_five_bits(rows, 6, rows.words(2), out);
    }
  };
};

template <class R>
struct Q5_1 : BlockFormat<R, 24, 32, Weights::five_bits, 0, 1> {
  struct Raw : InPlace<R> {
    using InPlace<R>::rows;
    MOTE_INLINE void unpack(size_t, Block* out) const {
      rows.scales(0, &out->d, out->m);
      unpack_five_bits(rows, 8, rows.words(4), out);
    }
  };
};

template <class R>
struct Q8_0 : BlockFormat<R, 34, 32, Weights::bytes, kByteOffset, 0> {
  struct Raw : InPlace<R> {
    using InPlace<R>::rows;
    MOTE_INLINE void unpack(size_t, Block* out) const {
      out->d = rows.scale(0);
      rows.quads(2, out->w);
      rows.quads(18, out->w + 4);
      MOTE_UNROLL
      for (int i = 0; i < 8; ++i) out->w[i] = weight_bytes(out->w[i]);
    }
  };
};

template <class R>
struct Q8Row : Q8_0<R> {
  static constexpr bool kRowScaled = true;
};

template <class R>
struct Iq4Nl : BlockFormat<R, 18, 32, Weights::bytes, kByteOffset, 0> {
  struct Raw : InPlace<R> {
    using InPlace<R>::rows;
    MOTE_INLINE void unpack(size_t, Block* out) const {
      out->d = rows.scale(0);
      unpack_nibbles(rows, 2, out);
      MOTE_UNROLL
      for (int i = 0; i < 8; ++i) out->w[i] = look_up(kIq4Weights, out->w[i]);
    }
  };
};

#define BOTH_ROWS(name, Format)    \
  using name = Format<NativeRows>; \
  using name##_packed = Format<PackedRows>;
BOTH_ROWS(q4_0, Q4_0)
BOTH_ROWS(q4_1, Q4_1)
BOTH_ROWS(q5_0, Q5_0)
BOTH_ROWS(q5_1, Q5_1)
BOTH_ROWS(q8_0, Q8_0)
BOTH_ROWS(q8_row, Q8Row)
BOTH_ROWS(iq4_nl, Iq4Nl)

// Float formats: 16 bytes of each row are kColumns columns, one vector each.
struct f32 {
  static constexpr size_t kValueBytes = 4;
  static constexpr int kColumns = 4;

  static MOTE_INLINE void unpack(const uint8_t* p, size_t stride, Floats out[4]) {
    Bytes quads[4];
    load_quads(p, stride, quads);
    MOTE_UNROLL
    for (int i = 0; i < 4; ++i) out[i] = as_floats(quads[i]);
  }
};

struct f16 {
  static constexpr size_t kValueBytes = 2;
  static constexpr int kColumns = 8;

  static MOTE_INLINE void unpack(const uint8_t* p, size_t stride, Floats out[8]) {
    Bytes quads[4];
    load_quads(p, stride, quads);
    MOTE_UNROLL
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = low_f16(as_ints(quads[i]));
      out[2 * i + 1] = high_f16(as_ints(quads[i]));
    }
  }
};

struct bf16 {
  static constexpr size_t kValueBytes = 2;
  static constexpr int kColumns = 8;

  static MOTE_INLINE void unpack(const uint8_t* p, size_t stride, Floats out[8]) {
    Bytes quads[4];
    load_quads(p, stride, quads);
    MOTE_UNROLL
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = low_bf16(as_ints(quads[i]));
      out[2 * i + 1] = high_bf16(as_ints(quads[i]));
    }
  }
};

}  // namespace formats
}  // namespace
}  // namespace mote::MOTE_ISA
