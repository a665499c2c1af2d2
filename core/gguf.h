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
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  text = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12
};
const char* type_name(GgufType type);  // as in the enum: "u32", "text", ...
// Bytes of one value; 0 for text and array, whose sizes stand in the file.
size_t type_bytes(GgufType type);

struct GgufKey {
  std::string_view name;
  GgufType type;
  GgufType element;     // of an array, never array itself; otherwise the type
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
  // data and name (for messages) stay the caller's. Checks the header, all keys and the tensor
  // table: names (unique), shapes, formats, offsets (aligned, inside the file, not overlapping).
  // Tensor data has the file's alignment where `data` has it. MOTE_ERROR_BAD_FILE: damaged or cut
  // short. MOTE_ERROR_UNSUPPORTED: version 1, big-endian, nested arrays, an unknown tensor type.
  Status open(const uint8_t* data, size_t bytes, std::string_view name, Allocator& allocator);

  std::string_view name() const { return name_; }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const HeapArray<GgufKey>& keys() const { return keys_; }
  const HeapArray<Tensor>& tensors() const { return tensors_; }
  const GgufKey* find(std::string_view key) const;         // null: absent
  const Tensor* find_tensor(std::string_view name) const;  // null: absent

  // Typed access. A key of another type, or a number that does not fit or is not finite, is
  // MOTE_ERROR_BAD_FILE and names file, key, expected and found. get_...: absent is an error too;
  // the ones with a fallback give that when absent. *value changes only on success. Any integer
  // type is accepted for integers, f32 and f64 (and integers) for floats.
  Status get_u32(std::string_view key, uint32_t* value) const;
  Status get_u32(std::string_view key, uint32_t fallback, uint32_t* value) const;
  Status get_f32(std::string_view key, float* value) const;
  Status get_f32(std::string_view key, float fallback, float* value) const;
  Status get_bool(std::string_view key, bool fallback, bool* value) const;
  Status get_text(std::string_view key, std::string_view* value) const;
  Status get_text(std::string_view key, std::string_view fallback, std::string_view* value) const;
  // An array of the given element type; absent is an error; count: 0 for any. *value may be
  // unaligned: read elements with memcpy.
  Status get_array(std::string_view key, GgufType element, uint64_t count,
                   const GgufKey** value) const;

 private:
  class Reader;
  const GgufKey* need(std::string_view key, Status* status) const;
  Status wrong_type(const GgufKey& key, const char* expected) const;

  std::string_view name_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  HeapArray<GgufKey> keys_;
  HeapArray<Tensor> tensors_;
  HeapArray<uint32_t> key_index_, tensor_index_;  // sorted by name
};

}  // namespace mote
