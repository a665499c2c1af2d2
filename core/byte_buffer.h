// Bytes that grow at the end, on an Allocator.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/memory.h"

namespace mote {

class ByteBuffer {
 public:
  explicit ByteBuffer(Allocator& allocator) : allocator_(allocator) {}

  Status append(const void* data, size_t count) {
    if (count > bytes_.size() - used_) MOTE_TRY(grow(count));
    if (count > 0) std::memcpy(bytes_.data() + used_, data, count);
    used_ += count;
    return kOk;
  }
  template <class T>
  Status append_value(T value) {
    return append(&value, sizeof value);
  }
  Status append_zeros(size_t count) {
    if (count > bytes_.size() - used_) MOTE_TRY(grow(count));
    if (count > 0) std::memset(bytes_.data() + used_, 0, count);
    used_ += count;
    return kOk;
  }
  void clear() { used_ = 0; }
  void truncate(size_t size) { used_ = size; }  // size <= size()
  uint8_t* data() { return bytes_.data(); }
  const uint8_t* data() const { return bytes_.data(); }
  size_t size() const { return used_; }

 private:
  Status grow(size_t more) {
    constexpr size_t kLeast = 4096;
    if (more > SIZE_MAX / 2 - used_)
      return fail(MOTE_ERROR_MEMORY, "buffer: %zu bytes are too many", more);
    size_t capacity = bytes_.size() < kLeast ? kLeast : bytes_.size() * 2;
    if (capacity < used_ + more) capacity = used_ + more;
    HeapArray<uint8_t> larger;
    MOTE_TRY(larger.allocate(allocator_, capacity, "buffer"));
    if (used_ > 0) std::memcpy(larger.data(), bytes_.data(), used_);
    bytes_.swap(larger);
    return kOk;
  }

  Allocator& allocator_;
  HeapArray<uint8_t> bytes_;
  size_t used_ = 0;
};

}  // namespace mote
