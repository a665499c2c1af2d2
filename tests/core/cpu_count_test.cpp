#include "core/cpu_count.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/threads.h"

namespace mote {
namespace {

// A /proc and /sys of some other machine.
class CpuCountTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "mote-cpu-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& content) const {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << content << "\n";
  }
  // Gives cpu0, cpu1, ... a number each in the given file.
  void put_speeds(const std::string& file, const std::vector<int>& speeds) const {
    for (size_t cpu = 0; cpu < speeds.size(); ++cpu)
      put("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + file,
          std::to_string(speeds[cpu]));
  }
  static CpuMask first(uint32_t count) {
    CpuMask mask;
    for (uint32_t cpu = 0; cpu < count; ++cpu) mask.add(cpu);
    return mask;
  }
  uint32_t threads(uint32_t cpus) const { return thread_count_for(root_.c_str(), first(cpus)); }
  uint32_t quota() const { return cpu_quota_thousandths(root_.c_str()); }

  std::string root_;
};

TEST_F(CpuCountTest, NothingKnownMeansAllCpus) {
  EXPECT_EQ(threads(1), 1u);
  EXPECT_EQ(threads(6), 6u);
  EXPECT_EQ(threads(4096), 4096u);
  EXPECT_EQ(quota(), 0u);
}

TEST_F(CpuCountTest, Mask) {
  CpuMask mask;
  EXPECT_EQ(mask.count(), 0u);
  for (const uint32_t cpu : {0u, 31u, 32u, 63u, 64u, 4095u, 4096u, 70000u}) mask.add(cpu);
  EXPECT_EQ(mask.count(), 6u);
  EXPECT_TRUE(mask.has(64) && mask.has(4095));
  EXPECT_FALSE(mask.has(65) || mask.has(4096));
  EXPECT_GE(affinity_mask().count(), 1u);
}

TEST_F(CpuCountTest, BigLittleCountsTheFastOnes) {
  put_speeds("cpu_capacity", {446, 446, 446, 446, 1024, 1024});
  EXPECT_EQ(threads(6), 2u);
  EXPECT_EQ(threads(4), 4u) << "only small cores allowed: they are then the fast ones";
}

TEST_F(CpuCountTest, MiddleCoresOfAPhoneAreFast) {
  put_speeds("cpu_capacity", {250, 250, 250, 250, 830, 830, 830, 1024});
  EXPECT_EQ(threads(8), 4u);
}

TEST_F(CpuCountTest, EqualCoresAllCount) {
  put_speeds("cpu_capacity", {1024, 1024, 1024, 1024});
  EXPECT_EQ(threads(4), 4u);
}

TEST_F(CpuCountTest, ClockWhereCapacityIsNotKnown) {
  put_speeds("cpufreq/cpuinfo_max_freq", {1800000, 1800000, 1800000, 1800000, 2400000, 2400000});
  EXPECT_EQ(threads(6), 2u);
}

TEST_F(CpuCountTest, FavouredTurboCoresDoNotStandAlone) {
  put_speeds("cpufreq/cpuinfo_max_freq", {5500000, 5500000, 5700000, 5700000});
  EXPECT_EQ(threads(4), 4u);
}

TEST_F(CpuCountTest, ACoreWithoutAFigureMakesTheFileUseless) {
  put_speeds("cpu_capacity", {400, 1024});
  EXPECT_EQ(threads(3), 3u);
  put_speeds("cpu_capacity", {0, 1024, 1024});
  EXPECT_EQ(threads(3), 3u);
}

TEST_F(CpuCountTest, OneThreadForEachPhysicalCore) {
  const char* siblings[] = {"0,4", "1,5", "2,6", "3,7"};
  for (int cpu = 0; cpu < 8; ++cpu)
    put("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
        siblings[cpu % 4]);
  EXPECT_EQ(threads(8), 4u);
  EXPECT_EQ(threads(5), 4u);
  CpuMask second_threads;
  second_threads.add(4);
  second_threads.add(5);
  EXPECT_EQ(thread_count_for(root_.c_str(), second_threads), 2u);
  for (int cpu = 0; cpu < 8; ++cpu)
    put("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/core_cpus_list",
        cpu < 4 ? "0-3" : "4-7");
  EXPECT_EQ(threads(8), 2u) << "the newer name of the file is asked first";
}

TEST_F(CpuCountTest, QuotaOfVersion2) {
  put("/proc/self/cgroup", "0::/");
  put("/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(quota(), 2000u);
  EXPECT_EQ(threads(8), 2u);
  EXPECT_EQ(threads(1), 1u);
  put("/sys/fs/cgroup/cpu.max", "max 100000");
  EXPECT_EQ(quota(), 0u);
  EXPECT_EQ(threads(8), 8u);
}

TEST_F(CpuCountTest, QuotaIsRoundedToWholeCpus) {
  put("/proc/self/cgroup", "0::/");
  const struct {
    const char* text;
    uint32_t threads;
  } cases[] = {{"10000 100000", 1},  {"110000 100000", 1}, {"150000 100000", 2},
               {"240000 100000", 2}, {"25000 50000", 1},   {"1 1000000", 1}};
  for (const auto& c : cases) {
    put("/sys/fs/cgroup/cpu.max", c.text);
    EXPECT_EQ(threads(8), c.threads) << c.text;
  }
}

TEST_F(CpuCountTest, TheTightestParentLimits) {
  put("/proc/self/cgroup", "0::/system.slice/app.service/worker");
  put("/sys/fs/cgroup/system.slice/app.service/worker/cpu.max", "max 100000");
  put("/sys/fs/cgroup/system.slice/app.service/cpu.max", "300000 100000");
  put("/sys/fs/cgroup/system.slice/cpu.max", "500000 100000");
  EXPECT_EQ(threads(16), 3u);
}

TEST_F(CpuCountTest, AGroupThatTheContainerDoesNotSee) {
  put("/proc/self/cgroup", "0::/../../outer");
  put("/sys/fs/cgroup/cpu.max", "400000 100000");
  EXPECT_EQ(threads(16), 4u);
  put("/proc/self/cgroup", "0::/docker/0123456789abcdef");
  EXPECT_EQ(threads(16), 4u);
}

TEST_F(CpuCountTest, QuotaOfVersion1) {
  put("/proc/self/cgroup", "9:cpuset:/x\n4:cpu,cpuacct:/docker/abc\n2:memory:/docker/abc");
  put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000");
  put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), 2500u);
  EXPECT_EQ(threads(16), 3u);
}

TEST_F(CpuCountTest, Version1MountedAsTheContainersRoot) {
  put("/proc/self/cgroup", "1:cpu:/docker/abc");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000");
  put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000");
  EXPECT_EQ(threads(16), 2u);
  put("/proc/self/cgroup", "1:cpuset,cpuacct:/docker/abc");
  EXPECT_EQ(threads(16), 16u) << "no hierarchy with the cpu controller";
}

TEST_F(CpuCountTest, NonsenseInTheFilesIsIgnored) {
  for (const char* text : {"", "x", "100000", "100000 0", "100000 x", "-5 100000",
                           "99999999999999999999999 1", "18446744073709551615 1"}) {
    put("/proc/self/cgroup", "0::/");
    put("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(threads(5), 5u) << text;
  }
  for (const std::string& text : {std::string("::::"), std::string("0"), std::string(9000, ':'),
                                  "0::/" + std::string(7000, 'a'), std::string("\n\n\n")}) {
    put("/proc/self/cgroup", text);
    EXPECT_EQ(threads(5), 5u) << text.substr(0, 20);
  }
  for (const char* list : {"x", "-", "0-", "3-1", ",,", "0-4294967295", "99999999999999999999"}) {
    put("/sys/devices/system/cpu/cpu0/topology/core_cpus_list", list);
    EXPECT_GE(threads(2), 1u) << list;
  }
}

TEST_F(CpuCountTest, AvailableCpusAreMaskAndQuota) {
  put_speeds("cpu_capacity", {100, 100, 1024, 1024});
  EXPECT_EQ(available_cpus(root_.c_str(), first(4)), 4u);
  put("/proc/self/cgroup", "0::/");
  put("/sys/fs/cgroup/cpu.max", "100000 100000");
  EXPECT_EQ(available_cpus(root_.c_str(), first(4)), 1u);
}

TEST_F(CpuCountTest, ThisMachine) {
  const uint32_t count = default_thread_count();
  EXPECT_GE(count, 1u);
  EXPECT_LE(count, affinity_mask().count());
}

}  // namespace
}  // namespace mote
