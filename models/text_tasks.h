// What the calls of mote.h about texts do, after the arguments are checked and the session is
// entered. Without reports, or where keep_going is false, the first input that fails ends a call.
#pragma once

#include <cstddef>

#include "core/arena.h"
#include "core/status.h"
#include "models/heads/entities.h"
#include "models/heads/spans.h"
#include "models/text_batch.h"
#include "mote.h"

namespace mote {

inline constexpr size_t kMaxCandidates = 1024;

// What a session has for texts, if its model is an encoder with a tokenizer or a generator.
struct TextWork {
  TextBatch batch;
  SpanFinder spans;
  EntityFinder entities;
  float* labels = nullptr;           // [labels] of windows, added up
  float* vector = nullptr;           // [hidden] likewise
  float* candidates = nullptr;       // [kMaxCandidates] scores
  char* text = nullptr;              // [text_bytes] that is put together of others
  mote_label_score* best = nullptr;  // [kMaxCandidates]

  void plan(Arena& arena, const mote_model& model, const SessionSizes& sizes);
};

struct TextInputs {
  const mote_input* inputs;
  size_t count;
  mote_report* reports;  // [count] or null
  bool keep_going;
};

// scores: [count][top].
Status classify(mote_session& session, const TextInputs& texts, const mote_text_options& options,
                mote_label_score* scores);
// The same of options.candidates, by an encoder trained on entailment.
Status classify_by_entailment(mote_session& session, const TextInputs& texts,
                              const mote_text_options& options, mote_label_score* scores);
// And by a generator.
Status classify_by_likelihood(mote_session& session, const TextInputs& texts,
                              const mote_text_options& options, mote_label_score* scores);
// spans: [count][top]; no_answer_scores may be null.
Status answer(mote_session& session, const TextInputs& texts, const mote_text_options& options,
              mote_span* spans, size_t* counts, float* no_answer_scores);
Status tag(mote_session& session, const TextInputs& texts, const mote_text_options& options,
           mote_span* spans, size_t capacity, size_t* counts);
// vectors: [count][options.dimensions].
Status embed(mote_session& session, const TextInputs& texts, const mote_text_options& options,
             float* vectors);
Status fill(mote_session& session, const TextInputs& texts, const mote_text_options& options,
            mote_label_score* tokens, size_t capacity, size_t* masks);

// What the model says about entailment: the label that begins with "entail", and the one of the
// contrary as Hugging Face's pipeline takes it (the first, or the last where entailment is first).
// False: it has no such label.
bool entailment_labels(const mote_model& model, size_t* entailment, size_t* contradiction);

}  // namespace mote
