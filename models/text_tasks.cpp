#include "models/text_tasks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/heads/embeddings.h"
#include "models/text_run.h"

namespace mote {
namespace {

constexpr uint32_t kDefaultAnswerTokens = 30, kDefaultFills = 5;
constexpr size_t kLeastSpans = 4096;      // different ones that an answer's windows may give
constexpr size_t kWindowsAtOnePlace = 8;  // of which entities wait to be merged

TextRules rules_of(const mote_text_options& options) {
  TextRules rules;
  rules.too_long = options.too_long;
  rules.window_stride = options.window_stride;
  rules.tokenize_flags = options.literal ? 0 : MOTE_TOKENIZE_SPECIAL;
  return rules;
}

struct ClassifyTask {
  mote_session& session;
  const TextInputs& texts;
  const mote_text_options& options;
  mote_label_score* scores;
  size_t labels, top;
  WindowMean mean;
  const float* logits = nullptr;

  Status input(size_t item, mote_input* input) { return read_input(texts.inputs[item], input); }
  void compute(Transformer& transformer, Team& team) { logits = transformer.sequence_logits(team); }
  Status window(const BatchSequence& sequence, size_t i) {
    if (!mean.add(sequence, logits + i * labels)) return kOk;
    const Problem problem =
        options.raw ? Problem::regression : session.model->transformer.spec.head.problem;
    if (!label_scores(problem, mean.mean(), labels)) return not_finite(*session.model);
    rank_labels(mean.mean(), labels, scores + sequence.input * top, top);
    return kOk;
  }
  void failed(size_t input) {
    std::memset(static_cast<void*>(scores + input * top), 0, top * sizeof *scores);
  }
};

struct AnswerTask {
  mote_session& session;
  const TextInputs& texts;
  const mote_text_options& options;
  mote_span* spans;
  size_t* counts;
  float* no_answer_scores;
  size_t top;
  const float* logits = nullptr;

  Status input(size_t item, mote_input* input) {
    MOTE_TRY(read_input(texts.inputs[item], input));
    if (input->text.length == 0) return fail(MOTE_ERROR_ARGUMENT, "question: it is empty");
    if (input->pair.length == 0) return fail(MOTE_ERROR_ARGUMENT, "passage: it is empty");
    return kOk;
  }
  void compute(Transformer& transformer, Team& team) { logits = transformer.token_logits(team); }
  Status window(const BatchSequence& sequence, size_t) {
    SpanFinder& finder = session.text.spans;
    const TextBatch& batch = session.text.batch;
    const size_t longest =
        options.max_answer_tokens ? options.max_answer_tokens : kDefaultAnswerTokens;
    if (sequence.window == 0) {
      mote_input read;
      MOTE_TRY(read_input(texts.inputs[sequence.input], &read));
      finder.start({read.pair.data, read.pair.length}, top, longest, options.raw != 0);
    }
    MOTE_TRY(finder.add({logits + size_t(sequence.first) * 2, 0, sequence.text,
                         sequence.text_tokens, batch.tokens(sequence), batch.marks(sequence)}));
    if (sequence.window + 1 < sequence.windows) return kOk;
    mote_span* out = spans + sequence.input * top;
    size_t count = finder.finish(out);
    const float none = finder.no_answer_score();
    if (!options.must_answer && count > 0 && none > out[0].score) count = 0;
    std::memset(static_cast<void*>(out + count), 0, (top - count) * sizeof *out);
    counts[sequence.input] = count;
    if (no_answer_scores) no_answer_scores[sequence.input] = none;
    return kOk;
  }
  void failed(size_t input) {
    std::memset(static_cast<void*>(spans + input * top), 0, top * sizeof *spans);
    counts[input] = 0;
    if (no_answer_scores) no_answer_scores[input] = 0;
  }
};

struct TagTask {
  mote_session& session;
  const TextInputs& texts;
  const mote_text_options& options;
  mote_span* spans;
  size_t capacity;
  size_t* counts;
  size_t found = 0;
  const float* logits = nullptr;

  Status input(size_t item, mote_input* input) {
    MOTE_TRY(read_input(texts.inputs[item], input));
    if (input->pair.length)
      return fail(MOTE_ERROR_ARGUMENT, "input: expected one text, found a pair");
    return kOk;
  }
  void compute(Transformer& transformer, Team& team) { logits = transformer.token_logits(team); }
  Status window(const BatchSequence& sequence, size_t) {
    EntityFinder& finder = session.text.entities;
    const TextBatch& batch = session.text.batch;
    const LabelNames names = {session.model->labels.data(), session.model->labels.size()};
    if (sequence.window == 0) {
      mote_input read;
      MOTE_TRY(read_input(texts.inputs[sequence.input], &read));
      const size_t used = std::min(found, capacity);
      finder.start({read.text.data, read.text.length}, names, options.grouping, sequence.windows,
                   spans + used, capacity - used);
    }
    const size_t row = size_t(sequence.first) + sequence.text;
    MOTE_TRY(finder.add({logits + row * names.count, batch.tokens(sequence), batch.marks(sequence),
                         sequence.text_tokens}));
    if (sequence.window + 1 < sequence.windows) return kOk;
    counts[sequence.input] = finder.finish();
    found += counts[sequence.input];
    return kOk;
  }
  void failed(size_t input) { counts[input] = 0; }
};

struct EmbedTask {
  mote_session& session;
  const TextInputs& texts;
  const mote_text_options& options;
  float* vectors;
  size_t hidden, dimensions;
  Pooling pooling;
  WindowMean mean;
  const float* rows = nullptr;

  Status input(size_t item, mote_input* input) { return read_input(texts.inputs[item], input); }
  void compute(Transformer& transformer, Team& team) { rows = transformer.pooled(team, pooling); }
  Status window(const BatchSequence& sequence, size_t i) {
    if (!mean.add(sequence, rows + i * hidden)) return kOk;
    for (size_t k = 0; k < hidden; ++k)
      if (!std::isfinite(mean.mean()[k])) return not_finite(*session.model);
    float* vector = vectors + sequence.input * dimensions;
    std::memcpy(vector, mean.mean(), dimensions * sizeof *vector);
    if (!options.raw) normalize_vector(vector, dimensions);
    return kOk;
  }
  void failed(size_t input) {
    std::memset(static_cast<void*>(vectors + input * dimensions), 0, dimensions * sizeof *vectors);
  }
};

struct FillTask {
  mote_session& session;
  const TextInputs& texts;
  const mote_text_options& options;
  mote_label_score* best;
  size_t top, room;  // room: masks
  size_t masks = 0;
  Transformer* transformer = nullptr;
  Team* team = nullptr;

  Status input(size_t item, mote_input* input) { return read_input(texts.inputs[item], input); }
  void compute(Transformer& computed, Team& by) {
    transformer = &computed;
    team = &by;
  }
  Status window(const BatchSequence& sequence, size_t) {
    const mote_token* tokens = session.text.batch.tokens(sequence);
    uint32_t rows[Transformer::kLogitRows];
    size_t waiting = 0;
    for (uint32_t i = 0; i < sequence.text_tokens; ++i) {
      if (tokens[i].id != session.model->tokenizer.mask()) continue;
      rows[waiting++] = sequence.first + sequence.text + i;
      if (waiting == Transformer::kLogitRows) MOTE_TRY(fill(rows, &waiting));
    }
    return fill(rows, &waiting);
  }
  Status fill(const uint32_t* rows, size_t* waiting) {
    const size_t count = *waiting;
    *waiting = 0;
    if (count == 0) return kOk;
    const Kernels& kernels = *session.model->transformer.kernels;
    const size_t vocabulary = session.model->transformer.spec.vocabulary;
    const float* logits = transformer->masked_logits(*team, rows, count);
    for (size_t r = 0; r < count; ++r, logits += vocabulary) {
      if (masks++ >= room) continue;
      const float sum = kernels.log_sum_exp(logits, vocabulary);
      if (!std::isfinite(sum)) return not_finite(*session.model);
      mote_label_score* ranked = best + (masks - 1) * top;
      rank_labels(logits, session.model->tokenizer.size(), ranked, top);  // rows may be padded
      for (size_t i = 0; i < top && !options.raw; ++i)
        ranked[i].score = std::exp(ranked[i].score - sum);
    }
    return kOk;
  }
  void failed(size_t) {
    if (room) std::memset(static_cast<void*>(best), 0, room * top * sizeof *best);
  }
};

}  // namespace

void TextWork::plan(Arena& arena, const mote_model& model, const SessionSizes& sizes) {
  const Spec& spec = model.transformer.spec;
  candidates = arena.take<float>(kMaxCandidates);
  best = arena.take<mote_label_score>(kMaxCandidates);
  text = arena.take<char>(sizes.text_bytes);
  if (spec.causal) return;
  batch.plan(arena, model, sizes);
  labels = arena.take<float>(spec.head.labels);
  vector = arena.take<float>(spec.hidden);
  if (spec.head.kind == HeadKind::answer)
    spans.plan(arena, sizes.capacity, sizes.text_bytes / 4 + kLeastSpans);
  if (spec.head.kind == HeadKind::tag)
    entities.plan(arena, spec.head.labels, kWindowsAtOnePlace * sizes.capacity);
}

Status not_finite(const mote_model& model) {
  return file_error(model.gguf, MOTE_ERROR_BAD_FILE, "the model gives a number that is not finite");
}

Status read_input(const mote_input& given, mote_input* input) {
  *input = given;
  for (mote_text* text : {&input->text, &input->pair}) {
    if (!text->data && text->length)
      return fail(MOTE_ERROR_ARGUMENT, "input: expected data, found null");
    if (text->length == MOTE_NUL_TERMINATED) text->length = std::strlen(text->data);
    if (!text->data) text->data = "";
  }
  return kOk;
}

Status classify(mote_session& session, const TextInputs& texts, const mote_text_options& options,
                mote_label_score* scores) {
  const size_t labels = session.model->transformer.spec.head.labels;
  const TextRules rules = rules_of(options);
  ClassifyTask task = {
      session, texts, options, scores, labels, options.top, {session.text.labels, labels}};
  return TextRun<ClassifyTask>(session, texts, options, rules, task).run();
}

Status answer(mote_session& session, const TextInputs& texts, const mote_text_options& options,
              mote_span* spans, size_t* counts, float* no_answer_scores) {
  TextRules rules = rules_of(options);
  rules.truncation = Truncation::only_second;
  rules.marks = TextRules::Marks::word_starts;
  AnswerTask task = {session, texts, options, spans, counts, no_answer_scores, options.top};
  return TextRun<AnswerTask>(session, texts, options, rules, task).run();
}

Status tag(mote_session& session, const TextInputs& texts, const mote_text_options& options,
           mote_span* spans, size_t capacity, size_t* counts) {
  TextRules rules = rules_of(options);
  rules.marks = TextRules::Marks::subwords;
  TagTask task = {session, texts, options, spans, capacity, counts};
  MOTE_TRY(TextRun<TagTask>(session, texts, options, rules, task).run());
  if (task.found <= capacity) return kOk;
  return fail(MOTE_ERROR_BUFFER, "spans: expected room for %zu, found %zu", task.found, capacity);
}

Status embed(mote_session& session, const TextInputs& texts, const mote_text_options& options,
             float* vectors) {
  const Spec& spec = session.model->transformer.spec;
  const TextRules rules = rules_of(options);
  const Pooling pooling = options.pooling == MOTE_POOL_MODEL  ? spec.pooling
                          : options.pooling == MOTE_POOL_MEAN ? Pooling::mean
                          : options.pooling == MOTE_POOL_CLS  ? Pooling::cls
                          : options.pooling == MOTE_POOL_MAX  ? Pooling::max
                                                              : Pooling::last;
  EmbedTask task = {session,     texts,
                    options,     vectors,
                    spec.hidden, options.dimensions,
                    pooling,     {session.text.vector, spec.hidden}};
  return TextRun<EmbedTask>(session, texts, options, rules, task).run();
}

Status fill(mote_session& session, const TextInputs& texts, const mote_text_options& options,
            mote_label_score* tokens, size_t capacity, size_t* masks) {
  TextRules rules = rules_of(options);
  const size_t top = options.top ? options.top : kDefaultFills;
  mote_report report = {};
  TextInputs one = texts;
  if (!one.reports) one.reports = &report;
  const mote_report& cut = *one.reports;
  FillTask task = {session, one, options, tokens, top, capacity / top};
  MOTE_TRY(TextRun<FillTask>(session, one, options, rules, task).run());
  *masks = task.masks;
  if (task.masks > task.room)
    return fail(MOTE_ERROR_BUFFER, "tokens: expected room for %zu masks of %zu, found %zu",
                task.masks, top, task.room);
  if (task.masks > 0) return kOk;
  const std::string_view mask =
      session.model->tokenizer.stored_text(session.model->tokenizer.mask());
  if (cut.truncated)
    return fail(MOTE_ERROR_ARGUMENT,
                "text: expected the mask token %.*s, found none: the text was cut at %zu tokens",
                MOTE_SHOW(mask), session.text.batch.limit());
  return fail(MOTE_ERROR_ARGUMENT, "text: expected the mask token %.*s, found none",
              MOTE_SHOW(mask));
}

}  // namespace mote
