// Chooses the next token from a row of logits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena.h"
#include "core/status.h"
#include "kernels/kernels.h"
#include "mote.h"

namespace mote {

// Philox4x32-10: a random function of a counter and a key, without state (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", 2011).
struct Philox {
  uint32_t words[4];
};
Philox philox(const uint32_t counter[4], const uint32_t key[2]);

// The steps, in this order, which is that of Hugging Face's generate():
// 1. repeat_penalty (Keskar et al., "CTRL", 2019): the logit of each token that occurs in the last
// repeat_window tokens is
//    divided by the penalty if it is positive, else multiplied with it; once, however often the
//    token occurs.
// 2. temperature 0: the largest logit, the first of equal ones. Else weights exp((logit - largest)
// / temperature).
// 3. top_k (Fan et al., "Hierarchical neural story generation", 2018): the k largest stay.
// 4. top_p (Holtzman et al., "The curious case of neural text degeneration", 2020): the largest
// stay until their share of
//    the weights reaches p; the one that reaches it stays.
// 5. min_p (Nguyen et al., "Turning up the heat", 2024): those of at least min_p times the largest
// weight stay.
// 6. One of those that stay, with probability by weight: number `drawn` of the random sequence of
// the seed. Equal logits go in the order of their ids. NaN and -infinity are never chosen; where
// there are logits of +infinity, one of them is chosen, all with the same probability. Weights
// below exp(-64) are 0.
class Sampler {
 public:
  // What a saved session needs beside the options.
  struct State {
    uint64_t seed = 0, drawn = 0;
  };

  // 8 bytes per token of the vocabulary.
  void plan(Arena& arena, size_t vocabulary);
  // MOTE_ERROR_ARGUMENT for values out of range: temperature, repeat_penalty >= 0, top_p and min_p
  // in 0..1, all finite.
  static Status check(const mote_generate_options& options);
  // options: checked. The random sequence begins anew.
  void start(const mote_generate_options& options);
  State state() const { return state_; }
  void restore(const State& state) { state_ = state; }

  // logits [vocabulary] are changed by the penalty. history: the tokens so far. MOTE_ERROR_BAD_FILE
  // where every logit is NaN or -infinity: no token is chosen then. Never allocates; one thread.
  Status choose(const Kernels& kernels, float* logits, const int32_t* history, size_t count,
                int32_t* token);

 private:
  struct Candidate {
    float value;  // logit, then weight
    uint32_t id;
  };
  static bool before(const Candidate& a, const Candidate& b) {
    return a.value > b.value || (a.value == b.value && a.id < b.id);
  }

  void penalise(float* logits, const int32_t* history, size_t count);
  size_t gather(const float* logits);
  size_t keep_top_k(size_t count);
  size_t keep_top_p(size_t count);
  size_t keep_min_p(size_t count);
  uint32_t draw(size_t count);

  Candidate* candidates_ = nullptr;  // [vocabulary]
  size_t vocabulary_ = 0;
  float temperature_ = 0, top_p_ = 0, min_p_ = 0, penalty_ = 0;
  uint32_t top_k_ = 0, window_ = 0;
  State state_;
};

}  // namespace mote
