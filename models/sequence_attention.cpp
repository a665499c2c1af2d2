#include "models/sequence_attention.h"

#include <algorithm>
#include <cmath>

namespace mote {
namespace {

// Fewer products of queries and keys than these are not worth waking anybody.
constexpr size_t kParallelProducts = 64 * 1024;
constexpr size_t kFewestRows = 16;  // of a unit, (token, head) pairs

size_t ceil_divide(size_t a, size_t b) { return a / b + (a % b != 0); }

}  // namespace

void SequenceAttention::plan(Arena& arena, const Spec& spec, size_t batch_tokens,
                             uint32_t threads) {
  heads_ = spec.heads;
  kv_heads_ = spec.kv_heads;
  group_ = heads_ / kv_heads_;
  head_dim_ = spec.head_dim;
  cap_ = spec.attention_cap;
  scale_ = spec.attention_scale != 0.0f
               ? spec.attention_scale
               : static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim)));
  threads_ = threads;
  first_unit_ = arena.take<uint32_t>(batch_tokens + 1);
  scratch_ = arena.take<uint8_t>(threads, attention_scratch_bytes(head_dim_));
}

void SequenceAttention::begin(const uint32_t* starts, size_t count) {
  starts_ = starts;
  count_ = count;
  const size_t tokens = starts[count];
  // Units that keep the kernel's tiles full, but eight a thread where there are enough queries.
  const size_t wanted = ceil_divide(tokens * heads_, 8 * size_t{threads_});
  const size_t rows = std::min(kAttentionRows, std::max(kFewestRows, wanted));
  unit_tokens_ = std::max<size_t>(1, rows / group_);
  products_ = 0;
  uint32_t units = 0;
  for (size_t s = 0; s < count; ++s) {
    const size_t length = starts[s + 1] - starts[s];
    first_unit_[s] = units;
    units += static_cast<uint32_t>(kv_heads_ * ceil_divide(length, unit_tokens_));
    products_ += length * length * heads_ * head_dim_;
  }
  first_unit_[count] = units;
}

void SequenceAttention::attend(Team& team, const Kernels& kernels, size_t window, const float* bias,
                               size_t bias_stride, const float* q, const float* k, const float* v,
                               size_t stride, float* out, size_t out_stride) const {
  const auto run_unit = [&](size_t unit, size_t sequence, uint32_t thread) {
    const size_t start = starts_[sequence], length = starts_[sequence + 1] - start;
    const size_t parts = ceil_divide(length, unit_tokens_);
    const size_t index = unit - first_unit_[sequence];
    const size_t head = index / parts, first = index % parts * unit_tokens_;
    const size_t row = start + first, query = head * group_ * head_dim_;
    AttentionTask task = {};
    task.q = q + row * stride + query;
    task.q_stride = stride;
    task.tokens = std::min(unit_tokens_, length - first);
    task.group = group_;
    task.head_dim = head_dim_;
    task.position = first;
    task.key_rows = k + start * stride + head * head_dim_;
    task.value_rows = v + start * stride + head * head_dim_;
    task.rows_stride = stride;
    task.last_key = length;
    task.window = window;
    task.scale = scale_;
    task.cap = cap_;
    task.bias = bias ? bias + head * group_ * bias_stride : nullptr;
    task.bias_stride = bias_stride;
    task.out = out + row * out_stride + query;
    task.out_stride = out_stride;
    task.out_head_stride = head_dim_;
    task.scratch = scratch_ + thread * attention_scratch_bytes(head_dim_);
    kernels.attention(&task);
  };
  const size_t units = first_unit_[count_];
  // Units [first, last), whose sequences follow each other.
  const auto run_units = [&](size_t first, size_t last, uint32_t thread) {
    size_t s = size_t(std::upper_bound(first_unit_, first_unit_ + count_, first) - first_unit_) - 1;
    for (size_t unit = first; unit < last; ++unit) {
      while (first_unit_[s + 1] <= unit) ++s;
      run_unit(unit, s, thread);
    }
  };
  if (products_ < kParallelProducts || team.threads() == 1) return run_units(0, units, 0);
  const auto units_of = [&](uint32_t part) { return split(units, 1, part, team.threads()); };
  team.share(
      std::max<size_t>(1, units / (16 * team.threads())),
      [&](uint32_t part) { return units_of(part).size(); },
      [&](uint32_t part, size_t first, size_t last, uint32_t thread) {
        const size_t start = units_of(part).first;
        run_units(start + first, start + last, thread);
      });
}

}  // namespace mote
