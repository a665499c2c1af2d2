// The forward pass: the only one. Reads the Spec, knows no architecture.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/arena.h"
#include "core/threads.h"
#include "kernels/kernels.h"
#include "models/forward.h"
#include "models/kv_cache.h"
#include "models/rope.h"
#include "models/spec.h"
#include "models/weights.h"

namespace mote {

// What the forward pass needs of a model.
struct TransformerModel {
  Spec spec;
  Weights weights;
  RopeFrequencies rope[2];
  const Kernels* kernels = nullptr;
};

// Asked before every layer: whether the running call is to end.
struct Stop {
  const std::atomic<uint32_t>* cancelled = nullptr;
  uint64_t deadline_ns = 0;  // of the monotonic clock; 0: none

  bool requested() const;
  bool timed_out() const;
};
uint64_t monotonic_ns();

class Transformer {
 public:
  static constexpr size_t kLogitRows = 8;  // positions whose logits are computed at once

  void plan(Arena& arena, const TransformerModel& model, KvType kv_type, size_t capacity,
            size_t batch_tokens, uint32_t threads);

  size_t batch_tokens() const { return batch_tokens_; }
  KvCache& cache() { return cache_; }
  const KvCache& cache() const { return cache_; }

  // Runs all layers for ids [tokens] at positions position ..., tokens <= batch_tokens; their keys
  // and values are then in the cache. False: stop was requested, and the positions are not to be
  // used. Inside team.run().
  bool forward(Team& team, const int32_t* ids, size_t tokens, size_t position, const Stop& stop,
               const ForwardSink* sink);
  // Logits [count][vocabulary] of rows first ... of the last forward(), count <= kLogitRows. Inside
  // team.run().
  float* logits(Team& team, size_t first, size_t count);

 private:
  // One product of a group that shares its input; y = input * matrix^T + bias.
  struct Product {
    const Matrix* matrix;
    const float* bias;
    float* y;
    size_t y_stride;
    bool accumulate;
  };

  void embed(Team& team, const int32_t* ids, size_t tokens, size_t position);
  void attention_block(Team& team, uint32_t layer, size_t tokens, size_t position);
  void feed_forward_block(Team& team, uint32_t layer, size_t tokens);
  void normalize(const float* x, const float* weight, const float* bias, float* y) const;
  void turn_heads(const LayerWeights& weights, const LayerSpec& layer, size_t token);
  void activate(size_t token);
  // Quantizes row x of `columns` as `token` of the next multiply(), quantized_.refined blocks of it
  // twice.
  void quantize(const float* x, size_t columns, size_t token);
  void multiply(Team& team, size_t columns, const float* x, size_t x_stride, size_t tokens,
                const Product* products, size_t count);
  void multiply_units(const Activations& input, size_t columns, size_t tokens,
                      const Product* products, size_t count, Range range, uint32_t thread) const;
  // x += output of the block's last matrix, through a post norm where there is one.
  void add_to_residual(Team& team, const Matrix& matrix, const float* bias, const float* post_norm,
                       const float* input, size_t input_stride, size_t tokens);
  template <class Work>
  void each_token(Team& team, size_t tokens, const Work& work) const;

  const TransformerModel* model_ = nullptr;
  KvCache cache_;
  size_t batch_tokens_ = 0, qkv_width_ = 0, query_width_ = 0, key_value_width_ = 0, up_width_ = 0;

  float* x_ = nullptr;          // [batch][hidden]  residual stream
  float* normed_ = nullptr;     // [batch][hidden]
  float* qkv_ = nullptr;        // [batch][query + key + value]
  float* attended_ = nullptr;   // [batch][heads * head_dim]
  float* gate_up_ = nullptr;    // [batch][gate + up], or [batch][up]
  float* block_out_ = nullptr;  // [batch][hidden]  only with post norms or residual scales
  Activations quantized_;       // [batch][widest input of a matrix]
  float* cosine_[2] = {};       // [batch][pairs]
  float* sine_[2] = {};
  float* logits_ = nullptr;     // [kLogitRows][vocabulary]
  uint8_t* scratch_ = nullptr;  // [threads][scratch_stride_]
  size_t scratch_stride_ = 0;
};

}  // namespace mote
