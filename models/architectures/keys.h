// The keys that most architectures share, read under the architecture's own prefix.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/gguf.h"
#include "models/spec.h"

namespace mote {

class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufFile& file, std::string_view architecture)
      : file_(file), architecture_(architecture) {}

  const GgufFile& file() const { return file_; }
  // "llama.block_count" for suffix "block_count"; valid until the next call.
  std::string_view name(const char* suffix);
  Status u32(const char* suffix, uint32_t* value);
  Status u32(const char* suffix, uint32_t fallback, uint32_t* value);
  Status f32(const char* suffix, float* value);
  Status f32(const char* suffix, float fallback, float* value);
  Status text(const char* suffix, std::string_view fallback, std::string_view* value);
  // Required and within [least, most].
  Status count(const char* suffix, uint32_t least, uint32_t most, uint32_t* value);

  // Sizes, norm epsilon and rotary positions of a decoder.
  Status decoder(Spec* spec);
  // The same and what Gemma 2 and 3 share: norms on both sides, GELU gate, scaled embedding.
  Status gemma(Spec* spec);
  // Sizes, norms and feed-forward of BERT and its relatives: layer norms of the sums behind both
  // blocks, learned positions, exact GELU, and what the keys say of token types and embeddings.
  Status encoder(Spec* spec);
  // The same without what `encoder` takes for granted, for those of another shape: sizes and
  // epsilon.
  Status encoder_sizes(Spec* spec);
  // The head, from mote.task and mote.head.*, or from the tensors of files that have no such keys;
  // pooling and length limit of embeddings.
  Status head(const Log& log, Spec* spec);
  // attention.sliding_window in every layer but each global_every-th (0: in all of them), unless
  // sliding_window_pattern says which. global_first: layers 0, global_every, ... see everything.
  Status windows(uint32_t global_every, Spec* spec, bool global_first = false);
  // Base, dimensions and scaling of rotary positions into spec->rope[0].
  Status rope(Spec* spec, float base = 10000.0f);
  // The base of layers with a window into spec->rope[1], otherwise unscaled.
  Status local_rope(Spec* spec, float base);
  // mote.activation, where it is not the given one: of the feed-forward.
  Status activation(const char* key, ActivationKind fallback, ActivationKind* activation);

 private:
  // Layers, widths, heads, context, vocabulary.
  Status sizes(Spec* spec);
  Status epsilon(Spec* spec);
  Status token_types(Spec* spec);
  Status head_kind(const Log& log, Spec* spec);
  Status pooling(const Log& log, Spec* spec);
  Status vocabulary(Spec* spec);
  Status rope_scaling(Rope* rope);
  Status rope_base(const char* suffix, float fallback, float* base);

  const GgufFile& file_;
  std::string_view architecture_;
  char buffer_[160];
};

}  // namespace mote
