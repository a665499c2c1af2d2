#define _FILE_OFFSET_BITS 64  // files over 2 GiB on 32-bit systems
#include "core/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace mote {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr size_t kMostPerWrite = size_t{1} << 30;
constexpr int kMostNames = 1000;  // other writers of the same file, or what is left of them

}  // namespace

Status OutputFile::create(const char* path) {
  discard();
  failed_ = false;
  struct stat info;
  if (::stat(path, &info) == 0 && !S_ISREG(info.st_mode))
    return fail(MOTE_ERROR_IO, "%s: expected a file or nothing there, found %s", path,
                S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
  names_.clear();
  MOTE_TRY(names_.append(path, std::strlen(path) + 1));
  partial_ = names_.size();
  for (int i = 0; i < kMostNames; ++i) {
    char suffix[64];
    std::snprintf(suffix, sizeof suffix, ".%ld-%d.partial", static_cast<long>(::getpid()), i);
    names_.truncate(partial_);
    MOTE_TRY(names_.append(path, std::strlen(path)));
    MOTE_TRY(names_.append(suffix, std::strlen(suffix) + 1));
    fd_ = ::open(partial_path(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0) return kOk;
    if (errno != EEXIST && errno != EINTR) break;
  }
  return fail_system(errno, "%s: cannot create", partial_path());
}

Status OutputFile::write(const void* data, size_t bytes) {
  if (fd_ < 0) return fail(MOTE_ERROR_ARGUMENT, "output file: it is not open");
  if (buffer_.size() + bytes < kBufferBytes) return buffer_.append(data, bytes);
  MOTE_TRY(flush());
  if (bytes >= kBufferBytes) return write_through(static_cast<const uint8_t*>(data), bytes);
  return buffer_.append(data, bytes);
}

Status OutputFile::flush() {
  MOTE_TRY(write_through(buffer_.data(), buffer_.size()));
  buffer_.clear();
  return kOk;
}

Status OutputFile::write_through(const uint8_t* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(fd_, data, bytes < kMostPerWrite ? bytes : kMostPerWrite);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failed_ = true;
      return fail_system(written < 0 ? errno : ENOSPC, "%s: cannot write", partial_path());
    }
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return kOk;
}

Status OutputFile::commit() {
  if (fd_ < 0) return fail(MOTE_ERROR_ARGUMENT, "output file: it is not open");
  if (failed_) return fail(MOTE_ERROR_IO, "%s: an earlier write failed", path());
  MOTE_TRY(flush());
  // A full disk may show only here. Some file systems know no fsync.
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != ENOTSUP)
    return fail_system(errno, "%s: cannot write", partial_path());
  if (::rename(partial_path(), path()) != 0)
    return fail_system(errno, "%s: cannot rename %s to it", path(), partial_path());
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0 && errno != EINTR) return fail_system(errno, "%s: cannot close", path());
  return kOk;
}

void OutputFile::discard() {
  buffer_.clear();
  if (fd_ < 0) return;
  ::close(fd_);
  fd_ = -1;
  ::unlink(partial_path());
}

}  // namespace mote
