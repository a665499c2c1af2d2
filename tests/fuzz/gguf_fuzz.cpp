// Opens any bytes as a GGUF file and reads all that it then promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/gguf.h"
#include "core/mapped_file.h"

namespace {

using namespace mote;

uint8_t read_all(const uint8_t* data, uint64_t bytes) {
  uint8_t mixed = 0;
  for (uint64_t i = 0; i < bytes; ++i) mixed ^= data[i];
  return mixed;
}

uint8_t read_key(const GgufFile& gguf, const GgufKey& key) {
  uint8_t mixed = read_all(key.data, key.bytes);
  if (gguf.find(key.name) != &key) std::abort();
  uint32_t number = 0;
  float real = 0;
  bool flag = false;
  std::string_view text;
  const GgufKey* array = nullptr;
  (void)gguf.get_u32(key.name, &number);
  (void)gguf.get_f32(key.name, &real);
  (void)gguf.get_bool(key.name, false, &flag);
  if (gguf.get_text(key.name, &text).ok())
    mixed ^= read_all(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  if (gguf.get_array(key.name, GgufType::text, 0, &array).ok()) {
    GgufTexts texts(*array);
    while (texts.next(&text))
      mixed ^= read_all(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }
  return static_cast<uint8_t>(mixed + number + flag);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kAlignment = MappedFile::kMemoryAlignment;
  // Ends where the input ends, so that a sanitizer sees the first byte too many.
  void* copy = nullptr;
  if (posix_memalign(&copy, kAlignment, size > 0 ? size : 1) != 0) return 0;
  if (size > 0) std::memcpy(copy, data, size);
  Allocator allocator;
  MappedFile file;
  uint8_t mixed = 0;
  if (file.open_memory(copy, size).ok()) {
    GgufFile gguf;
    if (gguf.open(file.data(), file.size(), "input", allocator).ok()) {
      for (const GgufKey& key : gguf.keys()) mixed ^= read_key(gguf, key);
      for (const Tensor& tensor : gguf.tensors()) {
        mixed ^= read_all(tensor.data, tensor.bytes);
        if (gguf.find_tensor(tensor.name) != &tensor) std::abort();
        if (row_bytes(tensor.format, tensor.columns()) * tensor.rows() != tensor.bytes)
          std::abort();
      }
    } else if (std::strncmp(last_error(), "input: ", 7) != 0) {
      std::abort();  // the message does not name the file
    }
  }
  if (allocator.bytes_in_use() != 0) std::abort();
  std::free(copy);
  volatile uint8_t sink = mixed;
  (void)sink;
  return 0;
}
