// The forward pass: the only one. Reads the Spec, knows no architecture.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/arena.h"
#include "core/threads.h"
#include "kernels/kernels.h"
#include "models/encoder.h"
#include "models/forward.h"
#include "models/kv_cache.h"
#include "models/relative_bias.h"
#include "models/rope.h"
#include "models/sequence_attention.h"
#include "models/spec.h"
#include "models/weights.h"

namespace mote {

// What the forward pass needs of a model.
struct TransformerModel {
  Spec spec;
  Weights weights;
  RopeFrequencies rope[2];
  RelativeBias relative_bias;
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

  // Runs all layers of an encoder for the tokens of all sequences, one behind the other; attention
  // stays within a sequence, and a sequence's rows are the same bits alone and in any company.
  // check_sequences() first. False: stop was requested. Inside team.run(), like all below.
  bool encode(Team& team, const Sequence* sequences, size_t count, const Stop& stop,
              const ForwardSink* sink);
  // Of the last encode(). Each result is valid until the next call of any of them, hidden() until
  // the next encode().
  const float* hidden() const;               // [tokens][hidden], after the final norm
  const float* sequence_logits(Team& team);  // [count][labels]
  const float* token_logits(Team& team);     // [tokens][labels]; answer: [tokens][2] start, end
  // [count][vocabulary] of rows of hidden(), count <= kLogitRows.
  const float* masked_logits(Team& team, const uint32_t* rows, size_t count);
  const float* pooled(Team& team, Pooling pooling);  // [count][hidden], not normalised
  const float* pooler_output(Team& team);            // [count][hidden]; null: there is no pooler

 private:
  // One product of a group that shares its input; y = input * matrix^T + bias.
  struct Product {
    const Matrix* matrix;
    const float* bias;
    float* y;
    size_t y_stride;
    bool accumulate;
  };

  // What a block's first products read: x_ through a norm if there is one; or, without one, what is
  // in normed_ already.
  struct Input {
    const float *norm, *norm_bias;
    bool normed;     // it is then in normed_
    InputKind kind;  // and so in quantized_
  };
  Input attention_input(uint32_t layer) const;
  Input feed_forward_input(uint32_t layer) const;
  void prepare(const Input& input, size_t token);
  const float* rows_of(const Input& input) const { return input.normed ? normed_ : x_; }

  // What the rows of the pass are, row after row, in ids_, types_ and positions_.
  void place_rows(const Sequence& sequence, size_t first_row, size_t position);
  bool run_layers(Team& team, size_t tokens, size_t position, const Stop& stop,
                  const ForwardSink* sink);
  void embed(Team& team, size_t tokens);
  void embed_row(size_t row, float* x);
  void add_table_row(const Table& table, size_t index, float* scratch, float* x) const;
  void attention_block(Team& team, uint32_t layer, size_t tokens, size_t position);
  void feed_forward_block(Team& team, uint32_t layer, size_t tokens);
  void feed_forward_rows(Team& team, uint32_t layer, Range rows);
  void activate(ActivationKind kind, float* y, const float* up, size_t n) const;
  // Rows [count][hidden] through what a head has before its output matrix; returns where they are,
  // *stride floats apart.
  const float* head_rows(Team& team, const float* rows, size_t count, size_t* stride);
  // The same, through the output matrix: logits_ [count][output.rows].
  const float* head_logits(Team& team, const Matrix& output, const float* bias, const float* rows,
                           size_t count);
  // pooled_ [sequences][hidden].
  void pool(Team& team, Pooling pooling, bool normalize);
  void normalize(const float* x, const float* weight, const float* bias, float* y) const;
  void turn_heads(const LayerWeights& weights, const LayerSpec& layer, size_t token);
  // Quantizes row x of `columns` as `token` of what a multiply() reads.
  void quantize(InputKind kind, const Activations& to, const float* x, size_t columns,
                size_t token);
  // Rows x, `stride` floats apart, as what the matrix reads of quantized_.
  void quantize_rows(Team& team, const Matrix& matrix, const float* x, size_t stride, size_t rows);
  // Of rows x, quantized as the first `tokens` of quantized_; or of the first `tokens` of input.
  void multiply(Team& team, size_t columns, const float* x, size_t x_stride, size_t tokens,
                const Product* products, size_t count);
  void multiply(Team& team, size_t columns, const Activations& input, size_t tokens,
                const Product* products, size_t count);
  void multiply_units(const Activations& input, size_t columns, Range tokens,
                      const Product* products, size_t count, Range range, uint32_t thread) const;
  // The last matrix of a block and the norms behind it.
  struct BlockEnd {
    const Matrix* matrix;
    const float *bias, *post_norm, *residual_norm, *residual_norm_bias;
  };
  // Rows of x += output of the block's last matrix, through a post norm where there is one; then
  // the norm of the sum, where there is one, and what the next block reads (null: nothing).
  void add_to_residual(Team& team, const BlockEnd& end, const Activations& input, Range rows,
                       const Input* next);
  // Calls work(row) for every row; a single one is not worth waking anybody.
  template <class Work>
  void each_row(Team& team, size_t rows, const Work& work) const {
    if (rows == 1) return work(size_t(0));
    team.share(
        rows < 8 * team.threads() ? 1 : 4,
        [&](uint32_t part) { return rows_of_part(team, rows, part).size(); },
        [&](uint32_t part, size_t first, size_t last, uint32_t) {
          const size_t start = rows_of_part(team, rows, part).first;
          for (size_t row = first; row < last; ++row) work(start + row);
        });
  }
  // The rows that a thread prefers in every step, so that they stay in its cache.
  static constexpr size_t kRowGrain = 12;  // whole tiles of the kernels for many tokens
  static Range rows_of_part(const Team& team, size_t rows, uint32_t part) {
    return split(rows, kRowGrain, part, team.threads());
  }

  const TransformerModel* model_ = nullptr;
  KvCache cache_;                      // of generators
  SequenceAttention attention_;        // of encoders
  const ForwardSink* sink_ = nullptr;  // of the running pass
  size_t batch_tokens_ = 0, qkv_width_ = 0, query_width_ = 0, key_value_width_ = 0, up_width_ = 0;
  size_t sequences_ = 0, tokens_ = 0;  // of the last encode()

  int32_t* ids_ = nullptr;         // [batch]
  uint8_t* types_ = nullptr;       // [batch]  of encoders
  uint32_t* positions_ = nullptr;  // [batch]
  uint32_t* starts_ = nullptr;     // [batch + 1]  rows where sequences begin

  float* x_ = nullptr;          // [batch][hidden]  residual stream
  float* normed_ = nullptr;     // [batch][hidden or embedding_width]
  float* qkv_ = nullptr;        // [batch][qkv_width: query + key + value, or a head's width]
  float* attended_ = nullptr;   // [batch][heads * head_dim]
  float* gate_up_ = nullptr;    // [feed-forward tokens][gate + up], or [up]
  float* block_out_ = nullptr;  // [batch][hidden]  only with post norms or residual scales
  Activations quantized_;       // [batch][widest input of a matrix but the next]
  Activations activated_;       // [feed-forward tokens][feed_forward]
  float* cosine_[2] = {};       // [batch][pairs]
  float* sine_[2] = {};
  float* logits_ = nullptr;     // [kLogitRows][vocabulary], [batch][labels]
  float* pooled_ = nullptr;     // [batch][hidden]  of encoders
  uint8_t* scratch_ = nullptr;  // [threads][scratch_stride_]
  size_t scratch_stride_ = 0;
};

}  // namespace mote
