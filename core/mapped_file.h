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

  // flags: MOTE_MODEL_READ, _PREFETCH, _LOCK. An empty file, a directory or a device is an error.
  Status open(const char* path, uint32_t flags, Allocator& allocator);
  // The caller's memory, aligned to 32 bytes.
  Status open_memory(const void* data, size_t bytes);
  void close();

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
  Allocator* allocator_ = nullptr;  // of the memory read into
};

}  // namespace mote
