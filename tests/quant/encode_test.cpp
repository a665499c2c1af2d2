// The encoders: how close they come, exact cases, and values at the ends of what floats can be.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/hash.h"
#include "quant/quant.h"
#include "tests/support/guard_page.h"
#include "tests/support/random.h"

namespace mote::quant {
namespace {

constexpr Format kBlockFormats[] = {Format::q4_0, Format::q4_1, Format::q5_0,   Format::q5_1,
                                    Format::q8_0, Format::q2_k, Format::q3_k,   Format::q4_k,
                                    Format::q5_k, Format::q6_k, Format::iq4_nl, Format::iq4_xs};

const char* name_of(Format format) { return format_info(format).name; }

std::vector<float> round_trip(Format format, const std::vector<float>& x,
                              const float* importance = nullptr) {
  std::vector<uint8_t> bytes(row_bytes(format, x.size()));
  encode(format, x.data(), x.size(), bytes.data(), importance);
  std::vector<float> out(x.size());
  decode(format, bytes.data(), x.size(), out.data());
  return out;
}

double squares(const std::vector<float>& x, const std::vector<float>& y, const float* weight) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i)
    sum += std::pow(double(x[i]) - double(y[i]), 2) * (weight ? double(weight[i]) : 1.0);
  return sum;
}

double relative_error(Format format, const std::vector<float>& x) {
  const std::vector<float> zeros(x.size());
  return std::sqrt(squares(x, round_trip(format, x), nullptr) / squares(x, zeros, nullptr));
}

// Student's t with 3 degrees of freedom: heavy tails, as many layers' weights have.
std::vector<float> heavy_tailed(size_t count, test::Random* random) {
  std::vector<float> x = random->normals(count, 0.02f);
  for (float& value : x) {
    float sum = 0;
    for (const float normal : random->normals(3)) sum += normal * normal;
    value /= std::sqrt(sum / 3);
  }
  return x;
}

// What llama.cpp's quantizers (without importance) leave of the same rows, by formula and format:
// each bound is below that.
TEST(Encode, ErrorsAreBelowTheReferenceQuantizers) {
  struct Bound {
    Format format;
    double normal, heavy;
  };
  const Bound bounds[] = {{Format::q4_0, 0.08624, 0.13192},   {Format::q4_1, 0.07836, 0.10198},
                          {Format::q5_0, 0.04282, 0.06758},   {Format::q5_1, 0.03766, 0.04919},
                          {Format::q8_0, 0.00534, 0.00867},   {Format::q2_k, 0.29834, 0.35969},
                          {Format::q3_k, 0.15124, 0.18842},   {Format::q4_k, 0.07111, 0.09538},
                          {Format::q5_k, 0.03618, 0.04837},   {Format::q6_k, 0.01768, 0.02624},
                          {Format::iq4_nl, 0.07580, 0.10501}, {Format::iq4_xs, 0.07643, 0.10646}};
  test::Random random(21);
  const std::vector<float> normal = random.normals(1536 * 8, 0.05f);
  const std::vector<float> heavy = heavy_tailed(1536 * 8, &random);
  for (const Bound& bound : bounds) {
    EXPECT_LT(relative_error(bound.format, normal), bound.normal) << name_of(bound.format);
    EXPECT_LT(relative_error(bound.format, heavy), bound.heavy) << name_of(bound.format);
  }
}

// Moved and one-sided blocks: a format with minimums loses next to nothing by it.
TEST(Encode, MinimumsFollowTheValues) {
  test::Random random(22);
  for (Format format : {Format::q4_1, Format::q5_1, Format::q4_k, Format::q5_k, Format::q2_k}) {
    std::vector<float> x = random.normals(2048, 0.01f);
    for (size_t i = 0; i < x.size(); ++i) x[i] -= 0.1f * static_cast<float>(i % 512 / 256);
    const double centred = squares(x, round_trip(format, x), nullptr);
    for (float& value : x) value -= 0.05f;
    EXPECT_LT(squares(x, round_trip(format, x), nullptr), centred * 1.6) << name_of(format);
  }
}

TEST(Encode, ImportanceDecidesWhereErrorsGo) {
  test::Random random(23);
  for (Format format : kBlockFormats) {
    const std::vector<float> x = random.normals(2048, 0.1f);
    std::vector<float> importance(x.size());
    for (float& value : importance) value = random.below(8) == 0 ? 20.0f : random.uniform();
    const double without = squares(x, round_trip(format, x), importance.data());
    const double with = squares(x, round_trip(format, x, importance.data()), importance.data());
    EXPECT_LT(with, 0.95 * without) << name_of(format);
    // Its size does not count.
    std::vector<float> huge = importance;
    for (float& value : huge) value *= 0x1p100f;
    EXPECT_EQ(round_trip(format, x, huge.data()), round_trip(format, x, importance.data()))
        << name_of(format);
  }
}

TEST(Encode, UselessImportanceIsNone) {
  test::Random random(24);
  const std::vector<float> x = random.normals(512);
  const float nan = std::nanf("");
  for (Format format : kBlockFormats) {
    const std::vector<float> expected = round_trip(format, x);
    for (float value : {0.0f, -1.0f, nan, HUGE_VALF})
      EXPECT_EQ(round_trip(format, x, std::vector<float>(512, value).data()), expected)
          << name_of(format) << " " << value;
    std::vector<float> some(512, 1.0f);
    some[3] = nan, some[100] = -2.0f, some[300] = HUGE_VALF;
    for (float value : round_trip(format, x, some.data())) EXPECT_TRUE(std::isfinite(value));
  }
}

// What a format can say comes back where the levels at both ends are in use, as encoders have it.
TEST(Encode, RepresentableValuesComeBack) {
  test::Random random(25);
  for (Format format :
       {Format::q4_0, Format::q4_1, Format::q5_0, Format::q5_1, Format::q8_0, Format::iq4_nl}) {
    for (int trial = 0; trial < 50; ++trial) {
      std::vector<uint8_t> block = random.bytes(format_info(format).bytes);
      const uint16_t scale = f32_to_f16(random.uniform(0.01f, 1.0f)), minimum = f32_to_f16(0.25f);
      std::memcpy(block.data(), &scale, 2);
      if (format == Format::q4_1 || format == Format::q5_1)
        std::memcpy(block.data() + 2, &minimum, 2);
      if (format == Format::q5_0 || format == Format::q5_1)
        for (size_t i = 0; i < 4; ++i)
          block[format == Format::q5_0 ? 2 + i : 4 + i] = "\2\0\xff\x80"[i];
      block[block.size() - 2] = format == Format::q8_0 ? 0x81 : 0x0f;
      block[block.size() - 1] = format == Format::q8_0 ? 127 : 0xf0;
      for (size_t i = 2; format == Format::q8_0 && i < block.size(); ++i)
        if (block[i] == 128) block[i] = 0;
      std::vector<float> x(32);
      decode(format, block.data(), 32, x.data());
      // Least squares alone would be content with a scale between two of float16.
      EXPECT_LT(std::sqrt(squares(x, round_trip(format, x), nullptr) / 32),
                1e-3 * f16_to_f32(scale))
          << name_of(format) << " " << trial;
    }
  }
}

// One scale a row: what the blocks of a row repeat. Large values cost all others some precision,
// but less than a scale that cuts nothing.
TEST(Encode, RowsHaveOneScale) {
  test::Random random(27);
  for (const size_t columns : {32, 96, 1536}) {
    const std::vector<float> x = heavy_tailed(columns, &random);
    std::vector<uint8_t> bytes(row_bytes(Format::q8_row, columns));
    encode(Format::q8_row, x.data(), columns, bytes.data());
    for (size_t at = 34; at < bytes.size(); at += 34)
      EXPECT_EQ(std::memcmp(&bytes[at], bytes.data(), 2), 0) << at;
    float largest = 0.0f;
    for (const float value : x) largest = std::fmax(largest, std::fabs(value));
    std::vector<float> uncut(columns);
    for (size_t i = 0; i < columns; ++i)
      uncut[i] = std::nearbyint(x[i] * (127.0f / largest)) * (largest / 127.0f);
    EXPECT_LE(squares(x, round_trip(Format::q8_row, x), nullptr),
              squares(x, uncut, nullptr) * 1.01);  // its scale is no float16
    EXPECT_LT(relative_error(Format::q8_row, x), 0.03);
  }
  // What matters less may be cut.
  std::vector<float> x = random.normals(256, 0.1f), importance(256, 1.0f);
  x[77] = 20.0f, importance[77] = 0.0f;
  const std::vector<float> with = round_trip(Format::q8_row, x, importance.data());
  EXPECT_LT(squares(x, with, importance.data()),
            0.5 * squares(x, round_trip(Format::q8_row, x), importance.data()));
  for (const float nothing : {0.0f, -1.0f, HUGE_VALF, std::nanf("")})
    EXPECT_EQ(round_trip(Format::q8_row, x, std::vector<float>(256, nothing).data()),
              round_trip(Format::q8_row, x))
        << nothing;
  // Beyond float16, too small for it, and no numbers.
  EXPECT_FLOAT_EQ(round_trip(Format::q8_row, std::vector<float>(32, 1e30f))[5], 127 * 65504.0f);
  EXPECT_EQ(round_trip(Format::q8_row, std::vector<float>(32, 1e-30f))[5], 0.0f);
  EXPECT_EQ(round_trip(Format::q8_row, std::vector<float>(64, -0.0f))[63], 0.0f);
  x[3] = HUGE_VALF;
  for (const float value : round_trip(Format::q8_row, x)) EXPECT_TRUE(std::isnan(value));
}

TEST(Encode, ZerosAreExact) {
  const std::vector<float> zeros(512), negative(512, -0.0f);
  for (Format format : kBlockFormats) {
    EXPECT_EQ(round_trip(format, zeros), zeros) << name_of(format);
    EXPECT_EQ(round_trip(format, negative), zeros) << name_of(format);
  }
}

TEST(Encode, BadValuesShow) {
  for (float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    for (Format format : kBlockFormats) {
      const size_t block = format_info(format).values;
      for (size_t at : {size_t{0}, block / 2 + 1, block - 1}) {
        std::vector<float> x(2 * block, 1.0f);
        x[at] = bad;
        const std::vector<float> back = round_trip(format, x);
        EXPECT_TRUE(std::isnan(back[at])) << name_of(format);
        EXPECT_NEAR(back[block + block / 2], 1.0f, 0.02f) << name_of(format);
      }
    }
  }
}

// Scales that float16 cannot hold: cut off above, zero below, never infinite and never worse than
// nothing.
TEST(Encode, TinyAndHugeValuesAreDefined) {
  test::Random random(26);
  for (float size : {1e-45f, 1e-38f, 1e-20f, 1e-8f, 1e-6f, 1e-4f, 1e5f, 1e9f, 1e38f}) {
    const std::vector<float> zeros(512);
    std::vector<float> x(512);
    for (float& value : x) value = random.uniform(-size, size);
    x[7] = size;
    for (Format format : kBlockFormats) {
      const std::vector<float> back = round_trip(format, x);
      for (float value : back) ASSERT_TRUE(std::isfinite(value)) << name_of(format) << " " << size;
      EXPECT_LE(squares(x, back, nullptr), squares(x, zeros, nullptr) * (1 + 1e-6))
          << name_of(format) << " " << size;
      if (size < 1e-10f) {
        EXPECT_EQ(back, zeros) << name_of(format) << " " << size;
      }
      if (size >= 1e-4f && size <= 1e5f) {
        EXPECT_LT(squares(x, back, nullptr), 0.05 * squares(x, zeros, nullptr))
            << name_of(format) << " " << size;
      }
    }
  }
}

// One value far from all others: it is kept, and they do not vanish where the format has the bits.
TEST(Encode, OutliersAreKept) {
  test::Random random(27);
  for (Format format : kBlockFormats) {
    std::vector<float> x = random.normals(512, 0.01f);
    x[5] = 10.0f;
    x[300] = -10.0f;
    const std::vector<float> back = round_trip(format, x);
    EXPECT_NEAR(back[5], 10.0f, 0.7f) << name_of(format);
    EXPECT_NEAR(back[300], -10.0f, 0.7f) << name_of(format);
    // Groups without the outlier have scales of their own.
    double error = 0, power = 0;
    for (size_t i = 64; i < 256; ++i) {
      error += std::pow(double(back[i]) - double(x[i]), 2);
      power += std::pow(double(x[i]), 2);
    }
    if (format_info(format).values == 32) {
      EXPECT_LT(error, 0.05 * power) << name_of(format);
    }
  }
}

TEST(Encode, ReadsNothingBeyondTheEnd) {
  test::Random random(28);
  for (Format format : kBlockFormats) {
    const size_t values = 2 * format_info(format).values;
    test::Guarded<float> x(values), importance(values);
    for (size_t i = 0; i < values; ++i) {
      x.data()[i] = random.normal();
      importance.data()[i] = random.uniform();
    }
    test::GuardedBytes bytes(row_bytes(format, values));
    encode(format, x.data(), values, bytes.data(), importance.data());
  }
}

// On every machine: files that are quantized here and there are the same.
TEST(Encode, GivesTheSameBytesEverywhere) {
  test::Random random(29);
  uint64_t hash = 0;
  for (Format format : kBlockFormats) {
    std::vector<float> x(1024), importance(1024);
    for (float& value : x)
      value = random.uniform(-1.0f, 1.0f) * random.uniform(0.0f, 1.0f) * random.uniform(0.0f, 0.3f);
    for (float& value : importance) value = random.uniform(0.1f, 3.0f);
    std::vector<uint8_t> bytes(row_bytes(format, x.size()));
    encode(format, x.data(), x.size(), bytes.data(), importance.data());
    hash = hash_bytes(bytes.data(), bytes.size(), hash);
  }
  EXPECT_EQ(hash, 5446707023696218370u);
}

}  // namespace
}  // namespace mote::quant
