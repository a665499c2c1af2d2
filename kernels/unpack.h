// A weight format is an unpacker, nothing more: how the next few columns of kLanes rows become
// vectors. The loops of linear_blocks.h and linear_floats.h know no formats. Layouts:
// quant/blocks.h.
#pragma once

#include "kernels/simd_int8.h"

namespace mote::MOTE_ISA {
namespace {

// Formats with blocks of 32 columns: w[i] holds columns 4 i .. 4 i + 3, d the scales, m the
// minimums. A value is d * (w - offset) + m.
struct Block {
  Bytes w[8];
  Floats d, m;
};

namespace formats {

struct q4_0 {
  static constexpr size_t kBytes = 18;
  static constexpr Weights kWeights = Weights::nibbles;
  static constexpr int kOffset = 8;
  static constexpr bool kHasMinimum = false;

  static MOTE_INLINE void unpack(const uint8_t* p, size_t stride, Block* out) {
    out->d = low_f16(load_words(p, stride));
    Bytes quads[4];
    load_quads(p + 2, stride, quads);
    MOTE_UNROLL
    for (int i = 0; i < 4; ++i) {
      out->w[i] = low_nibbles(quads[i]);
      out->w[i + 4] = high_nibbles(quads[i]);
    }
  }
};

struct q4_1 {
  static constexpr size_t kBytes = 20;
  static constexpr Weights kWeights = Weights::nibbles;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMinimum = true;

  static MOTE_INLINE void unpack(const uint8_t* p, size_t stride, Block* out) {
    const Ints scales = load_words(p, stride);
    out->d = low_f16(scales);
    out->m = high_f16(scales);
    Bytes quads[4];
    load_quads(p + 4, stride, quads);
    MOTE_UNROLL
    for (int i = 0; i < 4; ++i) {
      out->w[i] = low_nibbles(quads[i]);
      out->w[i + 4] = high_nibbles(quads[i]);
    }
  }
};

struct q8_0 {
  static constexpr size_t kBytes = 34;
  static constexpr Weights kWeights = Weights::bytes;
  static constexpr int kOffset = kByteOffset;
  static constexpr bool kHasMinimum = false;

  static MOTE_INLINE void unpack(const uint8_t* p, size_t stride, Block* out) {
    out->d = low_f16(load_words(p, stride));
    load_quads(p + 2, stride, out->w);
    load_quads(p + 18, stride, out->w + 4);
    MOTE_UNROLL
    for (int i = 0; i < 8; ++i) out->w[i] = weight_bytes(out->w[i]);
  }
};

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
