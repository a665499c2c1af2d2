// Heap memory through the caller's allocator, counted; failures are a Status and never an
// exception.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "core/status.h"
#include "mote.h"

namespace mote {

// Wraps mote_allocator (null: malloc and free) and counts what is outstanding. Threads may share
// one where the custom functions allow it.
class Allocator {
 public:
  Allocator() = default;
  explicit Allocator(const mote_allocator* custom);  // copied
  // Null when the memory is not to be had; alignment is a power of two.
  void* allocate(size_t bytes, size_t alignment);
  void release(void* memory, size_t bytes);
  size_t bytes_in_use() const { return __atomic_load_n(&in_use_, __ATOMIC_RELAXED); }

 private:
  mote_allocator custom_{};
  size_t in_use_ = 0;
};

// A fixed-size array of trivial elements on an Allocator; move-only, not initialised.
template <class T>
class HeapArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  HeapArray() = default;
  HeapArray(const HeapArray&) = delete;
  HeapArray& operator=(const HeapArray&) = delete;
  HeapArray(HeapArray&& other) noexcept { swap(other); }
  HeapArray& operator=(HeapArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~HeapArray() { reset(); }

  // what: named in the error message.
  Status allocate(Allocator& allocator, size_t count, const char* what) {
    reset();
    if (count > SIZE_MAX / sizeof(T))
      return fail(MOTE_ERROR_MEMORY, "%s: %zu elements are too many", what, count);
    if (count == 0) return kOk;
    data_ =
        static_cast<T*>(allocator.allocate(count * sizeof(T), alignof(T) < 16 ? 16 : alignof(T)));
    if (!data_)
      return fail(MOTE_ERROR_MEMORY, "%s: no memory for %zu bytes", what, count * sizeof(T));
    allocator_ = &allocator;
    size_ = count;
    return kOk;
  }
  void reset() {
    if (data_) allocator_->release(data_, size_ * sizeof(T));
    data_ = nullptr;
    size_ = 0;
  }
  void swap(HeapArray& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  Allocator* allocator_ = nullptr;
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mote
