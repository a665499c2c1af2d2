// Question answering: from start and end logits to spans of the passage, as Hugging Face's pipeline
// has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/status.h"
#include "mote.h"

namespace mote {

// One sequence over the question and a part of the passage.
struct SpanWindow {
  const float* logits;         // [positions][2]: of starting and of ending there
  size_t null_position;        // of [CLS], whose share is that of "no answer"
  size_t first, count;         // positions of the passage's tokens
  const mote_token* tokens;    // [count] of the passage
  const uint8_t* word_starts;  // [count] 1: the first token of a word
};

// Gathers spans over windows:
// 1. In each window softmax of the start logits, and of the end logits, over the passage's tokens
//    and [CLS]; "no answer" has start[CLS] * end[CLS], and the least of all windows counts.
// 2. A span from token s to e, s <= e < s + longest, has start[s] * end[e]; the best 2 top + 10 of
//    each window go on, with their ends moved to whole words as far as the window has them.
// 3. A span whose text was there before, in lower case, adds its score to that one, wherever it
//    stands.
// With `raw` a span's score is its start and end logits added, its best where it comes several
// times; that of no answer the least of the windows.
class SpanFinder {
 public:
  static constexpr size_t kMaxTop = 100;

  // positions: of the longest window. candidates: different spans that it holds.
  void plan(Arena& arena, size_t positions, size_t candidates);

  // 1 <= top <= kMaxTop.
  void start(std::string_view passage, size_t top, size_t longest, bool raw);
  // MOTE_ERROR_CAPACITY: more different spans than it holds; MOTE_ERROR_BAD_FILE: a logit is not
  // finite.
  Status add(const SpanWindow& window);
  float no_answer_score() const { return no_answer_; }
  // The best `top`, best first, of equal ones the first that was found; returns how many there are.
  size_t finish(mote_span* spans);

 private:
  struct Pair {  // of tokens of a window
    uint32_t start, end;
    float score;
  };
  struct Candidate {
    uint32_t byte_start, byte_end, hash;
    float score;
  };

  // Softmax over the passage's tokens and [CLS] into out [count]; returns the share of [CLS].
  static Status probabilities(const SpanWindow& window, size_t which, float* out, float* null);
  size_t best_pairs(size_t count);
  Status add_candidate(uint32_t byte_start, uint32_t byte_end, float score);
  std::string_view text(uint32_t byte_start, uint32_t byte_end) const {
    return {passage_.data() + byte_start, byte_end - byte_start};
  }

  float *start_ = nullptr, *end_ = nullptr;  // [positions]
  Pair* pairs_ = nullptr;                    // [2 kMaxTop + 10]
  Candidate* candidates_ = nullptr;
  size_t capacity_ = 0, found_ = 0;
  std::string_view passage_;
  size_t top_ = 1, longest_ = 1;
  bool raw_ = false, any_ = false;
  float no_answer_ = 0;
};

}  // namespace mote
