// Rows of an embedding table as f32: each value is exactly that of quant::decode.
#include "kernels/declarations.h"
#include "kernels/simd_int8.h"
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

}  // namespace

void decode_f32(float* y, const uint8_t* row, size_t n) { std::memcpy(y, row, n * sizeof(float)); }

void decode_f16(float* y, const uint8_t* row, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = f16_to_float(read<uint16_t>(row + 2 * i));
}

void decode_bf16(float* y, const uint8_t* row, size_t n) {
  for (size_t i = 0; i < n; ++i)
    y[i] = float_of(static_cast<uint32_t>(read<uint16_t>(row + 2 * i)) << 16);
}

void decode_q4_0(float* y, const uint8_t* row, size_t n) {
  for (size_t b = 0; b < n / 32; ++b, row += 18, y += 32)
    decode_nibbles(row + 2, 8, f16_to_float(read<uint16_t>(row)), y);
}

void decode_q4_1(float* y, const uint8_t* row, size_t n) {
  for (size_t b = 0; b < n / 32; ++b, row += 20, y += 32) {
    decode_nibbles(row + 4, 0, f16_to_float(read<uint16_t>(row)), y);
    const float minimum = f16_to_float(read<uint16_t>(row + 2));
    for (int i = 0; i < 32; ++i) y[i] += minimum;
  }
}

void decode_q8_0(float* y, const uint8_t* row, size_t n) {
  for (size_t b = 0; b < n / 32; ++b, row += 34, y += 32) {
    const float scale = f16_to_float(read<uint16_t>(row));
    const auto* q = reinterpret_cast<const int8_t*>(row + 2);
    for (int i = 0; i < 32; ++i) y[i] = scale * static_cast<float>(q[i]);
  }
}

// One row per token is too little to be worth a second way.
#define DECODE(format)                                           \
  void decode_##format(float* y, const uint8_t* row, size_t n) { \
    quant::decode(Format::format, row, n, y);                    \
  }
DECODE(q5_0)
DECODE(q5_1)
DECODE(q2_k)
DECODE(q3_k)
DECODE(q4_k)
DECODE(q5_k)
DECODE(q6_k)
DECODE(iq4_nl)
DECODE(iq4_xs)
#undef DECODE

}  // namespace mote::MOTE_ISA
