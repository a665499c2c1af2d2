#include "models/relative_bias.h"

#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace mote {
namespace {

constexpr uint32_t kFarthest = 128;

// Of key position minus query position. In float32, as the trained models were: a bucket's border
// may hang on it.
uint32_t bucket_of(int64_t distance, uint32_t buckets) {
  const uint32_t side = buckets / 2, exact = side / 2;
  const uint32_t first = distance > 0 ? side : 0;
  const uint64_t far = uint64_t(distance < 0 ? -distance : distance);
  if (far < exact) return first + uint32_t(far);
  const float octaves =
      std::log(float(far) / float(exact)) / float(std::log(double(kFarthest) / double(exact)));
  const auto grown = uint64_t(octaves * float(side - exact));
  return first + uint32_t(std::min<uint64_t>(exact + grown, side - 1));
}

}  // namespace

Status RelativeBias::compute(const Spec& spec, const Table& buckets, Allocator& allocator) {
  const size_t reach = spec.context - 1;
  // Kernels read whole vectors around what they need.
  zero_ = reach + kBiasSlack;
  stride_ = 2 * zero_ + 1;
  MOTE_TRY(values_.allocate(allocator, stride_ * spec.heads, "relative bias"));
  HeapArray<float> row;
  MOTE_TRY(row.allocate(allocator, spec.heads, "relative bias"));
  for (size_t i = 0; i < stride_; ++i) {
    const int64_t distance =
        std::clamp<int64_t>(int64_t(i) - int64_t(zero_), -int64_t(reach), int64_t(reach));
    buckets.look_up(bucket_of(distance, spec.relative_buckets), row.data());
    for (size_t head = 0; head < spec.heads; ++head) values_[head * stride_ + i] = row[head];
  }
  return kOk;
}

}  // namespace mote
