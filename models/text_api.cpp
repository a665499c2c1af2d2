// mote.h's calls that understand text: arguments are checked here, and nothing else is done here.
#include "models/api_arguments.h"
#include "models/text_tasks.h"

using mote::Entry;
using mote::fail;
using mote::finish;
using mote::kOk;
using mote::need;
using mote::Status;

namespace {

Status need_task(const mote_session& session, uint32_t task, const char* what) {
  const mote_model& model = *session.model;
  if (!model.has_weights)
    return fail(MOTE_ERROR_TASK, "%s holds a vocabulary only, no weights", model.name);
  if (!(model.tasks() & task)) return fail(MOTE_ERROR_TASK, "%s has no %s", model.name, what);
  if (!model.tokenizer.present())
    return fail(MOTE_ERROR_TASK, "%s has no tokenizer, so it takes no texts", model.name);
  return kOk;
}

Status check_range(const char* field, uint64_t value, uint64_t most) {
  if (value <= most) return kOk;
  return fail(MOTE_ERROR_ARGUMENT, "mote_text_options.%s: expected 0..%llu, found %llu", field,
              static_cast<unsigned long long>(most), static_cast<unsigned long long>(value));
}

Status read_text_options(const mote_text_options* given, mote_text_options* options) {
  MOTE_TRY(mote::read_options(given, "mote_text_options", options));
  MOTE_TRY(check_range("too_long", options->too_long, MOTE_LONG_ERROR));
  MOTE_TRY(check_range("pooling", options->pooling, MOTE_POOL_LAST));
  MOTE_TRY(check_range("raw", options->raw, 1));
  MOTE_TRY(check_range("grouping", options->grouping, MOTE_GROUP_NONE));
  MOTE_TRY(check_range("multi_label", options->multi_label, 1));
  MOTE_TRY(check_range("must_answer", options->must_answer, 1));
  MOTE_TRY(check_range("literal", options->literal, 1));
  MOTE_TRY(check_range("candidate_count", options->candidate_count, mote::kMaxCandidates));
  if (options->candidate_count) MOTE_TRY(need(options->candidates, "mote_text_options.candidates"));
  return mote::read_text(&options->hypothesis, "mote_text_options.hypothesis");
}

// That capacity is at least count * each.
Status check_capacity(const char* what, size_t count, size_t each, size_t capacity) {
  size_t needed = 0;
  if (__builtin_mul_overflow(count, each, &needed)) needed = SIZE_MAX;
  if (needed <= capacity) return kOk;
  return fail(MOTE_ERROR_BUFFER, "%s: expected room for %zu of %zu, found %zu", what, count, each,
              capacity);
}

Status classify(mote_session& session, const mote_input* inputs, size_t count,
                const mote_text_options* given, mote_label_score* scores, size_t capacity,
                mote_report* reports) {
  mote_text_options options;
  MOTE_TRY(read_text_options(given, &options));
  const bool own = options.candidate_count > 0;
  const bool causal = session.model->has_weights && session.model->transformer.spec.causal;
  MOTE_TRY(
      need_task(session, causal && own ? MOTE_TASK_GENERATE : MOTE_TASK_CLASSIFY,
                causal ? "classification head: it scores candidates only" : "classification head"));
  const size_t labels = own ? options.candidate_count : session.model->transformer.spec.head.labels;
  MOTE_TRY(check_range("top", options.top, labels));
  if (options.top == 0) options.top = static_cast<uint32_t>(labels);
  MOTE_TRY(check_capacity("scores", count, options.top, capacity));
  if (count) MOTE_TRY(need(inputs, "inputs"));
  if (count) MOTE_TRY(need(scores, "scores"));
  const mote::TextInputs texts = {inputs, count, reports, true};
  if (causal) return mote::classify_by_likelihood(session, texts, options, scores);
  if (own) return mote::classify_by_entailment(session, texts, options, scores);
  return mote::classify(session, texts, options, scores);
}

Status answer(mote_session& session, const mote::TextInputs& texts, const mote_text_options* given,
              mote_span* spans, size_t capacity, size_t* counts, float* no_answer_scores) {
  mote_text_options options;
  MOTE_TRY(need(counts, "count"));
  std::fill(counts, counts + texts.count, size_t(0));
  MOTE_TRY(read_text_options(given, &options));
  MOTE_TRY(need_task(session, MOTE_TASK_ANSWER, "question answering head"));
  MOTE_TRY(check_range("top", options.top, mote::SpanFinder::kMaxTop));
  if (options.top == 0) options.top = 1;
  const Status room = check_capacity("spans", texts.count, options.top, capacity);
  if (!room.ok()) std::fill(counts, counts + texts.count, size_t{options.top});
  MOTE_TRY(room);
  if (texts.count) MOTE_TRY(need(texts.inputs, "inputs"));
  if (texts.count) MOTE_TRY(need(spans, "spans"));
  return mote::answer(session, texts, options, spans, counts, no_answer_scores);
}

Status tag(mote_session& session, const mote::TextInputs& texts, const mote_text_options* given,
           mote_span* spans, size_t capacity, size_t* counts) {
  mote_text_options options;
  MOTE_TRY(need(counts, "count"));
  std::fill(counts, counts + texts.count, size_t(0));
  MOTE_TRY(read_text_options(given, &options));
  MOTE_TRY(need_task(session, MOTE_TASK_TAG, "tagging head"));
  if (texts.count) MOTE_TRY(need(texts.inputs, "texts"));
  if (capacity) MOTE_TRY(need(spans, "spans"));
  return mote::tag(session, texts, options, spans, capacity, counts);
}

Status embed(mote_session& session, const mote::TextInputs& texts, const mote_text_options* given,
             float* vectors, size_t capacity) {
  mote_text_options options;
  MOTE_TRY(read_text_options(given, &options));
  MOTE_TRY(need_task(session, MOTE_TASK_EMBED, "embeddings: it is no encoder"));
  const uint32_t hidden = session.model->transformer.spec.hidden;
  MOTE_TRY(check_range("dimensions", options.dimensions, hidden));
  if (options.dimensions == 0) options.dimensions = hidden;
  MOTE_TRY(check_capacity("vectors", texts.count, options.dimensions, capacity));
  if (texts.count) MOTE_TRY(need(texts.inputs, "inputs"));
  if (texts.count) MOTE_TRY(need(vectors, "vectors"));
  return mote::embed(session, texts, options, vectors);
}

Status fill(mote_session& session, const mote::TextInputs& texts, const mote_text_options* given,
            mote_label_score* tokens, size_t capacity, size_t* masks) {
  mote_text_options options;
  MOTE_TRY(need(masks, "masks"));
  *masks = 0;
  MOTE_TRY(read_text_options(given, &options));
  MOTE_TRY(need_task(session, MOTE_TASK_FILL, "masked language model's head"));
  MOTE_TRY(check_range("top", options.top, session.model->tokenizer.size()));
  if (options.too_long == MOTE_LONG_WINDOWS)
    return fail(MOTE_ERROR_ARGUMENT,
                "mote_text_options.too_long: windows are not for filling masks");
  if (capacity) MOTE_TRY(need(tokens, "tokens"));
  return mote::fill(session, texts, options, tokens, capacity, masks);
}

// Reports of a call that failed say so. After an end by cancelling or deadline they tell which
// inputs were done before.
mote_status finish(Status status, mote_report* reports, size_t count) {
  const bool ended = status.code() == MOTE_ERROR_CANCELLED || status.code() == MOTE_ERROR_DEADLINE;
  for (size_t i = 0; !status.ok() && !ended && reports && i < count; ++i)
    reports[i].status = status.code();
  return finish(status);
}

}  // namespace

mote_status mote_classify(mote_session* session, const mote_input* inputs, size_t count,
                          const mote_text_options* options, mote_label_score* scores,
                          size_t capacity, mote_report* reports) {
  Entry entry(session);
  Status status = entry.status();
  if (status.ok()) status = classify(*session, inputs, count, options, scores, capacity, reports);
  return finish(status, reports, count);
}

mote_status mote_answer(mote_session* session, mote_text question, mote_text passage,
                        const mote_text_options* options, mote_span* spans, size_t capacity,
                        size_t* count, float* no_answer_score) {
  Entry entry(session);
  Status status = entry.status();
  const mote_input input = {question, passage};
  if (status.ok())
    status = answer(*session, {&input, 1, nullptr, false}, options, spans, capacity, count,
                    no_answer_score);
  return finish(status);
}

mote_status mote_answer_batch(mote_session* session, const mote_input* inputs, size_t count,
                              const mote_text_options* options, mote_span* spans, size_t capacity,
                              size_t* counts, float* no_answer_scores, mote_report* reports) {
  Entry entry(session);
  Status status = entry.status();
  if (status.ok())
    status = answer(*session, {inputs, count, reports, true}, options, spans, capacity, counts,
                    no_answer_scores);
  return finish(status, reports, count);
}

mote_status mote_tag(mote_session* session, mote_text text, const mote_text_options* options,
                     mote_span* spans, size_t capacity, size_t* count, mote_report* report) {
  Entry entry(session);
  Status status = entry.status();
  const mote_input input = {text, {nullptr, 0}};
  if (status.ok())
    status = tag(*session, {&input, 1, report, false}, options, spans, capacity, count);
  return finish(status, report, 1);
}

mote_status mote_tag_batch(mote_session* session, const mote_input* inputs, size_t count,
                           const mote_text_options* options, mote_span* spans, size_t capacity,
                           size_t* counts, mote_report* reports) {
  Entry entry(session);
  Status status = entry.status();
  if (status.ok())
    status = tag(*session, {inputs, count, reports, true}, options, spans, capacity, counts);
  return finish(status, reports, count);
}

mote_status mote_embed(mote_session* session, const mote_input* inputs, size_t count,
                       const mote_text_options* options, float* vectors, size_t capacity,
                       mote_report* reports) {
  Entry entry(session);
  Status status = entry.status();
  if (status.ok())
    status = embed(*session, {inputs, count, reports, true}, options, vectors, capacity);
  return finish(status, reports, count);
}

mote_status mote_fill(mote_session* session, mote_text text, const mote_text_options* options,
                      mote_label_score* tokens, size_t capacity, size_t* masks,
                      mote_report* report) {
  Entry entry(session);
  Status status = entry.status();
  const mote_input input = {text, {nullptr, 0}};
  if (status.ok())
    status = fill(*session, {&input, 1, report, false}, options, tokens, capacity, masks);
  return finish(status, report, 1);
}
