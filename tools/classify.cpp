// mote classify: labels of texts, by the model's head, by entailment or by likelihood.
#include <algorithm>

#include "tools/commands.h"
#include "tools/text_job.h"

namespace mote::tool {
namespace {

constexpr size_t kShownLabels = 5;  // of one text, unless asked for more

struct Options {
  ModelOptions model;
  TextSource source;
  Reading reading;
  std::vector<std::string> labels;
  std::string hypothesis, prompt;
  uint32_t top = 0;
  float threshold = 0;
  bool raw = false, multi_label = false;
  CLI::Option* threshold_option = nullptr;
  // Options that models of the other kind, or labels of one's own, have no use for.
  std::vector<CLI::Option*> of_encoders, of_generators, of_pairs;
};

void add_options(CommandLine& line, Options& o) {
  o.model.add_model(line.app);
  line.accept_texts("TEXT...: the texts; - reads one from standard input.");
  o.source.add_files(line.app);
  o.of_pairs = o.source.add_pairs(line.app);
  line.app.add_option("--top", o.top, "labels of each text (default: all as JSON)")
      ->check(within(1, 1 << 20));
  o.threshold_option = line.app.add_option(
      "--threshold", o.threshold, "only labels that score at least this, or none of these");
  line.app.add_flag("--raw-scores", o.raw, "logits instead of probabilities");
  line.app
      .add_option("--labels", o.labels,
                  "labels of your own: a,b,c. A generator scores their likelihood, an encoder "
                  "trained on entailment whether the text entails them")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  o.of_encoders = o.reading.add(line.app);
  o.of_encoders.push_back(line.app.add_option(
      "--hypothesis", o.hypothesis, "with {} for the label (default: This example is {}.)"));
  o.of_encoders.push_back(
      line.app.add_flag("--multi-label", o.multi_label, "any number of these labels may fit"));
  o.of_generators.push_back(line.app.add_option(
      "--prompt", o.prompt, "what a generator reads before the label, with {} for the text"));
  o.model.add_context(line.app);
  o.model.add_threads(line.app);
  line.add_json();
}

class Classify : public TextTask {
 public:
  Classify(const Model& model, const Options& o)
      : model_(model),
        o_(o),
        generates_(model.can(MOTE_TASK_GENERATE)),
        single_(!o.source.is_stream() && o.source.words.size() == 1 && o.source.pairs.size() < 2) {
    for (const std::string& label : o.labels)
      candidates_.push_back(generates_ ? " " + label : label);
    for (const std::string& candidate : candidates_) candidate_texts_.push_back(as_text(candidate));
    labels_ = o.labels.empty() ? model.info().label_count : o.labels.size();
    top_ = o.top ? std::min<size_t>(o.top, labels_) : labels_;
    if (generates_) split_prompt();
  }

  size_t added_bytes() const override {
    size_t longest = 0;
    for (const std::string& candidate : candidates_) longest = std::max(longest, candidate.size());
    const size_t around = generates_ ? before_.size() + after_.size() : o_.hypothesis.size() + 64;
    return o_.labels.empty() ? 0 : around + longest;
  }

  mote_status compute(mote_session* session, const mote_input* inputs, size_t count,
                      mote_report* reports) override {
    mote_text_options options = text_options();
    o_.reading.apply(&options);
    options.top = static_cast<uint32_t>(top_);
    options.raw = o_.raw;
    options.candidates = candidate_texts_.data();
    options.candidate_count = candidate_texts_.size();
    options.hypothesis = as_text(o_.hypothesis);
    options.multi_label = o_.multi_label;
    scores_.assign(count * top_, mote_label_score{});
    std::vector<mote_input> prompts;
    std::vector<std::string> texts;
    if (generates_) {
      texts.reserve(count);
      for (size_t i = 0; i < count; ++i) {
        texts.push_back(before_ + std::string(inputs[i].text.data, inputs[i].text.length) + after_);
        prompts.push_back({as_text(texts.back()), inputs[i].pair});
      }
      inputs = prompts.data();
    }
    return mote_classify(session, inputs, count, &options, scores_.data(), scores_.size(), reports);
  }

  void write_json(size_t i, const TextItem&, Json* json) override {
    Json labels = Json::array();
    for (const mote_label_score& entry : passing(i))
      labels.push_back({{"label", name_of(entry.label)}, {"score", json_number(entry.score)}});
    const bool none = labels.empty();
    (*json)["labels"] = std::move(labels);
    if (none) (*json)["none_of_these"] = true;
  }

  // One text: a line for each label. Several: a line for each text.
  std::string write_text(size_t i, const TextItem& item) override {
    const std::vector<mote_label_score> labels = passing(i);
    const size_t most = o_.top ? labels.size() : single_ ? kShownLabels : 1;
    std::string text;
    for (size_t k = 0; k < std::min(most, labels.size()); ++k)
      text += (single_ || k == 0 ? "" : "\t") + score_text(labels[k].score) +
              (single_ ? "  " : "\t") + one_line(name_of(labels[k].label)) + (single_ ? "\n" : "");
    if (labels.empty()) text = std::string("none of these") + (single_ ? "\n" : "");
    if (single_) return text;
    return text + "\t" + one_line(item.pair.empty() ? item.text : item.pair) + "\n";
  }

 private:
  // Without a prompt of its own a generator is told the labels, which may have a {} in them.
  void split_prompt() {
    const size_t place = o_.prompt.find("{}");
    before_ = o_.prompt.substr(0, place);
    if (place != std::string::npos) after_ = o_.prompt.substr(place + 2);
    if (!o_.prompt.empty()) return;
    before_ = "Choose the label that fits the text. Labels: ";
    for (const std::string& label : o_.labels)
      before_ += (&label == &o_.labels.front() ? "" : ", ") + label;
    before_ += ".\n\nText: ";
    after_ = "\nLabel:";
  }
  std::vector<mote_label_score> passing(size_t i) const {
    std::vector<mote_label_score> labels(scores_.begin() + static_cast<ptrdiff_t>(i * top_),
                                         scores_.begin() + static_cast<ptrdiff_t>((i + 1) * top_));
    if (o_.threshold_option->count())
      labels.erase(std::remove_if(labels.begin(), labels.end(),
                                  [&](const auto& entry) { return entry.score < o_.threshold; }),
                   labels.end());
    return labels;
  }
  std::string name_of(uint32_t label) const {
    if (!o_.labels.empty()) return o_.labels[label];
    mote_text name{};
    check(mote_model_label(model_.get(), label, &name));
    return {name.data, name.length};
  }

  const Model& model_;
  const Options& o_;
  const bool generates_, single_;
  size_t labels_ = 0, top_ = 0;
  std::string before_, after_;  // of a text, in what a generator reads
  std::vector<std::string> candidates_;
  std::vector<mote_text> candidate_texts_;
  std::vector<mote_label_score> scores_;
};

std::string trimmed(const std::string& text) {
  const char* const spaces = " \t\r\n";
  const size_t first = text.find_first_not_of(spaces);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(spaces) + 1 - first);
}

// The labels of "a, b,c". CLI11's own delimiter would drop empty ones.
std::vector<std::string> split_labels(const std::vector<std::string>& lists) {
  std::vector<std::string> labels;
  for (const std::string& list : lists) {
    for (size_t first = 0, end = 0; end != list.npos; first = end + 1) {
      end = list.find(',', first);
      const std::string label = trimmed(list.substr(first, end - first));
      if (label.empty())
        throw UsageError("--labels: expected labels, found an empty one in \"" + list + "\"");
      if (std::find(labels.begin(), labels.end(), label) != labels.end())
        throw UsageError("--labels: expected different labels, found \"" + label + "\" twice");
      labels.push_back(label);
    }
  }
  return labels;
}

void check_options(const Options& o) {
  o.source.check();
  if (!o.prompt.empty() && o.prompt.find("{}") == std::string::npos)
    throw UsageError("--prompt: expected {} where the text goes");
  if (!o.hypothesis.empty() && o.hypothesis.find("{}") == std::string::npos)
    throw UsageError("--hypothesis: expected {} where the label goes");
  if (o.labels.empty() && (!o.hypothesis.empty() || !o.prompt.empty() || o.multi_label))
    throw UsageError("--hypothesis, --prompt and --multi-label go with --labels");
}

void refuse_options(const std::vector<CLI::Option*>& options, const char* why) {
  for (const CLI::Option* option : options)
    if (option->count()) throw UsageError(option->get_name() + " does not apply: " + why);
}

}  // namespace

int run_classify(const Arguments& arguments) {
  CommandLine line("classify", "Labels of texts with their probabilities, best first.");
  Options o;
  add_options(line, o);
  if (!line.parse(arguments)) return 0;
  o.source.words = line.texts();
  o.labels = split_labels(o.labels);
  check_options(o);
  const Model model(o.model.path);
  if (model.can(MOTE_TASK_GENERATE) && o.labels.empty())
    throw Failure("the model is a generator: give it --labels to choose from");
  if (model.can(MOTE_TASK_GENERATE)) {
    refuse_options(o.of_encoders, "the model is a generator");
  } else {
    model.need(MOTE_TASK_CLASSIFY, "classification head");
    refuse_options(o.of_generators, "the model is an encoder");
  }
  if (!o.labels.empty()) refuse_options(o.of_pairs, "with --labels each text stands alone");
  o.reading.check();
  Classify task(model, o);
  return run_texts(model, o.model, o.source, line.json, task);
}

}  // namespace mote::tool
