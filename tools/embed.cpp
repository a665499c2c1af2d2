// mote embed: vectors of texts.
#include "tools/commands.h"
#include "tools/text_job.h"

namespace mote::tool {
namespace {

struct Options {
  ModelOptions model;
  TextSource source;
  Reading reading;
  std::string pooling = "model";
  uint32_t dimensions = 0;
  bool as_is = false;
};

uint32_t pooling_of(const std::string& pooling) {
  return pooling == "mean"   ? MOTE_POOL_MEAN
         : pooling == "cls"  ? MOTE_POOL_CLS
         : pooling == "max"  ? MOTE_POOL_MAX
         : pooling == "last" ? MOTE_POOL_LAST
                             : MOTE_POOL_MODEL;
}

class Embed : public TextTask {
 public:
  Embed(const Model& model, const Options& o)
      : o_(o), dimensions_(o.dimensions ? o.dimensions : model.info().embedding_size) {}

  mote_status compute(mote_session* session, const mote_input* inputs, size_t count,
                      mote_report* reports) override {
    mote_text_options options = text_options();
    o_.reading.apply(&options);
    options.pooling = pooling_of(o_.pooling);
    options.dimensions = dimensions_;
    options.raw = o_.as_is;
    vectors_.assign(count * dimensions_, 0);
    return mote_embed(session, inputs, count, &options, vectors_.data(), vectors_.size(), reports);
  }

  void write_json(size_t i, const TextItem&, Json* json) override {
    Json vector = Json::array();
    for (size_t k = 0; k < dimensions_; ++k)
      vector.push_back(json_number(vectors_[i * dimensions_ + k]));
    (*json)["embedding"] = std::move(vector);
  }

  std::string write_text(size_t i, const TextItem&) override {
    std::string text;
    for (size_t k = 0; k < dimensions_; ++k) {
      char number[32];
      std::snprintf(number, sizeof number, "%s%.7g", k ? " " : "",
                    static_cast<double>(vectors_[i * dimensions_ + k]));
      text += number;
    }
    return text + "\n";
  }

 private:
  const Options& o_;
  const uint32_t dimensions_;
  std::vector<float> vectors_;
};

}  // namespace

int run_embed(const Arguments& arguments) {
  CommandLine line("embed", "Vectors of texts.");
  Options o;
  o.model.add_model(line.app);
  line.accept_texts("TEXT...: the texts; - reads one from standard input.");
  o.source.add_files(line.app);
  line.app
      .add_option("--pooling", o.pooling,
                  "of the tokens' vectors: mean, cls, max, last (default: the model's)")
      ->check(one_of({"model", "mean", "cls", "max", "last"}));
  line.app.add_option("--dim", o.dimensions, "keep the first N numbers (Matryoshka models)")
      ->check(within(1, 1 << 20));
  line.app.add_flag("--no-normalize", o.as_is, "vectors as they come, not of length 1");
  o.reading.add(line.app);
  o.model.add_context(line.app);
  o.model.add_threads(line.app);
  line.add_json();
  if (!line.parse(arguments)) return 0;
  o.source.words = line.texts();
  o.source.check();
  o.reading.check();
  const Model model(o.model.path);
  model.need(MOTE_TASK_EMBED, "embeddings: it is no encoder");
  if (o.dimensions > model.info().embedding_size)
    throw UsageError("--dim: expected at most the model's " +
                     std::to_string(model.info().embedding_size) + ", found " +
                     std::to_string(o.dimensions));
  Embed task(model, o);
  return run_texts(model, o.model, o.source, line.json, task);
}

}  // namespace mote::tool
