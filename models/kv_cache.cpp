#include "models/kv_cache.h"

#include <algorithm>
#include <cmath>

namespace mote {
namespace {

constexpr size_t kSplitRows = 16;  // per key/value head, up to which keys are split over threads
constexpr size_t kStoreTokens = kKeyBlock;  // a unit of storing
// Below these a parallel region costs more than it brings: floats to store, products of queries and
// keys.
constexpr size_t kParallelStore = 32 * 1024, kParallelProducts = 64 * 1024;

size_t ceil_divide(size_t a, size_t b) { return a / b + (a % b != 0); }
// SIZE_MAX where it overflows: no arena holds that.
size_t times(size_t a, size_t b) {
  size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

}  // namespace

// One call of attend(), for the units of its work.
struct KvCache::Call {
  AttentionTask task;  // all of it, for head 0
  const Kernels* kernels;
  const Layer* layer;
  size_t unit_tokens, unit_heads;         // per unit, where rows are split
  size_t first_segment, segments;         // where keys are split
  size_t q_head_stride, out_head_stride;  // from one key/value head to the next
};

void KvCache::plan(Arena& arena, const Spec& spec, KvType type, size_t capacity,
                   size_t batch_tokens, uint32_t threads) {
  capacity_ = capacity;
  batch_tokens_ = batch_tokens;
  type_ = type;
  threads_ = threads;
  layer_count_ = spec.layers;
  kv_heads_ = spec.kv_heads;
  group_ = spec.heads / spec.kv_heads;
  head_dim_ = spec.head_dim;
  causal_ = spec.causal;
  cap_ = spec.attention_cap;
  scale_ = spec.attention_scale != 0.0f
               ? spec.attention_scale
               : static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim)));
  reached_ = 0;

  layers_ = arena.take<Layer>(layer_count_);
  const size_t row_bytes = times(kv_heads_, kv_position_bytes(type, head_dim_) * kKeyBlock);
  uint8_t *keys = nullptr, *values = nullptr;
  for (size_t i = 0; i < layer_count_; ++i) {
    const size_t window = spec.layer[i].window;
    const size_t blocks = blocks_of(window, batch_tokens);
    if (causal_ || i == 0) {
      keys = arena.take<uint8_t>(times(blocks, row_bytes));
      values = arena.take<uint8_t>(times(blocks, row_bytes));
    }
    if (layers_) layers_[i] = {keys, values, blocks, window};
  }
  scratch_ = arena.take<uint8_t>(times(threads, attention_scratch_bytes(head_dim_)));
  if (threads == 1) return;
  partial_rows_ = std::max(group_, std::min(kSplitRows, times(group_, batch_tokens)));
  partial_segments_ = ceil_divide(capacity, kKeySegment);
  partial_stride_ = (head_dim_ + 2 + 15) / 16 * 16;
  partial_ = arena.take<float>(
      times(times(times(kv_heads_, partial_rows_), partial_stride_), partial_segments_));
  pending_ = arena.take<uint32_t>(kv_heads_);
}

size_t KvCache::head_bytes(const Layer& layer) const {
  return layer.blocks * kKeyBlock * kv_position_bytes(type_, head_dim_);
}

size_t KvCache::blocks_of(size_t window, size_t batch_tokens) const {
  const size_t all = ceil_divide(capacity_, kKeyBlock);
  if (!causal_ || window == 0 || window >= capacity_) return all;
  return std::min(all, ceil_divide(window + batch_tokens - 1, kKeyBlock));
}

// The lowest position that a layer still holds.
size_t KvCache::first_kept(const Layer& layer, size_t reached) {
  const size_t ring = layer.blocks * kKeyBlock;
  return reached > ring ? reached - ring : 0;
}

bool KvCache::still_holds(size_t reached, size_t position) const {
  if (position == 0) return true;
  for (size_t i = 0; i < layer_count_; ++i) {
    const size_t window = layers_[i].window;
    const size_t needed = window && position + 1 > window ? position + 1 - window : 0;
    if (needed < first_kept(layers_[i], reached)) return false;
  }
  return true;
}

bool KvCache::can_rewind(size_t held, size_t position) const {
  if (position >= held || position == 0) return true;
  return causal_ && still_holds(std::max(held, reached_), position);
}

void KvCache::store(Team& team, const Kernels& kernels, const Layer& layer, size_t position,
                    size_t tokens, const float* k, const float* v, size_t kv_stride) const {
  const size_t parts = ceil_divide(tokens, kStoreTokens), bytes = head_bytes(layer);
  auto store_unit = [&](size_t unit) {
    const size_t head = unit / parts, first = unit % parts * kStoreTokens;
    KvRows rows;
    rows.x = k + first * kv_stride + head * head_dim_;
    rows.x_stride = kv_stride;
    rows.tokens = std::min(kStoreTokens, tokens - first);
    rows.head_dim = head_dim_;
    rows.position = position + first;
    rows.cache = layer.keys + head * bytes;
    rows.blocks = layer.blocks;
    rows.type = type_;
    kernels.store_key(&rows);
    rows.x = v + first * kv_stride + head * head_dim_;
    rows.cache = layer.values + head * bytes;
    kernels.store_value(&rows);
  };
  const size_t units = kv_heads_ * parts;
  if (tokens * kv_heads_ * head_dim_ < kParallelStore) {
    for (size_t i = 0; i < units; ++i) store_unit(i);
    return;
  }
  team.parallel([&](uint32_t thread, uint32_t threads) {
    const Range range = split(units, 1, thread, threads);
    for (size_t i = range.first; i < range.last; ++i) store_unit(i);
  });
}

// Some tokens of one key/value head, or some query heads of it for one token, over all keys.
void KvCache::run_rows(const Call& call, size_t unit, size_t per_head, uint32_t thread) const {
  const size_t head = unit / per_head;
  // Later tokens see more keys: they come first, so that the last units are small.
  const size_t part = per_head - 1 - unit % per_head, bytes = head_bytes(*call.layer);
  AttentionTask task = call.task;
  task.keys += head * bytes;
  task.values += head * bytes;
  task.q += head * call.q_head_stride;
  task.out += head * call.out_head_stride;
  if (call.unit_heads < group_) {
    const size_t first = part * call.unit_heads;
    task.group = std::min(call.unit_heads, group_ - first);
    task.q += first * head_dim_;
    task.out += first * head_dim_;
  } else {
    const size_t first = part * call.unit_tokens;
    task.tokens = std::min(call.unit_tokens, task.tokens - first);
    task.position += first;
    task.q += first * task.q_stride;
    task.out += first * task.out_stride;
  }
  task.scratch = scratch_ + thread * attention_scratch_bytes(head_dim_);
  call.kernels->attention(&task);
}

// All rows of one key/value head over one segment; who does the last segment of a head merges them.
void KvCache::run_segment(const Call& call, size_t unit, uint32_t thread) {
  const size_t head = unit / call.segments, index = unit % call.segments;
  const size_t bytes = head_bytes(*call.layer), record = partial_stride_ * call.segments;
  AttentionTask task = call.task;
  task.keys += head * bytes;
  task.values += head * bytes;
  task.q += head * call.q_head_stride;
  task.first_key = (call.first_segment + index) * kKeySegment;
  task.last_key = std::min(task.last_key, task.first_key + kKeySegment);
  task.out = partial_ + head * partial_rows_ * partial_segments_ * partial_stride_ +
             index * partial_stride_;
  task.out_stride = group_ * record;
  task.out_head_stride = record;
  task.partial = true;
  task.scratch = scratch_ + thread * attention_scratch_bytes(head_dim_);
  call.kernels->attention(&task);
  if (__atomic_sub_fetch(&pending_[head], 1, __ATOMIC_ACQ_REL) == 0) merge(call, head);
}

void KvCache::merge(const Call& call, size_t head) const {
  AttentionMerge task;
  task.part_stride = partial_stride_;
  task.segments = call.segments;
  task.head_dim = head_dim_;
  const float* parts = partial_ + head * partial_rows_ * partial_segments_ * partial_stride_;
  for (size_t row = 0; row < call.task.tokens * group_; ++row) {
    task.parts = parts + row * partial_stride_ * call.segments;
    task.out = call.task.out + head * call.out_head_stride + row / group_ * call.task.out_stride +
               row % group_ * head_dim_;
    call.kernels->attention_merge(&task);
  }
}

void KvCache::attend(Team& team, const Kernels& kernels, uint32_t layer_index, size_t position,
                     size_t tokens, const float* q, size_t q_stride, const float* k, const float* v,
                     size_t kv_stride, float* out, size_t out_stride) {
  const Layer& layer = layers_[layer_index];
  const size_t last = position + tokens;
  reached_ = position == 0 ? last : std::max(reached_, last);
  store(team, kernels, layer, position, tokens, k, v, kv_stride);

  Call call;
  call.kernels = &kernels;
  call.layer = &layer;
  call.q_head_stride = call.out_head_stride = group_ * head_dim_;
  AttentionTask& task = call.task;
  task.q = q;
  task.q_stride = q_stride;
  task.tokens = tokens;
  task.group = group_;
  task.head_dim = head_dim_;
  task.position = position;
  task.keys = layer.keys;
  task.values = layer.values;
  task.blocks = layer.blocks;
  task.type = type_;
  task.first_key = 0;
  task.last_key = last;
  task.causal = causal_;
  task.window = layer.window;
  task.scale = scale_;
  task.cap = cap_;
  task.out = out;
  task.out_stride = out_stride;
  task.out_head_stride = head_dim_;
  task.partial = false;

  const size_t begin =
      layer.window && position + 1 > layer.window ? position + 1 - layer.window : 0;
  const size_t rows = tokens * group_, threads = team.threads();
  const bool alone =
      threads == 1 || rows * kv_heads_ * (last - begin) * head_dim_ < kParallelProducts;
  call.first_segment = begin / kKeySegment;
  call.segments = ceil_divide(last, kKeySegment) - call.first_segment;
  const bool by_keys = !alone && rows <= partial_rows_ && call.segments > 1 &&
                       (kv_heads_ < 4 * threads || kv_heads_ % threads != 0);
  call.unit_heads = group_;
  call.unit_tokens = std::max<size_t>(1, kAttentionRows / group_);
  if (!alone && !by_keys) {
    // Four units a thread, but not fewer than eight rows in one.
    const size_t wanted = ceil_divide(4 * threads, kv_heads_);
    const size_t fewest = ceil_divide(8, group_);
    call.unit_tokens = std::min(call.unit_tokens, std::max(fewest, ceil_divide(tokens, wanted)));
    if (tokens == 1 && kv_heads_ % threads != 0) call.unit_heads = ceil_divide(group_, 2);
  }
  const size_t per_head = by_keys                    ? call.segments
                          : call.unit_heads < group_ ? ceil_divide(group_, call.unit_heads)
                                                     : ceil_divide(tokens, call.unit_tokens);
  const size_t units = kv_heads_ * per_head;
  if (alone) {
    for (size_t i = 0; i < units; ++i) run_rows(call, i, per_head, 0);
    return;
  }
  if (by_keys)
    for (size_t h = 0; h < kv_heads_; ++h) pending_[h] = static_cast<uint32_t>(call.segments);
  size_t next = 0;
  team.parallel([&](uint32_t thread, uint32_t) {
    for (;;) {
      const size_t unit = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
      if (unit >= units) return;
      if (by_keys)
        run_segment(call, unit, thread);
      else
        run_rows(call, unit, per_head, thread);
    }
  });
}

}  // namespace mote
