// GGUF v2 and v3, read in place: every length, count and offset is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/memory.h"
#include "core/status.h"
#include "core/tensor.h"

namespace mote {

enum class GgufType : uint32_t {
  u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, boolean = 7, text = 8, array = 9,
  u64 = 10, i64 = 11, f64 = 12
};
const char* type_name(GgufType type);

struct GgufKey {
  std::string_view name;
  GgufType type;
  GgufType element;     // of an array; never array itself
  uint64_t count;       // of an array; 1 otherwise
  const uint8_t* data;  // the value (a text: behind its length); an array: its first element
  uint64_t bytes;       // of all of it
};

// Walks an array of texts: each is a u64 length and bytes, all checked at open.
class GgufTexts {
 public:
  GgufTexts() = default;
  explicit GgufTexts(const GgufKey& key) : next_(key.data), left_(key.count) {}
  bool next(std::string_view* text);

 private:
  const uint8_t* next_ = nullptr;
  uint64_t left_ = 0;
};

class GgufFile {
 public:
  // data stays the caller's; name is for messages. Checks the header, all keys and the tensor table:
  // shapes, formats, offsets (aligned, inside the file, not overlapping).
  Status open(const uint8_t* data, size_t bytes, std::string_view name, Allocator& allocator);

  std::string_view name() const { return name_; }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const HeapArray<GgufKey>& keys() const { return keys_; }
  const HeapArray<Tensor>& tensors() const { return tensors_; }
  const GgufKey* find(std::string_view key) const;          // null: absent
  const Tensor* find_tensor(std::string_view name) const;   // null: absent

  // Typed access. A key of another type, or a number that does not fit, is MOTE_ERROR_BAD_FILE and names file, key,
  // expected and found. get_...: absent is an error too; the ones with a fallback give that when absent.
  // Any integer type is accepted for integers, f32 and f64 (and integers) for floats.
  Status get_u32(std::string_view key, uint32_t* value) const;
  Status get_u32(std::string_view key, uint32_t fallback, uint32_t* value) const;
  Status get_f32(std::string_view key, float* value) const;
  Status get_f32(std::string_view key, float fallback, float* value) const;
  Status get_bool(std::string_view key, bool fallback, bool* value) const;
  Status get_text(std::string_view key, std::string_view* value) const;
  Status get_text(std::string_view key, std::string_view fallback, std::string_view* value) const;
  // An array of the given element type; absent is an error; count: 0 for any.
  Status get_array(std::string_view key, GgufType element, uint64_t count, const GgufKey** value) const;

 private:
  std::string_view name_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  HeapArray<GgufKey> keys_;
  HeapArray<Tensor> tensors_;
  HeapArray<uint32_t> key_index_, tensor_index_;  // hash tables
};

}  // namespace mote
