#include "core/cpu_count.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/slice.h"
#include "core/threads.h"

namespace mote {
namespace {

constexpr size_t kPathBytes = 4096;

// A small text file, cut at the buffer's size; empty where there is none.
std::string_view read_text(const char* path, char* buffer, size_t capacity) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  size_t used = 0;
  while (used < capacity) {
    const ssize_t got = ::read(fd, buffer + used, capacity - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  ::close(fd);
  return {buffer, used};
}

// Reads digits off the front of text.
bool take_number(std::string_view* text, uint64_t* value) {
  size_t digits = 0;
  uint64_t number = 0;
  for (; digits < text->size() && (*text)[digits] >= '0' && (*text)[digits] <= '9'; ++digits) {
    if (number > UINT64_MAX / 10 - 1) return false;
    number = number * 10 + static_cast<uint64_t>((*text)[digits] - '0');
  }
  text->remove_prefix(digits);
  *value = number;
  return digits > 0;
}

bool read_number(const char* path, uint64_t* value) {
  char buffer[64];
  std::string_view text = read_text(path, buffer, sizeof buffer);
  return take_number(&text, value);
}

// quota and period in microseconds.
uint32_t thousandths(uint64_t quota, uint64_t period) {
  if (period == 0 || quota > UINT64_MAX / 1000) return 0;
  return static_cast<uint32_t>(
      std::min<uint64_t>(std::max<uint64_t>(quota * 1000 / period, 1), UINT32_MAX));
}

uint32_t smaller_limit(uint32_t a, uint32_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// Version 2: "max 100000" or "50000 100000".
uint32_t quota_v2(const char* directory) {
  char path[kPathBytes], buffer[64];
  std::snprintf(path, sizeof path, "%s/cpu.max", directory);
  std::string_view text = read_text(path, buffer, sizeof buffer);
  uint64_t quota = 0, period = 0;
  if (!take_number(&text, &quota) || text.empty()) return 0;
  text.remove_prefix(1);
  return take_number(&text, &period) ? thousandths(quota, period) : 0;
}

// Version 1: two files; the quota is -1 where there is none.
uint32_t quota_v1(const char* directory) {
  char path[kPathBytes];
  uint64_t quota = 0, period = 0;
  std::snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
  if (!read_number(path, &quota)) return 0;
  std::snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
  return read_number(path, &period) ? thousandths(quota, period) : 0;
}

// The group and all its parents up to the mount. In a container the group's own path may not exist
// below the mount; the mount is then the group.
uint32_t smallest_quota(const char* root, const char* mount, std::string_view group,
                        uint32_t (*quota_of)(const char* directory)) {
  uint32_t limit = 0;
  char directory[kPathBytes];
  for (;;) {
    while (!group.empty() && group.back() == '/') group.remove_suffix(1);
    const int length = std::snprintf(directory, sizeof directory, "%s%s%.*s", root, mount,
                                     static_cast<int>(group.size()), group.data());
    if (length > 0 && static_cast<size_t>(length) < sizeof directory - 32)
      limit = smaller_limit(limit, quota_of(directory));
    if (group.empty()) return limit;
    const size_t slash = group.rfind('/');
    group = slash == std::string_view::npos ? std::string_view() : slice(group, 0, slash);
  }
}

// Is "cpu" among the comma-separated controllers?
bool has_cpu_controller(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (slice(controllers, 0, comma) == "cpu") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

// A list like "0-3,8": is `cpu` the first of its members in the mask? True too where there is no
// list.
bool first_in_list(std::string_view list, uint32_t cpu, const CpuMask& mask) {
  while (!list.empty()) {
    uint64_t first = 0, last = 0;
    if (!take_number(&list, &first)) return true;
    last = first;
    if (!list.empty() && list.front() == '-') {
      list.remove_prefix(1);
      if (!take_number(&list, &last)) return true;
    }
    for (uint64_t member = first; member <= last && member < CpuMask::kMost; ++member)
      if (mask.has(static_cast<uint32_t>(member))) return member == cpu;
    if (list.empty() || list.front() != ',') return true;
    list.remove_prefix(1);
  }
  return true;
}

bool first_thread_of_core(const char* root, uint32_t cpu, const CpuMask& mask) {
  char path[kPathBytes], buffer[256];
  for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {
    std::snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%u/topology/%s", root, cpu,
                  name);
    const std::string_view list = read_text(path, buffer, sizeof buffer);
    if (!list.empty()) return first_in_list(list, cpu, mask);
  }
  return true;
}

// Cores of the mask whose number in cpuN/<file> is at least `percent` of the largest; 0 where a
// file is missing.
uint32_t count_fast(const char* root, const CpuMask& mask, const char* file, uint64_t percent) {
  char path[kPathBytes];
  uint64_t largest = 0;
  for (int pass = 0; pass < 2; ++pass) {
    uint32_t count = 0;
    for (uint32_t cpu = 0; cpu < CpuMask::kMost; ++cpu) {
      if (!mask.has(cpu)) continue;
      uint64_t speed = 0;
      std::snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%u/%s", root, cpu, file);
      if (!read_number(path, &speed) || speed == 0 || speed > UINT32_MAX) return 0;
      if (pass == 0)
        largest = std::max(largest, speed);
      else if (speed * 100 >= largest * percent && first_thread_of_core(root, cpu, mask))
        ++count;
    }
    if (pass == 1) return count;
  }
  return 0;
}

// Rounded to whole CPUs: half a CPU more is worth a thread, a tenth is not. 0: no limit.
uint32_t whole_cpus(uint32_t thousandths) {
  if (thousandths == 0) return 0;
  return std::max(1u, static_cast<uint32_t>((uint64_t{thousandths} + 500) / 1000));
}

}  // namespace

uint32_t CpuMask::count() const {
  uint32_t count = 0;
  for (const unsigned long word : words) count += static_cast<uint32_t>(__builtin_popcountl(word));
  return count;
}

CpuMask affinity_mask() {
  CpuMask mask;
#if defined(__linux__)
  if (sched_getaffinity(0, sizeof mask.words, reinterpret_cast<cpu_set_t*>(mask.words)) == 0 &&
      mask.count() > 0)
    return mask;
  mask = CpuMask();
#endif
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  for (long cpu = 0; cpu < online; ++cpu) mask.add(static_cast<uint32_t>(cpu));
  if (online < 1) mask.add(0);
  return mask;
}

uint32_t cpu_quota_thousandths(const char* root) {
  char path[kPathBytes], buffer[8192];
  std::snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  std::string_view text = read_text(path, buffer, sizeof buffer);
  uint32_t limit = 0;
  while (!text.empty()) {  // "hierarchy:controllers:/group"
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = slice(text, 0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = slice(line, first + 1, second - first - 1);
    std::string_view group = slice(line, second + 1);
    if (slice(group, 0, 3) == "/..") group = {};  // outside of what this namespace shows
    if (controllers.empty()) {
      limit = smaller_limit(limit, smallest_quota(root, "/sys/fs/cgroup", group, quota_v2));
      limit = smaller_limit(limit, smallest_quota(root, "/sys/fs/cgroup/unified", group, quota_v2));
    } else if (has_cpu_controller(controllers)) {
      limit = smaller_limit(limit, smallest_quota(root, "/sys/fs/cgroup/cpu", group, quota_v1));
      limit =
          smaller_limit(limit, smallest_quota(root, "/sys/fs/cgroup/cpu,cpuacct", group, quota_v1));
    }
  }
  return limit;
}

// Capacity (ARM: 1024 for the fastest) knows more than the clock does: of two clusters with the
// same clock one may do half the work. In phones the middle cores come to 75-90 %, the small ones
// to 15-55 %; by clock alone efficiency cores reach 75 %.
uint32_t fast_cores(const char* root, const CpuMask& mask) {
  uint32_t count = count_fast(root, mask, "cpu_capacity", 70);
  if (count == 0) count = count_fast(root, mask, "cpufreq/cpuinfo_max_freq", 80);
  if (count > 0) return count;
  for (uint32_t cpu = 0; cpu < CpuMask::kMost; ++cpu)
    if (mask.has(cpu) && first_thread_of_core(root, cpu, mask)) ++count;
  return std::max(count, 1u);
}

uint32_t available_cpus(const char* root, const CpuMask& mask) {
  const uint32_t limit = smaller_limit(mask.count(), whole_cpus(cpu_quota_thousandths(root)));
  return std::max(limit, 1u);
}

uint32_t thread_count_for(const char* root, const CpuMask& mask) {
  return smaller_limit(fast_cores(root, mask), whole_cpus(cpu_quota_thousandths(root)));
}

uint32_t default_thread_count() { return thread_count_for("", affinity_mask()); }

}  // namespace mote
