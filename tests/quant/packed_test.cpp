// The packed layout: places by hand, and every byte exactly once for any shape.
#include "quant/packed.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/guard_page.h"
#include "tests/support/random.h"

namespace mote::quant {
namespace {

std::vector<Format> packed_formats() {
  std::vector<Format> found;
  for (const Format format : {
#define FORMAT(name, id, values, bytes) Format::name,
#include "core/format.inc"
#undef FORMAT
       })
    if (is_packed(format)) found.push_back(format);
  return found;
}

// Bytes that say where they came from: [row][byte].
uint8_t mark(size_t row, size_t byte) { return static_cast<uint8_t>(row * 41 + byte * 7 + 3); }

std::vector<uint8_t> marked(size_t rows, size_t bytes) {
  std::vector<uint8_t> out;
  for (size_t row = 0; row < rows; ++row)
    for (size_t byte = 0; byte < bytes; ++byte) out.push_back(mark(row, byte));
  return out;
}

TEST(Packed, Q4_1ByHand) {
  // 18 rows of 2 blocks of 20 bytes: scale, minimum, 16 bytes of nibbles.
  const std::vector<uint8_t> native = marked(18, 40);
  std::vector<uint8_t> packed(native.size());
  pack(Format::q4_1_packed, native.data(), 18, 64, packed.data());
  for (size_t row = 0; row < 16; ++row)
    for (size_t block = 0; block < 2; ++block) {
      const uint8_t* group = &packed[block * 320];
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(group[2 * row + i], mark(row, block * 20 + i));
        EXPECT_EQ(group[32 + 2 * row + i], mark(row, block * 20 + 2 + i));
      }
      for (size_t word = 0; word < 4; ++word)
        for (size_t i = 0; i < 4; ++i)
          EXPECT_EQ(group[64 + 64 * word + 4 * row + i], mark(row, block * 20 + 4 + 4 * word + i));
    }
  for (size_t row = 16; row < 18; ++row)
    for (size_t byte = 0; byte < 40; ++byte) EXPECT_EQ(packed[row * 40 + byte], mark(row, byte));
}

TEST(Packed, Q6KByHand) {
  // 210 bytes: 52 words, then the scale.
  const std::vector<uint8_t> native = marked(16, 210);
  std::vector<uint8_t> packed(native.size());
  pack(Format::q6_k_packed, native.data(), 16, 256, packed.data());
  for (size_t row = 0; row < 16; ++row) {
    for (size_t byte = 0; byte < 208; ++byte)
      ASSERT_EQ(packed[byte / 4 * 64 + 4 * row + byte % 4], mark(row, byte));
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(packed[208 * 16 + 2 * row + i], mark(row, 208 + i));
  }
}

TEST(Packed, ThereAndBackForAnyRows) {
  test::Random random(1);
  for (const Format format : packed_formats()) {
    SCOPED_TRACE(format_info(format).name);
    const size_t columns = 3 * format_info(format).values, bytes = format_info(format).bytes;
    for (size_t rows = 1; rows <= 49; rows += rows < 20 ? 1 : 7) {
      const auto native =
          test::Guarded<uint8_t>::copy(random.bytes(rows * row_bytes(format, columns)));
      test::Guarded<uint8_t> packed(native.size()), back(native.size());
      pack(format, native.data(), rows, columns, packed.data());
      unpack(format, packed.data(), rows, columns, back.data());
      ASSERT_EQ(std::memcmp(native.data(), back.data(), native.size()), 0) << rows << " rows";
      ASSERT_EQ(std::memcmp(native.data(), packed.data(), native.size()) == 0, rows < kPackedRows);
      std::vector<uint8_t> block(bytes);
      for (size_t row = 0; row < rows; ++row)
        for (size_t b = 0; b < 3; ++b) {
          read_packed_block(format, packed.data(), rows, columns, row, b, block.data());
          ASSERT_EQ(std::memcmp(block.data(), native.data() + (row * 3 + b) * bytes, bytes), 0)
              << "row " << row << " of " << rows << ", block " << b;
        }
    }
  }
}

}  // namespace
}  // namespace mote::quant
