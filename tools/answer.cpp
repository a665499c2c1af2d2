// mote answer: the spans of a passage that answer a question.
#include <algorithm>

#include "tools/commands.h"
#include "tools/text_job.h"

namespace mote::tool {
namespace {

struct Options {
  ModelOptions model;
  TextSource source;
  Reading reading;
  std::string question, passage, file;
  uint32_t top = 1, longest = 0;
  bool always = false, raw = false;
  CLI::Option *question_option, *passage_option, *file_option;
};

void add_options(CommandLine& line, Options& o) {
  o.model.add_model(line.app);
  o.question_option =
      line.app.add_option("-q,--question", o.question, "the question; - reads standard input");
  o.passage_option =
      line.app.add_option("-c,--context", o.passage, "the passage; - reads standard input");
  o.file_option = line.app.add_option("--file", o.file, "a file with the passage");
  line.app.add_option("--jsonl", o.source.lines,
                      "a file with {\"question\", \"context\"} a line; other fields pass through");
  line.app.add_option("--top", o.top, "answers (default 1)")->check(within(1, 100));
  line.app.add_option("--max-answer", o.longest, "tokens of the longest answer (default 30)")
      ->check(within(1, 1 << 20));
  line.app.add_flag("--always", o.always, "answers even where \"no answer\" scores higher");
  line.app.add_flag("--raw-scores", o.raw, "sums of logits instead of probabilities");
  o.reading.way = "windows";
  o.reading.add(line.app);
  o.model.add_context(line.app);
  o.model.add_threads(line.app);
  line.add_json();
}

class Answer : public TextTask {
 public:
  explicit Answer(const Options& o) : o_(o) {}

  mote_status compute(mote_session* session, const mote_input* inputs, size_t count,
                      mote_report* reports) override {
    mote_text_options options = text_options();
    o_.reading.apply(&options);
    options.top = o_.top;
    options.max_answer_tokens = o_.longest;
    options.must_answer = o_.always;
    options.raw = o_.raw;
    spans_.assign(count * o_.top, mote_span{});
    counts_.assign(count, 0);
    none_.assign(count, 0);
    return mote_answer_batch(session, inputs, count, &options, spans_.data(), spans_.size(),
                             counts_.data(), none_.data(), reports);
  }

  void write_json(size_t i, const TextItem& item, Json* json) override {
    Json answers = Json::array();
    for (size_t k = 0; k < counts_[i]; ++k) {
      const mote_span& span = spans_[i * o_.top + k];
      Json answer = {{"text", span_text(span, item.pair)}};
      add_span(span, &answer);
      answers.push_back(std::move(answer));
    }
    (*json)["answers"] = std::move(answers);
    (*json)["no_answer_score"] = json_number(none_[i]);
  }

  std::string write_text(size_t i, const TextItem& item) override {
    std::string text;
    for (size_t k = 0; k < counts_[i]; ++k) {
      const mote_span& span = spans_[i * o_.top + k];
      text += score_text(span.score) + "  " + one_line(span_text(span, item.pair)) + "\n";
    }
    return text.empty() ? score_text(none_[i]) + "  no answer\n" : text;
  }

 private:
  const Options& o_;
  std::vector<mote_span> spans_;
  std::vector<size_t> counts_;
  std::vector<float> none_;
};

void read_source(Options& o) {
  o.source.text_field = "question";
  o.source.pair_field = "context";
  const size_t passages = o.passage_option->count() + o.file_option->count();
  if (!o.source.lines.empty()) {
    if (passages || o.question_option->count())
      throw UsageError("--jsonl has questions and passages in its lines");
    return;
  }
  if (!o.question_option->count() || passages != 1)
    throw UsageError("give a question with -q and a passage with one of -c and --file");
  if (o.question == "-" && (o.passage == "-" || o.file == "-"))
    throw UsageError("- may be given once: standard input is the question or the passage");
  o.source.words = {o.question};
  o.source.pairs = {o.file_option->count() ? read_file(o.file)
                    : o.passage == "-"     ? read_file("-")
                                           : o.passage};
}

}  // namespace

int run_answer(const Arguments& arguments) {
  CommandLine line("answer", "The span of a passage that answers a question.");
  Options o;
  add_options(line, o);
  if (!line.parse(arguments)) return 0;
  o.reading.check();
  read_source(o);
  const Model model(o.model.path);
  model.need(MOTE_TASK_ANSWER, "question answering head");
  Answer task(o);
  return run_texts(model, o.model, o.source, line.json, task);
}

}  // namespace mote::tool
