// Keys and values of the tokens so far, of a fixed capacity, and attention over them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena.h"
#include "core/threads.h"
#include "kernels/kernels.h"
#include "models/spec.h"

namespace mote {

// Layout per layer and key/value head: kernels.h. Layers with a window keep a ring of window +
// batch_tokens positions; a model that is not causal keeps nothing from call to call, so its layers
// share one layer's memory.
class KvCache {
 public:
  // Takes what it needs; the same calls with a measuring arena give the size. batch_tokens: the
  // largest chunk that attend() gets, threads: of the team. The spec stays the caller's. Bytes,
  // each piece rounded up to Arena::kAlignment: per layer 2 * kv_heads * kv_position_bytes(type,
  // head_dim) * positions, rounded up to kKeyBlock; per thread attention_scratch_bytes(head_dim);
  // with more than one thread, partial results of max(group, min(16, group * batch_tokens)) rows
  // per key/value head and segment.
  void plan(Arena& arena, const Spec& spec, KvType type, size_t capacity, size_t batch_tokens,
            uint32_t threads);

  size_t capacity() const { return capacity_; }
  KvType type() const { return type_; }
  // Stores keys [tokens][kv_heads * head_dim] (already turned) and values of positions position ...
  // and computes out[t][heads * head_dim] for the queries q[t][...] of the same positions, from
  // what the cache then holds: out may be q. Strides in floats. Work is split over the team by
  // heads, queries and segments of keys; the bits do not depend on it. Inside team.run(). position
  // + tokens <= capacity, tokens <= batch_tokens; not causal: position is 0.
  void attend(Team& team, const Kernels& kernels, uint32_t layer, size_t position, size_t tokens,
              const float* q, size_t q_stride, const float* k, const float* v, size_t kv_stride,
              float* out, size_t out_stride);
  // Whether position tokens can be kept when `held` are in the cache: rings may have overwritten
  // what a rewind needs.
  bool can_rewind(size_t held, size_t position) const;

  // One past the highest position that was stored since position 0 was: rings hold what lies as far
  // below it as they are long.
  size_t reached() const { return reached_; }
  // Whether all that a query at `position` sees is still there once `reached` was.
  bool still_holds(size_t reached, size_t position) const;
  // Whether a cache for other chunks has the same layout.
  bool same_rings(size_t batch_tokens) const;
  // What positions below `computed` have in the cache, without gaps: by layer, head, keys and
  // values, block of kKeyBlock positions; of each row of the block's layout the elements that are
  // held. The same bytes whatever lay in the memory before.
  size_t state_bytes(size_t computed, size_t reached) const;
  uint8_t* save(size_t computed, uint8_t* out) const;  // returns the end
  void restore(size_t computed, size_t reached, const uint8_t* in);

 private:
  struct Layer {
    uint8_t* keys;
    uint8_t* values;
    size_t blocks, window;
  };
  struct Call;

  size_t head_bytes(const Layer& layer) const;
  size_t blocks_of(size_t window, size_t batch_tokens) const;
  static size_t first_kept(const Layer& layer, size_t reached);
  template <class Copy>
  void copy_positions(size_t computed, size_t reached, const Copy& copy) const;
  void store(Team& team, const Kernels& kernels, const Layer& layer, size_t position, size_t tokens,
             const float* k, const float* v, size_t kv_stride) const;
  void run_rows(const Call& call, size_t unit, size_t per_head, uint32_t thread) const;
  void run_segment(const Call& call, size_t unit, uint32_t thread);
  void merge(const Call& call, size_t kv_head) const;

  size_t capacity_ = 0, batch_tokens_ = 0;
  size_t layer_count_ = 0, kv_heads_ = 0, group_ = 0, head_dim_ = 0;
  bool causal_ = true;
  float scale_ = 1.0f, cap_ = 0.0f;
  KvType type_ = KvType::f16;
  uint32_t threads_ = 1;
  size_t reached_ = 0;
  Layer* layers_ = nullptr;
  uint8_t* scratch_ = nullptr;  // [threads][attention_scratch_bytes]
  // [kv_heads][partial_rows][segments][partial_stride], and how many segments of a head are not
  // done.
  float* partial_ = nullptr;
  uint32_t* pending_ = nullptr;
  size_t partial_rows_ = 0, partial_segments_ = 0, partial_stride_ = 0;
};

}  // namespace mote
