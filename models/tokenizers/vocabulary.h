// The tokens of a GGUF file, by id and by text. Texts stay in the file: the index holds offsets
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/gguf.h"
#include "core/memory.h"
#include "core/status.h"
#include "models/tokenizers/hash_index.h"
#include "models/tokenizers/tokenizer.h"

namespace mote {

class Vocabulary {
 public:
  // Reads tokenizer.ggml.tokens and .token_type (absent: all normal). MOTE_ERROR_BAD_FILE for no
  // token at all, for two of the same text, for a type array of another length or a type out of
  // range. Empty texts are allowed, any number of them; find() does not give them.
  Status open(const GgufFile& file, Allocator& allocator);

  uint32_t size() const { return static_cast<uint32_t>(offsets_.size()); }
  bool contains(int32_t id) const { return static_cast<uint32_t>(id) < size(); }
  bool has_types() const { return has_types_; }
  // id: one that the vocabulary contains.
  std::string_view text(int32_t id) const {
    const uint8_t* data = texts_ + offsets_[static_cast<size_t>(id)];
    uint64_t length;
    std::memcpy(&length, data - sizeof(length),
                sizeof(length));  // GGUF: u64 length, then the bytes
    return {reinterpret_cast<const char*>(data), static_cast<size_t>(length)};
  }
  TokenType type(int32_t id) const { return types_[static_cast<size_t>(id)]; }
  void set_type(int32_t id, TokenType type) { types_[static_cast<size_t>(id)] = type; }
  size_t longest() const { return longest_; }  // bytes of the longest text

  // -1: none.
  int32_t find(std::string_view wanted) const {
    TextHash hash;
    hash.add(wanted);
    return find(hash.value(), [&](std::string_view stored) { return stored == wanted; });
  }
  // For texts that are in pieces: same(stored text) decides.
  template <class Same>
  int32_t find(uint64_t hash, Same same) const {
    return index_.find(hash, [&](uint32_t id) { return same(text(static_cast<int32_t>(id))); });
  }

 private:
  Status read_types(const GgufFile& file, Allocator& allocator);

  const uint8_t* texts_ = nullptr;  // the array in the file
  HeapArray<uint32_t> offsets_;     // of each text in it
  HeapArray<TokenType> types_;
  HashIndex index_;
  size_t longest_ = 0;
  bool has_types_ = false;
};

}  // namespace mote
