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
#include "models/tokenizers/normalizer.h"
#include "models/tokenizers/scanners.h"
#include "models/tokenizers/symbol_merger.h"
#include "models/tokenizers/token_sink.h"
#include "models/tokenizers/vocabulary.h"

namespace mote {

class Bpe {
 public:
  // Scratch of encode().
  struct Scratch {
    SymbolMerger merger;
    Normalizer::Scratch normal;
    char* text;  // [room] normalized, where the model normalizes or puts a space in front
    size_t room;
  };

  // Reads tokenizer.ggml.pre and .merges, what Normalizer reads, tokenizer.ggml.add_space_prefix
  // (default false: a text that does not begin with a space gets one) and mote.bpe.trim_offsets
  // (default true: an encoder's token does not cover the spaces that it begins or ends with). An
  // unknown pre-tokenizer is MOTE_ERROR_UNSUPPORTED and shows its name; a missing one is "default",
  // with a warning. A merge that is not two texts with a space between is MOTE_ERROR_BAD_FILE;
  // merges of texts that are no tokens can never apply: they are left out, with one warning.
  Status open(const GgufFile& file, const Vocabulary& vocabulary, Allocator& allocator,
              const Log& log);

  // The defaults of the file's pre-tokenizer, if that is known. frames: it is an encoder's.
  static Status default_frame(const GgufFile& file, bool* adds_bos, bool* frames);

  // Tokens say what they cover, as an encoder's do, instead of partitioning the text.
  void set_covers() { covers_ = true; }

  // For texts of up to text_bytes: a bad byte becomes the 3 bytes of U+FFFD.
  void plan(Arena& arena, size_t text_bytes, Scratch* scratch) const;
  // Bytes that are cut into tokens, at most, of a text of text_bytes; without the space in front.
  size_t longest_result(size_t text_bytes) const { return normalizer_.longest_result(text_bytes); }
  // Tokens of text, which has no special tokens in it and starts at `base` of what the caller was
  // given. A byte that the vocabulary has no token for is left out before merging, as upstream
  // does. MOTE_ERROR_CAPACITY: normalization makes too much of the text.
  Status encode(std::string_view text, size_t base, Scratch& scratch, TokenSink& sink) const;
  // Takes white space off what a special token covers, where the tokens of this model lose it.
  void trim_special(std::string_view text, size_t* start, size_t* end) const;
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
  struct Source;
  struct Place;
  bool needs_rewriting(std::string_view text) const;
  void encode_pieces(std::string_view text, const Source& source, SymbolMerger& merger,
                     TokenSink& sink) const;
  size_t encode_piece(std::string_view piece, const Source& source, const Place& place,
                      SymbolMerger& merger, TokenSink& sink) const;

  const Vocabulary* vocabulary_ = nullptr;
  const PreTokenizer* pre_tokenizer_ = nullptr;
  HeapArray<Merge> merges_;  // by rank
  HashIndex index_;          // (left, right) -> rank
  int32_t byte_ids_[256];    // -1: no token
  Normalizer normalizer_;
  bool covers_ = false, space_prefix_ = false, trims_ = true;
};

}  // namespace mote
