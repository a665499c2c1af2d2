// Attention of many sequences in one pass, each over its own rows only and in both directions.
// Nothing is kept: keys and values are read where the pass left them, as floats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena.h"
#include "core/threads.h"
#include "kernels/kernels.h"
#include "models/spec.h"

namespace mote {

class SequenceAttention {
 public:
  // Takes what it needs; the same calls with a measuring arena give the size. batch_tokens: of all
  // sequences of a pass.
  void plan(Arena& arena, const Spec& spec, size_t batch_tokens, uint32_t threads);
  // Splits the work of a pass: sequence s has the rows starts[s] <= r < starts[s + 1]. starts stays
  // the caller's, and as it is until the last attend().
  void begin(const uint32_t* starts, size_t count);
  // out[row][heads * head_dim] of q[row][...] over k[row][kv_heads * head_dim] and v; rows are
  // q_stride (of q and k and v) or out_stride floats apart. window: as LayerSpec's. bias: null, or
  // of head h and distance 0 at bias[h * bias_stride], see AttentionTask. Work is split by
  // sequence, head and queries; the bits do not depend on it nor on the other sequences. Inside
  // team.run().
  void attend(Team& team, const Kernels& kernels, size_t window, const float* bias,
              size_t bias_stride, const float* q, const float* k, const float* v, size_t stride,
              float* out, size_t out_stride) const;

 private:
  size_t heads_ = 0, kv_heads_ = 0, group_ = 0, head_dim_ = 0;
  float scale_ = 1.0f, cap_ = 0.0f;
  uint32_t threads_ = 1;
  const uint32_t* starts_ = nullptr;
  size_t count_ = 0, unit_tokens_ = 1, products_ = 0;
  uint32_t* first_unit_ = nullptr;  // [sequences + 1]
  uint8_t* scratch_ = nullptr;      // [threads][attention_scratch_bytes]
};

}  // namespace mote
