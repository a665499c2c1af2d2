// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/byte_buffer.h"
#include "core/status.h"

namespace mote {

class OutputFile {
 public:
  explicit OutputFile(Allocator& allocator)
      : buffer_(allocator), name_(allocator), partial_name_(allocator) {}
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() { discard(); }

  // Makes an empty file in the folder of `path`, where the system can without a name, so that
  // nothing stays behind however the process ends. An existing file of that name stays as it is
  // until commit().
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
  Status take_partial_name();
  const char* path() const { return reinterpret_cast<const char*>(name_.data()); }
  const char* partial_path() const { return reinterpret_cast<const char*>(partial_name_.data()); }

  int fd_ = -1;
  bool failed_ = false;
  bool has_name_ = false;  // the temporary one
  ByteBuffer buffer_;
  ByteBuffer name_, partial_name_;  // zero-terminated
};

}  // namespace mote
