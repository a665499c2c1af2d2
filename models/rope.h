// Rotary positions: frequencies of a model and the angles of positions, in float64.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory.h"
#include "core/status.h"
#include "models/spec.h"

namespace mote {

class RopeFrequencies {
 public:
  // factors: [dimensions / 2] that divide the frequencies (rope_freqs.weight), or null.
  Status compute(const Rope& rope, const float* factors, Allocator& allocator);

  size_t pairs() const { return frequency_.size(); }
  // cosine and sine [pairs] of position, times YaRN's attention factor.
  void angles(size_t position, float* cosine, float* sine) const;

 private:
  HeapArray<double> frequency_;  // radians per position
  double magnitude_ = 1.0;
};

}  // namespace mote
