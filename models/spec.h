// What a transformer is, as data. An architecture file turns GGUF keys into a Spec; the forward
// pass reads only this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/gguf.h"
#include "core/log.h"
#include "core/status.h"

namespace mote {

inline constexpr uint32_t kMaxLayers = 512;

enum class Norm : uint8_t { rms, layer };
// pre: of a block's input; post: of its output; both; residual: of the sum of input and output.
enum class NormPlace : uint8_t { pre, post, both, residual };
enum class QueryNorm : uint8_t {
  each_head,
  all_heads
};  // of queries and keys, where the file has weights
enum class Position : uint8_t { none, rope, learned };
// Tensors that an architecture may always have. Those of a part that its Spec does not name are
// read where the file has them, then all of the part in all layers.
enum Part : uint8_t {
  kQueryKeyValueBias = 1,
  kAttentionOutputBias = 2,
  kFeedForwardBias = 4,
  kNormBias = 8,
  kQueryKeyNorm = 16,
  kHeadBias = 32,  // of the head's dense matrix
  kHeadNorm = 64,  // behind that; a masked language model has one anyway
  kEmbeddingProjection = 128
};
inline constexpr uint8_t kAllBiases =
    kQueryKeyValueBias | kAttentionOutputBias | kFeedForwardBias | kNormBias | kHeadBias;

enum class ActivationKind : uint8_t { silu, gelu_tanh, gelu_erf, relu, tanh, none };

// Frequencies of rotary positions: pair i turns by position * frequency(i).
struct Rope {
  enum class Scaling : uint8_t { none, linear, llama3, yarn };
  float base = 10000.0f;
  uint32_t dimensions = 0;   // of a head that turn; pairs = dimensions / 2
  bool interleaved = false;  // pairs (2i, 2i+1) instead of (i, i + dimensions / 2)
  Scaling scaling = Scaling::none;
  float factor = 1.0f;
  uint32_t original_context = 0;
  float low_frequency = 1.0f, high_frequency = 4.0f;  // llama3
  float beta_fast = 32.0f, beta_slow = 1.0f;          // yarn
  float attention_factor = 1.0f;                      // yarn; times 0.1 ln(factor) + 1
};

struct LayerSpec {
  // Keys a query sees, itself included; 0: all. Not causal: those with |distance| < window.
  uint32_t window = 0;
  bool rope = true;            // false: this layer has no rotary positions
  uint8_t rope_set = 0;        // which of Spec::rope
  bool attention_norm = true;  // false: attention reads its input as it is
  uint16_t block = 0;          // number of the blk. tensors, where layers share them
};

// How the hidden states of a sequence's tokens become one vector.
enum class Pooling : uint8_t { mean, cls, max, last };
// What a model's head gives: logits of labels for each sequence (classify) or token (tag), start
// and end logits for each token (answer), logits of the vocabulary for tokens (masked_lm).
enum class HeadKind : uint8_t { none, classify, tag, answer, masked_lm };
enum class Problem : uint8_t { single_label, multi_label, regression };

// The head of an encoder: rows (pooled or of tokens) through dense matrix, activation and norm, as
// far as there are any, then the output matrix. Without output matrix the dense one is a pooler.
struct HeadSpec {
  HeadKind kind = HeadKind::none;
  bool dense = false;
  ActivationKind activation = ActivationKind::none;  // behind the dense matrix
  uint32_t width = 0;                                // of the dense matrix's output
  uint32_t labels = 0;             // classify, tag; 2 of answer; masked_lm has the vocabulary
  Pooling pooling = Pooling::cls;  // classify: what the head reads
  bool normalize = false;          // classify: that vector is brought to length 1 before
  Problem problem = Problem::single_label;
};

struct Spec {
  std::string_view architecture;
  uint32_t layers = 0, hidden = 0, feed_forward = 0, vocabulary = 0, context = 0;
  uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  Norm norm = Norm::rms;
  NormPlace norm_place = NormPlace::pre;
  float norm_epsilon = 1e-5f;
  QueryNorm query_norm = QueryNorm::each_head;
  Position position = Position::rope;
  Rope rope[2];
  bool causal = true;
  ActivationKind activation = ActivationKind::silu;
  bool gated = true;
  uint8_t always = 0;            // bits of Part: without these tensors a file is damaged
  bool parallel = false;         // attention and feed-forward read the same input
  float attention_scale = 0.0f;  // of scores; 0: 1 / sqrt(head_dim)
  float attention_cap = 0.0f, logit_cap = 0.0f;
  // Encoders.
  uint32_t embedding_width = 0;     // of token_embd, projected to hidden where it differs
  uint32_t token_types = 0;         // rows of the table of token types; 0: there is none
  bool embedding_norm = false;      // of the sum of token, position and type
  uint32_t relative_buckets = 0;    // of a bias for distances, by head; 0: none
  uint32_t max_tokens = 0;          // longest input of the model's makers, at most context
  Pooling pooling = Pooling::mean;  // of embeddings
  bool normalize_embedding = false;
  HeadSpec head;
  float embedding_scale = 1.0f, residual_scale = 1.0f, logit_scale = 1.0f;
  LayerSpec layer[kMaxLayers];
};

// fail() with the file's name in front.
Status file_error(const GgufFile& file, mote_status code, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

// One line per architecture in architectures/list.inc.
struct Architecture {
  const char* name;  // general.architecture
  Status (*read)(const GgufFile& file, const Log& log, Spec* spec);
};
const Architecture* find_architecture(std::string_view name);
// All of them, for messages: "llama, gemma3".
const char* architecture_names();

}  // namespace mote
