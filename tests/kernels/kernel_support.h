// What the kernel tests share: one test per instruction set of this build, skipped with a reason
// where the CPU lacks it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/cpu.h"
#include "kernels/kernels.h"
#include "quant/quant.h"

namespace mote::test {

inline std::vector<std::string> isa_names() {
  size_t count;
  const IsaTable* tables = isa_tables(&count);
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(tables[i].kernels->isa);
  return names;
}

inline bool is_fused(const std::string& isa) { return isa != "scalar" && isa != "sse2"; }

// The same bits; any NaN equals any other.
inline bool same_bits(float a, float b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0 || (a != a && b != b);
}

inline std::vector<Format> linear_formats() {
  return {
#define LINEAR(name) Format::name,
#include "kernels/linear_formats.inc"
#undef LINEAR
  };
}

// Defines `kernels`, or skips the test.
#define MOTE_KERNELS_OR_SKIP(isa_name)                                     \
  const Kernels* selected_kernels = select_kernels((isa_name).c_str());    \
  if (!selected_kernels) GTEST_SKIP() << "this CPU has no " << (isa_name); \
  ASSERT_STREQ(selected_kernels->isa, (isa_name).c_str());                 \
  const Kernels& kernels = *selected_kernels

}  // namespace mote::test
