// SentencePiece Unigram (tokenizer.ggml.model "t5"): of all ways to cover a word with pieces the
// one whose scores add up to most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/gguf.h"
#include "core/memory.h"
#include "core/status.h"
#include "models/tokenizers/normalizer.h"
#include "models/tokenizers/token_sink.h"
#include "models/tokenizers/vocabulary.h"

namespace mote {

class Unigram {
 public:
  struct Scratch {
    Normalizer::Scratch normal;
    double* scores;  // [ring_] of the best ways to the last places
  };

  // Reads tokenizer.ggml.scores (one f32 per token, no NaN), what Normalizer reads,
  // tokenizer.ggml.add_space_prefix (default true: U+2581 in front of what does not begin with it),
  // mote.unigram.prefix (text: "always", the default, or "first": only where a text begins),
  // mote.unigram.split_white_space (default true: words end at white space, which is dropped;
  // false: a space becomes U+2581) and mote.unigram.split_marks (default true: each U+2581 begins a
  // word). unknown: the token of what no piece covers; -1 is MOTE_ERROR_BAD_FILE.
  Status open(const GgufFile& file, const Vocabulary& vocabulary, int32_t unknown,
              Allocator& allocator);

  void plan(Arena& arena, size_t text_bytes, Scratch* scratch) const;
  // Characters that are cut into pieces, at most, of a text of text_bytes; without U+2581 in front.
  size_t longest_result(size_t text_bytes) const { return normalizer_.most_characters(text_bytes); }
  // Tokens of text, which has no special tokens in it and starts at `base` of what the caller was
  // given. Best path, and of equal ones the one that upstream takes: a way to a place is given up
  // only for a better one, and shorter first pieces come first. Unknown characters next to each
  // other are one token. MOTE_ERROR_CAPACITY: normalization makes too much of the text.
  Status encode(std::string_view text, size_t base, Scratch& scratch, TokenSink& sink) const;
  // Bytes of a normal token, U+2581 as a space; at most capacity are written; returns how many
  // there are. first: a text begins with it, so a space in front is dropped.
  size_t decode(int32_t id, bool first, char* out, size_t capacity) const;

 private:
  struct Word;
  // A set of texts that may find one that is not in it: whether any piece goes on like this.
  class Beginnings {
   public:
    Status allocate(Allocator& allocator, size_t entries);
    void add(uint64_t hash) { bits_[slot(hash) / 64] |= uint64_t{1} << slot(hash) % 64; }
    bool has(uint64_t hash) const { return bits_[slot(hash) / 64] >> slot(hash) % 64 & 1; }

   private:
    size_t slot(uint64_t hash) const {
      return static_cast<size_t>((hash ^ hash >> 29) * 0x9e3779b97f4a7c15u >> shift_);
    }
    HeapArray<uint64_t> bits_;
    uint32_t shift_ = 0;
  };

  Status read_scores(const GgufFile& file);
  Status index_pieces(Allocator& allocator);
  float score(int32_t id) const;
  bool is_piece(int32_t id) const;
  void encode_words(const Word& words, Scratch& scratch, TokenSink& sink) const;
  void encode_word(const Word& word, Scratch& scratch, TokenSink& sink) const;
  void extend(const Word& word, size_t at, Scratch& scratch) const;

  const Vocabulary* vocabulary_ = nullptr;
  const uint8_t* scores_ = nullptr;  // f32 in the file, unaligned
  Normalizer normalizer_;
  Beginnings beginnings_;
  size_t longest_ = 1;  // characters of the longest piece
  size_t ring_ = 2;
  double unknown_score_ = 0;
  int32_t unknown_ = -1;
  bool prefix_ = true, prefix_first_only_ = false;
  bool splits_white_space_ = true, splits_marks_ = true;
};

}  // namespace mote
