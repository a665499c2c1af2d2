// Pre-tokenizers: they cut a text into the pieces inside which byte-level BPE merges. Each is a
// pattern that the ecosystem writes as a regular expression and knows by name; here it is a scanner
// over Unicode categories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mote {

enum class Pattern : uint8_t {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  gpt2,
  // \p{N} first, then gpt2 on what lies between.
  digits_gpt2,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
  // ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  llama3,
  // The same with \p{N} instead of \p{N}{1,3}.
  qwen2,
  // [\p{P}$+<=>^~|]+ first, then gpt2, then \p{N}+, then [0-9][0-9][0-9], each on what the one
  // before made.
  punctuation_gpt2
};

// What a name in tokenizer.ggml.pre stands for.
struct PreTokenizer {
  const char* name;
  Pattern pattern;
  bool whole_words;     // a piece that is a token as a whole is not merged: it is that token
  bool adds_bos;        // unless tokenizer.ggml.add_bos_token says otherwise
  bool frames = false;  // an encoder's: BOS and EOS stand around a text, by default
};
// Null: not known.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

// Gives the pieces of a text in order; they partition it. A bad byte sequence is one U+FFFD. Time
// is linear in the text.
class PieceScanner {
 public:
  PieceScanner(Pattern pattern, std::string_view text) : text_(text), pattern_(pattern) {}
  // False at the end.
  bool next(std::string_view* piece);

 private:
  size_t end_of_piece();

  std::string_view text_;
  Pattern pattern_;
  size_t at_ = 0;
  size_t segment_end_ = 0;  // of the part between what was cut out first
};

}  // namespace mote
