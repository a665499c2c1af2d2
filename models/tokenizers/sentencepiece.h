// SentencePiece BPE (tokenizer.ggml.model "llama"): characters, spaces written as U+2581, merge in
// the order of the scores of what they make; a character that is no token becomes one token per
// byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/gguf.h"
#include "core/memory.h"
#include "core/status.h"
#include "models/tokenizers/symbol_merger.h"
#include "models/tokenizers/token_sink.h"
#include "models/tokenizers/vocabulary.h"

namespace mote {

class SentencePiece {
 public:
  // Scratch of encode().
  struct Scratch {
    SymbolMerger merger;
    char* text;         // normalized
    uint32_t* ends;     // [symbols + 1]: where the first i symbols end in text
    uint32_t* sources;  // [symbols]: where each starts in the text as given
  };

  // Reads tokenizer.ggml.scores (one f32 per token, no NaN), .add_space_prefix (default true) and
  // .remove_extra_whitespaces (default false). unknown: the token of what no token covers, -1:
  // none.
  Status open(const GgufFile& file, const Vocabulary& vocabulary, int32_t unknown);

  // For texts of up to text_bytes: a byte is one symbol at most, of three bytes at most (a space, a
  // bad byte).
  static void plan(Arena& arena, size_t text_bytes, Scratch* scratch);
  // Tokens of text, which starts at `base` of what the caller was given. Nothing or a special token
  // stands before it and none is in it, so a space is put in front where the model wants one.
  void encode(std::string_view text, size_t base, Scratch& scratch, TokenSink& sink) const;
  // Bytes of a normal or byte token, at most capacity are written; returns how many there are.
  // first: a text begins with it, so the space that encode() put in front is dropped.
  size_t decode(int32_t id, bool first, char* out, size_t capacity) const;

 private:
  size_t normalize(std::string_view text, Scratch& scratch) const;
  int32_t find(std::string_view text) const;
  void put_bytes(std::string_view symbol, size_t source, TokenSink& sink) const;

  const Vocabulary* vocabulary_ = nullptr;
  const uint8_t* scores_ = nullptr;  // f32 in the file, unaligned
  int32_t byte_ids_[256];            // -1: no token
  int32_t unknown_ = -1;
  bool space_prefix_ = true, remove_extra_spaces_ = false;
};

}  // namespace mote
