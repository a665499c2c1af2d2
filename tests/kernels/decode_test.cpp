// Embedding rows: every value is the oracle's, for every bit pattern that a block can hold.
#include "kernel_support.h"
#include "quant/packed.h"
#include "tests/support/guard_page.h"
#include "tests/support/random.h"

namespace mote::test {
namespace {

class Decode : public testing::TestWithParam<std::tuple<std::string, Format>> {
 protected:
  const std::string isa_ = std::get<0>(GetParam());
  const Format format_ = std::get<1>(GetParam());
};

// native: [rows][columns]
void expect_same_as_oracle(const Kernels& kernels, Format format,
                           const std::vector<uint8_t>& native, size_t rows, size_t columns) {
  std::vector<uint8_t> bytes = native;
  if (is_packed(format)) quant::pack(format, native.data(), rows, columns, bytes.data());
  const auto weights = Guarded<uint8_t>::copy(bytes);
  std::vector<float> expected(columns);
  Guarded<float> y(columns);
  for (size_t row = 0; row < rows; ++row) {
    quant::decode(native_format(format), native.data() + row * row_bytes(format, columns), columns,
                  expected.data());
    decode_kernel(kernels, format)(y.data(), weights.data(), rows, columns, row);
    for (size_t i = 0; i < columns; ++i)
      ASSERT_TRUE(same_bits(y[i], expected[i]))
          << "row " << row << ", value " << i << " of " << columns << ": expected " << expected[i]
          << ", found " << y[i];
  }
}

TEST_P(Decode, AnyLengthOfAnyBits) {
  MOTE_KERNELS_OR_SKIP(isa_);
  Random random(1);
  const FormatInfo& info = format_info(format_);
  for (size_t blocks = 0; blocks <= 40; ++blocks) {
    const size_t rows = blocks % 5 == 3 ? 18 : 2, columns = blocks * info.values;
    ASSERT_NO_FATAL_FAILURE(expect_same_as_oracle(
        kernels, format_, random.bytes(rows * row_bytes(format_, columns)), rows, columns));
  }
}

// All 65536 values of a two-byte format; all scales of a block format; of f32 the lower halves.
TEST_P(Decode, EveryHalf) {
  MOTE_KERNELS_OR_SKIP(isa_);
  const FormatInfo& info = format_info(format_);
  Random random(2);
  std::vector<uint8_t> bytes = random.bytes(65536 * info.bytes);
  for (uint32_t half = 0; half < 65536; ++half) {
    bytes[half * info.bytes] = static_cast<uint8_t>(half);
    bytes[half * info.bytes + 1] = static_cast<uint8_t>(half >> 8);
  }
  expect_same_as_oracle(kernels, format_, bytes, 16, 4096 * info.values);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Decode,
                         testing::Combine(testing::ValuesIn(isa_names()),
                                          testing::ValuesIn(linear_formats())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  format_info(std::get<1>(info.param)).name;
                         });

}  // namespace
}  // namespace mote::test
