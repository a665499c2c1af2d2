// What a Tokenizer holds: for tokenizer_open.cpp, which reads it from a file, and tokenizer.cpp,
// which works with it.
#pragma once

#include "models/tokenizers/bpe.h"
#include "models/tokenizers/sentencepiece.h"
#include "models/tokenizers/special_matcher.h"
#include "models/tokenizers/token_sink.h"
#include "models/tokenizers/tokenizer.h"
#include "models/tokenizers/unigram.h"
#include "models/tokenizers/vocabulary.h"
#include "models/tokenizers/wordpiece.h"

namespace mote {

struct Tokenizer::State {
  // Scratch of encode(), of the one kind that a tokenizer is of.
  struct Scratch {
    Bpe::Scratch bpe;
    SentencePiece::Scratch sentencepiece;
    WordPiece::Scratch wordpiece;
    Unigram::Scratch unigram;
  };
  static constexpr size_t kMaxEnds = 16;

  Allocator* allocator = nullptr;
  Kind kind = Kind::bpe;
  Vocabulary vocabulary;
  SpecialMatcher specials;
  Bpe bpe;
  SentencePiece sentencepiece;
  WordPiece wordpiece;
  Unigram unigram;
  int32_t bos = -1, eos = -1, unknown = -1, padding = -1, mask = -1;
  int32_t ends[kMaxEnds];
  size_t end_count = 0;
  bool adds_bos = false, adds_eos = false;
  bool is_encoder = false;  // tokens say what they cover
  Frame frames[2];          // around one text, around two
  uint32_t max_tokens = 0;

  Status open(const GgufFile& file, const Log& log);
  Status read_id(const GgufFile& file, const char* key, int32_t* id) const;
  Status read_special_ids(const GgufFile& file, const Log& log);
  Status read_frame_flags(const GgufFile& file, const Log& log);
  Status read_frames(const GgufFile& file);
  Status read_frame(const GgufFile& file, bool pair);
  Status open_kind(const GgufFile& file, const Log& log);
  void plan(Arena& arena, size_t text_bytes, Scratch* scratch) const;
  // Tokens of a part without special tokens.
  Status encode(std::string_view text, size_t base, Scratch& scratch, TokenSink& sink) const;
  // Tokens of text[begin, end), with the special tokens of this pass and of the later one.
  Status encode_between(std::string_view text, size_t begin, SpecialMatcher::Pass pass,
                        uint32_t flags, LiteralPlaces literal, Scratch& scratch,
                        TokenSink& sink) const;
  void add_end(int32_t id);
};

}  // namespace mote
