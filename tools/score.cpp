// mote score: mean negative log-likelihood of a text, over consecutive windows.
#include <cmath>
#include <cstdio>

#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/session.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

// Ids of the text, and the model's BOS in front where it adds one.
std::vector<int32_t> text_ids(const Session& session, const std::string& text, int32_t* bos) {
  *bos = -1;
  const std::vector<mote_token> frame = tokenize(session, "", MOTE_TOKENIZE_FRAME);
  std::vector<int32_t> ids;
  if (!frame.empty()) ids.push_back(*bos = frame[0].id);
  for (const mote_token& token : tokenize(session, text, 0)) ids.push_back(token.id);
  return ids;
}

struct Score {
  double sum = 0, second_half = 0;  // the second half of each window: what llama-perplexity counts
  size_t targets = 0, second_half_targets = 0, windows = 0;
  bool cancelled = false;
};

Score score_windows(const Session& session, std::vector<int32_t> ids, size_t window, int32_t bos) {
  Score score;
  std::vector<float> nll(window - 1);
  InterruptScope scope(session.get());
  for (size_t first = 0; first + window <= ids.size(); first += window) {
    if (score.cancelled) break;
    if (bos >= 0) ids[first] = bos;
    const mote_status status = mote_score(session.get(), ids.data() + first, window, nll.data());
    score.cancelled = status == MOTE_ERROR_CANCELLED || InterruptScope::interrupted();
    if (status == MOTE_ERROR_CANCELLED) break;  // what there is counts
    check(status);
    for (size_t i = 0; i < nll.size(); ++i) {
      score.sum += nll[i];
      if (i >= window / 2) score.second_half += nll[i];
    }
    score.targets += nll.size();
    score.second_half_targets += nll.size() - window / 2;
    ++score.windows;
  }
  return score;
}

}  // namespace

int run_score(const Arguments& arguments) {
  CommandLine line(
      "score",
      "Mean negative log-likelihood and perplexity of a text, over windows that do not overlap.");
  ModelOptions options;
  std::string file;
  uint32_t window = 512;
  options.add_model(line.app);
  line.app.add_option("--file", file, "the text; - reads standard input")->required();
  line.app
      .add_option("--window", window,
                  "tokens of a window (default 512); a last partial one is dropped")
      ->check(within(2, 1 << 24));
  options.add_kv(line.app);
  options.add_threads(line.app);
  line.add_json();
  if (!line.parse(arguments)) return 0;
  const std::string text = read_file(file);
  const Model model(options.path);
  model.need(MOTE_TASK_GENERATE, "weights to score with");
  model.need(MOTE_TASK_TOKENIZE, "tokenizer");
  options.context = window;
  const Session session(model, session_options(model, options, text.size()));
  int32_t bos = -1;
  const std::vector<int32_t> ids = text_ids(session, text, &bos);
  if (ids.size() < window)
    throw Failure(file + ": " + std::to_string(ids.size()) + " tokens, fewer than one window of " +
                  std::to_string(window));
  const Score score = score_windows(session, ids, window, bos);
  if (score.targets == 0) throw Failure("cancelled before the first window was done");
  if (score.cancelled) complain("cancelled: this is the score of the windows until then");
  const double mean = score.sum / static_cast<double>(score.targets);
  if (line.json) {
    print_json({{"nll", mean},
                {"perplexity", std::exp(mean)},
                {"perplexity_second_half",
                 score.second_half_targets
                     ? std::exp(score.second_half / static_cast<double>(score.second_half_targets))
                     : std::exp(mean)},
                {"tokens", score.targets},
                {"windows", score.windows},
                {"threads", session.threads()}});
  } else {
    char out[160];
    std::snprintf(out, sizeof out,
                  "nll %.6f, perplexity %.4f, over %zu tokens in %zu windows of %u\n", mean,
                  std::exp(mean), score.targets, score.windows, window);
    print(out);
  }
  return 0;
}

}  // namespace mote::tool
