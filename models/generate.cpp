// Generating: ids to cache, then one token after the other through the text callbacks.
#include <algorithm>
#include <cstring>

#include "models/drafter.h"
#include "models/session.h"

namespace mote {
namespace {

static_assert(MOTE_MAX_DRAFT < Transformer::kLogitRows);

// One generation: what the callbacks have got so far and why it ends.
class Generation {
 public:
  Generation(mote_session& session, const mote_generate_options& options,
             mote_generate_result* result)
      : session_(session), model_(*session.model), options_(options), result_(*result) {
    stop_.cancelled = &session.cancelled;
    if (options.deadline_ms)
      stop_.deadline_ns = monotonic_ns() + uint64_t(options.deadline_ms) * 1000000u;
    session.stops.start(options.stop, options.stop_count);
    session.sampler.start(options);
    drafter_.start(std::min(size_t(options.draft_tokens), session.sizes.batch_tokens - 1),
                   options.flags & MOTE_GENERATE_ALWAYS_DRAFT);
  }

  Status run(size_t prompt_tokens) {
    const uint64_t begin = monotonic_ns();
    MOTE_TRY(enter_prompt(prompt_tokens));
    const Outcome outcome = session_.compute(stop_, {options_.on_progress, options_.user});
    const uint64_t prefilled = monotonic_ns();
    result_.prefill_ms = double(prefilled - begin) * 1e-6;
    Status status = kOk;
    if (outcome != Outcome::done)
      interrupted(outcome);
    else
      status = decode();
    result_.decode_ms = double(monotonic_ns() - prefilled) * 1e-6;
    return status;
  }

 private:
  // Keeps what the cache already has of session.prompt, all but its last token, whose logits are
  // needed.
  Status enter_prompt(size_t count) {
    size_t common = 0;
    const size_t most = std::min(count - 1, session_.computed);
    while (common < most && session_.prompt[common] == session_.history[common]) ++common;
    if (!session_.rewind(common).ok()) {
      clear_error();
      common = 0;
      MOTE_TRY(session_.rewind(0));
    }
    result_.prompt_tokens = uint32_t(count);
    result_.reused_tokens = uint32_t(common);
    return session_.hold(session_.prompt + common, count - common);
  }

  void interrupted(Outcome outcome) {
    session_.held = session_.computed;
    finish(outcome == Outcome::deadline ? MOTE_FINISH_DEADLINE : MOTE_FINISH_CANCELLED);
  }
  void finish(int32_t reason) {
    if (!result_.finish) result_.finish = reason;
  }

  Status decode() {
    while (!result_.finish) {
      if (options_.max_tokens && result_.generated_tokens == options_.max_tokens)
        finish(MOTE_FINISH_LENGTH);
      else if (session_.held == session_.sizes.capacity)
        finish(MOTE_FINISH_CAPACITY);
      else
        MOTE_TRY(next_token());
    }
    if (result_.finish != MOTE_FINISH_STOP && result_.finish != MOTE_FINISH_CALLBACK) flush_text();
    return kOk;
  }

  Status next_token() {
    const Outcome outcome = next_row();
    if (outcome == Outcome::done && !stop_.requested()) return choose();
    // The token that was just being computed was given out already: it stays held, to be computed
    // by what follows.
    finish(outcome == Outcome::deadline || stop_.timed_out() ? MOTE_FINISH_DEADLINE
                                                             : MOTE_FINISH_CANCELLED);
    return kOk;
  }

  // Gets to where the logits behind the last held token are: the row behind the one before, where
  // its token was the one that was drafted; else of a new pass, the prompt's having been the first.
  Outcome next_row() {
    if (session_.computed == session_.held) return Outcome::done;
    if (agreed_) {
      ++session_.computed;
      ++row_;
      return Outcome::done;
    }
    const size_t drafted = draft();
    result_.drafted_tokens += uint32_t(drafted);
    row_ = 0;
    rows_ = 1 + drafted;
    pass_begin_ = monotonic_ns();
    return session_.compute_ahead(stop_, drafted);
  }

  // Guesses, in the history behind the held tokens: none that there is no room for, and none from
  // an end token on, as nothing is computed behind one.
  size_t draft() {
    size_t room = session_.sizes.capacity - session_.held - 1;
    if (options_.max_tokens)
      room = std::min<size_t>(room, options_.max_tokens - result_.generated_tokens - 1);
    const size_t drafted = drafter_.draft(session_.history, session_.held, room);
    for (size_t i = 0; i < drafted; ++i)
      if (is_end(session_.history[session_.held + i])) return i;
    return drafted;
  }

  bool is_end(int32_t token) const {
    return model_.tokenizer.present() && model_.tokenizer.is_end(token);
  }

  float* row_logits() {
    if (row_ == 0) {
      logits_ = session_.last_logits(rows_);
      if (pass_begin_) drafter_.measure(rows_ - 1, monotonic_ns() - pass_begin_);
    }
    return logits_ + row_ * model_.transformer.spec.vocabulary;
  }

  Status choose() {
    float* logits = row_logits();
    const size_t vocabulary = model_.transformer.spec.vocabulary;
    if (options_.on_logits && options_.on_logits(options_.user, logits, vocabulary)) {
      finish(MOTE_FINISH_CALLBACK);
      return kOk;
    }
    if (options_.flags & MOTE_GENERATE_IGNORE_END)
      for (int32_t id : model_.end_ids) logits[id] = -__builtin_inff();
    int32_t token = -1;
    const Status chosen = session_.sampler.choose(*model_.transformer.kernels, logits,
                                                  session_.history, session_.held, &token);
    if (!chosen.ok()) {
      finish(MOTE_FINISH_FAILED);
      return file_error(model_.gguf, chosen.code(), "position %zu: %s", session_.held - 1,
                        last_error());
    }
    if (is_end(token)) {
      finish(MOTE_FINISH_END);
      return kOk;
    }
    drafter_.learn(session_.history, session_.held, token);
    agreed_ = row_ + 1 < rows_ && session_.history[session_.held] == token;
    result_.accepted_tokens += agreed_;
    return accept(token);
  }

  Status accept(int32_t token) {
    MOTE_TRY(session_.hold(&token, 1));
    if (options_.ids && result_.generated_tokens < options_.ids_capacity)
      options_.ids[result_.generated_tokens] = token;
    ++result_.generated_tokens;
    if (!model_.tokenizer.present()) return kOk;
    const size_t length = model_.tokenizer.decode(token, false, true, session_.piece,
                                                  model_.tokenizer.longest_piece());
    const size_t ready = characters_.push({session_.piece, length}, session_.characters);
    pass_on(session_.stops.push(session_.characters, ready));
    return kOk;
  }

  void pass_on(const StopStrings::Output& output) {
    if (output.length && options_.on_text &&
        options_.on_text(options_.user, output.text, output.length))
      finish(MOTE_FINISH_CALLBACK);
    if (!output.stopped) return;
    finish(MOTE_FINISH_STOP);
    result_.stop_index = output.index;
  }

  void flush_text() {
    if (!model_.tokenizer.present()) return;
    const int32_t reason = result_.finish;
    result_.finish = 0;
    const size_t ready = characters_.finish(session_.characters);
    pass_on(session_.stops.push(session_.characters, ready));
    if (!result_.finish) pass_on(session_.stops.finish());
    if (!result_.finish) result_.finish = reason;
  }

  mote_session& session_;
  const mote_model& model_;
  const mote_generate_options& options_;
  mote_generate_result& result_;
  Stop stop_;
  CharacterStream characters_;
  Drafter drafter_;
  // Of the last pass: logits [rows_][vocabulary] behind its last held token and each of its draft.
  float* logits_ = nullptr;
  size_t rows_ = 1, row_ = 0;
  bool agreed_ = false;  // the token chosen from row_ is the one that row_ + 1 is behind
  uint64_t pass_begin_ = 0;
};

}  // namespace

Status generate(mote_session& session, const mote_prompt& prompt,
                const mote_generate_options& options, mote_generate_result* result) {
  size_t count = 0;
  Status status = kOk;
  session.team.run([&] {
    Generation generation(session, options, result);
    status = prompt_ids(session, prompt, &count);
    if (status.ok()) status = generation.run(count);
  });
  return status;
}

}  // namespace mote
