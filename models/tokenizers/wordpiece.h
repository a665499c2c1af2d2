// WordPiece (tokenizer.ggml.model "bert"): a text is normalized as BERT does it, cut into words and
// single punctuation marks, and each word is covered by the longest pieces from the left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/gguf.h"
#include "core/log.h"
#include "core/status.h"
#include "models/tokenizers/token_sink.h"
#include "models/tokenizers/vocabulary.h"

namespace mote {

// Pieces are stored as llama.cpp's converter writes them: U+2581 in front of one that begins a
// word, nothing in front of one that goes on (where Hugging Face writes "##").
class WordPiece {
 public:
  // A word while it is read, and its pieces. A word longer than `capacity` is only counted.
  struct Scratch {
    size_t capacity;
    uint32_t* values;  // [capacity] code points, normalized
    uint32_t* starts;  // [capacity] where each comes from in the text as given
    uint32_t* ends;    // [capacity]
    uint64_t* hashes;  // [capacity] of the stored text up to behind this character
    char* text;        // [4 * capacity] UTF-8
    uint32_t* bytes;   // [capacity] where each character ends in it
    int32_t* ids;      // [capacity] pieces found
    uint32_t* firsts;  // [capacity] first character of each
  };

  // Reads tokenizer.ggml.normalizer.lowercase (default true) and .strip_accents (default: as
  // lowercase), mote.wordpiece.clean_text (true), .chinese_spaces (true) and .max_characters (100).
  // Files of other converters lack some of them: a warning names the defaults taken.
  // unknown: the token of a word that pieces do not cover; -1 is MOTE_ERROR_BAD_FILE.
  Status open(const GgufFile& file, const Vocabulary& vocabulary, int32_t unknown, const Log& log);

  void plan(Arena& arena, size_t text_bytes, Scratch* scratch) const;
  // Tokens of text, which has no special tokens in it and starts at `base` of what the caller was
  // given.
  void encode(std::string_view text, size_t base, Scratch& scratch, TokenSink& sink) const;
  // Bytes of a token, at most capacity are written; returns how many there are. A space stands in
  // front of one that begins a word, except for the first token and before . ? ! , n't 'm 's 've
  // 're (the upstream clean-up).
  size_t decode(int32_t id, bool first, char* out, size_t capacity) const;
  // Code points of the token as Hugging Face writes it, "##" counted.
  size_t piece_characters(int32_t id) const;

 private:
  class Word;
  enum AsciiClass : uint8_t { kLetter, kSpace, kPunctuation, kDeleted };

  bool begins_word(int32_t id) const;
  void add_character(uint32_t value, size_t start, size_t end, Word& word) const;
  void add_normalized(uint32_t value, size_t start, size_t end, Word& word) const;

  const Vocabulary* vocabulary_ = nullptr;
  int32_t unknown_ = -1;
  uint32_t max_characters_ = 100;
  bool lowercase_ = true, strips_accents_ = true, cleans_ = true, spaces_chinese_ = true;
  AsciiClass ascii_class_[128] = {};
  uint8_t ascii_[128] = {};  // lower case where wanted
};

}  // namespace mote
