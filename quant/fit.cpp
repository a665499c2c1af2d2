#include "quant/fit.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "quant/quant.h"

namespace mote::quant {
namespace {

constexpr float kGreatestHalf = 65504.0f;

// Nearest integer within [least, greatest], ties to even.
struct Integers {
  float least, greatest;
  float extreme() const { return -least > greatest ? least : greatest; }

  float operator()(float x) const {
    constexpr float kTurn = 12582912.0f;  // 1.5 * 2^23: adding it leaves no bit for a fraction
    x = x > least ? x : least;
    x = x < greatest ? x : greatest;
    return (x + kTurn) - kTurn;
  }
};

// kIq4Levels' nearest to every multiple of a half; their midpoints are such multiples.
struct Iq4Table {
  static constexpr int kSize = 512;
  float level[kSize] = {};
  constexpr Iq4Table() {
    int at = 0;
    for (int i = 0; i < kSize; ++i) {
      const int twice = i - kSize / 2;  // below it lies [twice / 2, twice / 2 + 0.5)
      while (at < 15 && kIq4Levels[at] + kIq4Levels[at + 1] <= twice) ++at;
      level[i] = kIq4Levels[at];
    }
  }
};
constexpr Iq4Table kIq4Table;

struct Iq4 {
  float extreme() const { return -127.0f; }
  float operator()(float x) const {
    x = x > -127.5f ? x : -127.5f;
    x = x < 127.0f ? x : 127.0f;
    return kIq4Table.level[static_cast<int>(2 * x + Iq4Table::kSize / 2)];
  }
};

// Sums over a group of weighted products of the rests r = x - scale * q - offset and the levels q.
struct Moments {
  float rr, rq, r, qq, q;
};

// One group's values.
struct Group {
  const float* x;
  const float* weight;
  float weights;                    // sum
  float scale, offset;              // the best that was found, as real numbers
  float plain_scale, plain_offset;  // that the ends of the range give: exact where levels fit
};

template <int N>
float sum(const float* values) {
  float lanes[8];
  for (int j = 0; j < 8; ++j) lanes[j] = values[j];
  for (int i = 8; i < N; i += 8)
    for (int j = 0; j < 8; ++j) lanes[j] += values[i + j];
  for (int j = 0; j < 4; ++j) lanes[j] += lanes[j + 4];
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

float inverse(float scale) {
  const float result = scale != 0.0f ? 1.0f / scale : 0.0f;
  return std::isfinite(result) ? result : 0.0f;
}

template <int N, class Nearest>
Moments measure(const Nearest& nearest, const Group& group, float scale, float offset) {
  float q[N], rq[N], rr[N], r[N], qq[N];
  const float factor = inverse(scale);
  for (int i = 0; i < N; ++i) q[i] = nearest((group.x[i] - offset) * factor);
  for (int i = 0; i < N; ++i) {
    const float rest = group.x[i] - scale * q[i] - offset;
    r[i] = group.weight[i] * rest;
    rr[i] = r[i] * rest;
    rq[i] = r[i] * q[i];
    const float wq = group.weight[i] * q[i];
    qq[i] = wq * q[i];
    q[i] = wq;
  }
  return {sum<N>(rr), sum<N>(rq), sum<N>(r), sum<N>(qq), sum<N>(q)};
}

template <int N, class Nearest>
float error(const Nearest& nearest, const Group& group, float scale, float offset) {
  float rr[N];
  const float factor = inverse(scale);
  for (int i = 0; i < N; ++i) {
    const float rest = group.x[i] - scale * nearest((group.x[i] - offset) * factor) - offset;
    rr[i] = group.weight[i] * rest * rest;
  }
  return sum<N>(rr);
}

// Least squares over given levels: how much scale and offset are to change, and the error then.
struct Step {
  float scale, offset, error;
};

Step step_scale(const Moments& m) {
  const float change = m.qq > 0.0f ? m.rq / m.qq : 0.0f;
  return {change, 0.0f, m.rr - change * m.rq};
}

// greatest_offset: the offset's limit.
Step step_both(const Moments& m, float weights, float offset, float greatest_offset) {
  const float determinant = m.qq * weights - m.q * m.q;
  Step step = {0.0f, 0.0f, m.rr};
  if (determinant > 1e-6f * m.qq * weights) {
    step.scale = (m.rq * weights - m.r * m.q) / determinant;
    step.offset = (m.r * m.qq - m.rq * m.q) / determinant;
  } else if (weights > 0.0f) {  // all levels are the same
    step.offset = m.r / weights;
  }
  if (offset + step.offset > greatest_offset) {
    step.offset = greatest_offset - offset;
    step.scale = m.qq > 0.0f ? (m.rq - step.offset * m.q) / m.qq : 0.0f;
  }
  step.error = m.rr - 2 * (step.scale * m.rq + step.offset * m.r) + step.scale * step.scale * m.qq +
               2 * step.scale * step.offset * m.q + step.offset * step.offset * weights;
  return step;
}

class Fitter {
 public:
  Fitter(const FitShape& shape, int exponent, const float* x, const float* weight)
      : shape_(shape), exponent_(exponent) {
    for (int g = 0; g < shape.groups; ++g) {
      group_[g] = {x + g * shape.group, weight + g * shape.group, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
      for (int i = 0; i < shape.group; ++i) group_[g].weights += group_[g].weight[i];
    }
  }

  template <int N, class Nearest>
  void run(const Nearest& nearest, Fit* fit);

 private:
  // Multipliers of every group for one pair of scale and minimum.
  struct Choice {
    float scale = 0.0f, minimum = 0.0f;
    float error = std::numeric_limits<float>::infinity();
    int multiplier[16] = {}, minimum_multiplier[16] = {};
  };

  bool has_minimum() const { return shape_.minimum_greatest > 0; }
  bool has_multipliers() const { return shape_.multiplier_least != shape_.multiplier_greatest; }
  bool signed_minimum() const { return shape_.minimum_greatest == 1; }
  float greatest_offset() const {
    return signed_minimum() ? std::numeric_limits<float>::infinity() : 0.0f;
  }

  // Scales are float16 in the block's own size, x is 2^-exponent of that.
  uint16_t half_bits(float scale) const {
    const float real = std::ldexp(scale, exponent_);
    return f32_to_f16(std::min(std::max(real, -kGreatestHalf), kGreatestHalf));
  }
  float from_bits(uint16_t bits) const { return std::ldexp(f16_to_f32(bits), -exponent_); }
  float as_half(float scale) const { return from_bits(half_bits(scale)); }

  template <int N, class Nearest>
  void search_scale(const Nearest& nearest, Group* group) const;
  template <int N, class Nearest>
  void search_both(const Nearest& nearest, Group* group) const;
  template <int N, class Nearest>
  void choose(const Nearest& nearest, float scale, float minimum, Choice* best) const;
  template <int N, class Nearest>
  void improve(const Nearest& nearest, Choice* best) const;

  const FitShape& shape_;
  int exponent_;
  Group group_[16];
};

// How far from "the greatest value gets the last level" the trials go, in levels.
struct Trials {
  float first, last, step;
};
Trials scale_trials(float levels) {
  if (levels > 100) return {-4.0f, 6.0f, 0.6f};
  if (levels > 20) return {-3.0f, 2.0f, 0.25f};
  if (levels > 6) return {-2.5f, 1.0f, 0.175f};
  return {-2.0f, 0.75f, 0.15f};
}

template <int N, class Nearest>
void Fitter::search_scale(const Nearest& nearest, Group* group) const {
  float extreme = 0.0f;
  for (int i = 0; i < N; ++i)
    if (std::fabs(group->x[i]) > std::fabs(extreme)) extreme = group->x[i];
  group->scale = group->offset = 0.0f;
  if (extreme == 0.0f) return;
  float least = std::numeric_limits<float>::infinity();
  const auto attempt = [&](float scale) {
    const Moments m = measure<N>(nearest, *group, scale, 0.0f);
    const Step step = step_scale(m);
    if (!(step.error < least)) return false;
    least = step.error;
    group->scale = scale + step.scale;
    return true;
  };
  group->plain_scale = extreme / nearest.extreme();
  const float levels = std::fabs(nearest.extreme());
  const float sign = nearest.extreme() < 0.0f ? -1.0f : 1.0f;
  const Trials trials = shape_.iq4 ? Trials{-40.0f, 10.0f, 2.5f} : scale_trials(levels);
  for (float change = trials.first; change <= trials.last; change += trials.step)
    for (float direction : {sign, -sign}) attempt(direction * extreme / (levels + change));
  for (int i = 0; i < 4; ++i)
    if (!attempt(group->scale)) break;
}

template <int N, class Nearest>
void Fitter::search_both(const Nearest& nearest, Group* group) const {
  float low = group->x[0], high = group->x[0];
  for (int i = 1; i < N; ++i) {
    low = std::min(low, group->x[i]);
    high = std::max(high, group->x[i]);
  }
  if (!signed_minimum()) low = std::min(low, 0.0f);
  group->scale = 0.0f;
  group->offset = low;
  if (high <= low) return;
  float least = std::numeric_limits<float>::infinity();
  const auto attempt = [&](float scale, float offset) {
    const Moments m = measure<N>(nearest, *group, scale, offset);
    const Step step = step_both(m, group->weights, offset, greatest_offset());
    if (!(step.error < least)) return false;
    least = step.error;
    group->scale = scale + step.scale;
    group->offset = offset + step.offset;
    return true;
  };
  const float levels = static_cast<float>(shape_.greatest);
  group->plain_scale = (high - low) / levels;
  group->plain_offset = low;
  const Trials trials = levels < 4 ? Trials{-1.4f, 0.8f, 0.1f} : Trials{-2.4f, 1.0f, 0.15f};
  for (float change = trials.first; change <= trials.last; change += trials.step) {
    const float scale = (high - low) / (levels + change);
    // What is cut off, at both ends alike.
    attempt(scale, low - 0.5f * change * scale);
    attempt(scale, low);
  }
  for (int i = 0; i < 4; ++i)
    if (!attempt(group->scale, group->offset)) break;
}

// Best multipliers of every group for these two, by trial of their neighbourhood.
template <int N, class Nearest>
void Fitter::choose(const Nearest& nearest, float scale, float minimum, Choice* best) const {
  Choice choice;
  choice.scale = as_half(scale);
  choice.minimum = has_minimum() ? as_half(minimum) : 0.0f;
  choice.error = 0.0f;
  const float scale_factor = inverse(choice.scale), minimum_factor = inverse(choice.minimum);
  const auto whole = [](float value, int least, int greatest) {
    return static_cast<int>(std::nearbyint(
        std::min(std::max(value, static_cast<float>(least)), static_cast<float>(greatest))));
  };
  for (int g = 0; g < shape_.groups; ++g) {
    const Group& group = group_[g];
    const int guess =
        whole(group.scale * scale_factor, shape_.multiplier_least, shape_.multiplier_greatest);
    float least = std::numeric_limits<float>::infinity();
    for (int s = std::max(guess - 1, shape_.multiplier_least);
         s <= std::min(guess + 1, shape_.multiplier_greatest); ++s) {
      const float group_scale = choice.scale * static_cast<float>(s);
      const auto attempt = [&](int m) {
        const float e =
            error<N>(nearest, group, group_scale, -choice.minimum * static_cast<float>(m));
        if (!(e < least)) return;
        least = e;
        choice.multiplier[g] = s;
        choice.minimum_multiplier[g] = m;
      };
      if (!has_minimum()) {
        attempt(0);
      } else if (signed_minimum()) {
        attempt(1);
      } else {
        const Moments m = measure<N>(nearest, group, group_scale, group.offset);
        const float offset =
            group.weights > 0.0f ? group.offset + m.r / group.weights : group.offset;
        const int near = whole(-offset * minimum_factor, 0, shape_.minimum_greatest);
        attempt(near);
        const int other = -offset * minimum_factor > static_cast<float>(near) ? near + 1 : near - 1;
        if (other >= 0 && other <= shape_.minimum_greatest) attempt(other);
      }
    }
    choice.error += least;
    if (!(choice.error < best->error)) return;
  }
  *best = choice;
}

// Scale and minimum by least squares over all groups' levels, and the multipliers again.
template <int N, class Nearest>
void Fitter::improve(const Nearest& nearest, Choice* best) const {
  Moments all = {};
  float weights = 0.0f;
  for (int g = 0; g < shape_.groups; ++g) {
    const float s = static_cast<float>(best->multiplier[g]);
    const float m = -static_cast<float>(best->minimum_multiplier[g]);
    const Moments part = measure<N>(nearest, group_[g], best->scale * s, best->minimum * m);
    all.rr += part.rr;
    all.rq += s * part.rq;
    all.r += m * part.r;
    all.qq += s * s * part.qq;
    all.q += s * m * part.q;
    weights += m * m * group_[g].weights;
  }
  const Step step = has_minimum()
                        ? step_both(all, weights, 0.0f, std::numeric_limits<float>::infinity())
                        : step_scale(all);
  choose<N>(nearest, best->scale + step.scale, best->minimum + step.offset, best);
}

template <int N, class Nearest>
void Fitter::run(const Nearest& nearest, Fit* fit) {
  float scale = 0.0f, minimum = 0.0f;  // the group's of the greatest magnitude
  for (int g = 0; g < shape_.groups; ++g) {
    Group& group = group_[g];
    has_minimum() ? search_both<N>(nearest, &group) : search_scale<N>(nearest, &group);
    if (std::fabs(group.scale) > std::fabs(scale)) scale = group.scale;
    if (std::fabs(group.offset) > std::fabs(minimum)) minimum = -group.offset;
  }
  Choice best;
  if (!has_multipliers()) {
    choose<N>(nearest, scale, minimum, &best);
    choose<N>(nearest, group_[0].plain_scale, -group_[0].plain_offset, &best);
  } else {
    const bool either = shape_.multiplier_least < 0;
    const float last =
        static_cast<float>(either ? shape_.multiplier_least : shape_.multiplier_greatest);
    const float last_minimum = static_cast<float>(shape_.minimum_greatest);
    for (float change : {0.0f, 0.05f, 0.1f, -0.03f, 0.15f})
      for (float sign : {1.0f, -1.0f}) {
        if (sign < 0 && !either) continue;
        choose<N>(nearest, sign * scale * (1 + change) / last,
                  has_minimum() ? minimum / last_minimum : 0.0f, &best);
      }
  }
  for (int i = 0; i < 3; ++i) {
    const float before = best.error;
    improve<N>(nearest, &best);
    if (!(best.error < before)) break;
  }
  fit->scale = half_bits(best.scale);
  fit->minimum = half_bits(best.minimum);
  for (int g = 0; g < shape_.groups; ++g) {
    fit->multiplier[g] = best.multiplier[g];
    fit->minimum_multiplier[g] = best.minimum_multiplier[g];
    const float group_scale = best.scale * static_cast<float>(best.multiplier[g]);
    const float offset = -best.minimum * static_cast<float>(best.minimum_multiplier[g]);
    const float factor = inverse(group_scale);
    for (int i = 0; i < N; ++i)
      fit->level[g * N + i] = static_cast<int8_t>(nearest((group_[g].x[i] - offset) * factor));
  }
}

// weight: importance as far as it is usable, at most 1.
void set_weights(const float* importance, int count, float* weight) {
  float greatest = 0.0f;
  if (importance)
    for (int i = 0; i < count; ++i)
      if (std::isfinite(importance[i])) greatest = std::max(greatest, importance[i]);
  for (int i = 0; i < count; ++i) {
    const float share = greatest > 0.0f ? importance[i] / greatest : 1.0f;
    weight[i] = share >= 0.0f && share <= 1.0f ? share : 0.0f;
  }
}

}  // namespace

bool fit_block(const FitShape& shape, const float* x, const float* importance, Fit* fit) {
  const int count = shape.groups * shape.group;
  float greatest = 0.0f;
  for (int i = 0; i < count; ++i) {
    if (!std::isfinite(x[i])) return false;
    greatest = std::max(greatest, std::fabs(x[i]));
  }
  int exponent = 0;
  std::frexp(greatest, &exponent);
  float scaled[256], weight[256];
  for (int i = 0; i < count; ++i) scaled[i] = std::ldexp(x[i], -exponent);
  set_weights(importance, count, weight);
  Fitter fitter(shape, exponent, scaled, weight);
  const Integers integers = {static_cast<float>(shape.least), static_cast<float>(shape.greatest)};
  if (shape.iq4) {
    fitter.run<32>(Iq4(), fit);
    for (int i = 0; i < count; ++i) {
      const auto* level = std::find(std::begin(kIq4Levels), std::end(kIq4Levels), fit->level[i]);
      fit->level[i] = static_cast<int8_t>(level - kIq4Levels);
    }
  } else if (shape.group == 16)
    fitter.run<16>(integers, fit);
  else
    fitter.run<32>(integers, fit);
  return true;
}

}  // namespace mote::quant
