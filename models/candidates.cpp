// Classification by labels of the caller's own: by entailment, or by their likelihood.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/heads/embeddings.h"
#include "models/text_run.h"

namespace mote {
namespace {

constexpr std::string_view kHypothesis = "This example is {}.";

bool begins_with_entail(std::string_view name) {
  constexpr std::string_view kEntail = "entail";
  if (name.size() < kEntail.size()) return false;
  for (size_t i = 0; i < kEntail.size(); ++i)
    if ((name[i] | 0x20) != kEntail[i]) return false;
  return true;
}

Status read_candidate(const mote_text_options& options, size_t index, mote_text* candidate) {
  mote_input read;
  MOTE_TRY(read_input({options.candidates[index], {nullptr, 0}}, &read));
  *candidate = read.text;
  if (candidate->length == 0)
    return fail(MOTE_ERROR_ARGUMENT, "candidate %zu: expected a text, found an empty one", index);
  return kOk;
}

// Copies texts one behind the other into the session's buffer.
Status join(mote_session& session, const std::string_view* parts, size_t count,
            std::string_view* text) {
  size_t length = 0;
  for (size_t i = 0; i < count; ++i) {
    if (parts[i].size() > session.sizes.text_bytes - length)
      return fail(MOTE_ERROR_CAPACITY, "text with candidate: the session's text_bytes is %zu",
                  session.sizes.text_bytes);
    std::memcpy(session.text.text + length, parts[i].data(), parts[i].size());
    length += parts[i].size();
  }
  *text = {session.text.text, length};
  return kOk;
}

// Every item is a text and one of the candidates.
struct EntailmentTask {
  mote_session& session;
  const TextInputs& texts;
  const mote_text_options& options;
  mote_label_score* scores;
  std::string_view before, behind;  // the candidate in the hypothesis
  size_t labels, entailment, contradiction;
  WindowMean mean;
  const float* logits = nullptr;

  Status input(size_t item, mote_input* input) {
    MOTE_TRY(read_input(texts.inputs[item / options.candidate_count], input));
    if (input->pair.length)
      return fail(MOTE_ERROR_ARGUMENT, "input: expected one text, found a pair");
    mote_text candidate;
    MOTE_TRY(read_candidate(options, item % options.candidate_count, &candidate));
    const std::string_view parts[] = {before, {candidate.data, candidate.length}, behind};
    std::string_view hypothesis;
    MOTE_TRY(join(session, parts, 3, &hypothesis));
    input->pair = {hypothesis.data(), hypothesis.size()};
    return kOk;
  }
  void compute(Transformer& transformer, Team& team) { logits = transformer.sequence_logits(team); }
  Status window(const BatchSequence& sequence, size_t i) {
    if (!mean.add(sequence, logits + i * labels)) return kOk;
    const size_t count = options.candidate_count, candidate = sequence.input % count;
    float* row = session.text.candidates;
    float pair[] = {mean.mean()[contradiction], mean.mean()[entailment]};
    row[candidate] = pair[1];
    const bool alone = options.multi_label || count == 1;
    bool finite = std::isfinite(pair[1]);
    if (alone && !options.raw) {
      finite = labels > 1 ? softmax(pair, 2) : label_scores(Problem::multi_label, pair + 1, 1);
      row[candidate] = pair[1];
    }
    if (finite && candidate + 1 < count) return kOk;
    if (finite && !alone && !options.raw) finite = softmax(row, count);
    if (!finite) return not_finite(*session.model);
    rank_labels(row, count, scores + sequence.input / count * options.top, options.top);
    return kOk;
  }
  void failed(size_t input) {
    std::memset(static_cast<void*>(scores + input * options.top), 0, options.top * sizeof *scores);
  }
};

// Scores continuations of texts with a generator.
class Likelihood {
 public:
  Likelihood(mote_session& session, const mote_text_options& options)
      : session_(session), options_(options) {
    stop_.cancelled = &session.cancelled;
    if (options.deadline_ms)
      stop_.deadline_ns = monotonic_ns() + uint64_t(options.deadline_ms) * 1000000u;
  }

  // Mean log-likelihood of each candidate behind the text, in session.text.candidates.
  Status score(const mote_input& given, mote_report* report) {
    mote_input input;
    MOTE_TRY(read_input(given, &input));
    if (input.pair.length)
      return fail(MOTE_ERROR_ARGUMENT, "input: expected one text, found a pair");
    const std::string_view text(input.text.data, input.text.length);
    size_t length = 0;
    MOTE_TRY(tokenize(text, &length));
    for (size_t i = 0; i < length; ++i) session_.prompt[i] = session_.tokens[i].id;
    report->tokens = static_cast<uint32_t>(length);
    report->windows = 1;
    for (size_t i = 0; i < options_.candidate_count; ++i) {
      mote_text candidate;
      MOTE_TRY(read_candidate(options_, i, &candidate));
      const std::string_view parts[] = {text, {candidate.data, candidate.length}};
      std::string_view joined;
      MOTE_TRY(join(session_, parts, 2, &joined));
      size_t all = 0;
      MOTE_TRY(tokenize(joined, &all));
      // Tokens may merge over the border: the candidate's begin where they differ.
      size_t common = 0;
      while (common < length && common < all &&
             session_.tokens[common].id == session_.prompt[common])
        ++common;
      if (common == 0 || common == all)
        return fail(MOTE_ERROR_ARGUMENT,
                    common ? "candidate %zu: it has no tokens behind the text"
                           : "candidate %zu: there is no token before it",
                    i);
      MOTE_TRY(continuation(all, common, session_.text.candidates + i));
    }
    return kOk;
  }

 private:
  Status tokenize(std::string_view text, size_t* count) {
    if (text.size() > session_.sizes.text_bytes)
      return fail(MOTE_ERROR_CAPACITY, "text: %zu bytes, the session's text_bytes is %zu",
                  text.size(), session_.sizes.text_bytes);
    const Tokenizer& tokenizer = session_.model->tokenizer;
    const size_t room = session_.sizes.capacity;
    const Status status = tokenizer.encode(text, MOTE_TOKENIZE_FRAME, session_.scratch_arena(),
                                           session_.tokens, room + 1, count);
    if (!status.ok() && status.code() != MOTE_ERROR_BUFFER) return status;
    if (status.ok() && *count && session_.tokens[*count - 1].id == tokenizer.eos() &&
        session_.tokens[*count - 1].byte_start == session_.tokens[*count - 1].byte_end)
      --*count;  // the frame's
    if (*count <= room) return kOk;
    return fail(MOTE_ERROR_CAPACITY, "text with candidate: %zu tokens, the session holds %zu",
                *count, room);
  }

  // Mean of ln p over tokens [from, count) of session.tokens.
  Status continuation(size_t count, size_t from, float* mean) {
    size_t common = 0;
    const size_t most = std::min(from - 1, session_.computed);
    while (common < most && session_.tokens[common].id == session_.history[common]) ++common;
    if (!session_.rewind(common).ok()) {
      clear_error();
      common = 0;
      MOTE_TRY(session_.rewind(0));
    }
    for (size_t i = common; i + 1 < count; ++i) MOTE_TRY(session_.hold(&session_.tokens[i].id, 1));
    double sum = 0;
    while (session_.computed < session_.held) {
      const size_t first = session_.computed;
      const size_t chunk = std::min(session_.sizes.batch_tokens, session_.held - first);
      if (!session_.transformer.forward(session_.team, session_.history + first, chunk, first,
                                        stop_, nullptr)) {
        session_.held = session_.computed;
        const bool late = stop_.timed_out();
        return fail(late ? MOTE_ERROR_DEADLINE : MOTE_ERROR_CANCELLED, "%s",
                    late ? "the deadline passed" : "cancelled");
      }
      session_.computed += chunk;
      session_.last_chunk = chunk;
      const size_t target = std::max(first + 1, from);  // the first one to predict
      if (target <= first + chunk) sum += chunk_sum(first, target, first + chunk);
    }
    *mean = static_cast<float>(sum / static_cast<double>(count - from));
    return kOk;
  }

  // Sum of ln p of tokens [target, last] by the rows of the chunk that begins at `first`.
  double chunk_sum(size_t first, size_t target, size_t last) {
    const Kernels& kernels = *session_.model->transformer.kernels;
    const size_t vocabulary = session_.model->transformer.spec.vocabulary;
    double sum = 0;
    for (; target <= last; target += Transformer::kLogitRows) {
      const size_t rows = std::min(Transformer::kLogitRows, last - target + 1);
      const float* logits = session_.transformer.logits(session_.team, target - 1 - first, rows);
      for (size_t r = 0; r < rows; ++r, logits += vocabulary)
        sum += logits[session_.tokens[target + r].id] - kernels.log_sum_exp(logits, vocabulary);
    }
    return sum;
  }

  mote_session& session_;
  const mote_text_options& options_;
  Stop stop_;
};

}  // namespace

bool entailment_labels(const mote_model& model, size_t* entailment, size_t* contradiction) {
  for (size_t i = 0; i < model.labels.size(); ++i) {
    if (!begins_with_entail(model.labels[i])) continue;
    *entailment = i;
    *contradiction = i == 0 ? model.labels.size() - 1 : 0;
    return true;
  }
  return false;
}

Status classify_by_entailment(mote_session& session, const TextInputs& texts,
                              const mote_text_options& options, mote_label_score* scores) {
  const size_t labels = session.model->transformer.spec.head.labels;
  std::string_view hypothesis(options.hypothesis.data, options.hypothesis.length);
  if (hypothesis.empty()) hypothesis = kHypothesis;
  const size_t place = hypothesis.find("{}");
  if (place == std::string_view::npos)
    return fail(MOTE_ERROR_ARGUMENT,
                "hypothesis: expected {} where the candidate goes, found \"%.*s\"",
                MOTE_SHOW(hypothesis));
  EntailmentTask task = {session,
                         texts,
                         options,
                         scores,
                         {hypothesis.data(), place},
                         {hypothesis.data() + place + 2, hypothesis.size() - place - 2},
                         labels,
                         0,
                         0,
                         {session.text.labels, labels}};
  if (!entailment_labels(*session.model, &task.entailment, &task.contradiction))
    return fail(MOTE_ERROR_TASK,
                "%s has no label that begins with \"entail\": it cannot score labels of one's own",
                session.model->name);
  TextRules rules;
  rules.too_long = options.too_long;
  rules.window_stride = options.window_stride;
  rules.tokenize_flags = options.literal ? 0 : MOTE_TOKENIZE_SPECIAL;
  rules.truncation = Truncation::only_first;
  rules.windowed = 0;
  return TextRun<EntailmentTask>(session, texts, options, rules, task, options.candidate_count)
      .run();
}

Status classify_by_likelihood(mote_session& session, const TextInputs& texts,
                              const mote_text_options& options, mote_label_score* scores) {
  Likelihood likelihood(session, options);
  const size_t count = options.candidate_count;
  float* row = session.text.candidates;
  const auto one = [&](size_t i, mote_report* report) {
    MOTE_TRY(likelihood.score(texts.inputs[i], report));
    if (options.raw ? !label_scores(Problem::regression, row, count) : !softmax(row, count))
      return not_finite(*session.model);
    rank_labels(row, count, scores + i * options.top, options.top);
    return kOk;
  };
  for (size_t i = 0; texts.reports && i < texts.count; ++i) texts.reports[i] = {};
  for (size_t i = 0; i < texts.count; ++i) {
    mote_report report = {};
    Status status = kOk;
    session.team.run([&] { status = one(i, &report); });
    const bool ended =
        status.code() == MOTE_ERROR_CANCELLED || status.code() == MOTE_ERROR_DEADLINE;
    const size_t first = texts.reports ? i : 0,
                 last = ended || !texts.reports ? texts.count : i + 1;
    for (size_t k = first; !status.ok() && k < last; ++k) {
      std::memset(static_cast<void*>(scores + k * options.top), 0, options.top * sizeof *scores);
      if (texts.reports) texts.reports[k].status = status.code();
    }
    report.status = status.code();
    if (texts.reports) texts.reports[i] = report;
    if (!status.ok() && (ended || !texts.reports || !texts.keep_going)) return status;
    if (options.on_progress) options.on_progress(options.user, i + 1, texts.count);
  }
  return kOk;
}

}  // namespace mote
