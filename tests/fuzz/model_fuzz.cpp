// Opens a file and computes with it. An input that begins like a GGUF file is one; of any other,
// the first byte chooses a tiny model and the rest decides how it is damaged.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/support/file_mutator.h"
#include "tests/support/file_trial.h"
#include "tests/support/tiny_families.h"

namespace mote::test {
namespace {

Bytes damaged(const uint8_t* data, size_t size) {
  static const std::vector<GgufBuilder> families = [] {
    std::vector<GgufBuilder> all;
    for (const TinyFamily& family : tiny_families()) all.push_back(family.build());
    return all;
  }();
  const GgufBuilder& good = families[data[0] % families.size()];
  size_t at = 1;
  FileMutator mutator([&](uint32_t limit) {
    uint32_t choice = 0;
    for (uint32_t most = limit - 1; most > 0 && at < size; most >>= 8)
      choice = choice << 8 | data[at++];
    return choice % limit;
  });
  return mutator.damage(good);
}

void check_file(const Bytes& bytes) {
  // Ends where the file ends, so that a sanitizer sees the first byte too many.
  void* copy = nullptr;
  if (posix_memalign(&copy, 64, bytes.empty() ? 1 : bytes.size()) != 0) return;
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  const FileTrial trial(static_cast<const uint8_t*>(copy), bytes.size(), nullptr);
  std::free(copy);
  if (trial.faults().empty()) return;
  std::fprintf(stderr, "%s", trial.faults().c_str());
  std::abort();
}

}  // namespace
}  // namespace mote::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mote::test;
  if (size == 0) return 0;
  const bool whole = size >= 4 && std::memcmp(data, "GGUF", 4) == 0;
  check_file(whole ? Bytes(data, data + size) : damaged(data, size));
  return 0;
}
