#include "models/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mote {

static constexpr uint32_t kDefaultWindow = 64;  // tokens that repeat_window 0 stands for
static constexpr float kLeastExponent = -64.0f;

Philox philox(const uint32_t counter[4], const uint32_t key[2]) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  Philox x = {{counter[0], counter[1], counter[2], counter[3]}};
  uint32_t key0 = key[0], key1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * x.words[0], product1 = kMultiplier1 * x.words[2];
    x = {{static_cast<uint32_t>(product1 >> 32) ^ x.words[1] ^ key0,
          static_cast<uint32_t>(product1),
          static_cast<uint32_t>(product0 >> 32) ^ x.words[3] ^ key1,
          static_cast<uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

void Sampler::plan(Arena& arena, size_t vocabulary) {
  candidates_ = arena.take<Candidate>(vocabulary);
  vocabulary_ = vocabulary;
}

static Status check_range(const char* name, float value, float most) {
  if (value >= 0 && value <= most) return kOk;  // not NaN
  return fail(MOTE_ERROR_ARGUMENT, "%s: expected 0 to %g, found %g", name,
              static_cast<double>(most), static_cast<double>(value));
}

Status Sampler::check(const mote_generate_options& options) {
  constexpr float kMost = 3.0e38f;
  MOTE_TRY(check_range("temperature", options.temperature, kMost));
  MOTE_TRY(check_range("top_p", options.top_p, 1));
  MOTE_TRY(check_range("min_p", options.min_p, 1));
  return check_range("repeat_penalty", options.repeat_penalty, kMost);
}

void Sampler::start(const mote_generate_options& options) {
  temperature_ = options.temperature;
  top_k_ = options.top_k;
  top_p_ = options.top_p == 1 ? 0 : options.top_p;
  min_p_ = options.min_p;
  penalty_ = options.repeat_penalty == 1 ? 0 : options.repeat_penalty;
  window_ = options.repeat_window ? options.repeat_window : kDefaultWindow;
  state_ = State{options.seed, 0};
}

void Sampler::penalise(float* logits, const int32_t* history, size_t count) {
  // A candidate's id says whether its token was met already; gather() writes them all anew.
  const size_t length = std::min<size_t>(count, window_);
  const int32_t* last = history + (count - length);
  const auto known = [&](int32_t id) { return id >= 0 && static_cast<size_t>(id) < vocabulary_; };
  for (size_t i = 0; i < length; ++i)
    if (known(last[i])) candidates_[last[i]].id = 0;
  for (size_t i = 0; i < length; ++i) {
    if (!known(last[i]) || candidates_[last[i]].id) continue;
    candidates_[last[i]].id = 1;
    float& logit = logits[last[i]];
    if (!std::isfinite(logit)) continue;
    // A penalty neither forbids a token nor forces one.
    constexpr float kMost = std::numeric_limits<float>::max();
    logit = std::clamp(logit > 0 ? logit / penalty_ : logit * penalty_, -kMost, kMost);
  }
}

// The tokens that can be chosen, by id; only those of +infinity where there are any.
size_t Sampler::gather(const float* logits) {
  size_t count = 0;
  float least = -HUGE_VALF;
  for (size_t i = 0; i < vocabulary_; ++i) {
    const float logit = logits[i];
    if (!(logit > least) && !(logit == HUGE_VALF)) continue;  // NaN too
    if (logit == HUGE_VALF && least != HUGE_VALF) {
      least = HUGE_VALF;
      count = 0;
    }
    candidates_[count++] = Candidate{logit, static_cast<uint32_t>(i)};
  }
  return count;
}

// Afterwards candidates are in order, largest first.
size_t Sampler::keep_top_k(size_t count) {
  if (count > top_k_)
    std::nth_element(candidates_, candidates_ + top_k_, candidates_ + count, before);
  count = std::min<size_t>(count, top_k_);
  std::sort(candidates_, candidates_ + count, before);
  return count;
}

size_t Sampler::keep_top_p(size_t count) {
  double total = 0, sum = 0;
  for (size_t i = 0; i < count; ++i) total += static_cast<double>(candidates_[i].value);
  const double wanted = total * static_cast<double>(top_p_);
  // Few are enough most times: they are sorted out in growing pieces.
  size_t sorted = 0, kept = 0;
  while (kept < count) {
    if (kept == sorted) {
      const size_t more = std::min(count, std::max<size_t>(64, 4 * sorted));
      if (more < count)
        std::nth_element(candidates_ + sorted, candidates_ + more, candidates_ + count, before);
      std::sort(candidates_ + sorted, candidates_ + more, before);
      sorted = more;
    }
    sum += static_cast<double>(candidates_[kept++].value);
    if (sum >= wanted) break;
  }
  return kept;
}

size_t Sampler::keep_min_p(size_t count) {
  // The largest weight is 1.
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i)
    if (candidates_[i].value >= min_p_) candidates_[kept++] = candidates_[i];
  return kept;
}

uint32_t Sampler::draw(size_t count) {
  const uint32_t counter[4] = {static_cast<uint32_t>(state_.drawn),
                               static_cast<uint32_t>(state_.drawn >> 32), 0, 0};
  const uint32_t key[2] = {static_cast<uint32_t>(state_.seed),
                           static_cast<uint32_t>(state_.seed >> 32)};
  const Philox random = philox(counter, key);
  ++state_.drawn;
  const uint64_t bits = (static_cast<uint64_t>(random.words[1]) << 32 | random.words[0]) >> 11;
  double total = 0, sum = 0;
  for (size_t i = 0; i < count; ++i) total += static_cast<double>(candidates_[i].value);
  const double place = static_cast<double>(bits) * 0x1p-53 * total;
  size_t chosen = 0;
  for (size_t i = 0; i < count; ++i) {
    if (candidates_[i].value == 0) continue;
    chosen = i;
    sum += static_cast<double>(candidates_[i].value);
    if (sum > place) break;
  }
  return candidates_[chosen].id;
}

Status Sampler::choose(const Kernels& kernels, float* logits, const int32_t* history, size_t count,
                       int32_t* token) {
  if (penalty_ > 0) penalise(logits, history, count);
  size_t candidates = 0;
  if (temperature_ == 0) {
    const size_t best = kernels.argmax(logits, vocabulary_);
    if (best < vocabulary_) {
      *token = static_cast<int32_t>(best);
      return kOk;
    }
  } else {
    candidates = gather(logits);
  }
  if (candidates == 0)
    return fail(MOTE_ERROR_BAD_FILE, "no token can be chosen: all %zu logits are NaN or -infinity",
                vocabulary_);
  if (top_k_ > 0) candidates = keep_top_k(candidates);
  float largest = candidates_[0].value;
  for (size_t i = 1; i < candidates; ++i) largest = std::max(largest, candidates_[i].value);
  const float factor = 1 / temperature_;
  for (size_t i = 0; i < candidates; ++i) {
    float& value = candidates_[i].value;
    const float exponent = value == largest ? 0 : (value - largest) * factor;
    value = exponent < kLeastExponent ? 0 : std::exp(exponent);
  }
  if (top_p_ > 0) candidates = keep_top_p(candidates);
  if (min_p_ > 0) candidates = keep_min_p(candidates);
  *token = static_cast<int32_t>(draw(candidates));
  return kOk;
}

}  // namespace mote
