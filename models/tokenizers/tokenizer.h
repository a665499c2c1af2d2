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

enum class TokenType : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  // Reads tokenizer.ggml.*. A file without tokenizer keys is fine: present() is then false. Damaged arrays are
  // MOTE_ERROR_BAD_FILE, an unknown model or pre-tokenizer is MOTE_ERROR_UNSUPPORTED and shows it. Texts stay in the file.
  Status open(const GgufFile& file, Allocator& allocator, const Log& log);
  bool present() const;

  uint32_t size() const;  // tokens
  int32_t bos() const;    // -1: none
  int32_t eos() const;
  bool adds_bos() const;  // MOTE_TOKENIZE_FRAME puts BOS in front
  bool is_end(int32_t id) const;  // eos, eot and the like: generation ends
  TokenType type(int32_t id) const;
  std::string_view stored_text(int32_t id) const;  // as the file has it
  int32_t find(std::string_view stored_text) const;  // -1: none

  // Scratch for any text of up to text_bytes.
  size_t scratch_bytes(size_t text_bytes) const;
  // flags: MOTE_TOKENIZE_.... Writes up to capacity tokens, *count gets the full number; MOTE_ERROR_BUFFER if it is more.
  // byte_start and byte_end are offsets into text as given; they partition it (a token that covers part of a character
  // covers these bytes). Never allocates; scratch has scratch_bytes(text.size()).
  Status encode(std::string_view text, uint32_t flags, Arena scratch, mote_token* tokens, size_t capacity,
                size_t* count) const;

  // Bytes that a token stands for, at most capacity of them are written; returns the full number. `first`: it begins a text
  // (SentencePiece drops the leading space there). Control tokens give their stored text unless skip_special.
  size_t decode(int32_t id, bool first, bool skip_special, char* out, size_t capacity) const;
  size_t longest_piece() const;  // bytes

 private:
  struct State;
  State* state_ = nullptr;
};

// Gathers the bytes of tokens and gives them out in whole characters: the bytes of an unfinished character wait for the
// next token, at most 3 of them; a bad sequence becomes U+FFFD at once.
class CharacterStream {
 public:
  // Appends bytes; writes what is ready to out (room for bytes.size() * 3 + 12), returns its length.
  size_t push(std::string_view bytes, char* out);
  // What still waits, as U+FFFD.
  size_t finish(char* out);

 private:
  char pending_[4];
  uint32_t count_ = 0;
};

}  // namespace mote
