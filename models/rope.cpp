#include "models/rope.h"

#include <algorithm>
#include <cmath>

namespace mote {
namespace {

constexpr double kPi = 3.14159265358979323846;

// LLaMA 3.1: long wave lengths are divided by the factor, short ones kept, those between blended.
double llama3_frequency(const Rope& rope, double frequency) {
  const double wave_length = 2.0 * kPi / frequency;
  const double ratio = double(rope.original_context) / wave_length;
  const double low = rope.low_frequency, high = rope.high_frequency;
  const double smooth = std::clamp((ratio - low) / (high - low), 0.0, 1.0);
  return (1.0 - smooth) * frequency / double(rope.factor) + smooth * frequency;
}

// YaRN (arXiv 2309.00071): pair index at which a wave turns `rotations` times within the original
// context.
double yarn_pair(const Rope& rope, double rotations) {
  return double(rope.dimensions) *
         std::log(double(rope.original_context) / (rotations * 2.0 * kPi)) /
         (2.0 * std::log(double(rope.base)));
}
double yarn_frequency(const Rope& rope, size_t pair, double frequency) {
  const double low = std::max(std::floor(yarn_pair(rope, rope.beta_fast)), 0.0);
  double high = std::min(std::ceil(yarn_pair(rope, rope.beta_slow)), double(rope.dimensions) - 1.0);
  if (high == low) high += 0.001;
  const double interpolated = std::clamp((double(pair) - low) / (high - low), 0.0, 1.0);
  return frequency * (1.0 - interpolated) + frequency / double(rope.factor) * interpolated;
}

}  // namespace

Status RopeFrequencies::compute(const Rope& rope, const float* factors, Allocator& allocator) {
  const size_t pairs = rope.dimensions / 2;
  MOTE_TRY(frequency_.allocate(allocator, pairs, "rotary frequencies"));
  for (size_t i = 0; i < pairs; ++i) {
    double f = std::pow(double(rope.base), -2.0 * double(i) / double(rope.dimensions));
    switch (rope.scaling) {
      case Rope::Scaling::none:
        break;
      case Rope::Scaling::linear:
        f /= double(rope.factor);
        break;
      case Rope::Scaling::llama3:
        f = llama3_frequency(rope, f);
        break;
      case Rope::Scaling::yarn:
        f = yarn_frequency(rope, i, f);
        break;
    }
    frequency_[i] = factors ? f / double(factors[i]) : f;
  }
  magnitude_ = 1.0;
  if (rope.scaling == Rope::Scaling::yarn)
    magnitude_ = double(rope.attention_factor) *
                 (rope.factor > 1.0f ? 0.1 * std::log(double(rope.factor)) + 1.0 : 1.0);
  return kOk;
}

void RopeFrequencies::angles(size_t position, float* cosine, float* sine) const {
  for (size_t i = 0; i < frequency_.size(); ++i) {
    const double angle = double(position) * frequency_[i];
    cosine[i] = float(std::cos(angle) * magnitude_);
    sine[i] = float(std::sin(angle) * magnitude_);
  }
}

}  // namespace mote
