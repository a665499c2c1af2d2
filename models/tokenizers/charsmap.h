// SentencePiece's precompiled character map: a double-array trie from byte sequences to what stands
// for them. Every index is checked: the map comes from a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/gguf.h"
#include "core/status.h"

namespace mote {

class Charsmap {
 public:
  // Reads tokenizer.ggml.precompiled_charsmap (an array of bytes) and walks all of it:
  // MOTE_ERROR_BAD_FILE where the trie is not one or a text is no UTF-8.
  Status open(const GgufFile& file);
  bool present() const { return units_ > 0; }
  // What stands for the shortest key that `text` begins with; false: there is none.
  bool find(std::string_view text, std::string_view* replacement) const;
  // Code points of a replacement for each byte of its key, the most of all.
  size_t growth() const { return growth_; }

 private:
  uint32_t unit(size_t at) const;
  bool step(uint8_t byte, size_t* node) const;
  bool replacement_of(size_t node, std::string_view* replacement) const;
  Status walk(const GgufFile& file);

  const uint8_t* trie_ = nullptr;  // [units] of 32 bits, unaligned
  size_t units_ = 0;
  std::string_view texts_;  // replacements, a zero byte behind each
  size_t growth_ = 1;
};

}  // namespace mote
