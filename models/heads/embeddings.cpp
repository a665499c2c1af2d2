#include "models/heads/embeddings.h"

#include <algorithm>
#include <cmath>

namespace mote {

void normalize_vector(float* x, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * x[i];
  const double length = std::max(std::sqrt(sum), 1e-12);
  for (size_t i = 0; i < count; ++i) x[i] = static_cast<float>(x[i] / length);
}

void add_weighted(const float* row, float weight, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] += weight * row[i];
}

}  // namespace mote
