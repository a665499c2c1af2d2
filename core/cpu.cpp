#include "core/cpu.h"

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
#include <sys/auxv.h>
#endif

namespace mote {
namespace {

[[maybe_unused]] constexpr bool bit(uint64_t word, int index) { return (word >> index & 1) != 0; }

#if defined(__x86_64__) || defined(__i386__)

// Which registers the system saves at a task switch (XCR0). Only after CPUID reported OSXSAVE.
uint64_t saved_registers() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Bits: Intel SDM volume 2, CPUID, leaves 1, 7.0 and 7.1.
CpuFeatures detect() {
  CpuFeatures features;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return features;
  const bool fma = bit(c, 12), osxsave = bit(c, 27), avx = bit(c, 28), f16c = bit(c, 29);
  if (!osxsave || !avx) return features;
  const uint64_t saved = saved_registers();
  const bool ymm = (saved & 0x06) == 0x06, zmm = (saved & 0xe6) == 0xe6;
  if (!ymm || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return features;
  const uint32_t subleaves = a;
  features.avx2 = bit(b, 5) && fma && f16c;
  features.avx512 =
      features.avx2 && zmm && bit(b, 16) && bit(b, 17) && bit(b, 28) && bit(b, 30) && bit(b, 31);
  features.avx512_vnni = features.avx512 && bit(c, 11);
  if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
    features.avx_vnni = features.avx2 && bit(a, 4);
  return features;
}

#elif defined(__aarch64__)

// Bits: Linux, arch/arm64/include/uapi/asm/hwcap.h; written out because older headers lack the
// newer ones.
CpuFeatures detect() {
  CpuFeatures features;
  features.neon = true;  // part of ARMv8-A
#if defined(__linux__)
  const uint64_t hwcap = getauxval(AT_HWCAP), hwcap2 = getauxval(AT_HWCAP2);
  const bool half = bit(hwcap, 9) && bit(hwcap, 10);  // FPHP, ASIMDHP
  features.dot_product = half && bit(hwcap, 20);      // ASIMDDP
  features.i8mm = features.dot_product && bit(hwcap2, 13);
#endif
  return features;
}

#elif defined(__arm__) && defined(__linux__)

// The kernels are built for NEON with VFPv4 (fused multiply-add, f16 conversion): both are needed.
CpuFeatures detect() {
  CpuFeatures features;
  const uint64_t hwcap = getauxval(AT_HWCAP);
  features.neon = bit(hwcap, 12) && bit(hwcap, 16);  // NEON, VFPv4
  return features;
}

#else

CpuFeatures detect() { return {}; }

#endif

}  // namespace

CpuFeatures cpu_features() { return detect(); }

}  // namespace mote
