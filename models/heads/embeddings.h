// Sentence vectors: from pooled rows to what a caller gets.
#pragma once

#include <cstddef>

namespace mote {

// Brings x [count] to length 1; a vector of zeros stays. (torch.nn.functional.normalize: divides by
// at least 1e-12.)
void normalize_vector(float* x, size_t count);

// out += weight * row: the mean over the windows of a long text, each with the weight of its
// tokens.
void add_weighted(const float* row, float weight, size_t count, float* out);

}  // namespace mote
