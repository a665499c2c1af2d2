// Multinomial logistic regression with an L2 penalty, fitted to its optimum.
//
// Row x of class y costs w(y) * -ln softmax(x W + b)[y]. Minimized is the sum of the rows' costs
// plus l2 / 2 * |W|^2; the bias b has no penalty. This is scikit-learn's LogisticRegression with C
// = 1 / l2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mote::tool {

// A matrix by rows: dense, or with the columns that are not zero.
struct FeatureRows {
  size_t features = 0;
  bool sparse = false;
  std::vector<float> values;      // dense: [rows][features]
  std::vector<uint32_t> columns;  // sparse: of each value, ascending within a row
  std::vector<size_t> starts{0};  // sparse: [rows + 1]
  size_t rows() const {
    return sparse ? starts.size() - 1 : features == 0 ? 0 : values.size() / features;
  }
};

struct LogisticModel {
  size_t features = 0, classes = 0;
  // [features + 1][classes]: W and, as the last row, b.
  std::vector<double> parameters;

  // All zero.
  LogisticModel(size_t feature_count, size_t class_count)
      : features(feature_count),
        classes(class_count),
        parameters((feature_count + 1) * class_count) {}
  // logits: [classes].
  void logits(const FeatureRows& x, size_t row, double* logits) const;
  // Divides logits: of W and b alike.
  void divide(double temperature);
};

struct LogisticProblem {
  const FeatureRows& x;
  const std::vector<uint32_t>& labels;  // of all rows of x, each below classes
  const std::vector<size_t>& rows;      // of x: those that count
  size_t classes;
  std::vector<double> class_weights;  // w: [classes], or empty for ones
  double l2;                          // at least 0
};

// The function to minimize at the model; *gradient gets its derivatives in the order of
// LogisticModel::parameters.
double logistic_loss(const LogisticProblem& problem, const LogisticModel& model,
                     std::vector<double>* gradient);

struct FitOptions {
  // Ends where no derivative, divided by the sum of the rows' weights, is larger.
  double tolerance = 1e-6;
  size_t max_steps = 1000;
};
struct FitReport {
  size_t steps = 0;
  bool converged = false;
  double loss = 0;
};

// Improves the model from where it is, by L-BFGS (Nocedal and Wright, Numerical Optimization, 7.2).
FitReport fit_logistic(const LogisticProblem& problem, const FitOptions& options,
                       LogisticModel* model);

}  // namespace mote::tool
