// The tensors of a transformer, bound to the file's bytes by one table for all architectures.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/gguf.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/status.h"
#include "kernels/kernels.h"
#include "models/spec.h"

namespace mote {

// What a matrix reads of its input: values, or int8 levels, with scales of blocks or of whole rows.
// Those of rows serve matrices of blocks as well.
enum class InputKind { floats, blocks, rows };

// [rows][columns] in the file, with the kernel of its format. Null data: the model has no such
// tensor.
struct Matrix {
  const uint8_t* data = nullptr;
  Format format = Format::f32;
  size_t rows = 0, columns = 0;
  LinearKernel linear = nullptr;
  InputKind input = InputKind::floats;

  explicit operator bool() const { return data != nullptr; }
};

struct LayerWeights {
  const float* attention_norm = nullptr;       // [hidden]
  const float* attention_norm_bias = nullptr;  // [hidden]
  Matrix query, key, value;  // [heads * head_dim], [kv_heads * head_dim] x [hidden]
  const float *query_bias = nullptr, *key_bias = nullptr, *value_bias = nullptr;
  const float *query_norm = nullptr, *key_norm = nullptr;  // [head_dim]
  Matrix attention_output;                                 // [hidden][heads * head_dim]
  const float* attention_output_bias = nullptr;            // [hidden]
  const float* attention_post_norm = nullptr;              // [hidden]
  const float* attention_residual_norm = nullptr;          // [hidden]
  const float* attention_residual_norm_bias = nullptr;     // [hidden]
  const float* feed_forward_norm = nullptr;                // [hidden]
  const float* feed_forward_norm_bias = nullptr;           // [hidden]
  Matrix gate, up;                                         // [feed_forward][hidden]
  const float *gate_bias = nullptr, *up_bias = nullptr;
  Matrix down;                                             // [hidden][feed_forward]
  const float* down_bias = nullptr;                        // [hidden]
  const float* feed_forward_post_norm = nullptr;           // [hidden]
  const float* feed_forward_residual_norm = nullptr;       // [hidden]
  const float* feed_forward_residual_norm_bias = nullptr;  // [hidden]
};

// A matrix whose rows are looked up.
struct Table {
  Matrix matrix;
  DecodeKernel decode = nullptr;

  // y: [matrix.columns]
  void look_up(size_t row, float* y) const {
    decode(y, matrix.data, matrix.rows, matrix.columns, row);
  }

  explicit operator bool() const { return bool(matrix); }
};

// See HeadSpec.
struct HeadWeights {
  Matrix dense;  // [width][hidden]
  const float* dense_bias = nullptr;
  const float *norm = nullptr, *norm_bias = nullptr;  // [width]
  Matrix output;                                      // [labels][width]
  const float* output_bias = nullptr;
};

struct Weights {
  Table embedding;                        // [vocabulary][embedding_width]
  Table position_embedding;               // [context][embedding_width]
  Table token_type_embedding;             // [token_types][embedding_width]
  const float* embedding_norm = nullptr;  // [embedding_width]
  const float* embedding_norm_bias = nullptr;
  Matrix embedding_projection;  // [hidden][embedding_width]
  const float* embedding_projection_bias = nullptr;
  const float* output_norm = nullptr;  // [hidden]
  const float* output_norm_bias = nullptr;
  Matrix output;  // [vocabulary][embedding_width]; the embedding where the file ties them
  const float* output_bias = nullptr;
  Table relative_bias;  // [relative_buckets][heads]
  HeadWeights head;
  const float* rope_factors = nullptr;  // [rope dimensions / 2]
  HeapArray<LayerWeights> layers;
  uint64_t parameters = 0;

  // A tensor that is missing, misshaped or of a format without kernels is an error that names it;
  // one that nothing reads is a warning.
  Status bind(const GgufFile& file, const Spec& spec, const Kernels& kernels, Allocator& allocator,
              const Log& log);
};

}  // namespace mote
