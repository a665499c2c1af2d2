// Byte layouts of the quantized blocks, as GGUF files hold them (little endian). Blocks may lie at
// any address: copy one into its struct before reading it. Scales are float16 bits.
#pragma once

#include <cstdint>

namespace mote::quant {

// 32 values. Nibble j of `low` is value j, its upper half value j + 16; bit j of `high` is the
// fifth bit of value j.
struct BlockQ4_0 {  // scale * (q - 8)
  uint16_t scale;
  uint8_t low[16];
};
struct BlockQ4_1 {  // scale * q + minimum
  uint16_t scale, minimum;
  uint8_t low[16];
};
struct BlockQ5_0 {  // scale * (q - 16)
  uint16_t scale;
  uint8_t high[4];
  uint8_t low[16];
};
struct BlockQ5_1 {  // scale * q + minimum
  uint16_t scale, minimum;
  uint8_t high[4];
  uint8_t low[16];
};
struct BlockQ8_0 {  // scale * q
  uint16_t scale;
  int8_t q[32];
};
struct BlockIq4Nl {  // scale * kIq4Levels[q]
  uint16_t scale;
  uint8_t low[16];
};

// 256 values in groups that have small integer scales of their own.
struct BlockQ2K {  // groups of 16: scale * (s & 15) * q - minimum * (s >> 4)
  uint8_t scales[16];
  uint8_t low[64];
  uint16_t scale, minimum;
};
struct BlockQ3K {  // groups of 16: scale * (s - 32) * (q - 4), s of 6 bits, q of 3
  uint8_t high[32];
  uint8_t low[64];
  uint8_t scales[12];
  uint16_t scale;
};
struct BlockQ4K {  // groups of 32: scale * s * q - minimum * m, s and m of 6 bits
  uint16_t scale, minimum;
  uint8_t scales[12];
  uint8_t low[128];
};
struct BlockQ5K {  // as BlockQ4K, with a fifth bit of q in `high`
  uint16_t scale, minimum;
  uint8_t scales[12];
  uint8_t high[32];
  uint8_t low[128];
};
struct BlockQ6K {  // groups of 16: scale * s * (q - 32)
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  uint16_t scale;
};
struct BlockIq4Xs {  // groups of 32: scale * (s - 32) * kIq4Levels[q], s of 6 bits
  uint16_t scale;
  uint16_t scales_high;
  uint8_t scales_low[4];
  uint8_t low[128];
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockIq4Nl) == 18);
static_assert(sizeof(BlockQ2K) == 84 && sizeof(BlockQ3K) == 110 && sizeof(BlockQ4K) == 144);
static_assert(sizeof(BlockQ5K) == 176 && sizeof(BlockQ6K) == 210 && sizeof(BlockIq4Xs) == 136);

// The 16 levels of the iq4 formats: closer together around zero, where most weights are.
inline constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

// One block taken apart: value i is scale[i / group] * level[i], plus offset[i / group] where the
// format has one. In groups of 16, scale is block_scale * multiplier.
struct Levels {
  uint32_t values = 0, group = 0;
  bool has_offset = false;
  int32_t level[256];
  float scale[16];
  float offset[16];
  float block_scale;
  int32_t multiplier[16];
};

// Columns of q8_row, at most: a product with 8-bit levels is then one 32-bit sum.
inline constexpr size_t kMostRowColumns = 65536;
// Outliers of a row of activations for q8_row, at most: quant::quantize_row.
inline constexpr size_t kRowOutliers = 4;

}  // namespace mote::quant
