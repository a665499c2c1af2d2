// From features and labels to a calibrated classifier: what is trained on what, and how strong the
// penalty is. The same for embeddings and for the baseline. Same bits for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tools/developer/classifier_metrics.h"
#include "tools/developer/logistic_regression.h"

namespace mote::tool {

struct Split {
  std::vector<size_t> training, validation;  // rows, ascending
};
// Of each class about this fraction for validation, at least 1 text, and at least 2 for training; a
// fraction of 0: all for training. Which ones: by the seed. Every class has at least 3 texts, or 2.
Split stratified_split(const std::vector<uint32_t>& labels, size_t classes, double fraction,
                       uint64_t seed);

struct TrainOptions {
  double l2 = 0;          // of the penalty; 0: chosen
  bool balanced = false;  // a class's weight is texts / (classes * texts of the class)
  uint32_t threads = 1;
  uint64_t seed = 0;
  // Called when `done` penalties were tried.
  std::function<void(size_t done)> on_progress;
};

// The weights of logistic_regression.h for these rows; empty unless balanced.
std::vector<double> class_weights(const std::vector<uint32_t>& labels,
                                  const std::vector<size_t>& rows, size_t classes, bool balanced);

// One strength of the penalty in cross-validation; the log loss is that after calibration.
struct Trial {
  double l2, log_loss, accuracy;
};

struct TrainedHead {
  double l2 = 0;
  double temperature = 1;
  std::vector<Trial> trials;  // of cross-validation, from the strongest penalty down
  // Of the validation texts; where there are none, of every training text by a model that did not
  // see it. In the order of the rows.
  Predictions validation;
};

// Chooses the penalty by stratified cross-validation over the training rows (5 folds, or as many as
// the smallest class has texts): from 10 down by factors of about 3, each fit starting from the one
// before, until the calibrated log loss rises or 0.001 is reached. Fits the training rows,
// predicts the validation rows and calibrates the temperature on them.
TrainedHead train_head(const FeatureRows& x, const std::vector<uint32_t>& labels, size_t classes,
                       const Split& split, const TrainOptions& options);

// The model of these rows, from zero.
LogisticModel fit_rows(const FeatureRows& x, const std::vector<uint32_t>& labels, size_t classes,
                       const std::vector<size_t>& rows, double l2, bool balanced);

Predictions predict(const LogisticModel& model, const FeatureRows& x,
                    const std::vector<uint32_t>& labels, const std::vector<size_t>& rows);

}  // namespace mote::tool
