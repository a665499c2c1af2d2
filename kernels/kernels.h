// The table of kernels of one instruction set, and what their arguments mean. Kernels take pointers and sizes;
// they allocate nothing, start no thread and know no model.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu.h"
#include "core/tensor.h"

namespace mote {

// Activations of `tokens` rows. Float formats read x; block formats read the other four.
// Per block of 32 columns: x ~ scale * q.
struct Activations {
  const float* x = nullptr;    // [tokens][x_stride]
  size_t x_stride = 0;
  int8_t* q = nullptr;         // [tokens][columns], within ±127
  float* scale = nullptr;      // [tokens][columns / 32]
  float* scaled_sum = nullptr; // [tokens][columns / 32]  scale * sum of the 32 q
  int32_t* sum16 = nullptr;    // [tokens][columns / 16]  sum of 16 q
};

// y[t][r] = sum over c of x[t][c] * w[r][c] (+ bias[r]) (+ the old y[t][r] if accumulate), for all t < tokens and
// first_row <= r < last_row. first_row is a multiple of 32; last_row is too, or it is `rows`.
// Canonical order, the same for any tokens, rows and threads: one f32 accumulator per output over ascending blocks,
//   acc = fma(float(dot) * scale[t][b], d[r][b], acc), then acc = fma(m[r][b], scaled_sum[t][b], acc) where the format
// has a minimum m; dot is the exact int32 dot product of the block. Float formats: acc = fma(x[t][c], w[r][c], acc).
// Then bias, then the old y are added. Instruction sets without fma multiply and add.
struct LinearTask {
  const uint8_t* weights = nullptr;  // [rows][columns] in the format; any alignment
  size_t columns = 0;                // whole blocks
  size_t rows = 0;
  size_t first_row = 0, last_row = 0;
  const Activations* activations = nullptr;
  size_t first_token = 0, tokens = 0;  // tokens [first_token, first_token + tokens) of activations and y
  float* y = nullptr;                // y[token * y_stride + row]
  size_t y_stride = 0;
  const float* bias = nullptr;       // [rows]
  bool accumulate = false;
  uint8_t* scratch = nullptr;        // linear_scratch_bytes(columns), aligned to 64; one per thread
};
// Enough for any format and instruction set.
size_t linear_scratch_bytes(size_t columns);

// Keys of one layer and one key/value head lie in panels of kKeyBlock positions, transposed:
// keys[block][head_dim][kKeyBlock]; values in rows: values[block][kKeyBlock][head_dim]. A cache of a window is a ring:
// the block of position p is (p / kKeyBlock) % blocks.
inline constexpr size_t kKeyBlock = 64;
enum class KvType : uint32_t { f16 = 0, q8_0 = 1, f32 = 2 };  // as MOTE_KV_...

// Writes the key or value of one position and one head.
struct KvRow {
  const float* x;     // [head_dim]
  uint8_t* cache;     // start of the keys or values of this layer and head
  size_t head_dim;
  size_t position, blocks;  // blocks in the cache
  KvType type;
};

// Partial attention of the `group` query heads that share one key/value head, over the keys of one segment. A query at
// position p sees keys k <= p (all keys, if not causal) with p - k < window (window 0: no limit; not causal: |p - k| <
// window). Scores: scale * q.k, then cap * tanh(score / cap) if cap > 0. Streaming softmax in blocks of kKeyBlock keys by
// absolute position, ascending, so a result does not depend on the split of queries over calls, threads or chunks.
// A query that sees no key of the segment gives max = -inf, sum = 0 and zeros.
struct AttentionTask {
  const float* q;         // q[token * q_stride + g * head_dim]
  size_t q_stride;
  size_t tokens, group, head_dim;
  size_t position;        // of the first token
  const uint8_t* keys;    // start of this layer's and head's cache
  const uint8_t* values;
  size_t blocks;          // in the cache
  KvType type;
  size_t first_key, last_key;  // the segment; first_key is a multiple of kKeyBlock
  bool causal;
  size_t window;
  float scale, cap;
  // Not normalised: out[token * out_stride + g * head_dim], and [token * state_stride + g] of the two others.
  float* out;
  size_t out_stride;
  float* max;
  float* sum;
  size_t state_stride;
  uint8_t* scratch;       // attention_scratch_bytes(head_dim, group), aligned to 64; one per thread
};
size_t attention_scratch_bytes(size_t head_dim, size_t group);

// Merges the partial results of `segments` segments in their order and normalises: out = sum_s exp(max_s - max) o_s / sum.
// One (token, head). Segment s lies at out + s * part_stride, max + s * state_stride, sum + s * state_stride.
struct AttentionMerge {
  const float* parts;
  size_t part_stride;
  const float* max;
  const float* sum;
  size_t state_stride;
  size_t segments, head_dim;
  float* out;             // [head_dim]; zeros where no key was seen
};

// rms_norm: y = x / sqrt(mean(x^2) + eps) * weight. layer_norm: y = (x - mean) / sqrt(variance + eps) * weight + bias (bias
// may be null). y may be x in both, and in all elementwise kernels.
// rope: turns pairs (i, i + pairs) of each head, or (2 i, 2 i + 1) if interleaved, by the angle whose cosine[i] and sine[i]
// are given, i < pairs. silu: x * sigmoid(x). ..._gate: act(gate) * up. gelu_tanh: the tanh approximation; gelu_erf: exact.
// add: y += x. scale: y *= factor. softcap: y = cap * tanh(y / cap). softmax: with the maximum subtracted; all -inf gives
// zeros. log_sum_exp: f64 sum of exp(x - max). argmax: first index of the largest; NaN never wins; n if nothing is finite.
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
using DecodeKernel = void (*)(float* y, const uint8_t* row, size_t n);
LinearKernel linear_kernel(const Kernels& kernels, Format format);
DecodeKernel decode_kernel(const Kernels& kernels, Format format);
// Whether linear_kernel reads int8 activations.
bool needs_quantized_activations(Format format);

}  // namespace mote
