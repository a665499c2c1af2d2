// One block of memory, handed out front to back. The same planning code runs twice: over a
// measuring arena, which only counts, and over the real block; so the size asked for is exact.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mote {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;  // of every piece

  // Measures: take() returns null and counts.
  Arena() = default;
  // Hands out [base, base + bytes); base is aligned to kAlignment.
  Arena(void* base, size_t bytes) : base_(static_cast<uint8_t*>(base)), capacity_(bytes) {}

  // count elements, aligned to kAlignment, not initialised. Null when measuring, or when the block
  // is full (then failed() stays true). Sizes that overflow count as SIZE_MAX.
  template <class T>
  T* take(size_t count) {
    return static_cast<T*>(take_bytes(count, sizeof(T)));
  }

  // rows * columns of them.
  template <class T>
  T* take(size_t rows, size_t columns) {
    size_t count = 0;
    return take<T>(__builtin_mul_overflow(rows, columns, &count) ? SIZE_MAX : count);
  }

  size_t used() const { return used_; }  // a multiple of kAlignment, SIZE_MAX after an overflow
  size_t left() const { return capacity_ - used_; }
  bool measuring() const { return base_ == nullptr; }
  bool failed() const { return failed_; }

  // Scratch use: remember a place and go back to it.
  size_t mark() const { return used_; }
  void release(size_t mark) { used_ = mark; }
  // What is left, as an arena of its own; nothing is taken from this one.
  Arena rest() const { return Arena(base_ + used_, capacity_ - used_); }

 private:
  void* take_bytes(size_t count, size_t size) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - kAlignment) {
      if (measuring()) used_ = SIZE_MAX;
      failed_ = true;
      return nullptr;
    }
    bytes = (bytes + kAlignment - 1) & ~(kAlignment - 1);
    if (!base_) {
      if (__builtin_add_overflow(used_, bytes, &used_)) used_ = SIZE_MAX, failed_ = true;
      return nullptr;
    }
    if (failed_ || bytes > capacity_ - used_) {
      failed_ = true;
      return nullptr;
    }
    void* piece = base_ + used_;
    used_ += bytes;
    return piece;
  }

  uint8_t* base_ = nullptr;
  size_t capacity_ = 0;
  size_t used_ = 0;
  bool failed_ = false;
};

}  // namespace mote
