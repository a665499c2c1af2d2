// Text to tokens and back. Part of a Model: immutable, shared by all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/gguf.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/status.h"
#include "mote.h"

namespace mote {

enum class TokenType : uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

// Places of a text where control tokens are not read, ascending: what users wrote within a prompt.
struct LiteralPlaces {
  const uint32_t* at = nullptr;
  size_t count = 0;
};

class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  // Reads tokenizer.ggml.*. A file without tokenizer keys is fine: present() is then false. Damaged
  // arrays and ids out of range are MOTE_ERROR_BAD_FILE and name file and key, an unknown model or
  // pre-tokenizer is MOTE_ERROR_UNSUPPORTED and shows it. Texts stay in the file, which outlives
  // the tokenizer. Without tokenizer.ggml.add_bos_token BOS is added where that is the kind's rule:
  // SentencePiece and the LLaMA 3 family; EOS never.
  Status open(const GgufFile& file, Allocator& allocator, const Log& log);
  bool present() const { return state_ != nullptr; }

  uint32_t size() const;  // tokens
  int32_t bos() const;    // -1: none
  int32_t eos() const;
  bool adds_bos() const;          // MOTE_TOKENIZE_FRAME puts BOS in front
  bool is_end(int32_t id) const;  // eos, eot and the like: generation ends
  TokenType type(int32_t id) const;
  std::string_view stored_text(int32_t id) const;    // as the file has it
  int32_t find(std::string_view stored_text) const;  // -1: none

  // Scratch for any text of up to text_bytes = n; grows with n. Byte-level BPE: 12 (2 + 1/16 +
  // 1/256 +
  // ...) n = 24.8 n, as each byte of a text that is no UTF-8 becomes the three of U+FFFD.
  // SentencePiece: 19.3 n. Both and less than 2 KiB.
  size_t scratch_bytes(size_t text_bytes) const;
  // Longest text that encode() takes.
  static constexpr size_t kMaxTextBytes = size_t{1} << 29;

  // flags: MOTE_TOKENIZE_.... Writes up to capacity tokens, *count gets the full number;
  // MOTE_ERROR_BUFFER if it is more. User-defined tokens are found in any text, control tokens with
  // MOTE_TOKENIZE_SPECIAL only. byte_start and byte_end are offsets into text as given; the tokens
  // partition it (a token that covers part of a character covers these bytes; bytes that have no
  // token belong to the one before), except for those of the frame, which cover nothing. Never
  // allocates; scratch has scratch_bytes(text.size()).
  // literal: places where no control token is read even so.
  Status encode(std::string_view text, uint32_t flags, Arena scratch, mote_token* tokens,
                size_t capacity, size_t* count, LiteralPlaces literal = {}) const;
  // Start of the first control token in text at or behind `from`, text.size() if there is none;
  // *end is behind it.
  size_t find_control(std::string_view text, size_t from, size_t* end) const;

  // Bytes that a token stands for, at most capacity of them are written; returns the full number.
  // `first`: it begins a text (SentencePiece drops the space there that encode() put in). Control
  // and unknown tokens give their stored text, or nothing with skip_special. An id out of range
  // gives none.
  size_t decode(int32_t id, bool first, bool skip_special, char* out, size_t capacity) const;
  size_t longest_piece() const;  // bytes that decode() gives at most

 private:
  struct State;
  State* state_ = nullptr;
};

// Gathers the bytes of tokens and gives them out in whole characters: the bytes of an unfinished
// character wait for the next token, at most 3 of them; a bad sequence becomes U+FFFD at once.
class CharacterStream {
 public:
  // Appends bytes; writes what is ready to out (room for bytes.size() * 3 + 12), returns its
  // length.
  size_t push(std::string_view bytes, char* out);
  // What still waits, as U+FFFD. The stream is then empty.
  size_t finish(char* out);

 private:
  char pending_[4];
  uint32_t count_ = 0;
};

}  // namespace mote
