#include "tools/developer/calibration.h"

#include <algorithm>
#include <cmath>

#include "tools/command_line.h"
#include "tools/developer/forward_run.h"
#include "tools/developer/status.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

constexpr size_t kWindow = 512;
// Of the mean: an input that the text left at rest still counts a little.
constexpr double kLeast = 0.01;

struct Sums {
  std::vector<double> squares;
  size_t tokens = 0;

  void add(const float* rows, size_t stride, size_t count, size_t columns) {
    squares.resize(columns);
    for (size_t t = 0; t < count; ++t)
      for (size_t c = 0; c < columns; ++c) {
        const double value = rows[t * stride + c];
        squares[c] += value * value;
      }
    tokens += count;
  }

  std::vector<float> weights() const {
    double mean = 0.0;
    for (const double square : squares) mean += square / static_cast<double>(squares.size());
    std::vector<float> weights(squares.size(), 1.0f);
    if (!(mean > 0.0) || !std::isfinite(mean)) return weights;
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = static_cast<float>(squares[i] / mean + kLeast);
    return weights;
  }
};

using SumsByMatrix = std::map<const uint8_t*, Sums>;

std::vector<Sequence> windows_of(const Model& model, const std::string& path) {
  const std::string text = read_file(path);
  ModelOptions options;
  options.context = 1;
  const Session session(model, session_options(model, options, text.size()));
  Sequence frame, ids;
  for (const mote_token& token : tokenize(session, "", MOTE_TOKENIZE_FRAME))
    frame.push_back(token.id);
  for (const mote_token& token : tokenize(session, text, 0)) ids.push_back(token.id);
  if (ids.empty()) throw Failure(path + ": expected a text, found no tokens");
  frame.resize(std::min<size_t>(frame.size(), 1));  // BOS, where the model adds it
  std::vector<Sequence> windows;
  for (size_t first = 0; first < ids.size(); first += kWindow - frame.size()) {
    Sequence window = frame;
    const size_t last = std::min(first + kWindow - frame.size(), ids.size());
    window.insert(window.end(), ids.begin() + static_cast<ptrdiff_t>(first),
                  ids.begin() + static_cast<ptrdiff_t>(last));
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace

Importance::Importance(const std::string& path, const std::string& text, uint32_t threads,
                       const GgufFile& file) {
  const Model model(path);
  if (!model.can(MOTE_TASK_GENERATE))
    throw Failure(path +
                  ": --calibrate is for generators, which read the text as they would in "
                  "use; this model is none");
  model.need(MOTE_TASK_TOKENIZE, "tokenizer");
  const std::vector<Sequence> windows = windows_of(model, text);
  RunOptions options;
  options.threads = threads;
  ForwardRun forward(model, options, kWindow);
  const size_t layers = forward.spec().layers, hidden = forward.spec().hidden;
  SumsByMatrix sums;
  const GgufFile& own = model_file(model.get());
  const Tensor* head = own.find_tensor("output.weight");
  if (!head) head = own.find_tensor("token_embd.weight");
  RunSink sink;
  // The last hidden state is what the head gets: its logits themselves need not be computed.
  sink.hidden = [&](uint32_t layer, size_t, size_t tokens, const float* rows) {
    if (head && layer == layers) sums[head->data].add(rows, hidden, tokens, hidden);
  };
  sink.input = [&](const uint8_t* matrix, size_t columns, size_t tokens, const float* rows,
                   size_t stride) { sums[matrix].add(rows, stride, tokens, columns); };
  size_t done = 0;
  for (const Sequence& window : windows) {
    forward.run(window, sink);
    done += window.size();
  }
  complain("calibrated on " + std::to_string(done) + " tokens in " +
           std::to_string(windows.size()) + " windows");
  for (const Tensor& tensor : file.tensors()) {
    const Tensor* same = own.find_tensor(tensor.name);
    const auto found = same ? sums.find(same->data) : sums.end();
    if (found != sums.end()) weights_[tensor.data] = found->second.weights();
  }
}

const float* Importance::find(const uint8_t* matrix, size_t columns) const {
  const auto found = weights_.find(matrix);
  return found != weights_.end() && found->second.size() == columns ? found->second.data()
                                                                    : nullptr;
}

}  // namespace mote::tool
