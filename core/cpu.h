// What this CPU can do: from CPUID with XGETBV, or from HWCAP. The only code that asks.
#pragma once

namespace mote {

struct CpuFeatures {
  bool avx2 = false;      // with FMA and F16C, and the system saves the registers
  bool avx_vnni = false;  // VEX-encoded vpdpbusd
  bool avx512 = false;    // F, BW, DQ, VL, CD
  bool avx512_vnni = false;
  bool neon = false;
  bool dot_product = false;  // sdot, with fp16 arithmetic
  bool i8mm = false;
};

CpuFeatures cpu_features();

}  // namespace mote
