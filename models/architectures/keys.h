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
  // attention.sliding_window in every layer but each global_every-th (0: in all of them), unless
  // sliding_window_pattern says which.
  Status windows(uint32_t global_every, Spec* spec);

 private:
  // Layers, widths, heads, context, vocabulary: what a decoder with grouped attention needs.
  Status decoder_sizes(Spec* spec);
  // Base, dimensions and scaling of rotary positions into spec->rope[0].
  Status rope(Spec* spec);

  Status vocabulary(Spec* spec);
  Status rope_scaling(Rope* rope);

  const GgufFile& file_;
  std::string_view architecture_;
  char buffer_[160];
};

}  // namespace mote
