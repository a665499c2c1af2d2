// Rows of an embedding table as f32: each value is exactly that of quant::decode.
#include "kernels/declarations.h"
#include "kernels/simd_int8.h"
#include "quant/packed.h"
#include "quant/quant.h"

namespace mote::MOTE_ISA {
namespace {

// 32 values of 16 bytes: the low nibbles, then the high ones.
MOTE_INLINE void decode_nibbles(const uint8_t* p, int offset, float scale, float* y) {
  for (int i = 0; i < 16; ++i) {
    y[i] = scale * static_cast<float>((p[i] & 15) - offset);
    y[i + 16] = scale * static_cast<float>((p[i] >> 4) - offset);
  }
}

// n consecutive values. One row per token is too little to be worth a second way of most.
#define ROW(format)                                            \
  struct format##_row {                                        \
    static void decode(float* y, const uint8_t* p, size_t n) { \
      quant::decode(Format::format, p, n, y);                  \
    }                                                          \
  };
ROW(q5_0)
ROW(q5_1)
ROW(q2_k)
ROW(q3_k)
ROW(q4_k)
ROW(q5_k)
ROW(q6_k)
ROW(iq4_nl)
ROW(iq4_xs)
#undef ROW

struct f32_row {
  static void decode(float* y, const uint8_t* p, size_t n) { std::memcpy(y, p, n * sizeof(float)); }
};

struct f16_row {
  static void decode(float* y, const uint8_t* p, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] = f16_to_float(read<uint16_t>(p + 2 * i));
  }
};

struct bf16_row {
  static void decode(float* y, const uint8_t* p, size_t n) {
    for (size_t i = 0; i < n; ++i)
      y[i] = float_of(static_cast<uint32_t>(read<uint16_t>(p + 2 * i)) << 16);
  }
};

struct q4_0_row {
  static void decode(float* y, const uint8_t* p, size_t n) {
    for (size_t b = 0; b < n / 32; ++b, p += 18, y += 32)
      decode_nibbles(p + 2, 8, f16_to_float(read<uint16_t>(p)), y);
  }
};

struct q4_1_row {
  static void decode(float* y, const uint8_t* p, size_t n) {
    for (size_t b = 0; b < n / 32; ++b, p += 20, y += 32) {
      decode_nibbles(p + 4, 0, f16_to_float(read<uint16_t>(p)), y);
      const float minimum = f16_to_float(read<uint16_t>(p + 2));
      for (int i = 0; i < 32; ++i) y[i] += minimum;
    }
  }
};

struct q8_0_row {
  static void decode(float* y, const uint8_t* p, size_t n) {
    for (size_t b = 0; b < n / 32; ++b, p += 34, y += 32) {
      const float scale = f16_to_float(read<uint16_t>(p));
      const auto* q = reinterpret_cast<const int8_t*>(p + 2);
      for (int i = 0; i < 32; ++i) y[i] = scale * static_cast<float>(q[i]);
    }
  }
};

using q8_row_row = q8_0_row;

template <class Row, size_t values, size_t bytes>
void decode_row(float* y, const uint8_t* weights, size_t columns, size_t row) {
  Row::decode(y, weights + row * (columns / values * bytes), columns);
}

// The blocks of a row of a tile are apart.
template <class Row, size_t values, size_t bytes>
void decode_packed_row(Format format, float* y, const uint8_t* weights, size_t rows, size_t columns,
                       size_t row) {
  uint8_t block[bytes];
  for (size_t b = 0; b < columns / values; ++b) {
    quant::read_packed_block(format, weights, rows, columns, row, b, block);
    Row::decode(y + b * values, block, values);
  }
}

}  // namespace

#define NATIVE(format, values, bytes)                                                          \
  void decode_##format(float* y, const uint8_t* weights, size_t, size_t columns, size_t row) { \
    decode_row<format##_row, values, bytes>(y, weights, columns, row);                         \
  }
#define BOTH(format, values, bytes)                                                            \
  NATIVE(format, values, bytes)                                                                \
  void decode_##format##_packed(float* y, const uint8_t* weights, size_t rows, size_t columns, \
                                size_t row) {                                                  \
    decode_packed_row<format##_row, values, bytes>(Format::format##_packed, y, weights, rows,  \
                                                   columns, row);                              \
  }
NATIVE(f32, 1, 4)
NATIVE(f16, 1, 2)
NATIVE(bf16, 1, 2)
BOTH(q4_0, 32, 18)
BOTH(q4_1, 32, 20)
BOTH(q5_0, 32, 22)
BOTH(q5_1, 32, 24)
BOTH(q8_0, 32, 34)
BOTH(q8_row, 32, 34)
BOTH(q2_k, 256, 84)
BOTH(q3_k, 256, 110)
BOTH(q4_k, 256, 144)
BOTH(q5_k, 256, 176)
BOTH(q6_k, 256, 210)
BOTH(iq4_nl, 32, 18)
BOTH(iq4_xs, 256, 136)
#undef BOTH
#undef NATIVE

}  // namespace mote::MOTE_ISA
