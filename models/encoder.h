// Texts through an encoder: many sequences in one pass without padding, then what the model's head
// makes of them. The computation is Transformer's; this is what goes in and the checks before it.
//
//   MOTE_TRY(check_sequences(session, sequences, count));
//   session.team.run([&] {
//     if (!session.transformer.encode(session.team, sequences, count, stop, nullptr)) return;
//     const float* logits = session.transformer.sequence_logits(session.team);
//     ...
//   });
//
// What the model can do stands in Spec::head (kind, pooling, problem, labels) and
// mote_model::label. SessionSizes of an encoder: `capacity` tokens is the longest sequence that a
// pass takes, at most Spec::context; `batch_tokens` (at least capacity) is the sum of the
// sequences' tokens of a pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "models/forward.h"

namespace mote {

// One input of an encoder, its frame ([CLS] ... [SEP]) included.
struct Sequence {
  const int32_t* ids = nullptr;
  // 0 for the first text, 1 for the second; null: zeros. Not read where the model has no types.
  const uint8_t* type_ids = nullptr;
  uint32_t tokens = 0;  // at least 1
};

// That the model is an encoder and the session can take these in one pass: each at most `capacity`
// tokens, together at most `batch_tokens`, ids and types of the model.
Status check_sequences(const mote_session& session, const Sequence* sequences, size_t count);

// For the developer tools and tests: one pass with everything handed out. sink->hidden gets all
// rows [tokens of all sequences][hidden] with position 0; sink->logits is not called.
struct EncoderOutputs {
  const float* hidden = nullptr;           // [tokens][hidden], after the final norm
  const float* sequence_logits = nullptr;  // [count][labels]   HeadKind::classify
  const float* token_logits = nullptr;     // [tokens][labels]  tag; answer: start and end, 2 labels
  const float* pooler_output = nullptr;    // [count][hidden]   a pooler without classifier
};
Status encode(mote_session* session, const Sequence* sequences, size_t count,
              const ForwardSink& sink, EncoderOutputs* outputs);

}  // namespace mote
