// mote fill: the tokens that fit a text's masks.
#include "tools/commands.h"
#include "tools/text_job.h"

namespace mote::tool {
namespace {

class Fill : public TextTask {
 public:
  Fill(const Reading& reading, uint32_t top) : reading_(reading), top_(top) {}

  // The library takes one text at a time.
  mote_status compute(mote_session* session, const mote_input* inputs, size_t count,
                      mote_report* reports) override {
    fills_.assign(count, {});
    for (size_t i = 0; i < count; ++i) {
      mote_report report{};
      const mote_status status = fill(session, inputs[i].text, &report, &fills_[i]);
      report.status = status;
      if (reports) reports[i] = report;
      if (status == MOTE_ERROR_CANCELLED || (status != MOTE_OK && !reports)) {
        for (size_t k = i; reports && k < count; ++k) reports[k].status = status;
        return status;
      }
    }
    return MOTE_OK;
  }

  void write_json(size_t i, const TextItem&, Json* json) override {
    Json fills = Json::array();
    for (const Mask& mask : fills_[i]) {
      Json tokens = Json::array();
      for (const Choice& choice : mask)
        tokens.push_back(
            {{"token", choice.text}, {"score", json_number(choice.score)}, {"id", choice.id}});
      fills.push_back(std::move(tokens));
    }
    (*json)["fills"] = std::move(fills);
  }

  std::string write_text(size_t i, const TextItem&) override {
    std::string text;
    for (const Mask& mask : fills_[i]) {
      if (!text.empty()) text += "\n";
      for (const Choice& choice : mask)
        text += score_text(choice.score) + "  " + one_line(choice.text) + "\n";
    }
    return text;
  }

 private:
  struct Choice {
    uint32_t id;
    float score;
    std::string text;
  };
  using Mask = std::vector<Choice>;

  mote_status fill(mote_session* session, mote_text text, mote_report* report,
                   std::vector<Mask>* fills) {
    mote_text_options options = text_options();
    reading_.apply(&options);
    options.top = top_;
    std::vector<mote_label_score> tokens(top_ * 16);
    size_t masks = 0;
    mote_status status =
        mote_fill(session, text, &options, tokens.data(), tokens.size(), &masks, report);
    if (status == MOTE_ERROR_BUFFER) {
      tokens.resize(top_ * masks);
      status = mote_fill(session, text, &options, tokens.data(), tokens.size(), &masks, report);
    }
    if (status != MOTE_OK) return status;
    for (size_t m = 0; m < masks; ++m) {
      Mask mask;
      for (size_t k = 0; k < top_; ++k) {
        const mote_label_score& token = tokens[m * top_ + k];
        mask.push_back({token.label, token.score, text_of(session, token.label)});
      }
      fills->push_back(std::move(mask));
    }
    return MOTE_OK;
  }
  static std::string text_of(mote_session* session, uint32_t token) {
    const auto id = static_cast<int32_t>(token);
    size_t length = 0;
    mote_detokenize(session, &id, 1, 0, nullptr, 0, &length);
    std::string text(length, '\0');
    check(mote_detokenize(session, &id, 1, 0, text.data(), text.size(), &length));
    return text;
  }

  const Reading& reading_;
  const uint32_t top_;
  std::vector<std::vector<Mask>> fills_;
};

}  // namespace

int run_fill(const Arguments& arguments) {
  CommandLine line("fill", "The tokens that fit in place of a text's masks.");
  ModelOptions model_options;
  TextSource source;
  Reading reading;
  uint32_t top = 5;
  model_options.add_model(line.app);
  line.accept_texts("TEXT...: texts with the model's mask token ([MASK], <mask>).");
  source.pair_field = nullptr;
  source.add_files(line.app);
  line.app.add_option("--top", top, "tokens for each mask (default 5)")->check(within(1, 1 << 20));
  line.app
      .add_option("--long", reading.way,
                  "texts longer than the model takes: truncate (default), error")
      ->check(one_of({"truncate", "error"}));
  model_options.add_context(line.app);
  model_options.add_threads(line.app);
  line.add_json();
  if (!line.parse(arguments)) return 0;
  source.words = line.texts();
  source.check();
  const Model model(model_options.path);
  model.need(MOTE_TASK_FILL, "masked language model's head");
  if (top > model.info().vocabulary_size)
    throw UsageError("--top: expected at most the model's " +
                     std::to_string(model.info().vocabulary_size) + " tokens, found " +
                     std::to_string(top));
  Fill task(reading, top);
  return run_texts(model, model_options, source, line.json, task);
}

}  // namespace mote::tool
