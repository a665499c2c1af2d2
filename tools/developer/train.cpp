// mote train: a classifier from labelled texts, as a linear head on a frozen encoder.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>

#include "core/threads.h"
#include "models/model.h"
#include "tools/commands.h"
#include "tools/developer/classifier_file.h"
#include "tools/developer/labelled_texts.h"
#include "tools/developer/text_embeddings.h"
#include "tools/developer/tfidf.h"
#include "tools/developer/train_classifier.h"
#include "tools/developer/train_report.h"
#include "tools/session.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

using Clock = std::chrono::steady_clock;

// Weights of the baseline, for memory's sake: the fit keeps some 25 numbers for each.
constexpr size_t kBaselineWeights = 400000;

struct Options {
  ModelOptions model;
  std::string data, test, format, output, class_weights = "none";
  double validate = 0.2, l2 = 0;
  uint64_t seed = 1;
};

// Texts with their labels as numbers.
struct DataSet {
  std::vector<std::string> texts;
  std::vector<uint32_t> labels;
  size_t duplicates = 0;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One line on stderr that is written over, on a terminal only.
class Progress {
 public:
  ~Progress() { clear(); }
  void show(const std::string& text) {
    if (!terminal_) return;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  bool shown_ = false;
};

std::vector<LabelledText> read_labelled_texts(const std::string& path, const std::string& format) {
  const TextFormat kind = format.empty()    ? text_format(path)
                          : format == "tsv" ? TextFormat::tsv
                          : format == "csv" ? TextFormat::csv
                                            : TextFormat::jsonl;
  return parse_labelled_texts(read_file(path), path == "-" ? "standard input" : path, kind);
}

// Drops what occurs twice, or it would stand on both sides of the validation; tells of texts with
// two labels.
std::vector<LabelledText> without_duplicates(std::vector<LabelledText> all,
                                             const std::string& name) {
  std::map<std::string, const LabelledText*> first_with_text;
  std::set<std::pair<std::string, std::string>> seen;
  std::vector<LabelledText> kept;
  size_t contradictions = 0;
  std::string example;
  for (const LabelledText& text : all) {
    if (!seen.insert({text.text, text.label}).second) continue;
    const auto [place, is_new] = first_with_text.emplace(text.text, &text);
    if (!is_new && contradictions++ == 0)
      example = "lines " + std::to_string(place->second->line) + " and " +
                std::to_string(text.line) + ": " + place->second->label + " and " + text.label;
    kept.push_back(text);
  }
  if (contradictions > 0)
    complain("warning: " + name + ": " + std::to_string(contradictions) +
             " texts have another label too (" + example + ")");
  return kept;
}

// Names of the labels, sorted by their bytes.
std::vector<std::string> label_names(const std::vector<LabelledText>& texts) {
  std::set<std::string> names;
  for (const LabelledText& text : texts) names.insert(text.label);
  return {names.begin(), names.end()};
}

DataSet numbered(const std::vector<LabelledText>& texts, const std::vector<std::string>& names,
                 const std::string& file) {
  DataSet data;
  for (const LabelledText& text : texts) {
    const auto found = std::lower_bound(names.begin(), names.end(), text.label);
    if (found == names.end() || *found != text.label)
      throw Failure(file + ": line " + std::to_string(text.line) + ": label '" + text.label +
                    "' does not occur in the training data");
    data.texts.push_back(text.text);
    data.labels.push_back(uint32_t(found - names.begin()));
  }
  return data;
}

std::vector<size_t> count_labels(const DataSet& data, size_t classes) {
  std::vector<size_t> counts(classes);
  for (const uint32_t label : data.labels) ++counts[label];
  return counts;
}

void check_labels(const DataSet& data, const std::vector<std::string>& names,
                  const Options& options) {
  if (names.size() < 2)
    throw Failure(options.data + ": expected at least two labels, found only '" + names[0] + "'");
  const size_t least = options.validate > 0 ? 3 : 2;
  const std::vector<size_t> counts = count_labels(data, names.size());
  for (size_t c = 0; c < names.size(); ++c)
    if (counts[c] < least)
      throw Failure(options.data + ": label '" + names[c] + "': expected at least " +
                    std::to_string(least) + " different texts, found " + std::to_string(counts[c]));
}

std::vector<size_t> all_rows(size_t count) {
  std::vector<size_t> rows(count);
  std::iota(rows.begin(), rows.end(), size_t{0});
  return rows;
}

const char* pooling_name(const Model& model) {
  switch (model.get()->transformer.spec.pooling) {
    case Pooling::cls:
      return "cls";
    case Pooling::max:
      return "max";
    case Pooling::last:
      return "last";
    case Pooling::mean:
      break;
  }
  return "mean";
}

class Training {
 public:
  Training(const Options& options, const Model& model) : o_(options), model_(model) {}

  TrainReport run() {
    const Clock::time_point start = Clock::now();
    check_classifier_output(o_.model.path, o_.output);
    read();
    embed();
    train();
    measure_baseline();
    write_classifier(o_.model.path, o_.output, pooling_name(model_), report_.labels, *model_head_);
    report_.output = o_.output;
    report_.seconds = seconds_since(start);
    return std::move(report_);
  }

 private:
  size_t classes() const { return report_.labels.size(); }

  void read() {
    const std::vector<LabelledText> all = read_labelled_texts(o_.data, o_.format);
    const std::vector<LabelledText> texts = without_duplicates(all, o_.data);
    report_.duplicates = all.size() - texts.size();
    if (report_.duplicates > 0)
      complain(o_.data + ": " + std::to_string(report_.duplicates) +
               " lines repeat a text with its label and do not count");
    report_.labels = label_names(texts);
    data_ = numbered(texts, report_.labels, o_.data);
    check_labels(data_, report_.labels, o_);
    if (!o_.test.empty())
      test_ = numbered(read_labelled_texts(o_.test, o_.format), report_.labels, o_.test);
    report_.texts = data_.texts.size();
    report_.label_texts = count_labels(data_, classes());
    split_ = stratified_split(data_.labels, classes(), o_.validate, o_.seed);
    report_.training_texts = split_.training.size();
    report_.cross_validated = split_.validation.empty();
    train_options_.l2 = o_.l2;
    train_options_.balanced = o_.class_weights == "balanced";
    train_options_.threads = o_.model.threads ? o_.model.threads : default_thread_count();
    train_options_.seed = o_.seed;
  }

  void embed() {
    const Clock::time_point start = Clock::now();
    std::vector<std::string> texts = data_.texts;
    texts.insert(texts.end(), test_.texts.begin(), test_.texts.end());
    Embedded embedded = embed_texts(model_, o_.model, texts, [&](size_t done) {
      progress_.show("embedding: " + std::to_string(done) + " of " + std::to_string(texts.size()) +
                     " texts");
    });
    progress_.clear();
    rows_ = std::move(embedded.rows);
    report_.truncated = embedded.truncated;
    if (report_.truncated > 0)
      complain("warning: " + std::to_string(report_.truncated) +
               " texts are longer than the model takes and were cut");
    report_.embed_seconds = seconds_since(start);
  }

  // Rows of the test texts stand behind those of the others.
  std::vector<size_t> test_rows() const {
    std::vector<size_t> rows = all_rows(test_.texts.size());
    for (size_t& row : rows) row += data_.texts.size();
    return rows;
  }
  std::vector<uint32_t> all_labels() const {
    std::vector<uint32_t> labels = data_.labels;
    labels.insert(labels.end(), test_.labels.begin(), test_.labels.end());
    return labels;
  }

  void show_trials(const char* what) {
    train_options_.on_progress = [this, what](size_t done) {
      progress_.show(std::string(what) + ": penalty " + std::to_string(done));
    };
  }

  void train() {
    show_trials("training the head");
    const std::vector<uint32_t> labels = all_labels();
    const TrainedHead head = train_head(rows_, labels, classes(), split_, train_options_);
    report_.l2 = head.l2;
    report_.temperature = head.temperature;
    report_.validation.uncalibrated = measure(head.validation);
    report_.validation.metrics = measure(head.validation, head.temperature);
    model_head_ = fit_rows(rows_, labels, classes(), all_rows(data_.texts.size()), head.l2,
                           train_options_.balanced);
    progress_.clear();
    if (!test_.texts.empty()) {
      const Predictions predictions = predict(*model_head_, rows_, labels, test_rows());
      report_.test.emplace();
      report_.test->uncalibrated = measure(predictions);
      report_.test->metrics = measure(predictions, head.temperature);
    }
    model_head_->divide(head.temperature);
  }

  // The terms are those of the texts that are trained on.
  void measure_baseline() {
    show_trials("training the baseline");
    const size_t most_terms = std::max<size_t>(kBaselineWeights / classes(), 1);
    const TfIdf training_terms(data_.texts, split_.training, most_terms);
    const TrainedHead head = train_head(training_terms.transform(data_.texts), data_.labels,
                                        classes(), split_, train_options_);
    report_.baseline_l2 = head.l2;
    report_.baseline_terms = training_terms.terms();
    report_.validation.baseline = measure(head.validation, head.temperature);
    if (report_.test) {
      const std::vector<size_t> rows = all_rows(data_.texts.size());
      const TfIdf terms(data_.texts, rows, most_terms);
      const LogisticModel model = fit_rows(terms.transform(data_.texts), data_.labels, classes(),
                                           rows, head.l2, train_options_.balanced);
      report_.test->baseline = measure(
          predict(model, terms.transform(test_.texts), test_.labels, all_rows(test_.texts.size())),
          head.temperature);
    }
    progress_.clear();
  }

  const Options& o_;
  const Model& model_;
  Progress progress_;
  TrainReport report_;
  DataSet data_, test_;
  Split split_;
  TrainOptions train_options_;
  FeatureRows rows_;
  std::optional<LogisticModel> model_head_;
};

}  // namespace

int run_train(const Arguments& arguments) {
  CommandLine line("train",
                   "Trains a text classifier: a linear head on an encoder that stays as it is.");
  Options o;
  o.model.add_model(line.app);
  line.app
      .add_option(
          "--data", o.data,
          "labelled texts: TSV (label, text), CSV or JSONL ({\"label\", \"text\"}); - reads "
          "standard input")
      ->required();
  line.app.add_option("-o,--output", o.output, "the classifier to write, a GGUF file")->required();
  line.app.add_option("--test", o.test, "labelled texts to measure the result on");
  line.app
      .add_option(
          "--format", o.format,
          "of both files: tsv, csv or jsonl (default: by the name's end). In a TSV or CSV a "
          "first line with the fields label and text is a header")
      ->check(one_of({"tsv", "csv", "jsonl"}));
  line.app
      .add_option("--validate", o.validate,
                  "part of each label's texts that is held out to calibrate and measure (default "
                  "0.2); 0: cross-validation. The head that is written is trained on all texts")
      ->check(within(0, 0.9));
  line.app
      .add_option("--class-weights", o.class_weights,
                  "none (default), or balanced: labels with few texts count as much as others")
      ->check(one_of({"none", "balanced"}));
  line.app
      .add_option("--l2", o.l2,
                  "penalty of the squared weights (1/C in scikit-learn); default: chosen by "
                  "cross-validation")
      ->check(within(1e-6, 1e6));
  line.app.add_option("--seed", o.seed, "of the split (default 1)")->check(unsigned_number());
  o.model.add_threads(line.app);
  line.add_json();
  if (!line.parse(arguments)) return 0;
  if (o.data == "-" && o.test == "-")
    throw UsageError("- may be given once: standard input is --data or --test");
  refuse_own_input(o.output, {o.model.path, o.data, o.test});
  const Model model(o.model.path);
  model.need(MOTE_TASK_EMBED, "embeddings: it is no encoder");
  const TrainReport report = Training(o, model).run();
  if (line.json) {
    print_json(report_json(report));
  } else {
    print(report_text(report));
  }
  char times[96];
  std::snprintf(times, sizeof times, " in %.1f s, %.1f s of them for the embeddings",
                report.seconds, report.embed_seconds);
  complain("wrote " + report.output + times);
  return 0;
}

}  // namespace mote::tool
