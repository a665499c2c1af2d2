#include "models/drafter.h"

#include <algorithm>

namespace mote {
namespace {

// Before anything is known: of prose and code, and of a machine that waits for memory.
constexpr float kUsuallyRight[] = {0.15f, 0.3f, 0.45f, 0.55f, 0.65f, 0.7f, 0.75f, 0.85f};
constexpr double kUsualExtra = 0.1;
constexpr float kLearningRate = 1.0f / 16;
constexpr double kTimingRate = 1.0 / 8;
// Where drafts did not pay, their cost is doubted again after a while.
constexpr double kDoubt = 1.0 / 128;
// A draft must promise more than the errors of what was learned.
constexpr double kWorthwhile = 1.03;

}  // namespace

void Drafter::start(size_t most, bool always) {
  *this = Drafter();
  most_ = most;
  always_ = always;
  extra_ = kUsualExtra;
  std::copy(kUsuallyRight, kUsuallyRight + kLongest, right_);
}

Drafter::Match Drafter::find(const int32_t* tokens, size_t count) {
  Match best;
  for (size_t place = count - 1; place > 0 && best.agreeing < kLongest; --place) {
    if (tokens[place - 1] != tokens[count - 1]) continue;
    const size_t most = std::min(kLongest, place);
    size_t agreeing = 1;
    while (agreeing < most && tokens[place - 1 - agreeing] == tokens[count - 1 - agreeing])
      ++agreeing;
    if (agreeing > best.agreeing) best = {place, agreeing};
  }
  return best;
}

const Drafter::Match& Drafter::match(const int32_t* tokens, size_t count) {
  if (matched_count_ != count) match_ = find(tokens, count);
  matched_count_ = count;
  return match_;
}

// Passes of 1 + length tokens yield the first token that was not drafted, too.
size_t Drafter::best_length(size_t agreeing, size_t most) const {
  if (always_) return most;
  double chance = 1, yield = 1, best = kWorthwhile;
  size_t best_length = 0;
  for (size_t length = 1; length <= most; ++length) {
    chance *= double(right_[std::min(agreeing + length - 1, kLongest) - 1]);
    yield += chance;
    const double gain = yield / (1 + extra_ * double(length));
    if (gain <= best) continue;
    best = gain;
    best_length = length;
  }
  return best_length;
}

size_t Drafter::draft(int32_t* tokens, size_t count, size_t room) {
  const size_t most = std::min(most_, room);
  if (most == 0 || count < 2) return 0;
  const Match& found = match(tokens, count);
  if (found.agreeing == 0) return 0;
  const size_t length = best_length(found.agreeing, most);
  // What it copies from may be what it has just written: a text that goes round in circles.
  for (size_t i = 0; i < length; ++i) tokens[count + i] = tokens[found.place + i];
  return length;
}

void Drafter::learn(const int32_t* tokens, size_t count, int32_t chosen) {
  if (most_ == 0 || count < 2) return;
  const Match& found = match(tokens, count);
  if (found.agreeing == 0) return;
  const bool right = tokens[found.place] == chosen;
  float& rate = right_[found.agreeing - 1];
  rate += ((right ? 1.0f : 0.0f) - rate) * kLearningRate;
  if (!right) return;
  // No other place can agree in more tokens.
  match_ = {found.place + 1, std::min(found.agreeing + 1, kLongest)};
  matched_count_ = count + 1;
}

void Drafter::measure(size_t drafted, uint64_t nanoseconds) {
  const double time = double(nanoseconds);
  if (drafted == 0) {
    // At most twice as long as usual: somebody else may have had the core.
    pass_ += pass_ == 0 ? time : (std::min(time, 2 * pass_) - pass_) * kTimingRate;
    extra_ += (kUsualExtra - extra_) * kDoubt;
  } else if (pass_ != 0) {
    const double extra = (time / pass_ - 1) / double(drafted);
    extra_ += (std::clamp(extra, 0.0, 1.0) - extra_) * kTimingRate;
  }
}

}  // namespace mote
