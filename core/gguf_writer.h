// Writes GGUF version 3. In order: create, keys and tensors in any order, the tensors' data in the
// tensors' order, finish. Memory in use stays small however large the file is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "core/byte_buffer.h"
#include "core/gguf.h"
#include "core/output_file.h"
#include "core/status.h"
#include "core/tensor.h"

namespace mote {

class GgufWriter {
 public:
  static constexpr uint64_t kAlignment = 32;  // of every tensor's data

  explicit GgufWriter(Allocator& allocator);
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  // The file gets its name in finish(); until then, and for ever after an error, a file of that
  // name stays what it was. Destroying an unfinished writer removes what it wrote.
  Status create(const char* path);
  // Keeps everything in memory instead; see memory().
  Status create_in_memory();

  // Keys: names unique, 1 to 65535 bytes; general.alignment is the writer's own business.
  Status add_bool(std::string_view key, bool value);
  Status add_u32(std::string_view key, uint32_t value);
  Status add_i32(std::string_view key, int32_t value);
  Status add_u64(std::string_view key, uint64_t value);
  Status add_f32(std::string_view key, float value);
  Status add_text(std::string_view key, std::string_view value);
  Status add_texts(std::string_view key, const std::string_view* values, size_t count);
  // type: any but text and array; value: type_bytes(type) bytes.
  Status add_value(std::string_view key, GgufType type, const void* value);
  // element: any but text and array; values: count * type_bytes(element) bytes.
  Status add_array(std::string_view key, GgufType element, const void* values, uint64_t count);
  // A key of another file as it is; general.alignment is left out.
  Status copy_key(const GgufKey& key);

  // Declares a tensor; shape[0] is the fastest axis and must be whole blocks. 1 to 4 dimensions.
  Status add_tensor(std::string_view name, Format format, const uint64_t* shape,
                    uint32_t dimensions);
  Status add_tensor(std::string_view name, Format format, std::initializer_list<uint64_t> shape);

  // The next bytes of the first tensor that lacks some. A piece lies within one tensor. No key or
  // tensor may be added after the first piece.
  Status append(const void* data, size_t bytes);
  // Every tensor must have all its bytes.
  Status finish();
  // Removes what was written; the writer may be used anew with create().
  void discard();

  // The whole file, after create_in_memory() and finish().
  const uint8_t* memory() const { return memory_.data(); }
  size_t memory_bytes() const { return memory_.size(); }

 private:
  enum class Stage : uint8_t { closed, declaring, data, finished };
  struct Entry {
    size_t name;  // where in keys_ or table_ it stands
    uint32_t name_bytes;
    uint64_t bytes;  // of a tensor's data
  };
  Status begin_key(std::string_view key, GgufType type);
  Status end_entry(Status status);
  Status begin_data();
  Status add_entry(const char* what, std::string_view name, ByteBuffer* section,
                   ByteBuffer* entries);
  Status write(const void* data, size_t bytes);
  Status write_padding();
  size_t entry_count(const ByteBuffer& entries) const { return entries.size() / sizeof(Entry); }
  Entry entry(const ByteBuffer& entries, size_t i) const;
  std::string_view entry_name(const ByteBuffer& section, const Entry& entry) const;

  OutputFile file_;
  ByteBuffer memory_;
  ByteBuffer keys_, table_;                  // the file's sections
  ByteBuffer key_entries_, tensor_entries_;  // arrays of Entry
  Stage stage_ = Stage::closed;
  bool in_memory_ = false;
  uint64_t data_bytes_ = 0;  // declared, with padding
  uint64_t written_ = 0;     // from the beginning of the file
  bool entry_open_ = false;  // a key or tensor was begun and not ended: memory ran out in between
  size_t tensor_ = 0;        // whose data comes next
  uint64_t tensor_written_ = 0;
};

}  // namespace mote
