#include "models/heads/labels.h"

#include <algorithm>
#include <cmath>

namespace mote {

bool softmax(float* logits, size_t count) {
  float most = -INFINITY;
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(logits[i])) return false;
    most = std::max(most, logits[i]);
  }
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += logits[i] = std::exp(logits[i] - most);
  for (size_t i = 0; i < count; ++i) logits[i] = static_cast<float>(logits[i] / sum);
  return true;
}

bool label_scores(Problem problem, float* logits, size_t count) {
  if (problem == Problem::single_label && count > 1) return softmax(logits, count);
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(logits[i])) return false;
    if (problem != Problem::regression) logits[i] = 1.0f / (1.0f + std::exp(-logits[i]));
  }
  return true;
}

void rank_labels(const float* scores, size_t count, mote_label_score* ranked, size_t top) {
  const auto better = [](const mote_label_score& a, const mote_label_score& b) {
    return a.score != b.score ? a.score > b.score : a.label < b.label;
  };
  // A heap of the best so far with the worst of them in front.
  size_t held = 0;
  for (size_t i = 0; i < count && top > 0; ++i) {
    const mote_label_score next = {static_cast<uint32_t>(i), scores[i]};
    if (held == top) {
      if (!better(next, ranked[0])) continue;
      std::pop_heap(ranked, ranked + held--, better);
    }
    ranked[held++] = next;
    std::push_heap(ranked, ranked + held, better);
  }
  std::sort_heap(ranked, ranked + held, better);
}

}  // namespace mote
