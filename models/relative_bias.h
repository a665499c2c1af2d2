// The bias of attention scores by distance, as T5 and MPNet have it.
#pragma once

#include <cstddef>

#include "core/memory.h"
#include "core/status.h"
#include "models/spec.h"
#include "models/weights.h"

namespace mote {

class RelativeBias {
 public:
  // Spreads the buckets' values over all distances of the model's context. For keys on both sides:
  // half of the buckets for each; of those the first half are single distances, the others grow
  // geometrically up to distance 128, and the last one holds everything farther.
  Status compute(const Spec& spec, const Table& buckets, Allocator& allocator);

  // Of head 0 and distance 0, for AttentionTask; null: none.
  const float* zero() const { return values_.empty() ? nullptr : values_.data() + zero_; }
  size_t head_stride() const { return stride_; }

 private:
  HeapArray<float> values_;  // [heads][stride]
  size_t stride_ = 0, zero_ = 0;
};

}  // namespace mote
