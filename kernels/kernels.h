// The table of kernels of one instruction set, and what their arguments mean. Kernels take pointers
// and sizes; they allocate nothing, start no thread and know no model.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu.h"
#include "core/tensor.h"

namespace mote {

// Activations of `tokens` rows. Float formats read x; block formats read the other four.
// Per block of 32 columns: x ~ scale * q.
struct Activations {
  const float* x = nullptr;  // [tokens][x_stride]
  size_t x_stride = 0;
  int8_t* q = nullptr;          // [tokens][columns], within ±127
  float* scale = nullptr;       // [tokens][columns / 32]
  float* scaled_sum = nullptr;  // [tokens][columns / 32]  scale * sum of the 32 q
  // [tokens][columns / 32][2]: -128 * (sum of the 32 q), -128 * (sum of the first 16), what weights
  // stored with an offset add too much.
  int32_t* correction = nullptr;
  // Outliers make most of the error of int8 activations, and few columns hold them. Where
  // `outliers` is set, each token has some groups of 4 columns, at most one in a block, in
  // ascending order, with a second int8 vector: x ~ scale * q + outlier_scale * outlier_q there, so
  // that scale can be that of the block's other columns. scaled_sum counts both parts.
  bool outliers = false;
  uint32_t* outlier_group =
      nullptr;                  // [tokens][columns / 32 + 1] column / 4, after the last kNoOutlier
  int8_t* outlier_q = nullptr;  // [tokens][columns / 32][4], within ±127
  float* outlier_scale = nullptr;         // [tokens][columns / 32]
  int32_t* outlier_correction = nullptr;  // [tokens][columns / 32]  -128 * (sum of the 4 q)
  // Of rows from quantize_row, where all blocks have the same scale: [tokens] -128 * (sum of q).
  int32_t* row_correction = nullptr;
};

inline constexpr uint32_t kNoOutlier = UINT32_MAX;

// One token's outliers, of what quantize_activations() made of x: of the blocks where separating
// the largest group of 4 columns takes more from the squared step than half the row's mean squared
// step. They get another q, scale, scaled_sum and correction. Meaning: quant::separate_outliers,
// bit for bit.
// quantize_row: all of it for weights with one scale a row (q8_row), from x alone; also
// row_correction. Meaning: quant::quantize_row.
struct OutlierTask {
  const float* x;  // [columns]
  size_t columns;
  int8_t* q;                          // [columns]
  float* scale;                       // [columns / 32]
  float* scaled_sum;                  // [columns / 32]
  int32_t* correction;                // [columns / 32][2]
  uint32_t* group;                    // [columns / 32 + 1]
  int8_t* outlier_q;                  // [columns / 32][4]
  float* outlier_scale;               // [columns / 32]
  int32_t* outlier_correction;        // [columns / 32]
  int32_t* row_correction = nullptr;  // of quantize_row: the sum of what the blocks have to correct
};

// y[t][r] = sum over c of x[t][c] * w[r][c] (+ bias[r]) (+ the old y[t][r] if accumulate), for all
// t < tokens and first_row <= r < last_row. first_row is a multiple of 32; last_row is too, or it
// is `rows`.
// Canonical order, the same for any tokens, rows and threads: one f32 accumulator per output over
// ascending blocks,
//   acc = fma(float(dot) * scale[t][b], d[r][b], acc)
// then, where the format has a minimum m,
//   acc = fma(m[r][b], scaled_sum[t][b], acc)
// with dot the exact int32 dot product of the block. Formats with integer scales s of 16 columns:
// dot = the exact s1 * dot1 + s2 * dot2, and both minimums in turn,
//   acc = fma(m[r][b][h], float(sum of the 16 q) * scale[t][b], acc).
// q8_row, of rows from quantize_row: dot is the exact int32 dot product of the whole row (columns
// <= quant::kMostRowColumns, so that it is one),
//   acc = fma(float(dot) * scale[t][0], d[r][0], 0)
// and for the outliers below d[r][0] too.
// Float formats:
//   acc = fma(x[t][c], w[r][c], acc)
// A second accumulator takes the outliers, also ascending, with dot4 the exact dot product of 4
// columns (times s, where the format has it):
//   acc2 = fma(float(dot4) * outlier_scale[t][n], d[r][b], acc2)
// (their part of a format's single minimum is in scaled_sum; of two, the column's is added
// likewise) and where there are any, acc + acc2 is the sum. Then bias, then the old y are added.
// Instruction sets without fma multiply and add.
struct LinearTask {
  // [rows][columns] in the format, all rows where it is packed (quant/packed.h); any alignment
  const uint8_t* weights = nullptr;
  size_t columns = 0;  // whole blocks
  size_t rows = 0;
  size_t first_row = 0, last_row = 0;
  const Activations* activations = nullptr;
  size_t first_token = 0, tokens = 0;  // [first_token, first_token + tokens) of activations and y
  float* y = nullptr;                  // y[token * y_stride + row]
  size_t y_stride = 0;
  const float* bias = nullptr;  // [rows]
  bool accumulate = false;
  uint8_t* scratch = nullptr;  // linear_scratch_bytes(columns), aligned to 64; one per thread
};
// Enough for any format and instruction set.
size_t linear_scratch_bytes(size_t columns);

// Keys of one layer and one key/value head lie in panels of kKeyBlock positions, transposed:
// keys[block][head_dim][kKeyBlock]; values in rows: values[block][kKeyBlock][head_dim]. A cache of
// a window is a ring: the block of position p is (p / kKeyBlock) % blocks. Slots that were never
// written may hold anything.
inline constexpr size_t kKeyBlock = 64;
enum class KvType : uint32_t { f16 = 0, q8_0 = 1, f32 = 2 };  // as MOTE_KV_...
// q8_0: an element is int8 q and stands for scale * q. kKvGroup dimensions of one position share a
// f16 scale (the last group may be smaller): largest magnitude / 127, so that |q| <= 127. The
// scales of a block follow its elements, of keys [group][kKeyBlock], of values [kKeyBlock][group]:
// as wide vectors read them. A group that holds a NaN, an infinity or more than f16 scales can say
// reads as NaN.
inline constexpr size_t kKvGroup = 32;
constexpr size_t kv_groups(size_t head_dim) { return (head_dim + kKvGroup - 1) / kKvGroup; }
// Bytes per position of one head's keys or values: those of a block are kKeyBlock times that.
constexpr size_t kv_position_bytes(KvType type, size_t head_dim) {
  return type == KvType::f32    ? 4 * head_dim
         : type == KvType::q8_0 ? head_dim + 2 * kv_groups(head_dim)
                                : 2 * head_dim;
}

// store_key, store_value: the keys or values of one head at positions position, position + 1, ...
struct KvRows {
  const float* x;  // x[token * x_stride + i], i < head_dim
  size_t x_stride;
  size_t tokens, head_dim, position;
  uint8_t* cache;  // start of this layer's and head's keys or values
  size_t blocks;   // in the cache
  KvType type;
};

// Attention of the `group` query heads that share one key/value head, over the keys first_key <= k
// < last_key; the cache, or the rows, hold those that a query sees. A query at position p sees keys
// k <= p (all, if not causal) with p - k < window (0: no limit; not causal: |p - k| < window).
// Scores: scale * q.k (+ the bias of k - p), then cap * tanh(score / cap) if cap > 0. A query that
// sees no key gives zeros. Canonical
// order, the same for any split of tokens, heads and keys over calls: q.k sums over ascending
// dimensions; within a segment of kKeySegment keys by absolute position, streaming softmax over
// blocks of kKeyBlock keys, ascending; the segments are then folded in ascending order.
inline constexpr size_t kKeySegment = 256;
inline constexpr size_t kBiasSlack = 16;
struct AttentionTask {
  const float* q;  // q[token * q_stride + g * head_dim]
  size_t q_stride;
  size_t tokens, group, head_dim;
  size_t position;      // of the first token
  const uint8_t* keys;  // start of this layer's and head's cache
  const uint8_t* values;
  size_t blocks;  // in the cache
  KvType type;
  // Instead of a cache, where not null: key_rows[key * rows_stride + i], i < head_dim.
  const float* key_rows = nullptr;
  const float* value_rows = nullptr;
  size_t rows_stride = 0;
  size_t first_key, last_key;  // first_key is a multiple of kKeySegment
  bool causal;
  size_t window;
  float scale, cap;
  // bias[g * bias_stride + (key - position)], readable kBiasSlack floats beyond the distances of
  // the keys that a query sees; null: none.
  const float* bias = nullptr;
  size_t bias_stride = 0;
  float* out;  // out[token * out_stride + g * out_head_stride + i], i < head_dim
  size_t out_stride, out_head_stride;
  // The keys lie in one segment, and out gets a partial result for attention_merge: head_dim sums,
  // not normalised, then the maximum of the scores and the sum of exp(score - maximum).
  bool partial;
  uint8_t* scratch;  // attention_scratch_bytes(head_dim), aligned to 64; one per thread
};
// (token, head) pairs that a kernel works on at a time.
inline constexpr size_t kAttentionRows = 128;
constexpr size_t attention_scratch_bytes(size_t head_dim) {
  const size_t padded = (head_dim + 15) / 16 * 16;
  return 4 * (8 * kKeyBlock + kKeyBlock * head_dim + kKeyBlock * padded +
              kAttentionRows * (2 * padded + 16 + 4)) +
         8 * kAttentionRows;
}

// Folds the partial results of one query and head, ascending segments, and normalises.
struct AttentionMerge {
  const float* parts;  // parts[segment * part_stride + i], i < head_dim + 2
  size_t part_stride;
  size_t segments, head_dim;
  float* out;  // [head_dim]; zeros where no key was seen
};

// rms_norm: y = x / sqrt(mean(x^2) + eps) * weight. layer_norm: y = (x - mean) / sqrt(variance +
// eps) * weight + bias (bias may be null). y may be x in both, and in all elementwise kernels.
// rope: turns pairs (i, i + pairs) of each head, or (2 i, 2 i + 1) if interleaved, by the angle
// whose cosine[i] and sine[i] are given, i < pairs. silu: x * sigmoid(x). ..._gate: act(gate) * up.
// gelu_tanh: the tanh approximation; gelu_erf: exact. add: y += x. scale: y *= factor. softcap: y =
// cap * tanh(y / cap). softmax: with the maximum subtracted; all -inf gives zeros. log_sum_exp: f64
// sum of exp(x - max). argmax: first index of the largest; NaN never wins; n if all are NaN or
// -inf.
struct Kernels {
  const char* isa;
#define KERNEL(type, name, parameters) type(*name) parameters;
#include "kernels/kernels.inc"
#undef KERNEL
};

struct IsaTable {
  const Kernels* kernels;
  bool (*supported)(const CpuFeatures& cpu);
};
// All that this build has, best first; the last always runs.
const IsaTable* isa_tables(size_t* count);
// The best, or the one of that name; null: not in this build or not on this CPU.
const Kernels* select_kernels(const char* isa);

// The kernels of a format; null: mote does not compute with it.
using LinearKernel = void (*)(const LinearTask*);
using DecodeKernel = void (*)(float* y, const uint8_t* weights, size_t rows, size_t columns,
                              size_t row);
LinearKernel linear_kernel(const Kernels& kernels, Format format);
DecodeKernel decode_kernel(const Kernels& kernels, Format format);
// Whether linear_kernel reads int8 activations; and whether only such as quantize_row makes.
bool needs_quantized_activations(Format format);
bool needs_quantized_rows(Format format);

}  // namespace mote
