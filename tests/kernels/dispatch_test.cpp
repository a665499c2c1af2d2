#include "kernel_support.h"

namespace mote::test {
namespace {

TEST(Dispatch, TheLastTableRunsAnywhere) {
  size_t count = 0;
  const IsaTable* tables = isa_tables(&count);
  ASSERT_GT(count, 0u);
  EXPECT_STREQ(tables[count - 1].kernels->isa, "scalar");
  EXPECT_TRUE(tables[count - 1].supported(CpuFeatures{}));
}

TEST(Dispatch, ChoosesTheFirstThatTheCpuSupports) {
  size_t count = 0;
  const IsaTable* tables = isa_tables(&count);
  const CpuFeatures cpu = cpu_features();
  size_t best = 0;
  while (!tables[best].supported(cpu)) ++best;
  EXPECT_EQ(select_kernels(nullptr), tables[best].kernels);
  for (size_t i = 0; i < count; ++i)
    EXPECT_EQ(select_kernels(tables[i].kernels->isa),
              tables[i].supported(cpu) ? tables[i].kernels : nullptr)
        << tables[i].kernels->isa;
}

TEST(Dispatch, UnknownNamesGiveNothing) {
  EXPECT_EQ(select_kernels("avx1024"), nullptr);
  EXPECT_EQ(select_kernels(""), nullptr);
}

TEST(Dispatch, EveryKernelOfEveryTableIsSet) {
  size_t count = 0;
  const IsaTable* tables = isa_tables(&count);
  for (size_t i = 0; i < count; ++i) {
#define KERNEL(type, name, parameters) \
  EXPECT_NE(tables[i].kernels->name, nullptr) << tables[i].kernels->isa << " " #name;
#include "kernels/kernels.inc"
#undef KERNEL
  }
}

TEST(Dispatch, FormatsHaveKernelsOfTheirOwn) {
  const Kernels& kernels = *select_kernels(nullptr);
  const std::vector<Format> formats = linear_formats();
  for (size_t i = 0; i < formats.size(); ++i) {
    ASSERT_NE(linear_kernel(kernels, formats[i]), nullptr);
    ASSERT_NE(decode_kernel(kernels, formats[i]), nullptr);
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(linear_kernel(kernels, formats[i]), linear_kernel(kernels, formats[j]));
      EXPECT_NE(decode_kernel(kernels, formats[i]), decode_kernel(kernels, formats[j]));
    }
  }
  EXPECT_EQ(linear_kernel(kernels, Format::i32), nullptr);
  EXPECT_EQ(decode_kernel(kernels, Format::i32), nullptr);
  EXPECT_FALSE(needs_quantized_activations(Format::bf16));
  EXPECT_TRUE(needs_quantized_activations(Format::q4_0));
}

}  // namespace
}  // namespace mote::test
