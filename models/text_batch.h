// Many texts through an encoder: tokenized, framed, cut or spread over windows, and packed into
// passes of at most batch_tokens. Sequences of a pass have no padding, so that nothing is gained by
// sorting texts by their lengths: they go in the caller's order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/status.h"
#include "models/encoder.h"
#include "models/model.h"
#include "models/text_sequence.h"
#include "mote.h"

namespace mote {

struct SessionSizes;

// How a task wants its inputs.
struct TextRules {
  enum class Marks : uint8_t { none, word_starts, subwords };
  uint32_t too_long = MOTE_LONG_TRUNCATE;
  uint32_t window_stride = 0;  // 0: the default
  Truncation truncation = Truncation::longest_first;
  size_t windowed = 1;  // of a pair the text that is spread over windows; marks and tokens are its
  uint32_t tokenize_flags = 0;
  Marks marks = Marks::none;  // of the tokens
};

// One sequence of a pass.
struct BatchSequence {
  size_t input;              // of the call
  uint32_t window, windows;  // which one of how many of its input
  uint32_t first;            // row of the pass that is its first token
  uint32_t text;  // position within it of the text's tokens: of a pair TextRules::windowed
  uint32_t text_tokens;
};

// The sequences of the next pass.
class TextBatch {
 public:
  void plan(Arena& arena, const mote_model& model, const SessionSizes& sizes);

  // Tokenizes an input; its sequences then go in one by one. scratch: the session's. The report
  // gets all but the status. MOTE_ERROR_CAPACITY: more bytes or tokens than the session holds;
  // MOTE_ERROR_CONTEXT: too long by the rules; MOTE_ERROR_ARGUMENT: the frame, or a question,
  // leaves no room; MOTE_ERROR_TASK: the model takes no pairs.
  Status open(size_t index, const mote_input& input, const TextRules& rules, Arena scratch,
              mote_report* report);
  // Whether the input has a next sequence, and whether the pass has room for it.
  bool waiting() const { return next_window_ < windows_; }
  bool fits() const;
  // Adds it to the pass.
  void add();
  size_t input() const { return input_; }
  // No more of this input.
  void drop() { next_window_ = windows_; }

  size_t count() const { return count_; }
  const Sequence* sequences() const { return sequences_; }
  const BatchSequence& at(size_t i) const { return places_[i]; }
  // Tokens of the text and their marks, [text_tokens].
  const mote_token* tokens(const BatchSequence& s) const { return pass_tokens_ + s.first + s.text; }
  const uint8_t* marks(const BatchSequence& s) const { return pass_marks_ + s.first + s.text; }
  void clear() { count_ = used_ = 0; }

  // Most tokens of a sequence.
  size_t limit() const { return limit_; }

 private:
  Status tokenize(std::string_view text, const TextRules& rules, Arena scratch, size_t first,
                  size_t* count);
  Status spread(const TextLengths& lengths, const TextRules& rules, mote_report* report);
  void mark_subwords(std::string_view text, size_t first, size_t count);
  TextWindow next_window() const { return cut_ ? cut_window_ : spread_.window(next_window_); }

  const mote_model* model_ = nullptr;
  size_t limit_ = 0, text_bytes_ = 0, batch_tokens_ = 0;

  // The open input.
  mote_token* tokens_ = nullptr;  // [token_capacity_] of the first text, then of the second
  uint8_t* marks_ = nullptr;      // [token_capacity_]
  size_t token_capacity_ = 0, second_ = 0;  // second_: where the second text's tokens begin
  size_t input_ = 0, windowed_ = 0, windows_ = 0, next_window_ = 0;
  bool pair_ = false, cut_ = false;
  TextWindow cut_window_;
  TextWindows spread_;

  // The pass.
  Sequence* sequences_ = nullptr;      // [batch_tokens_]
  BatchSequence* places_ = nullptr;    // [batch_tokens_]
  int32_t* ids_ = nullptr;             // [batch_tokens_]
  uint8_t* type_ids_ = nullptr;        // [batch_tokens_]
  mote_token* pass_tokens_ = nullptr;  // [batch_tokens_]
  uint8_t* pass_marks_ = nullptr;      // [batch_tokens_]
  size_t count_ = 0, used_ = 0;
};

}  // namespace mote
