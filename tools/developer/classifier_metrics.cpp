#include "tools/developer/classifier_metrics.h"

#include <algorithm>
#include <cmath>

namespace mote::tool {
namespace {

// Softmax of scale * logits; returns -ln of the label's probability.
double softmax(const double* logits, size_t classes, double scale, uint32_t label, double* p) {
  const double most = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (size_t c = 0; c < classes; ++c) sum += p[c] = std::exp(scale * (logits[c] - most));
  for (size_t c = 0; c < classes; ++c) p[c] /= sum;
  return std::log(sum) - scale * (logits[label] - most);
}

double macro_f1(const std::vector<size_t>& confusion, size_t classes) {
  double sum = 0;
  size_t counted = 0;
  for (size_t c = 0; c < classes; ++c) {
    size_t occurs = 0, predicted = 0;
    for (size_t other = 0; other < classes; ++other) {
      occurs += confusion[c * classes + other];
      predicted += confusion[other * classes + c];
    }
    if (occurs + predicted == 0) continue;
    sum += 2.0 * double(confusion[c * classes + c]) / double(occurs + predicted);
    ++counted;
  }
  return counted ? sum / double(counted) : 0;
}

}  // namespace

Metrics measure(const Predictions& predictions, double temperature) {
  constexpr size_t kBins = 15;
  struct Bin {
    size_t right = 0;
    double confidence = 0;
  } bins[kBins];
  const size_t classes = predictions.classes;
  Metrics metrics;
  metrics.texts = predictions.labels.size();
  metrics.confusion.assign(classes * classes, 0);
  std::vector<double> p(classes);
  for (size_t i = 0; i < metrics.texts; ++i) {
    const uint32_t label = predictions.labels[i];
    const double* logits = predictions.logits.data() + i * classes;
    metrics.log_loss += softmax(logits, classes, 1 / temperature, label, p.data());
    const size_t best = size_t(std::max_element(logits, logits + classes) - logits);
    ++metrics.confusion[label * classes + best];
    metrics.right += best == label;
    Bin& bin = bins[std::min(kBins - 1, size_t(p[best] * kBins))];
    bin.right += best == label;
    bin.confidence += p[best];
  }
  if (metrics.texts == 0) return metrics;
  const double count = double(metrics.texts);
  for (const Bin& bin : bins)
    metrics.calibration_error += std::fabs(double(bin.right) - bin.confidence) / count;
  metrics.log_loss /= count;
  metrics.accuracy = double(metrics.right) / count;
  metrics.macro_f1 = macro_f1(metrics.confusion, classes);
  return metrics;
}

double calibrate_temperature(const Predictions& predictions) {
  // The log loss is convex in 1 / temperature: halve the interval in which its derivative, the sum
  // of expected minus true logit, changes its sign.
  const size_t classes = predictions.classes, texts = predictions.labels.size();
  // What another label's target is: 1 / (texts + 2) is shared by all of them.
  const double other = 1.0 / (double(texts + 2) * double(std::max<size_t>(classes, 2) - 1));
  std::vector<double> p(classes);
  double low = 1 / 20.0, high = 1 / 0.05;
  for (int step = 0; step < 60; ++step) {
    const double scale = 0.5 * (low + high);
    double derivative = 0;
    for (size_t i = 0; i < texts; ++i) {
      const double* logits = predictions.logits.data() + i * classes;
      softmax(logits, classes, scale, predictions.labels[i], p.data());
      for (size_t c = 0; c < classes; ++c)
        derivative += (p[c] - other) * (logits[c] - logits[predictions.labels[i]]);
    }
    (derivative < 0 ? low : high) = scale;
  }
  return 2 / (low + high);
}

}  // namespace mote::tool
