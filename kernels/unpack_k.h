// The formats with blocks of 256 columns. The words of kLanes rows are transposed once per block;
// the eight runs of 32 columns then come from those.
#pragma once

#include "kernels/unpack.h"

namespace mote::MOTE_ISA {
namespace {

// out[j] = word j of the `quads` * 16 bytes at `offset`, of each row.
template <int quads, class Rows>
MOTE_INLINE void load_block_words(const Rows& rows, size_t offset, Bytes* out) {
  MOTE_UNROLL
  for (int i = 0; i < quads; ++i) rows.quads(offset + 16 * i, out + 4 * i);
}

// The scale f16 in the lower half of a word, that of the minimums in the upper one, and the 6-bit
// scales and minimums of eight groups in the 12 bytes behind (quant/unpack.cpp).
struct GroupScales {
  Floats d, minimum;
  Bytes scales[2], minimums[2];  // of groups 4 i .. 4 i + 3, a byte each

  template <class Rows>
  MOTE_INLINE void load(const Rows& rows) {
    Bytes words[3];
    rows.scales_and_words(&d, &minimum, words);
    minimum = multiply(minimum, set_float(-1));
    const Bytes six = set_bytes(63), high = set_bytes(48);
    scales[0] = bits_and(words[0], six);
    minimums[0] = bits_and(words[1], six);
    scales[1] = bits_or(low_nibbles(words[2]), bits_and(shift_down(words[0], 2), high));
    minimums[1] = bits_or(high_nibbles(words[2]), bits_and(shift_down(words[1], 2), high));
  }
  MOTE_INLINE void give(size_t run, Block* out) const {
    const int group = static_cast<int>(run % 4);
    out->d = multiply(d, to_float(as_ints(byte_of(scales[run / 4], group))));
    out->m[0] = multiply(minimum, to_float(as_ints(byte_of(minimums[run / 4], group))));
  }
};

// Words whose bytes hold upper bits of several runs, shifted so that those of the first and of the
// last runs come to their place with no more than a shift down.
template <int words, int up, int down>
struct UpperBits {
  Bytes word[2][words];
  template <class Rows>
  MOTE_INLINE void load(const Rows& rows, size_t offset) {
    Bytes raw[words];
    load_block_words<words / 4>(rows, offset, raw);
    MOTE_UNROLL
    for (int i = 0; i < words; ++i) {
      word[0][i] = shift_up(raw[i], up);
      word[1][i] = shift_down(raw[i], down);
    }
  }
};

namespace formats {

template <class R>
struct Q4K : BlockFormat<R, 144, 256, Weights::nibbles, 0, 1> {
  struct Raw {
    Bytes low[32];
    GroupScales scales;
    MOTE_INLINE void load(const R& rows) {
      scales.load(rows);
      load_block_words<8>(rows, 16, low);
    }
    MOTE_INLINE void unpack(size_t run, Block* out) const {
      scales.give(run, out);
      const Bytes* from = low + run / 2 * 8;
      const int shift = static_cast<int>(run % 2) * 4;
      MOTE_UNROLL
      for (int i = 0; i < 8; ++i) out->w[i] = field(from[i], shift, 15);
    }
  };
};

template <class R>
struct Q5K : BlockFormat<R, 176, 256, Weights::five_bits, 0, 1> {
  struct Raw {
    UpperBits<8, 4, 0> high;
    Bytes low[32];
    GroupScales scales;
    MOTE_INLINE void load(const R& rows) {
      scales.load(rows);
      high.load(rows, 16);
      load_block_words<8>(rows, 48, low);
    }
    MOTE_INLINE void unpack(size_t run, Block* out) const {
      scales.give(run, out);
      const Bytes* from = low + run / 2 * 8;
      const Bytes* upper = high.word[run / 4];
      const int shift = static_cast<int>(run % 2) * 4, upper_shift = static_cast<int>(run % 4);
      MOTE_UNROLL
      for (int i = 0; i < 8; ++i)
        out->w[i] = bits_or(field(from[i], shift, 15), field(upper[i], upper_shift, 16));
    }
  };
};

// The scales of 16 columns are small enough to go into the bytes: at most 15 * 3.
template <class R>
struct Q2K : BlockFormat<R, 84, 256, Weights::six_bits, 0, 2> {
  struct Raw {
    Bytes scales[4], low[16];
    Floats d, minimum;
    MOTE_INLINE void load(const R& rows) {
      rows.quads(0, scales);
      load_block_words<4>(rows, 16, low);
      rows.scales(80, &d, &minimum);
      // To be multiplied by corrections, which are -128 * a sum.
      minimum = multiply(minimum, set_float(1.0f / 128));
    }
    MOTE_INLINE void unpack(size_t run, Block* out) const {
      out->d = d;
      const Bytes* from = low + run / 4 * 8;
      const int shift = static_cast<int>(run % 4) * 2;
      MOTE_UNROLL
      for (int group = 0; group < 2; ++group) {
        const Bytes both = byte_of(scales[run / 2], static_cast<int>(run % 2) * 2 + group);
        out->m[group] = multiply(minimum, to_float(as_ints(high_nibbles(both))));
        const Bytes factor = level_factor(low_nibbles(both));
        MOTE_UNROLL
        for (int i = 4 * group; i < 4 * group + 4; ++i)
          out->w[i] = multiply_levels(field(from[i], shift, 3), factor);
      }
    }
  };
};

// Here too, -s * (q - 4) being -128 ... 124; d is the negative scale. It is s * (7 - q) - 3 * s for
// s >= 0, else |s| * q - 4 * |s|: products that are not negative, and what to subtract.
template <class R>
struct Q3K : BlockFormat<R, 110, 256, Weights::bytes, kByteOffset, 0> {
  struct Raw {
    UpperBits<8, 2, 2> high;
    Bytes low[16], scales[4];  // scales of groups 4 i .. 4 i + 3, 0..63
    Floats d;
    MOTE_INLINE void load(const R& rows) {
      high.load(rows, 0);
      load_block_words<4>(rows, 32, low);
      Bytes words[3];
      rows.words_and_scale(96, words, &d);
      d = multiply(d, set_float(-1));
      MOTE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const Bytes four = i < 2 ? low_nibbles(words[i]) : high_nibbles(words[i - 2]);
        scales[i] = bits_or(four, shift_up(field(words[2], 2 * i, 3), 4));
      }
    }
    MOTE_INLINE void unpack(size_t run, Block* out) const {
      out->d = d;
      const Bytes* from = low + run / 4 * 8;
      const Bytes* upper = high.word[run / 4];
      const int shift = static_cast<int>(run % 4) * 2;
      MOTE_UNROLL
      for (int group = 0; group < 2; ++group) {
        const Bytes s = byte_of(scales[run / 2], static_cast<int>(run % 2) * 2 + group);
        const Bytes value = subtract_bytes(s, set_words(32));  // in the lowest byte
        const Bytes negative = as_bytes(shift_right<31>(as_ints(shift_up(value, 24))));
        const Bytes factor = level_factor(subtract_bytes(bits_xor(value, negative), negative));
        const Bytes flip = bits_xor(bits_and(negative, set_bytes(7)), set_bytes(7));
        const Bytes less =
            subtract_bytes(multiply_levels(subtract_bytes(set_bytes(3), negative), factor),
                           set_bytes(kByteOffset));
        MOTE_UNROLL
        for (int i = 4 * group; i < 4 * group + 4; ++i) {
          const Bytes third = field(upper[i], static_cast<int>(run % 4), 4);
          const Bytes level = bits_xor(bits_or(field(from[i], shift, 3), third), flip);
          out->w[i] = subtract_bytes(multiply_levels(level, factor), less);
        }
      }
    }
  };
};

template <class R>
struct Q6K : BlockFormat<R, 210, 256, Weights::six_bits, 32, 0, 2> {
  struct Raw {
    UpperBits<16, 4, 0> high;
    Bytes low[32], scales[4];
    Floats d;
    MOTE_INLINE void load(const R& rows) {
      load_block_words<8>(rows, 0, low);
      high.load(rows, 128);
      rows.quads(192, scales);
      d = rows.last_scale(208);
    }
    MOTE_INLINE void unpack(size_t run, Block* out) const {
      out->d = d;
      const size_t half = run / 4, quarter = run % 4;
      const Bytes* from = low + half * 16 + quarter % 2 * 8;
      const Bytes* upper = high.word[quarter / 2] + half * 8;
      const int shift = static_cast<int>(quarter / 2) * 4;
      const int upper_shift = static_cast<int>(quarter % 2) * 2;
      MOTE_UNROLL
      for (int group = 0; group < 2; ++group)
        out->scale[group] =
            to_float(signed_byte_of(scales[run / 2], static_cast<int>(run % 2) * 2 + group));
      MOTE_UNROLL
      for (int i = 0; i < 8; ++i)
        out->w[i] = bits_or(field(from[i], shift, 15), field(upper[i], upper_shift, 48));
    }
  };
};

template <class R>
struct Iq4Xs : BlockFormat<R, 136, 256, Weights::bytes, kByteOffset, 0> {
  struct Raw {
    Bytes low[32], scales_low, scales_high;
    Floats d;
    MOTE_INLINE void load(const R& rows) {
      const Ints word = rows.words(0);
      d = low_f16(word);
      scales_high = shift_down(as_bytes(word), 16);
      scales_low = as_bytes(rows.words(4));
      load_block_words<8>(rows, 8, low);
    }
    MOTE_INLINE void unpack(size_t run, Block* out) const {
      const int group = static_cast<int>(run);
      const Bytes four = bits_and(shift_down(scales_low, 4 * group), set_words(15));
      const Bytes two = bits_and(shift_down(scales_high, 2 * group), set_words(3));
      const Floats scale = to_float(as_ints(bits_or(four, shift_up(two, 4))));
      out->d = multiply(d, add(scale, set_float(-32)));
      const Bytes* from = low + run * 4;
      MOTE_UNROLL
      for (int i = 0; i < 4; ++i) {
        out->w[i] = look_up(kIq4Weights, low_nibbles(from[i]));
        out->w[i + 4] = look_up(kIq4Weights, high_nibbles(from[i]));
      }
    }
  };
};

BOTH_ROWS(q2_k, Q2K)
BOTH_ROWS(q3_k, Q3K)
BOTH_ROWS(q4_k, Q4K)
BOTH_ROWS(q5_k, Q5K)
BOTH_ROWS(q6_k, Q6K)
BOTH_ROWS(iq4_xs, Iq4Xs)
#undef BOTH_ROWS

}  // namespace formats
}  // namespace
}  // namespace mote::MOTE_ISA
