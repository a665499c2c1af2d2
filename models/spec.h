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
enum class NormPlace : uint8_t { pre, post, both };
enum class QueryNorm : uint8_t {
  each_head,
  all_heads
};  // of queries and keys, where the file has weights
enum class Position : uint8_t { none, rope, learned };
enum class ActivationKind : uint8_t { silu, gelu_tanh, gelu_erf, relu };

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
  uint32_t window = 0;   // keys a query sees, itself included; 0: all
  bool rope = true;      // false: this layer has no rotary positions
  uint8_t rope_set = 0;  // which of Spec::rope
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
  bool parallel = false;         // attention and feed-forward read the same input
  float attention_scale = 0.0f;  // of scores; 0: 1 / sqrt(head_dim)
  float attention_cap = 0.0f, logit_cap = 0.0f;
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
