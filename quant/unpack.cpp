// Every block format, taken apart into integer levels and scales.
#include <cstring>

#include "quant/quant.h"

namespace mote::quant {
namespace {

int fifth_bit(const uint8_t (&high)[4], int value) { return high[value / 8] >> value % 8 & 1; }

void one_group(Levels* out, uint16_t scale) {
  out->values = out->group = 32;
  out->scale[0] = f16_to_f32(scale);
}

void one_group(Levels* out, uint16_t scale, uint16_t minimum) {
  one_group(out, scale);
  out->has_offset = true;
  out->offset[0] = f16_to_f32(minimum);
}

void unpack_block(const BlockQ4_0& block, Levels* out) {
  one_group(out, block.scale);
  for (int j = 0; j < 16; ++j) {
    out->level[j] = (block.low[j] & 15) - 8;
    out->level[j + 16] = (block.low[j] >> 4) - 8;
  }
}

void unpack_block(const BlockQ4_1& block, Levels* out) {
  one_group(out, block.scale, block.minimum);
  for (int j = 0; j < 16; ++j) {
    out->level[j] = block.low[j] & 15;
    out->level[j + 16] = block.low[j] >> 4;
  }
}

void unpack_block(const BlockQ5_0& block, Levels* out) {
  one_group(out, block.scale);
  for (int j = 0; j < 16; ++j) {
    out->level[j] = (block.low[j] & 15) + 16 * fifth_bit(block.high, j) - 16;
    out->level[j + 16] = (block.low[j] >> 4) + 16 * fifth_bit(block.high, j + 16) - 16;
  }
}

void unpack_block(const BlockQ5_1& block, Levels* out) {
  one_group(out, block.scale, block.minimum);
  for (int j = 0; j < 16; ++j) {
    out->level[j] = (block.low[j] & 15) + 16 * fifth_bit(block.high, j);
    out->level[j + 16] = (block.low[j] >> 4) + 16 * fifth_bit(block.high, j + 16);
  }
}

void unpack_block(const BlockQ8_0& block, Levels* out) {
  one_group(out, block.scale);
  for (int j = 0; j < 32; ++j) out->level[j] = block.q[j];
}

void unpack_block(const BlockIq4Nl& block, Levels* out) {
  one_group(out, block.scale);
  for (int j = 0; j < 16; ++j) {
    out->level[j] = kIq4Levels[block.low[j] & 15];
    out->level[j + 16] = kIq4Levels[block.low[j] >> 4];
  }
}

void groups_of_16(Levels* out, uint16_t scale) {
  out->values = 256, out->group = 16;
  out->block_scale = f16_to_f32(scale);
}

void set_multiplier(Levels* out, int group, int multiplier) {
  out->multiplier[group] = multiplier;
  out->scale[group] = out->block_scale * static_cast<float>(multiplier);
}

// Each half of 128 values: 32 bytes of four 2-bit levels, the lowest bits first.
void unpack_block(const BlockQ2K& block, Levels* out) {
  groups_of_16(out, block.scale);
  out->has_offset = true;
  const float minimum = f16_to_f32(block.minimum);
  for (int g = 0; g < 16; ++g) {
    set_multiplier(out, g, block.scales[g] & 15);
    out->offset[g] = -(minimum * static_cast<float>(block.scales[g] >> 4));
  }
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, shift = i % 128 / 32 * 2;
    out->level[i] = block.low[half * 32 + i % 32] >> shift & 3;
  }
}

// As q2_k; bit i / 32 of high[i % 32] is the third bit. Scales: 4 low bits of 16 of them in 8
// bytes, then 2 high bits each.
void unpack_block(const BlockQ3K& block, Levels* out) {
  groups_of_16(out, block.scale);
  for (int g = 0; g < 16; ++g) {
    const int low = g < 8 ? block.scales[g] & 15 : block.scales[g - 8] >> 4;
    const int high = block.scales[8 + g % 4] >> g / 4 * 2 & 3;
    set_multiplier(out, g, (low | high << 4) - 32);
  }
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, shift = i % 128 / 32 * 2;
    const int low = block.low[half * 32 + i % 32] >> shift & 3;
    const int third = block.high[i % 32] >> i / 32 & 1;
    out->level[i] = low + 4 * third - 4;
  }
}

// The 6-bit scales and minimums of 8 groups in 12 bytes. Groups 0..3: the low bits of bytes g and g
// + 4. Groups 4..7: 4 bits of each in byte g + 4, and their upper 2 bits on top of bytes g - 4 and
// g.
void group_scales(const uint8_t (&scales)[12], float scale, float minimum, Levels* out) {
  out->values = 256, out->group = 32, out->has_offset = true;
  for (int g = 0; g < 8; ++g) {
    int s, m;
    if (g < 4) {
      s = scales[g] & 63;
      m = scales[g + 4] & 63;
    } else {
      s = (scales[g + 4] & 15) | scales[g - 4] >> 6 << 4;
      m = scales[g + 4] >> 4 | scales[g] >> 6 << 4;
    }
    out->scale[g] = scale * static_cast<float>(s);
    out->offset[g] = -(minimum * static_cast<float>(m));
  }
}

// Each 64 values: 32 bytes, the low nibbles first.
void unpack_block(const BlockQ4K& block, Levels* out) {
  group_scales(block.scales, f16_to_f32(block.scale), f16_to_f32(block.minimum), out);
  for (int i = 0; i < 256; ++i)
    out->level[i] = block.low[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
}

void unpack_block(const BlockQ5K& block, Levels* out) {
  group_scales(block.scales, f16_to_f32(block.scale), f16_to_f32(block.minimum), out);
  for (int i = 0; i < 256; ++i) {
    const int low = block.low[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
    out->level[i] = low + 16 * (block.high[i % 32] >> i / 32 & 1);
  }
}

// Each half of 128 values: 64 bytes of nibbles (values 0..63 low, 64..127 high) and 32 bytes of
// their four upper bit pairs.
void unpack_block(const BlockQ6K& block, Levels* out) {
  groups_of_16(out, block.scale);
  for (int g = 0; g < 16; ++g) set_multiplier(out, g, block.scales[g]);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, within = i % 128;
    const int low = block.low[half * 64 + within % 64] >> within / 64 * 4 & 15;
    const int high = block.high[half * 32 + within % 32] >> within / 32 * 2 & 3;
    out->level[i] = (low | high << 4) - 32;
  }
}

void unpack_block(const BlockIq4Xs& block, Levels* out) {
  out->values = 256, out->group = 32;
  const float scale = f16_to_f32(block.scale);
  for (int g = 0; g < 8; ++g) {
    const int low = block.scales_low[g / 2] >> g % 2 * 4 & 15;
    const int high = block.scales_high >> 2 * g & 3;
    out->scale[g] = scale * static_cast<float>((low | high << 4) - 32);
  }
  for (int i = 0; i < 256; ++i)
    out->level[i] = kIq4Levels[block.low[i / 32 * 16 + i % 16] >> i / 16 % 2 * 4 & 15];
}

template <class Block>
void unpack_bytes(const uint8_t* bytes, Levels* out) {
  Block block;
  std::memcpy(&block, bytes, sizeof(block));
  unpack_block(block, out);
}

using Unpack = void (*)(const uint8_t*, Levels*);

Unpack unpack_function(Format format) {
  switch (format) {
    case Format::q4_0:
      return unpack_bytes<BlockQ4_0>;
    case Format::q4_1:
      return unpack_bytes<BlockQ4_1>;
    case Format::q5_0:
      return unpack_bytes<BlockQ5_0>;
    case Format::q5_1:
      return unpack_bytes<BlockQ5_1>;
    case Format::q8_0:
    case Format::q8_row:
      return unpack_bytes<BlockQ8_0>;
    case Format::q2_k:
      return unpack_bytes<BlockQ2K>;
    case Format::q3_k:
      return unpack_bytes<BlockQ3K>;
    case Format::q4_k:
      return unpack_bytes<BlockQ4K>;
    case Format::q5_k:
      return unpack_bytes<BlockQ5K>;
    case Format::q6_k:
      return unpack_bytes<BlockQ6K>;
    case Format::iq4_nl:
      return unpack_bytes<BlockIq4Nl>;
    case Format::iq4_xs:
      return unpack_bytes<BlockIq4Xs>;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_unpack(Format format) { return unpack_function(format) != nullptr; }

void unpack(Format format, const uint8_t* block, Levels* levels) {
  levels->has_offset = false;
  unpack_function(format)(block, levels);
}

}  // namespace mote::quant
