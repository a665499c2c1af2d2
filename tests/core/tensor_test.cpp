#include "core/tensor.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace mote {
namespace {

TEST(Format, TableIsConsistent) {
  const struct {
    const char* name;
    Format format;
    uint32_t id, values, bytes;
  } rows[] = {
#define FORMAT(name, id, values, bytes) {#name, Format::name, id, values, bytes},
#include "core/format.inc"
#undef FORMAT
  };
  std::set<uint32_t> ids;
  std::set<std::string> names;
  for (const auto& row : rows) {
    const FormatInfo& info = format_info(row.format);
    EXPECT_STREQ(info.name, row.name);
    EXPECT_EQ(info.values, row.values);
    EXPECT_EQ(info.bytes, row.bytes);
    EXPECT_EQ(find_format(row.id), &info);
    EXPECT_EQ(find_format(std::string_view(row.name)), &info);
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  EXPECT_GE(ids.size(), 30u);
}

TEST(Format, UnknownOnesAreNull) {
  for (const uint32_t id : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 1000u, 0xffffffffu})
    EXPECT_EQ(find_format(id), nullptr) << id;
  EXPECT_EQ(find_format(std::string_view("q9_9")), nullptr);
  EXPECT_EQ(find_format(std::string_view("")), nullptr);
}

TEST(Format, PackedFormsHaveTheBlocksOfTheirNativeOnes) {
  for (const Format format : {Format::q4_0, Format::q4_1, Format::q8_0, Format::q6_k}) {
    const Format packed = packed_format(format);
    ASSERT_NE(packed, format);
    EXPECT_TRUE(is_packed(packed));
    EXPECT_FALSE(is_packed(format));
    EXPECT_EQ(native_format(packed), format);
    EXPECT_EQ(native_format(format), format);
    EXPECT_EQ(packed_format(packed), packed);
    EXPECT_EQ(format_info(packed).values, format_info(format).values);
    EXPECT_EQ(format_info(packed).bytes, format_info(format).bytes);
    EXPECT_EQ(format_info(packed).name, std::string(format_info(format).name) + "_packed");
  }
  EXPECT_EQ(packed_format(Format::f16), Format::f16);
}

TEST(Format, RowBytes) {
  EXPECT_EQ(row_bytes(Format::f32, 5), 20u);
  EXPECT_EQ(row_bytes(Format::q4_1, 64), 40u);
  EXPECT_EQ(row_bytes(Format::q6_k, 512), 420u);
}

TEST(Tensor, ShapeProducts) {
  Tensor tensor;
  tensor.dimensions = 3;
  tensor.shape[0] = 4;
  tensor.shape[1] = 5;
  tensor.shape[2] = 6;
  EXPECT_EQ(tensor.columns(), 4u);
  EXPECT_EQ(tensor.rows(), 30u);
  EXPECT_EQ(tensor.values(), 120u);
}

}  // namespace
}  // namespace mote
