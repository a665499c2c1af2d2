// The loop over the inputs of a call: tokenized, packed, computed, given to the call's task.
#pragma once

#include <algorithm>
#include <cstring>

#include "models/heads/embeddings.h"
#include "models/heads/labels.h"
#include "models/session.h"
#include "models/text_tasks.h"

namespace mote {

// Measures the lengths of an input's texts.
Status read_input(const mote_input& given, mote_input* input);

Status not_finite(const mote_model& model);

// Values of an input's windows, averaged with their tokens as weights.
class WindowMean {
 public:
  WindowMean(float* sum, size_t count) : sum_(sum), count_(count) {}
  // True with the last window: sum() has the mean.
  bool add(const BatchSequence& sequence, const float* values) {
    if (sequence.windows == 1) {
      std::memcpy(sum_, values, count_ * sizeof *sum_);
      return true;
    }
    if (sequence.window == 0) {
      std::fill(sum_, sum_ + count_, 0.0f);
      weight_ = 0;
    }
    add_weighted(values, static_cast<float>(sequence.text_tokens), count_, sum_);
    weight_ += static_cast<float>(sequence.text_tokens);
    if (sequence.window + 1 < sequence.windows) return false;
    for (size_t i = 0; i < count_; ++i) sum_[i] /= weight_;
    return true;
  }
  float* mean() { return sum_; }

 private:
  float* sum_;
  size_t count_;
  float weight_ = 0;
};

// A Task has
//   Status input(size_t item, mote_input* input)    the texts of an item; several items may belong
//                                                   to one input of the call
//   void compute(Transformer&, Team&)               after a pass
//   Status window(const BatchSequence&, size_t i)   sequence i of it, in the order of the items;
//                                                   the item's last one ends it
//   void failed(size_t input)                       clears results of an input that failed
template <class Task>
class TextRun {
 public:
  TextRun(mote_session& session, const TextInputs& texts, const mote_text_options& options,
          const TextRules& rules, Task& task, size_t items_per_input = 1)
      : session_(session),
        batch_(session.text.batch),
        texts_(texts),
        options_(options),
        rules_(rules),
        task_(task),
        per_input_(items_per_input) {
    stop_.cancelled = &session.cancelled;
    if (options.deadline_ms)
      stop_.deadline_ns = monotonic_ns() + uint64_t(options.deadline_ms) * 1000000u;
  }

  Status run() {
    for (size_t i = 0; texts_.reports && i < texts_.count; ++i) texts_.reports[i] = {};
    batch_.clear();
    Status status = kOk;
    session_.team.run([&] { status = run_items(); });
    if (!status.ok()) clear(status);
    return status;
  }

 private:
  // Results of a call that failed: none, but for those whose reports say that they are whole.
  void clear(Status status) {
    const bool keeps = texts_.reports && texts_.keep_going;
    for (size_t i = keeps ? done_ : 0; i < texts_.count; ++i) {
      if (texts_.reports && !has_failed(i)) texts_.reports[i].status = status.code();
      task_.failed(i);
    }
  }

  Status run_items() {
    for (size_t item = 0; item < texts_.count * per_input_; ++item) {
      if (has_failed(item / per_input_)) continue;
      mote_input input;
      mote_report report = {};
      Status status = task_.input(item, &input);
      if (status.ok()) status = batch_.open(item, input, rules_, session_.scratch_arena(), &report);
      add_report(item / per_input_, report);
      if (!status.ok()) {
        MOTE_TRY(fail_input(item / per_input_, status));
        continue;
      }
      while (batch_.waiting()) {
        if (!batch_.fits()) MOTE_TRY(flush());
        if (batch_.waiting()) batch_.add();
      }
    }
    return flush();
  }

  Status flush() {
    if (batch_.count() == 0) return kOk;
    Transformer& transformer = session_.transformer;
    MOTE_TRY(check_sequences(session_, batch_.sequences(), batch_.count()));
    if (!transformer.encode(session_.team, batch_.sequences(), batch_.count(), stop_, nullptr)) {
      const bool late = stop_.timed_out();
      return fail(late ? MOTE_ERROR_DEADLINE : MOTE_ERROR_CANCELLED, "%s after %zu of %zu inputs",
                  late ? "the deadline passed" : "cancelled", done_, texts_.count);
    }
    task_.compute(transformer, session_.team);
    for (size_t i = 0; i < batch_.count(); ++i) {
      const BatchSequence& sequence = batch_.at(i);
      const size_t input = sequence.input / per_input_;
      if (has_failed(input)) continue;
      const Status status = task_.window(sequence, i);
      if (!status.ok()) {
        MOTE_TRY(fail_input(input, status));
        if (batch_.input() == sequence.input) batch_.drop();
      }
      if (sequence.window + 1 == sequence.windows && (sequence.input + 1) % per_input_ == 0)
        done_ = input + 1;
    }
    batch_.clear();
    if (options_.on_progress) options_.on_progress(options_.user, done_, texts_.count);
    return kOk;
  }

  bool has_failed(size_t input) const {
    return texts_.reports && texts_.reports[input].status != MOTE_OK;
  }
  Status fail_input(size_t input, Status status) {
    if (texts_.reports) texts_.reports[input].status = status.code();
    if (!texts_.reports || !texts_.keep_going) return status;
    task_.failed(input);
    clear_error();
    return kOk;
  }
  void add_report(size_t input, const mote_report& report) {
    if (!texts_.reports) return;
    mote_report& all = texts_.reports[input];
    all.tokens = std::max(all.tokens, report.tokens);
    all.windows = std::max(all.windows, report.windows);
    all.truncated |= report.truncated;
  }

  mote_session& session_;
  TextBatch& batch_;
  const TextInputs& texts_;
  const mote_text_options& options_;
  const TextRules& rules_;
  Task& task_;
  const size_t per_input_;
  Stop stop_;
  size_t done_ = 0;  // inputs
};

}  // namespace mote
