// Blocks of every format against values worked out by hand, and against values that the gguf Python
// package gives for random bytes (tests/data/quant/reference.safetensors).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "quant/quant.h"
#include "tests/support/guard_page.h"
#include "tests/support/random.h"
#include "tests/support/safetensors.h"

namespace mote::quant {
namespace {

constexpr uint16_t kHalf = 0x3800, kOne = 0x3c00, kTwo = 0x4000, kMinusThree = 0xc200;

template <class Block>
std::vector<float> decoded(Format format, const Block& block) {
  std::vector<float> values(format_info(format).values);
  EXPECT_EQ(sizeof(Block), format_info(format).bytes);
  decode(format, reinterpret_cast<const uint8_t*>(&block), values.size(), values.data());
  return values;
}

TEST(Blocks, Q4_0ByHand) {
  BlockQ4_0 block{kTwo, {}};
  block.low[0] = 0xf0;   // value 0: (0 - 8) * 2, value 16: (15 - 8) * 2
  block.low[15] = 0x98;  // value 15: 0, value 31: 2
  const auto values = decoded(Format::q4_0, block);
  EXPECT_EQ(values[0], -16.0f);
  EXPECT_EQ(values[16], 14.0f);
  EXPECT_EQ(values[15], 0.0f);
  EXPECT_EQ(values[31], 2.0f);
  EXPECT_EQ(values[1], -16.0f);
}

TEST(Blocks, Q4_1ByHand) {
  BlockQ4_1 block{kHalf, kMinusThree, {}};
  block.low[3] = 0x5f;
  const auto values = decoded(Format::q4_1, block);
  EXPECT_EQ(values[3], 4.5f);
  EXPECT_EQ(values[19], -0.5f);
  EXPECT_EQ(values[0], -3.0f);
}

TEST(Blocks, Q5_0ByHand) {
  BlockQ5_0 block{kOne, {0x01, 0, 0, 0x80}, {}};
  block.low[0] = 0x2f;
  block.low[15] = 0x70;
  const auto values = decoded(Format::q5_0, block);
  EXPECT_EQ(values[0], 15.0f);    // 15 + 16 - 16
  EXPECT_EQ(values[16], -14.0f);  // 2 - 16
  EXPECT_EQ(values[31], 7.0f);    // 7 + 16 - 16
  EXPECT_EQ(values[15], -16.0f);
}

TEST(Blocks, Q5_1ByHand) {
  BlockQ5_1 block{kTwo, kOne, {0x01, 0, 0x01, 0}, {}};
  block.low[0] = 0x2f;
  const auto values = decoded(Format::q5_1, block);
  EXPECT_EQ(values[0], 63.0f);   // 2 * 31 + 1
  EXPECT_EQ(values[16], 37.0f);  // 2 * 18 + 1
  EXPECT_EQ(values[1], 1.0f);
}

TEST(Blocks, Q8_0ByHand) {
  BlockQ8_0 block{kHalf, {}};
  block.q[0] = -128;
  block.q[1] = 127;
  block.q[31] = -1;
  const auto values = decoded(Format::q8_0, block);
  EXPECT_EQ(values[0], -64.0f);
  EXPECT_EQ(values[1], 63.5f);
  EXPECT_EQ(values[31], -0.5f);
  EXPECT_EQ(values[2], 0.0f);
}

TEST(Blocks, Q2KByHand) {
  BlockQ2K block{};
  block.scale = kTwo, block.minimum = kHalf;
  block.scales[0] = 0x43;   // scale 3, minimum 4: values 0..15
  block.scales[13] = 0xf1;  // scale 1, minimum 15: values 208..223
  block.low[0] = 0b11'10'01'10;
  block.low[32 + 17] = 0b00'11'00'00;
  const auto values = decoded(Format::q2_k, block);
  EXPECT_EQ(values[0], 2 * 3 * 2 - 0.5f * 4);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(values[32], 0.0f);  // group 2 has no scale
  EXPECT_EQ(values[128 + 64 + 17], 2 * 1 * 3 - 0.5f * 15);
}

TEST(Blocks, Q3KByHand) {
  BlockQ3K block{};
  block.scale = kHalf;
  block.scales[0] = 0x20 | 0x05;    // low bits of groups 0 (5) and 8 (2)
  block.scales[8] = 0b00'11'00'01;  // upper bits of groups 0 (1), 4 (0), 8 (3), 12 (0)
  block.low[0] = 2;                 // value 0
  block.low[32] = 1;                // value 128
  block.high[0] = 0b0001'0000;      // value 128 has its third bit, value 0 has not
  const auto values = decoded(Format::q3_k, block);
  EXPECT_EQ(values[0], 0.5f * (16 + 5 - 32) * (2 - 4));
  EXPECT_EQ(values[128], 0.5f * (48 + 2 - 32) * 1);
  EXPECT_EQ(values[1], 0.5f * (16 + 5 - 32) * -4);
}

TEST(Blocks, Q4KByHand) {
  BlockQ4K block{};
  block.scale = kTwo, block.minimum = kHalf;
  block.scales[0] = 63;           // scale of group 0, no upper bits for group 4
  block.scales[1] = 0b10'000001;  // scale 1 of group 1; upper bits 2 of the scale of group 5
  block.scales[5] = 0b01'000111;  // minimum 7 of group 1; upper bits 1 of the minimum of group 5
  block.scales[9] = 0x3c;         // low bits of scale (12) and minimum (3) of group 5
  block.low[0] = 0x0f;            // value 0
  block.low[1] = 0x20;            // value 33
  block.low[64 + 31] = 0x9a;      // values 128 + 31 and 160 + 31
  const auto values = decoded(Format::q4_k, block);
  EXPECT_EQ(values[0], 2 * 63 * 15);
  EXPECT_EQ(values[33], 2 * 1 * 2 - 0.5f * 7);
  EXPECT_EQ(values[32], -3.5f);
  EXPECT_EQ(values[160 + 31], 2 * (12 + 32) * 9 - 0.5f * (3 + 16));
  EXPECT_EQ(values[128 + 31], 0.0f);
}

TEST(Blocks, Q5KByHand) {
  BlockQ5K block{};
  block.scale = kOne, block.minimum = kTwo;
  block.scales[3] = 5;       // scale of group 3
  block.scales[7] = 2;       // its minimum
  block.low[32 + 4] = 0x60;  // value 96 + 4: group 3
  block.high[4] = 0b1000;    // its fifth bit
  const auto values = decoded(Format::q5_k, block);
  EXPECT_EQ(values[100], 5 * (6 + 16) - 2 * 2);
  EXPECT_EQ(values[101], -4.0f);
  EXPECT_EQ(values[68], 0.0f);
}

TEST(Blocks, Q6KByHand) {
  BlockQ6K block{};
  block.scale = kHalf;
  block.scales[0] = -3;    // values 0..15
  block.scales[15] = 127;  // values 240..255
  block.low[0] = 0x05;
  block.high[0] = 0b00'00'00'10;
  block.low[127] = 0xf0;  // value 255, low bits 15
  block.high[63] = 0b11'00'00'00;
  const auto values = decoded(Format::q6_k, block);
  EXPECT_EQ(values[0], 0.5f * -3 * (5 + 32 - 32));
  EXPECT_EQ(values[255], 0.5f * 127 * (15 + 48 - 32));
  EXPECT_EQ(values[1], 0.5f * -3 * -32);
}

TEST(Blocks, Iq4ByHand) {
  BlockIq4Nl small{kTwo, {}};
  small.low[0] = 0xf8;
  auto values = decoded(Format::iq4_nl, small);
  EXPECT_EQ(values[0], 2.0f);
  EXPECT_EQ(values[16], 226.0f);
  EXPECT_EQ(values[1], -254.0f);

  BlockIq4Xs block{};
  block.scale = kHalf;
  block.scales_low[2] = 0xa3;     // low bits of groups 4 (3) and 5 (10)
  block.scales_high = 0x3 << 10;  // upper bits of group 5
  block.low[5 * 16 + 2] = 0x9e;
  values = decoded(Format::iq4_xs, block);
  EXPECT_EQ(values[5 * 32 + 2], 0.5f * (48 + 10 - 32) * 89);
  EXPECT_EQ(values[5 * 32 + 18], 0.5f * (48 + 10 - 32) * 13);
  EXPECT_EQ(values[4 * 32], 0.5f * (3 - 32) * -127);
}

const Format kAllFormats[] = {Format::f16,    Format::bf16,  Format::q4_0, Format::q4_1,
                              Format::q5_0,   Format::q5_1,  Format::q8_0, Format::q2_k,
                              Format::q3_k,   Format::q4_k,  Format::q5_k, Format::q6_k,
                              Format::iq4_nl, Format::iq4_xs};

TEST(Blocks, EqualTheReferenceForRandomBytes) {
  const test::SafeTensors reference(MOTE_TEST_DATA "/quant/reference.safetensors");
  for (Format format : kAllFormats) {
    const std::string name = format_info(format).name;
    const auto& bytes = reference[name + ".bytes"].bytes;
    const auto expected = reference.floats(name + ".values");
    ASSERT_EQ(bytes.size(), row_bytes(format, expected.size())) << name;
    std::vector<float> values(expected.size());
    decode(format, bytes.data(), values.size(), values.data());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], expected[i]) << name << " " << i;
  }
}

TEST(Blocks, EncodeTheReferenceBytes) {
  const test::SafeTensors reference(MOTE_TEST_DATA "/quant/reference.safetensors");
  for (Format format : {Format::f16, Format::bf16, Format::q4_0, Format::q4_1, Format::q8_0}) {
    const std::string name = format_info(format).name;
    const auto input = reference.floats(name + ".encode_input");
    const auto& expected = reference[name + ".encode_bytes"].bytes;
    std::vector<uint8_t> bytes(row_bytes(format, input.size()));
    ASSERT_EQ(bytes.size(), expected.size());
    encode(format, input.data(), input.size(), bytes.data());
    if (format_info(format).values == 1) {
      EXPECT_EQ(bytes, expected) << name;
      continue;
    }
    // Encoders of blocks search; the reference rounds by a formula.
    std::vector<float> got(input.size()), plain(input.size());
    decode(format, bytes.data(), got.size(), got.data());
    decode(format, expected.data(), plain.size(), plain.data());
    for (size_t at = 0; at < input.size(); at += 32) {
      double error = 0, limit = 0;
      for (size_t i = at; i < at + 32; ++i) {
        error += std::pow(double(got[i]) - double(input[i]), 2);
        limit += std::pow(double(plain[i]) - double(input[i]), 2);
      }
      EXPECT_LE(error, limit * (1 + 1e-5)) << name << " block " << at / 32;
    }
  }
}

TEST(Blocks, ReadAndWriteNothingBeyondTheEnd) {
  test::Random random(8);
  for (Format format : kAllFormats) {
    ASSERT_TRUE(can_decode(format));
    const size_t values = 3 * format_info(format).values;
    test::GuardedBytes bytes(row_bytes(format, values));  // often at an odd address
    test::Guarded<float> out(values);
    std::memset(bytes.data(), 0x11, bytes.size());
    decode(format, bytes.data(), values, out.data());
    if (can_encode(format)) encode(format, out.data(), values, bytes.data());
  }
  EXPECT_FALSE(can_decode(Format::iq2_xxs));
  EXPECT_FALSE(can_decode(Format::i32));
  EXPECT_FALSE(can_encode(Format::iq2_xxs));
}

TEST(Blocks, ConstantBlocksAreExact) {
  for (float value : {0.0f, 1.0f, -0.25f, 96.0f}) {
    const std::vector<float> x(32, value);
    for (Format format : {Format::q4_0, Format::q4_1, Format::f16, Format::bf16}) {
      uint8_t block[128];
      float back[32];
      encode(format, x.data(), 32, block);
      decode(format, block, 32, back);
      for (float got : back) EXPECT_EQ(got, value) << format_info(format).name;
    }
  }
}

}  // namespace
}  // namespace mote::quant
