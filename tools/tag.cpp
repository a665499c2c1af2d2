// mote tag: the entities of texts.
#include "tools/commands.h"
#include "tools/text_job.h"

namespace mote::tool {
namespace {

struct Options {
  ModelOptions model;
  TextSource source;
  Reading reading;
  std::string group = "entity";
};

uint32_t grouping_of(const std::string& group) {
  return group == "first"     ? MOTE_GROUP_FIRST
         : group == "max"     ? MOTE_GROUP_MAX
         : group == "average" ? MOTE_GROUP_AVERAGE
         : group == "none"    ? MOTE_GROUP_NONE
                              : MOTE_GROUP_ENTITY;
}

class Tag : public TextTask {
 public:
  explicit Tag(const Options& o) : o_(o) {}

  mote_status compute(mote_session* session, const mote_input* inputs, size_t count,
                      mote_report* reports) override {
    mote_text_options options = text_options();
    o_.reading.apply(&options);
    options.grouping = grouping_of(o_.group);
    counts_.assign(count, 0);
    spans_.resize(std::max<size_t>(spans_.size(), 256 + count * 8));
    const auto tag = [&] {
      return mote_tag_batch(session, inputs, count, &options, spans_.data(), spans_.size(),
                            counts_.data(), reports);
    };
    mote_status status = tag();
    if (status == MOTE_ERROR_BUFFER) {
      size_t needed = 0;
      for (const size_t found : counts_) needed += found;
      spans_.resize(needed);
      status = tag();
    }
    firsts_.assign(1, 0);
    for (const size_t found : counts_) firsts_.push_back(firsts_.back() + found);
    return status;
  }

  void write_json(size_t i, const TextItem& item, Json* json) override {
    Json entities = Json::array();
    for (size_t k = firsts_[i]; k < firsts_[i + 1]; ++k) {
      Json entity = {{"label", label_of(spans_[k])}, {"text", span_text(spans_[k], item.text)}};
      add_span(spans_[k], &entity);
      entities.push_back(std::move(entity));
    }
    (*json)["entities"] = std::move(entities);
  }

  // "label  score  text" a line, and a blank one behind each of several texts.
  std::string write_text(size_t i, const TextItem& item) override {
    std::string text;
    for (size_t k = firsts_[i]; k < firsts_[i + 1]; ++k)
      text += one_line(label_of(spans_[k])) + "\t" + score_text(spans_[k].score) + "\t" +
              one_line(span_text(spans_[k], item.text)) + "\n";
    const bool several = o_.source.is_stream() || o_.source.words.size() > 1;
    return several ? text + "\n" : text;
  }

 private:
  static std::string label_of(const mote_span& span) { return {span.name.data, span.name.length}; }

  const Options& o_;
  std::vector<mote_span> spans_;
  std::vector<size_t> counts_, firsts_;
};

}  // namespace

int run_tag(const Arguments& arguments) {
  CommandLine line("tag", "Entities of texts.");
  Options o;
  o.model.add_model(line.app);
  line.accept_texts("TEXT...: the texts; - reads one from standard input.");
  o.source.pair_field = nullptr;
  o.source.add_files(line.app);
  line.app
      .add_option("--group", o.group,
                  "how tokens make entities: entity (default), first, max, average (of a word's "
                  "tokens), none")
      ->check(one_of({"entity", "first", "max", "average", "none"}));
  o.reading.add(line.app);
  o.model.add_context(line.app);
  o.model.add_threads(line.app);
  line.add_json();
  if (!line.parse(arguments)) return 0;
  o.source.words = line.texts();
  o.source.check();
  o.reading.check();
  const Model model(o.model.path);
  model.need(MOTE_TASK_TAG, "tagging head");
  Tag task(o);
  return run_texts(model, o.model, o.source, line.json, task);
}

}  // namespace mote::tool
