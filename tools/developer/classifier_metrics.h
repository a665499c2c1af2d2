// How good a classifier's logits are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mote::tool {

// Logits of texts whose labels are known.
struct Predictions {
  size_t classes = 0;
  std::vector<uint32_t> labels;  // [texts], each below classes
  std::vector<double> logits;    // [texts][classes]
};

struct Metrics {
  size_t texts = 0, right = 0;
  double accuracy = 0;
  // The mean of the classes' F1; a class that neither occurs nor is predicted does not count.
  double macro_f1 = 0;
  // Expected calibration error: the mean distance of confidence and accuracy over 15 bins of
  // confidence of equal width, weighed by their texts (Guo et al. 2017, On Calibration of Modern
  // Neural Networks).
  double calibration_error = 0;
  double log_loss = 0;            // mean of -ln p(label)
  std::vector<size_t> confusion;  // [classes of the texts][classes predicted]
};

// Logits are divided by temperature for the probabilities.
Metrics measure(const Predictions& predictions, double temperature = 1);

// The temperature in [0.05, 20] with the least log loss. Few texts that are all right must not make
// the classifier certain: a text's own label counts (n + 1) / (n + 2) of n texts instead of 1
// (Platt 1999, Probabilistic Outputs for Support Vector Machines), which many texts make as good
// as 1.
double calibrate_temperature(const Predictions& predictions);

}  // namespace mote::tool
