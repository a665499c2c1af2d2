// Byte-level BPE (tokenizer.ggml.model "gpt2"): a text is its bytes, each written as one printable
// character; merges put them together in the order in which the file lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/gguf.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/status.h"
#include "models/tokenizers/hash_index.h"
#include "models/tokenizers/scanners.h"
#include "models/tokenizers/symbol_merger.h"
#include "models/tokenizers/token_sink.h"
#include "models/tokenizers/vocabulary.h"

namespace mote {

class Bpe {
 public:
  // Reads tokenizer.ggml.pre and .merges. An unknown pre-tokenizer is MOTE_ERROR_UNSUPPORTED and
  // shows its name; a missing one is "default", with a warning. A merge that is not two texts with
  // a space between is MOTE_ERROR_BAD_FILE; merges of texts that are no tokens can never apply:
  // they are left out, with one warning.
  Status open(const GgufFile& file, const Vocabulary& vocabulary, Allocator& allocator,
              const Log& log);

  bool adds_bos() const { return pre_tokenizer_->adds_bos; }  // the pre-tokenizer's default

  // Takes the scratch of encode() for texts of up to text_bytes: a bad byte becomes the 3 bytes of
  // U+FFFD.
  static void plan(Arena& scratch, size_t text_bytes, SymbolMerger* merger) {
    merger->plan(scratch, text_bytes * 3);
  }
  // Tokens of text, which has no special tokens in it and starts at `base` of what the caller was
  // given. A byte that the vocabulary has no token for is left out before merging, as upstream
  // does.
  void encode(std::string_view text, size_t base, SymbolMerger& merger, TokenSink& sink) const;
  // Bytes of a normal token, at most capacity are written; returns how many there are.
  size_t decode(int32_t id, char* out, size_t capacity) const;

 private:
  struct Merge {
    int32_t left, right, merged;
  };
  Status read_pre_tokenizer(const GgufFile& file, const Log& log);
  Status read_merges(const GgufFile& file, Allocator& allocator, const Log& log);
  uint32_t rank(uint32_t left, uint32_t right) const;
  int32_t find_word(std::string_view piece) const;
  void encode_piece(std::string_view piece, size_t base, SymbolMerger& merger,
                    TokenSink& sink) const;

  const Vocabulary* vocabulary_ = nullptr;
  const PreTokenizer* pre_tokenizer_ = nullptr;
  HeapArray<Merge> merges_;  // by rank
  HashIndex index_;          // (left, right) -> rank
  int32_t byte_ids_[256];    // -1: no token
};

}  // namespace mote
