// Prints each instruction set of this build, best first, and whether this CPU has it: "avx2 yes".
#include <cstdio>

#include "core/cpu.h"
#include "kernels/kernels.h"

int main() {
  const mote::CpuFeatures cpu = mote::cpu_features();
  size_t count = 0;
  const mote::IsaTable* tables = mote::isa_tables(&count);
  for (size_t i = 0; i < count; ++i)
    std::printf("%s %s\n", tables[i].kernels->isa, tables[i].supported(cpu) ? "yes" : "no");
}
