// How many CPUs this process may use, and how many of them are fast: read from /proc and /sys.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mote {

// CPUs by number; the system's affinity mask in its own layout.
struct CpuMask {
  static constexpr uint32_t kMost = 4096;
  unsigned long words[kMost / (8 * sizeof(unsigned long))] = {};

  bool has(uint32_t cpu) const {
    return cpu < kMost && (words[cpu / kBits] >> cpu % kBits & 1) != 0;
  }
  void add(uint32_t cpu) {
    if (cpu < kMost) words[cpu / kBits] |= 1ul << cpu % kBits;
  }
  uint32_t count() const;

 private:
  static constexpr uint32_t kBits = 8 * sizeof(unsigned long);
};

// CPUs that the calling thread may run on; never empty.
CpuMask affinity_mask();

// The smallest CPU quota of this process's control groups (versions 1 and 2) and their parents, in
// thousandths of a CPU; 0: no limit. root: "" or the place of a /proc and /sys of a test.
uint32_t cpu_quota_thousandths(const char* root);

// One thread a physical core, of the cores in the mask that are about as fast as the fastest.
uint32_t fast_cores(const char* root, const CpuMask& mask);

// The smaller of the mask's count and the quota, >= 1: more threads than this take turns.
uint32_t available_cpus(const char* root, const CpuMask& mask);

// The smaller of fast_cores and the quota, >= 1.
uint32_t thread_count_for(const char* root, const CpuMask& mask);

}  // namespace mote
