// Runs token sequences through the library's forward pass for dump and compare.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/forward.h"
#include "tools/developer/safetensors.h"
#include "tools/session.h"

namespace mote::tool {

using Sequence = std::vector<int32_t>;

// The sequences of a golden file: rows of input_ids as far as attention_mask, or lengths, says.
// Throws Failure.
std::vector<Sequence> read_sequences(SafetensorsReader& golden);

struct RunOptions {
  std::string model, kv;  // kv: empty: f32 for a file of float weights, else f16
  uint32_t threads = 0, chunk = 0;
};

// Rows of one kind as they come: layer 0 .. layers, or logits. position: within the sequence.
struct RunSink {
  std::function<void(uint32_t layer, size_t position, size_t tokens, const float* rows)> hidden;
  std::function<void(size_t position, size_t tokens, const float* rows)> logits;
  // What the matrix with this data is multiplied with; rows are `stride` values apart.
  std::function<void(const uint8_t* matrix, size_t columns, size_t tokens, const float* rows,
                     size_t stride)>
      input;
  bool last_logits_only = false;
};

class ForwardRun {
 public:
  // A session that holds `capacity` tokens.
  ForwardRun(const Model& model, const RunOptions& options, size_t capacity);

  const Spec& spec() const { return model_spec(model_.get()); }
  // One sequence from an empty cache.
  void run(const Sequence& ids, const RunSink& sink);
  // What argmax decoding makes of the prompt, past end tokens too.
  Sequence greedy(const Sequence& prompt, size_t count);

 private:
  void append(const int32_t* ids, size_t count, const RunSink& sink);

  const Model& model_;
  size_t chunk_;
  Session session_;
};

}  // namespace mote::tool
