#include "models/encoder.h"

#include "models/session.h"

namespace mote {

Status check_sequences(const mote_session& session, const Sequence* sequences, size_t count) {
  const mote_model& model = *session.model;
  if (!model.has_weights)
    return fail(MOTE_ERROR_TASK, "%s holds a vocabulary only, no weights", model.name);
  const Spec& spec = model.transformer.spec;
  if (spec.causal)
    return fail(MOTE_ERROR_TASK, "%s is a generator, expected an encoder", model.name);
  size_t tokens = 0;
  for (size_t s = 0; s < count; ++s) {
    const Sequence& sequence = sequences[s];
    if (sequence.tokens == 0) return fail(MOTE_ERROR_ARGUMENT, "sequence %zu has no tokens", s);
    if (sequence.tokens > session.sizes.capacity)
      return fail(MOTE_ERROR_CAPACITY, "sequence %zu: %u tokens, the session takes %zu", s,
                  sequence.tokens, session.sizes.capacity);
    tokens += sequence.tokens;
    if (tokens > session.sizes.batch_tokens)
      return fail(MOTE_ERROR_CAPACITY,
                  "sequences: %zu tokens up to number %zu, the session's batch_tokens is %zu",
                  tokens, s, session.sizes.batch_tokens);
    for (uint32_t t = 0; t < sequence.tokens; ++t) {
      if (sequence.ids[t] < 0 || uint32_t(sequence.ids[t]) >= spec.vocabulary)
        return fail(MOTE_ERROR_ARGUMENT,
                    "sequence %zu, token %u: expected an id of 0..%u, found %d", s, t,
                    spec.vocabulary - 1, sequence.ids[t]);
      if (spec.token_types && sequence.type_ids && sequence.type_ids[t] >= spec.token_types)
        return fail(MOTE_ERROR_ARGUMENT,
                    "sequence %zu, token %u: expected a type of 0..%u, found %u", s, t,
                    spec.token_types - 1, sequence.type_ids[t]);
    }
  }
  return kOk;
}

Status encode(mote_session* session, const Sequence* sequences, size_t count,
              const ForwardSink& sink, EncoderOutputs* outputs) {
  *outputs = {};
  MOTE_TRY(check_sequences(*session, sequences, count));
  Transformer& transformer = session->transformer;
  Team& team = session->team;
  team.run([&] {
    transformer.encode(team, sequences, count, Stop{}, &sink);
    outputs->hidden = transformer.hidden();
    switch (session->model->transformer.spec.head.kind) {
      case HeadKind::classify:
        outputs->sequence_logits = transformer.sequence_logits(team);
        break;
      case HeadKind::tag:
      case HeadKind::answer:
        outputs->token_logits = transformer.token_logits(team);
        break;
      case HeadKind::none:
        outputs->pooler_output = transformer.pooler_output(team);
        break;
      case HeadKind::masked_lm:
        break;
    }
  });
  return kOk;
}

}  // namespace mote
