// What this machine can do at most: read bandwidth by working set, and the rates of its int8 dot
// product and f32 multiply-add units. Prints one JSON object. g++ -O3 -march=native -pthread
// roofline.cpp -o roofline && ./roofline 1,2
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

namespace {

constexpr int kRuns = 4;
constexpr int kAccumulators = 12;  // enough to hide the latency of the units
constexpr int64_t kSteps = 20'000'000;

typedef uint64_t Words __attribute__((vector_size(64)));
typedef float Floats __attribute__((vector_size(64)));

volatile uint64_t sink;

// The compiler no longer knows the value: it would make one of sums that are equal.
template <class T>
void forget(T& value) {
  asm volatile("" : "+m"(value));
}

// The best time of kRuns, in seconds, of work(thread) on all threads at once.
double best_time(int threads, const std::function<void(int)>& work) {
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread& other : others) other.join();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds < best) best = seconds;
  }
  return best;
}

// GB/s of reading `bytes` again and again, each thread its own part.
double read_bandwidth(size_t bytes, int threads) {
  auto* memory = static_cast<unsigned char*>(std::aligned_alloc(4096, bytes));
  std::memset(memory, 1, bytes);
  const size_t part = bytes / threads / 256 * 256, repeats = (size_t(1) << 30) / bytes + 1;
  const double seconds = best_time(threads, [=](int thread) {
    const unsigned char* start = memory + part * thread;
    Words a{}, b{}, c{}, d{};
    for (size_t r = 0; r < repeats; ++r)
      for (size_t i = 0; i < part; i += 256) {
        const auto* words = reinterpret_cast<const Words*>(start + i);
        a += words[0], b += words[1], c += words[2], d += words[3];
      }
    a += b + c + d;
    sink = a[0];
  });
  std::free(memory);
  return double(part) * threads * repeats / seconds / 1e9;
}

#if defined(__AVX512VNNI__)
#define DOT "vpdpbusd, 64 bytes"
using Bytes = __m512i;
void dot(Bytes& sum, Bytes x, Bytes y) { sum = _mm512_dpbusd_epi32(sum, x, y); }
#elif defined(__AVXVNNI__)
#define DOT "vpdpbusd, 32 bytes"
using Bytes = __m256i;
void dot(Bytes& sum, Bytes x, Bytes y) { sum = _mm256_dpbusd_avx_epi32(sum, x, y); }
#elif defined(__AVX2__)
#define DOT "vpmaddubsw and vpmaddwd, 32 bytes"
using Bytes = __m256i;
void dot(Bytes& sum, Bytes x, Bytes y) {
  const __m256i pairs = _mm256_maddubs_epi16(x, y);
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
#elif defined(__ARM_FEATURE_DOTPROD)
#define DOT "sdot, 16 bytes"
using Bytes = int32x4_t;
void dot(Bytes& sum, Bytes x, Bytes y) {
  sum = vdotq_s32(sum, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(y));
}
#endif

// Billions of int8 multiply-adds per second; 0: this compiler knows no int8 dot product for this
// CPU.
double int8_rate([[maybe_unused]] int threads) {
#ifdef DOT
  const double seconds = best_time(threads, [](int) {
    Bytes sums[kAccumulators] = {}, x{}, y{};
    for (Bytes& sum : sums) forget(sum);
    forget(x), forget(y);
    for (int64_t i = 0; i < kSteps; ++i) {
      for (Bytes& sum : sums) dot(sum, x, y);
    }
    for (int k = 1; k < kAccumulators; ++k) sums[0] += sums[k];
    sink = static_cast<uint64_t>(sums[0][0]);
  });
  return double(kSteps) * kAccumulators * sizeof(Bytes) * threads / seconds / 1e9;
#else
  return 0;
#endif
}

// Billions of f32 multiply-adds per second.
double float_rate(int threads) {
  const double seconds = best_time(threads, [](int) {
    Floats sums[kAccumulators] = {}, x{}, y{};
    for (int k = 0; k < 16; ++k) x[k] = 0.5f, y[k] = float(k);
    for (Floats& sum : sums) forget(sum);
    for (int64_t i = 0; i < kSteps; ++i) {
      for (Floats& sum : sums) sum = sum * x + y;
    }
    for (int k = 1; k < kAccumulators; ++k) sums[0] += sums[k];
    sink = static_cast<uint64_t>(sums[0][0]);
  });
  return double(kSteps) * kAccumulators * 16 * threads / seconds / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string list = argc > 1 ? argv[1] : "1";
  const char* separator = "";
  std::printf("{\"rows\": [");
  for (size_t at = 0; at < list.size();
       at = list.find(',', at) == std::string::npos ? list.size() : list.find(',', at) + 1) {
    const int threads = std::atoi(list.c_str() + at);
    if (threads < 1) return 2;
    std::printf("%s{\"threads\": %d, \"read_gb_s\": {", separator, threads);
    const char* comma = "";
    for (const size_t mib : {1, 16, 96, 512}) {
      std::printf("%s\"%zu MiB\": %.1f", comma, mib, read_bandwidth(mib << 20, threads));
      comma = ", ";
    }
    std::printf("}, \"int8_gmac_s\": %.0f, \"f32_gmac_s\": %.0f}", int8_rate(threads),
                float_rate(threads));
    separator = ", ";
  }
#ifdef DOT
  std::printf("], \"int8_instruction\": \"%s\"}\n", DOT);
#else
  std::printf("], \"int8_instruction\": null}\n");
#endif
}
