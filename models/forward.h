// For the developer tools and tests: a session's own forward pass with everything that it computes
// handed out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/gguf.h"
#include "core/status.h"
#include "models/spec.h"
#include "mote.h"

namespace mote {

struct ForwardSink {
  void* user = nullptr;
  // index 0: input of the first layer; i: output of layer i, the last one after the final norm.
  // rows: [tokens][hidden], of the positions position ... Null: not wanted.
  void (*hidden)(void* user, uint32_t index, size_t position, size_t tokens,
                 const float* rows) = nullptr;
  // rows: [tokens][vocabulary]. Null: not wanted (then no logits are computed).
  void (*logits)(void* user, size_t position, size_t tokens, const float* rows) = nullptr;
  // What a layer's matrix is multiplied with: rows [tokens][columns], `stride` values apart.
  // matrix: its data in the file. Null: not wanted.
  void (*input)(void* user, const uint8_t* matrix, size_t columns, size_t tokens, const float* rows,
                size_t stride) = nullptr;
  bool last_only = false;  // logits of the last position only
};

// Appends ids to the session's cache, in chunks of at most `chunk` tokens (0: the session's
// batch_tokens).
Status forward(mote_session* session, const int32_t* ids, size_t count, size_t chunk,
               const ForwardSink& sink);

const Spec& model_spec(const mote_model* model);
const GgufFile& model_file(const mote_model* model);

}  // namespace mote
