// A buffer whose end, or start, lies against a page that must not be touched: reading or writing
// beyond it crashes the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mote::test {

class GuardedBytes {
 public:
  // `bytes` bytes that end `slack` bytes before the page behind them; there is a guard page on both
  // sides.
  explicit GuardedBytes(size_t bytes, size_t slack = 0) : bytes_(bytes) {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inner = (bytes + slack + page_ - 1) / page_ * page_ + (bytes + slack == 0) * page_;
    total_ = inner + 2 * page_;
    void* memory = mmap(nullptr, total_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    map_ = static_cast<uint8_t*>(memory);
    if (mprotect(map_ + page_, inner, PROT_READ | PROT_WRITE) != 0) die("mprotect");
    std::memset(map_ + page_, 0xcd, inner);
    data_ = map_ + page_ + inner - slack - bytes;
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  GuardedBytes(GuardedBytes&& other) noexcept
      : map_(other.map_),
        data_(other.data_),
        bytes_(other.bytes_),
        total_(other.total_),
        page_(other.page_) {
    other.map_ = nullptr;
  }
  ~GuardedBytes() {
    if (map_) munmap(map_, total_);
  }

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  static void die(const char* what) {
    std::perror(what);
    std::abort();
  }
  uint8_t* map_ = nullptr;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0, total_ = 0, page_ = 0;
};

// `count` values against the guard page; `slack` values of room behind them.
template <class T>
class Guarded {
 public:
  explicit Guarded(size_t count, size_t slack = 0)
      : bytes_(count * sizeof(T), slack * sizeof(T)), count_(count) {}
  template <class Container>
  static Guarded copy(const Container& from) {
    Guarded out(from.size());
    if (from.size()) std::memcpy(out.data(), from.data(), from.size() * sizeof(T));
    return out;
  }
  T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data()); }
  size_t size() const { return count_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + count_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + count_; }

 private:
  GuardedBytes bytes_;
  size_t count_;
};

}  // namespace mote::test
