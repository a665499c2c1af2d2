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
#include "models/tokenizers/frame.h"
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
  int32_t unknown() const;
  int32_t padding() const;
  int32_t mask() const;
  bool adds_bos() const;  // MOTE_TOKENIZE_FRAME puts BOS in front
  // What belongs around a text (MOTE_TOKENIZE_FRAME puts it there), or around two. A model that has
  // no frame for two has none around them: its count is 0.
  const Frame& frame(bool pair) const;
  uint32_t max_tokens() const;  // of a sequence, frame included, as its makers used it; 0: not said
  bool is_end(int32_t id) const;  // eos, eot and the like: generation ends
  TokenType type(int32_t id) const;
  std::string_view stored_text(int32_t id) const;    // as the file has it
  int32_t find(std::string_view stored_text) const;  // -1: none

  // Scratch for any text of up to text_bytes = n; grows with n. Byte-level BPE: 12 (2 + 1/16 +
  // 1/256 + ...) n = 24.8 n, as each byte of a text that is no UTF-8 becomes the three of U+FFFD;
  // where it normalizes to NFC (ModernBERT) or puts a space in front, 27 n more. SentencePiece:
  // 19.3 n. WordPiece: 36 bytes for each character of the longest word that is not unknown (100),
  // whatever n is. Unigram: 16 n times what its normalization makes of one byte at most (XLM-R: 6
  // characters). All and less than 2 KiB.
  size_t scratch_bytes(size_t text_bytes) const;
  // Tokens that any text of up to text_bytes = n has at most, without frame. Byte-level BPE and
  // SentencePiece: 3 n, for texts that are no UTF-8 (or what normalization makes of n bytes);
  // WordPiece: 1.5 n; Unigram: what normalization makes of n bytes and n / 2. All and one.
  size_t most_tokens(size_t text_bytes) const;
  // Longest text that encode() takes.
  static constexpr size_t kMaxTextBytes = size_t{1} << 29;

  // flags: MOTE_TOKENIZE_.... Writes up to capacity tokens, *count gets the full number;
  // MOTE_ERROR_BUFFER if it is more. User-defined tokens are found in any text, control tokens with
  // MOTE_TOKENIZE_SPECIAL only. byte_start and byte_end are offsets into text as given. A
  // generator's tokens partition it (a token that covers part of a character covers these bytes;
  // bytes that have no token belong to the one before); an encoder's cover what they stand for, in
  // whole characters, as Hugging Face has it: tokens of one character may all cover it, and spaces
  // lie between them. Tokens of the frame cover nothing. Never allocates; scratch has
  // scratch_bytes(text.size()). literal: places where no control token is read even so.
  // word_starts: [capacity] or null; gets 1 for the first token of each word of the pre-tokenizer
  // and for special tokens, 0 for the others.
  // skipped: the first tokens are counted and not written; then *count - skipped are to be had.
  Status encode(std::string_view text, uint32_t flags, Arena scratch, mote_token* tokens,
                size_t capacity, size_t* count, LiteralPlaces literal = {},
                uint8_t* word_starts = nullptr, size_t skipped = 0) const;
  // Start of the first control token in text at or behind `from`, text.size() if there is none;
  // *end is behind it.
  size_t find_control(std::string_view text, size_t from, size_t* end) const;

  // Bytes that a token stands for, at most capacity of them are written; returns the full number.
  // `first`: it begins a text (SentencePiece drops the space there that encode() put in). Control
  // and unknown tokens give their stored text, or nothing with skip_special. An id out of range
  // gives none.
  size_t decode(int32_t id, bool first, bool skip_special, char* out, size_t capacity) const;
  size_t longest_piece() const;  // bytes that decode() gives at most
  bool partitions() const;       // encode()'s tokens do: a generator's
  // Whether tokens that go on with a word are marked as such (WordPiece's "##").
  bool marks_continuations() const;
  // Code points of a token's name as Hugging Face has it, "##" and the like counted.
  size_t piece_characters(int32_t id) const;

 private:
  struct State;
  enum class Kind : uint8_t { bpe, sentencepiece, wordpiece, unigram };

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
