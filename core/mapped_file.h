// A file's bytes: mapped, read into memory, or the caller's own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory.h"
#include "core/status.h"

namespace mote {

class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() { close(); }

  static constexpr size_t kMemoryAlignment = 32;  // of the caller's memory

  // flags: MOTE_MODEL_READ, _PREFETCH, _LOCK. An empty file (MOTE_ERROR_BAD_FILE), a directory, a
  // pipe or a device (MOTE_ERROR_IO) is an error that says so; so is a limit that forbids locking.
  Status open(const char* path, uint32_t flags, Allocator& allocator);
  // The caller's memory, aligned to 32 bytes (MOTE_ERROR_ARGUMENT otherwise); nothing is copied.
  Status open_memory(const void* data, size_t bytes);
  void close();

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
  bool locked_ = false;
  Allocator* allocator_ = nullptr;  // of the memory read into
};

}  // namespace mote
