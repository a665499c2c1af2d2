// Chooses a table of kernels by what the CPU can do. The only kernel source that is compiled once,
// for any CPU.
#include <cstring>

#include "kernels/kernels.h"

namespace mote {

#define ISA(name, runs)       \
  namespace name {            \
  extern const Kernels table; \
  }
#include "kernels/isa.inc"
#undef ISA

namespace {

#define ISA(name, runs) \
  bool runs_##name([[maybe_unused]] const CpuFeatures& cpu) { return runs; }
#include "kernels/isa.inc"
#undef ISA

constexpr IsaTable kTables[] = {
#define ISA(name, runs) {&name::table, runs_##name},
#include "kernels/isa.inc"
#undef ISA
};

}  // namespace

const IsaTable* isa_tables(size_t* count) {
  *count = sizeof(kTables) / sizeof(kTables[0]);
  return kTables;
}

const Kernels* select_kernels(const char* isa) {
  const CpuFeatures cpu = cpu_features();
  for (const IsaTable& table : kTables)
    if (table.supported(cpu) && (!isa || std::strcmp(isa, table.kernels->isa) == 0))
      return table.kernels;
  return nullptr;
}

LinearKernel linear_kernel(const Kernels& kernels, Format format) {
  switch (format) {
#define LINEAR(name) \
  case Format::name: \
    return kernels.linear_##name;
#include "kernels/linear_formats.inc"
#undef LINEAR
    default:
      return nullptr;
  }
}

DecodeKernel decode_kernel(const Kernels& kernels, Format format) {
  switch (format) {
#define LINEAR(name) \
  case Format::name: \
    return kernels.decode_##name;
#include "kernels/linear_formats.inc"
#undef LINEAR
    default:
      return nullptr;
  }
}

bool needs_quantized_activations(Format format) {
  return format != Format::f32 && format != Format::f16 && format != Format::bf16;
}

bool needs_quantized_rows(Format format) { return native_format(format) == Format::q8_row; }

// A panel of 32 rows of floats is the largest.
size_t linear_scratch_bytes(size_t columns) { return 32 * sizeof(float) * columns; }

}  // namespace mote
