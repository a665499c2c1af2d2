#include "roofline.h"

#include <cstring>

#include "core/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace mote::bench {
namespace {

typedef uint64_t Words __attribute__((vector_size(16), aligned(1)));
constexpr int kChains = 12;  // enough to hide the latency of two units

// Without it the sums live in memory, and the loops measure that.
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__x86_64__)

// A compiler barrier on the operands keeps the loops from being folded, one on the sums makes them
// differ: equal ones would become one.
#define KEEP(value) __asm__ volatile("" : "+v"(value))

__attribute__((target("avx512f,avx512vnni"))) void vnni512(uint64_t iterations) {
  __m512i sums[kChains], w = _mm512_set1_epi8(3), q = _mm512_set1_epi8(-2);
  UNROLL
  for (auto& sum : sums) {
    sum = _mm512_setzero_si512();
    KEEP(sum);
  }
  for (uint64_t i = 0; i < iterations; ++i) {
    UNROLL
    for (auto& sum : sums) sum = _mm512_dpbusd_epi32(sum, w, q);
    KEEP(w);
  }
  UNROLL
  for (auto& sum : sums) KEEP(sum);
}

__attribute__((target("avx2"))) void maddubs256(uint64_t iterations) {
  __m256i sums[kChains], w = _mm256_set1_epi8(3), q = _mm256_set1_epi8(-2);
  const __m256i ones = _mm256_set1_epi16(1);
  UNROLL
  for (auto& sum : sums) {
    sum = _mm256_setzero_si256();
    KEEP(sum);
  }
  for (uint64_t i = 0; i < iterations; ++i) {
    UNROLL
    for (auto& sum : sums)
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, q), ones));
    KEEP(w);
    KEEP(q);
  }
  UNROLL
  for (auto& sum : sums) KEEP(sum);
}

__attribute__((target("avx512f"))) void fma512(uint64_t iterations) {
  __m512 sums[kChains], a = _mm512_set1_ps(1.0f), b = _mm512_set1_ps(1e-9f);
  UNROLL
  for (auto& sum : sums) {
    sum = _mm512_setzero_ps();
    KEEP(sum);
  }
  for (uint64_t i = 0; i < iterations; ++i) {
    UNROLL
    for (auto& sum : sums) sum = _mm512_fmadd_ps(a, b, sum);
    KEEP(a);
  }
  UNROLL
  for (auto& sum : sums) KEEP(sum);
}

__attribute__((target("avx2,fma"))) void fma256(uint64_t iterations) {
  __m256 sums[kChains], a = _mm256_set1_ps(1.0f), b = _mm256_set1_ps(1e-9f);
  UNROLL
  for (auto& sum : sums) {
    sum = _mm256_setzero_ps();
    KEEP(sum);
  }
  for (uint64_t i = 0; i < iterations; ++i) {
    UNROLL
    for (auto& sum : sums) sum = _mm256_fmadd_ps(a, b, sum);
    KEEP(a);
  }
  UNROLL
  for (auto& sum : sums) KEEP(sum);
}

#elif defined(__aarch64__)

#define KEEP(value) __asm__ volatile("" : "+w"(value))

// By its encoding, because this file is compiled for any ARMv8: sdot v0.4s .. v11.4s, v30.16b,
// v31.16b.
void sdot(uint64_t iterations) {
  for (uint64_t i = 0; i < iterations; ++i)
    __asm__ volatile(
        ".inst 0x4e9f97c0\n .inst 0x4e9f97c1\n .inst 0x4e9f97c2\n .inst 0x4e9f97c3\n"
        ".inst 0x4e9f97c4\n .inst 0x4e9f97c5\n .inst 0x4e9f97c6\n .inst 0x4e9f97c7\n"
        ".inst 0x4e9f97c8\n .inst 0x4e9f97c9\n .inst 0x4e9f97ca\n .inst 0x4e9f97cb\n" ::
            : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11");
}

void fma128(uint64_t iterations) {
  float32x4_t sums[kChains], a = vdupq_n_f32(1.0f), b = vdupq_n_f32(1e-9f);
  UNROLL
  for (auto& sum : sums) {
    sum = vdupq_n_f32(0.0f);
    KEEP(sum);
  }
  for (uint64_t i = 0; i < iterations; ++i) {
    UNROLL
    for (auto& sum : sums) sum = vfmaq_f32(sum, a, b);
    KEEP(a);
  }
  UNROLL
  for (auto& sum : sums) KEEP(sum);
}

#endif

}  // namespace

uint64_t read_all(const uint8_t* p, size_t bytes) {
  Words sums[4] = {};
  for (size_t i = 0; i + 256 <= bytes; i += 256) {
    __builtin_prefetch(p + i + 8192, 0, 2);
    __builtin_prefetch(p + i + 8192 + 64, 0, 2);
    __builtin_prefetch(p + i + 8192 + 128, 0, 2);
    __builtin_prefetch(p + i + 8192 + 192, 0, 2);
    UNROLL
    for (size_t s = 0; s < 16; ++s) sums[s % 4] += *reinterpret_cast<const Words*>(p + i + 16 * s);
  }
  const Words sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0] + sum[1];
}

uint64_t int8_dot_peak([[maybe_unused]] uint64_t iterations, const char** name) {
  [[maybe_unused]] const CpuFeatures cpu = cpu_features();
#if defined(__x86_64__)
  if (cpu.avx512_vnni) {
    *name = "vpdpbusd zmm";
    vnni512(iterations);
    return iterations * kChains * 128;
  }
  if (cpu.avx2) {
    *name = "vpmaddubsw ymm";
    maddubs256(iterations);
    return iterations * kChains * 64;
  }
#elif defined(__aarch64__)
  if (cpu.dot_product) {
    *name = "sdot";
    sdot(iterations);
    return iterations * kChains * 32;
  }
#endif
  *name = nullptr;
  return 0;
}

uint64_t float_fma_peak([[maybe_unused]] uint64_t iterations, const char** name) {
  [[maybe_unused]] const CpuFeatures cpu = cpu_features();
#if defined(__x86_64__)
  if (cpu.avx512) {
    *name = "vfmadd zmm";
    fma512(iterations);
    return iterations * kChains * 32;
  }
  if (cpu.avx2) {
    *name = "vfmadd ymm";
    fma256(iterations);
    return iterations * kChains * 16;
  }
#elif defined(__aarch64__)
  *name = "fmla";
  fma128(iterations);
  return iterations * kChains * 8;
#endif
  *name = nullptr;
  return 0;
}

}  // namespace mote::bench
