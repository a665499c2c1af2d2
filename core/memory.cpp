#include "core/memory.h"

#include <cstdlib>

namespace mote {

Allocator::Allocator(const mote_allocator* custom) {
  if (custom) custom_ = *custom;
}

void* Allocator::allocate(size_t bytes, size_t alignment) {
  if (bytes == 0) bytes = 1;
  void* memory = nullptr;
  if (custom_.allocate) {
    memory = custom_.allocate(custom_.user, bytes, alignment);
  } else if (alignment <= alignof(max_align_t)) {
    memory = std::malloc(bytes);
  } else if (posix_memalign(&memory, alignment, bytes) != 0) {
    memory = nullptr;
  }
  if (memory) __atomic_fetch_add(&in_use_, bytes, __ATOMIC_RELAXED);
  return memory;
}

void Allocator::release(void* memory, size_t bytes) {
  if (!memory) return;
  if (bytes == 0) bytes = 1;
  __atomic_fetch_sub(&in_use_, bytes, __ATOMIC_RELAXED);
  if (custom_.release)
    custom_.release(custom_.user, memory, bytes);
  else
    std::free(memory);
}

}  // namespace mote
