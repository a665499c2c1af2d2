#define _FILE_OFFSET_BITS 64  // files over 2 GiB on 32-bit systems
#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace mote {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMostPerRead = size_t{1} << 30;  // Linux reads at most 2 GiB at once

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status open_regular(const char* path, Descriptor* descriptor, size_t* bytes) {
  // Without O_NONBLOCK a pipe would wait for its writer.
  do {
    descriptor->fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (descriptor->fd < 0 && errno == EINTR);
  if (descriptor->fd < 0) return fail_system(errno, "%s: cannot open", path);
  struct stat info;
  if (::fstat(descriptor->fd, &info) != 0) return fail_system(errno, "%s: cannot examine", path);
  if (!S_ISREG(info.st_mode))
    return fail(MOTE_ERROR_IO, "%s: expected a file, found %s", path, kind_of(info.st_mode));
  if (info.st_size == 0) return fail(MOTE_ERROR_BAD_FILE, "%s: the file is empty", path);
  if (static_cast<uint64_t>(info.st_size) > SIZE_MAX / 2)
    return fail(MOTE_ERROR_MEMORY, "%s: %lld bytes do not fit this machine's address space", path,
                static_cast<long long>(info.st_size));
  *bytes = static_cast<size_t>(info.st_size);
  return kOk;
}

Status read_all(int fd, const char* path, uint8_t* memory, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const size_t want = bytes - done < kMostPerRead ? bytes - done : kMostPerRead;
    const ssize_t got = ::read(fd, memory + done, want);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_system(errno, "%s: cannot read at byte %zu", path, done);
    if (got == 0)
      return fail(MOTE_ERROR_IO, "%s: expected %zu bytes, found %zu: the file shrank meanwhile",
                  path, bytes, done);
    done += static_cast<size_t>(got);
  }
  return kOk;
}

// Fewer page faults and TLB misses where the system and the file system can; no harm elsewhere.
void advise_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef MADV_HUGEPAGE
  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(memory) + page - 1) & ~(page - 1);
  const uintptr_t last = (reinterpret_cast<uintptr_t>(memory) + bytes) & ~(page - 1);
  const int saved = errno;
  if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  errno = saved;
#endif
}

Status bring_in(const char* path, uint8_t* memory, size_t bytes) {
  ::madvise(memory, bytes, MADV_WILLNEED);
#ifdef MADV_POPULATE_READ
  if (::madvise(memory, bytes, MADV_POPULATE_READ) == 0) return kOk;
  if (errno != EINVAL) return fail_system(errno, "%s: cannot bring in all of its pages", path);
#else
  (void)path;
#endif
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  for (size_t at = 0; at < bytes; at += page)
    static_cast<void>(*static_cast<volatile uint8_t*>(memory + at));
  return kOk;
}

}  // namespace

Status MappedFile::open(const char* path, uint32_t flags, Allocator& allocator) {
  close();
  if (!path) return fail(MOTE_ERROR_ARGUMENT, "path: expected a file name, found null");
  const uint32_t known = MOTE_MODEL_READ | MOTE_MODEL_PREFETCH | MOTE_MODEL_LOCK;
  if (flags & ~known)
    return fail(MOTE_ERROR_ARGUMENT, "%s: unknown flags 0x%x", path,
                static_cast<unsigned>(flags & ~known));
  Descriptor descriptor;
  size_t bytes = 0;
  MOTE_TRY(open_regular(path, &descriptor, &bytes));
  uint8_t* memory = nullptr;
  if (flags & MOTE_MODEL_READ) {
    memory = static_cast<uint8_t*>(allocator.allocate(bytes, kAlignment));
    if (!memory) return fail(MOTE_ERROR_MEMORY, "%s: no memory for %zu bytes", path, bytes);
    allocator_ = &allocator;
  } else {
    void* mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor.fd, 0);
    if (mapping == MAP_FAILED) return fail_system(errno, "%s: cannot map %zu bytes", path, bytes);
    memory = static_cast<uint8_t*>(mapping);
    mapped_ = true;
  }
  data_ = memory;
  size_ = bytes;
  advise_huge_pages(memory, bytes);
  Status status;
  if (flags & MOTE_MODEL_READ)
    status = read_all(descriptor.fd, path, memory, bytes);
  else if (flags & MOTE_MODEL_PREFETCH)
    status = bring_in(path, memory, bytes);
  if (status.ok() && (flags & MOTE_MODEL_LOCK)) {
    locked_ = ::mlock(memory, bytes) == 0;
    if (!locked_)
      status = fail_system(errno, "%s: cannot lock %zu bytes in memory (ulimit -l)", path, bytes);
  }
  if (!status.ok()) close();
  return status;
}

Status MappedFile::open_memory(const void* data, size_t bytes) {
  close();
  if (!data) return fail(MOTE_ERROR_ARGUMENT, "model in memory: expected a pointer, found null");
  if (reinterpret_cast<uintptr_t>(data) % kMemoryAlignment != 0)
    return fail(MOTE_ERROR_ARGUMENT,
                "model in memory: expected an address that is a multiple of %zu, found %p",
                kMemoryAlignment, data);
  if (bytes == 0) return fail(MOTE_ERROR_BAD_FILE, "model in memory: it is empty");
  data_ = static_cast<const uint8_t*>(data);
  size_ = bytes;
  return kOk;
}

void MappedFile::close() {
  void* memory = const_cast<uint8_t*>(data_);
  if (locked_) ::munlock(memory, size_);
  if (mapped_) ::munmap(memory, size_);
  if (allocator_) allocator_->release(memory, size_);
  data_ = nullptr;
  size_ = 0;
  mapped_ = locked_ = false;
  allocator_ = nullptr;
}

}  // namespace mote
