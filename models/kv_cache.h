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
// batch_tokens positions.
class KvCache {
 public:
  // The same calls with a measuring arena give the size. batch_tokens: the largest chunk that
  // attend() gets.
  void plan(Arena& arena, const Spec& spec, KvType type, size_t capacity, size_t batch_tokens,
            uint32_t threads);

  size_t capacity() const { return capacity_; }
  KvType type() const { return type_; }
  // Stores keys [tokens][kv_heads * head_dim] (already turned) and values of positions position ...
  // and computes out[t][heads * head_dim] for the queries q[t][...] of the same positions, from
  // what the cache then holds. Strides in floats. Work is split over the team by heads, queries and
  // fixed segments of keys; the bits do not depend on it.
  void attend(Team& team, const Kernels& kernels, uint32_t layer, size_t position, size_t tokens,
              const float* q, size_t q_stride, const float* k, const float* v, size_t kv_stride,
              float* out, size_t out_stride);
  // Whether position tokens can be kept when `held` are in the cache: rings may have overwritten
  // what a rewind needs.
  bool can_rewind(size_t held, size_t position) const;

 private:
  struct Layer {
    uint8_t* keys;
    uint8_t* values;
    size_t blocks;
  };
  const Spec* spec_ = nullptr;
  KvType type_ = KvType::f16;
  size_t capacity_ = 0, batch_tokens_ = 0;
  Layer* layers_ = nullptr;
  float* partial_ = nullptr;  // per thread or task: partial results of segments
  uint8_t* scratch_ = nullptr;
};

}  // namespace mote
