#include "models/heads/spans.h"

#include <algorithm>
#include <cmath>

#include "models/chat/text.h"
#include "models/heads/code_points.h"

namespace mote {
namespace {

// A text's code points in lower case, one after the other.
class LowerCase {
 public:
  explicit LowerCase(std::string_view text) : text_(text) {}
  // False at the end.
  bool next(uint32_t* code_point) {
    if (second_) {
      *code_point = second_;
      second_ = 0;
      return true;
    }
    if (at_ >= text_.size()) return false;
    const CodePoint point = read_utf8(text_, at_);
    const chat::Lowered lowered = chat::lower_case(text_, at_, point.value);
    at_ += point.length;
    *code_point = lowered.first;
    second_ = lowered.second;
    return true;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
  uint32_t second_ = 0;
};

uint32_t lower_case_hash(std::string_view text) {
  LowerCase lower(text);
  uint32_t hash = 2166136261u;  // FNV-1a
  for (uint32_t c; lower.next(&c);) hash = (hash ^ c) * 16777619u;
  return hash;
}

bool same_in_lower_case(std::string_view a, std::string_view b) {
  LowerCase left(a), right(b);
  for (;;) {
    uint32_t c = 0, d = 0;
    const bool more = left.next(&c);
    if (more != right.next(&d) || c != d) return false;
    if (!more) return true;
  }
}

}  // namespace

void SpanFinder::plan(Arena& arena, size_t positions, size_t candidates) {
  start_ = arena.take<float>(positions);
  end_ = arena.take<float>(positions);
  pairs_ = arena.take<Pair>(2 * kMaxTop + 10);
  candidates_ = arena.take<Candidate>(candidates);
  capacity_ = candidates;
}

void SpanFinder::start(std::string_view passage, size_t top, size_t longest, bool raw) {
  passage_ = passage;
  top_ = top;
  longest_ = longest;
  raw_ = raw;
  found_ = 0;
  any_ = false;
  no_answer_ = 0;
}

Status SpanFinder::probabilities(const SpanWindow& window, size_t which, float* out, float* null) {
  const auto logit = [&](size_t position) { return window.logits[position * 2 + which]; };
  const float at_null = logit(window.null_position);
  bool finite = std::isfinite(at_null);
  float most = at_null;
  for (size_t i = 0; i < window.count; ++i) {
    const float value = logit(window.first + i);
    finite = finite && std::isfinite(value);
    most = std::max(most, value);
  }
  if (!finite) return fail(MOTE_ERROR_BAD_FILE, "answer: a logit is not finite");
  *null = std::exp(at_null - most);
  double sum = *null;
  for (size_t i = 0; i < window.count; ++i)
    sum += out[i] = std::exp(logit(window.first + i) - most);
  for (size_t i = 0; i < window.count; ++i) out[i] = static_cast<float>(out[i] / sum);
  *null = static_cast<float>(*null / sum);
  return kOk;
}

// The best of start_ and end_ [count] into pairs_, best first; of equal ones the earlier start,
// then the earlier end.
size_t SpanFinder::best_pairs(size_t count) {
  const auto better = [](const Pair& a, const Pair& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.start != b.start ? a.start < b.start : a.end < b.end;
  };
  const size_t most = 2 * top_ + 10;
  size_t held = 0;
  for (size_t s = 0; s < count; ++s) {
    const size_t last = longest_ < count - s ? s + longest_ : count;
    for (size_t e = s; e < last; ++e) {
      const Pair pair = {static_cast<uint32_t>(s), static_cast<uint32_t>(e), start_[s] * end_[e]};
      if (!(pair.score > 0)) continue;
      if (held == most) {  // a heap with the worst in front
        if (!better(pair, pairs_[0])) continue;
        std::pop_heap(pairs_, pairs_ + held--, better);
      }
      pairs_[held++] = pair;
      std::push_heap(pairs_, pairs_ + held, better);
    }
  }
  std::sort_heap(pairs_, pairs_ + held, better);
  return held;
}

Status SpanFinder::add(const SpanWindow& window) {
  float null_start = 0, null_end = 0;
  MOTE_TRY(probabilities(window, 0, start_, &null_start));
  MOTE_TRY(probabilities(window, 1, end_, &null_end));
  const float* null_logits = window.logits + window.null_position * 2;
  const float null = raw_ ? null_logits[0] + null_logits[1] : null_start * null_end;
  no_answer_ = any_ ? std::min(no_answer_, null) : null;
  any_ = true;
  const size_t pairs = best_pairs(window.count);
  for (size_t i = 0; i < pairs; ++i) {
    size_t first = pairs_[i].start, last = pairs_[i].end;
    const float* logits = window.logits + window.first * 2;
    const float score = raw_ ? logits[first * 2] + logits[last * 2 + 1] : pairs_[i].score;
    while (first > 0 && !window.word_starts[first]) --first;
    while (last + 1 < window.count && !window.word_starts[last + 1]) ++last;
    MOTE_TRY(add_candidate(window.tokens[first].byte_start, window.tokens[last].byte_end, score));
  }
  return kOk;
}

Status SpanFinder::add_candidate(uint32_t byte_start, uint32_t byte_end, float score) {
  byte_end = std::max(byte_start, byte_end);
  const std::string_view added = text(byte_start, byte_end);
  const uint32_t hash = lower_case_hash(added);
  for (size_t i = 0; i < found_; ++i) {
    Candidate& other = candidates_[i];
    if (other.hash != hash || !same_in_lower_case(added, text(other.byte_start, other.byte_end)))
      continue;
    other.score = raw_ ? std::max(other.score, score) : other.score + score;
    return kOk;
  }
  if (found_ == capacity_)
    return fail(MOTE_ERROR_CAPACITY,
                "answer: more than %zu different spans: a passage of fewer windows, a lower top or "
                "a larger text_bytes",
                capacity_);
  candidates_[found_++] = {byte_start, byte_end, hash, score};
  return kOk;
}

size_t SpanFinder::finish(mote_span* spans) {
  // The first found goes first of equal ones: their places in the list are in that order until now.
  for (size_t i = 0; i < found_; ++i) candidates_[i].hash = static_cast<uint32_t>(i);
  const size_t count = std::min(top_, found_);
  std::partial_sort(candidates_, candidates_ + count, candidates_ + found_,
                    [](const Candidate& a, const Candidate& b) {
                      return a.score != b.score ? a.score > b.score : a.hash < b.hash;
                    });
  CodePointCounter points(passage_);
  for (size_t i = 0; i < count; ++i) {
    const Candidate& from = candidates_[i];
    spans[i] = {};
    spans[i].byte_start = from.byte_start;
    spans[i].byte_end = from.byte_end;
    spans[i].character_start = points.before(from.byte_start);
    spans[i].character_end = points.before(from.byte_end);
    spans[i].score = from.score;
  }
  return count;
}

}  // namespace mote
