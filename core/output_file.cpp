#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // O_TMPFILE
#endif
#define _FILE_OFFSET_BITS 64  // files over 2 GiB on 32-bit systems
#include "core/output_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
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

// /proc's name of an open file, by which it can be linked.
struct OpenName {
  char text[48];
  explicit OpenName(int fd) { std::snprintf(text, sizeof text, "/proc/self/fd/%d", fd); }
};

// A file without a name in the folder of `path`: the system removes it whatever ends the process.
// -1 where the system or the file system knows no such thing.
int open_nameless([[maybe_unused]] const char* path) {
#ifdef O_TMPFILE
  char folder[PATH_MAX];
  const char* const slash = std::strrchr(path, '/');
  const size_t length = slash ? size_t(slash - path) + 1 : 0;
  if (length + 2 > sizeof folder) return -1;
  std::memcpy(folder, path, length);
  std::strcpy(folder + length, ".");
  const int fd = ::open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  struct stat info;
  if (fd < 0 || ::stat(OpenName(fd).text, &info) == 0) return fd;
  ::close(fd);
#endif
  return -1;
}

}  // namespace

Status OutputFile::create(const char* path) {
  discard();
  failed_ = false;
  if (!*path) return fail(MOTE_ERROR_ARGUMENT, "output file: expected a name, found an empty one");
  // A link stays one: what it points to is replaced.
  char pointed_to[PATH_MAX];
  if (::realpath(path, pointed_to)) path = pointed_to;
  struct stat info;
  const bool replaces = ::stat(path, &info) == 0;
  if (replaces && !S_ISREG(info.st_mode))
    return fail(MOTE_ERROR_IO, "%s: expected a file or nothing there, found %s", path,
                S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
  name_.clear();
  MOTE_TRY(name_.append(path, std::strlen(path) + 1));
  fd_ = open_nameless(path);
  if (fd_ < 0) MOTE_TRY(take_partial_name());
  // What only some may read stays so. A file system without permissions refuses.
  if (replaces) (void)!::fchmod(fd_, info.st_mode & 0777);
  return kOk;
}

// Creates the file under a temporary name, or gives the open one that name.
Status OutputFile::take_partial_name() {
  for (int i = 0; i < kMostNames; ++i) {
    char suffix[64];
    std::snprintf(suffix, sizeof suffix, ".%ld-%d.partial", static_cast<long>(::getpid()), i);
    partial_name_.clear();
    MOTE_TRY(partial_name_.append(path(), name_.size() - 1));
    MOTE_TRY(partial_name_.append(suffix, std::strlen(suffix) + 1));
    int made = 0;
    if (fd_ < 0)
      made = fd_ = ::open(partial_path(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    else
      made = ::linkat(AT_FDCWD, OpenName(fd_).text, AT_FDCWD, partial_path(), AT_SYMLINK_FOLLOW);
    if (made >= 0) {
      has_name_ = true;
      return kOk;
    }
    if (errno != EEXIST && errno != EINTR) break;
  }
  return fail_system(errno, "%s: cannot create", path());
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
      return fail_system(written < 0 ? errno : ENOSPC, "%s: cannot write", path());
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
    return fail_system(errno, "%s: cannot write", path());
  if (!has_name_) MOTE_TRY(take_partial_name());
  if (::rename(partial_path(), path()) != 0)
    return fail_system(errno, "%s: cannot rename %s to it", path(), partial_path());
  const int fd = fd_;
  fd_ = -1;
  has_name_ = false;
  if (::close(fd) != 0 && errno != EINTR) return fail_system(errno, "%s: cannot close", path());
  return kOk;
}

void OutputFile::discard() {
  buffer_.clear();
  if (fd_ < 0) return;
  ::close(fd_);
  fd_ = -1;
  if (has_name_) ::unlink(partial_path());
  has_name_ = false;
}

}  // namespace mote
