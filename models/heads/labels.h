// From logits of labels to scores, and the best of them.
#pragma once

#include <cstddef>

#include "models/spec.h"
#include "mote.h"

namespace mote {

// In place: softmax over labels that exclude each other, the sigmoid of each where they do not and
// where there is but one (as Hugging Face's text-classification pipeline has it), nothing for
// regression. False: a logit is not finite.
bool label_scores(Problem problem, float* logits, size_t count);

// softmax in place; false: a logit is not finite.
bool softmax(float* logits, size_t count);

// The `top` best of scores [count], top <= count, best first, of equal ones the first.
void rank_labels(const float* scores, size_t count, mote_label_score* ranked, size_t top);

}  // namespace mote
