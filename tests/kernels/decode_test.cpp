// Embedding rows: every value is the oracle's, for every bit pattern that a block can hold.
#include "kernel_support.h"
#include "tests/support/guard_page.h"
#include "tests/support/random.h"

namespace mote::test {
namespace {

class Decode : public testing::TestWithParam<std::tuple<std::string, Format>> {
 protected:
  const std::string isa_ = std::get<0>(GetParam());
  const Format format_ = std::get<1>(GetParam());
};

void expect_same_as_oracle(const Kernels& kernels, Format format, const std::vector<uint8_t>& bytes,
                           size_t values) {
  std::vector<float> expected(values);
  quant::decode(format, bytes.data(), values, expected.data());
  const auto row = Guarded<uint8_t>::copy(bytes);
  Guarded<float> y(values);
  decode_kernel(kernels, format)(y.data(), row.data(), values);
  for (size_t i = 0; i < values; ++i)
    ASSERT_TRUE(same_bits(y[i], expected[i]))
        << "value " << i << " of " << values << ": expected " << expected[i] << ", found " << y[i];
}

TEST_P(Decode, AnyLengthOfAnyBits) {
  MOTE_KERNELS_OR_SKIP(isa_);
  Random random(1);
  const FormatInfo& info = format_info(format_);
  for (size_t blocks = 0; blocks <= 70; ++blocks) {
    const size_t values = blocks * info.values;
    ASSERT_NO_FATAL_FAILURE(
        expect_same_as_oracle(kernels, format_, random.bytes(row_bytes(format_, values)), values));
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
  expect_same_as_oracle(kernels, format_, bytes, 65536 * info.values);
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
