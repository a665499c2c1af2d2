// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/byte_buffer.h"
#include "core/status.h"

namespace mote {

class OutputFile {
 public:
  explicit OutputFile(Allocator& allocator) : buffer_(allocator), names_(allocator) {}
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() { discard(); }

  // Makes an empty file beside `path`. An existing file of that name stays as it is until commit().
  Status create(const char* path);
  // Buffered. Errors (a full disk) name the file.
  Status write(const void* data, size_t bytes);
  // Brings everything to the disk and renames. After an error, here or in write(), the name is
  // untouched and discard() is due.
  Status commit();
  // Removes what was written since create(); nothing after commit().
  void discard();
  bool is_open() const { return fd_ >= 0; }

 private:
  Status flush();
  Status write_through(const uint8_t* data, size_t bytes);
  const char* path() const { return reinterpret_cast<const char*>(names_.data()); }
  const char* partial_path() const { return path() + partial_; }

  int fd_ = -1;
  bool failed_ = false;
  ByteBuffer buffer_;
  ByteBuffer names_;    // the final and the temporary name, zero-terminated
  size_t partial_ = 0;  // where the latter begins
};

}  // namespace mote
