#include "core/cpu.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace mote {
namespace {

// The kernel's own list of what the CPU can do and the system supports: "flags" (x86), "Features"
// (ARM).
bool listed(const std::string& flag) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;)
      if (word == flag) return true;
    return false;
  }
  return false;
}

TEST(Cpu, MatchesTheKernelsList) {
  const CpuFeatures features = cpu_features();
#if defined(__x86_64__)
  if (!listed("sse2"))
    GTEST_SKIP() << "/proc/cpuinfo is not there or lists another CPU (an emulator?)";
  const bool avx2 = listed("avx2") && listed("fma") && listed("f16c");
  const bool avx512 = avx2 && listed("avx512f") && listed("avx512bw") && listed("avx512dq") &&
                      listed("avx512vl") && listed("avx512cd");
  EXPECT_EQ(features.avx2, avx2);
  EXPECT_EQ(features.avx512, avx512);
  EXPECT_EQ(features.avx512_vnni, avx512 && listed("avx512_vnni"));
  EXPECT_EQ(features.avx_vnni, avx2 && listed("avx_vnni"));
  EXPECT_FALSE(features.neon || features.dot_product || features.i8mm);
#elif defined(__aarch64__)
  EXPECT_TRUE(features.neon);
  EXPECT_FALSE(features.avx2 || features.avx_vnni || features.avx512 || features.avx512_vnni);
  EXPECT_TRUE(!features.i8mm || features.dot_product);
  if (!listed("asimd"))
    GTEST_SKIP() << "/proc/cpuinfo is not there or lists another CPU (an emulator?)";
  const bool dot = listed("asimddp") && listed("fphp") && listed("asimdhp");
  EXPECT_EQ(features.dot_product, dot);
  EXPECT_EQ(features.i8mm, dot && listed("i8mm"));
#elif defined(__arm__)
  if (!listed("neon"))
    GTEST_SKIP() << "/proc/cpuinfo is not there or lists another CPU (an emulator?)";
  EXPECT_EQ(features.neon, listed("vfpv4"));
#else
  EXPECT_FALSE(features.avx2 || features.neon);
#endif
}

TEST(Cpu, AnswersTheSameEveryTime) {
  const CpuFeatures a = cpu_features(), b = cpu_features();
  EXPECT_EQ(a.avx2, b.avx2);
  EXPECT_EQ(a.avx512, b.avx512);
  EXPECT_EQ(a.neon, b.neon);
  EXPECT_EQ(a.dot_product, b.dot_product);
}

}  // namespace
}  // namespace mote
