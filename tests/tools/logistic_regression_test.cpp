// The learner against optima known by hand and those that scikit-learn found.
#include "tools/developer/logistic_regression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tools/developer/train_classifier.h"

namespace mote::tool {
namespace {

std::vector<size_t> first_rows(size_t count) {
  std::vector<size_t> rows(count);
  std::iota(rows.begin(), rows.end(), size_t{0});
  return rows;
}

struct Data {
  FeatureRows x;
  std::vector<uint32_t> labels;
};

// 15 rows, 3 features, classes of 4, 6 and 5 rows.
Data small_data() {
  Data data;
  data.x.features = 3;
  for (uint32_t i = 0; i < 15; ++i) {
    for (uint32_t j = 0; j < 3; ++j)
      data.x.values.push_back(float((7 * i + 3 * j + i * j) % 11) / 11.0f);
    data.labels.push_back((i * i + i / 3) % 3);
  }
  return data;
}

FeatureRows as_sparse(const FeatureRows& dense) {
  FeatureRows rows;
  rows.features = dense.features;
  rows.sparse = true;
  for (size_t i = 0; i < dense.values.size(); ++i) {
    if (dense.values[i] != 0) {
      rows.columns.push_back(uint32_t(i % dense.features));
      rows.values.push_back(dense.values[i]);
    }
    if ((i + 1) % dense.features == 0) rows.starts.push_back(rows.values.size());
  }
  return rows;
}

LogisticModel fit_tightly(const LogisticProblem& problem, FitReport* report) {
  LogisticModel model(problem.x.features, problem.classes);
  FitOptions options;
  options.tolerance = 1e-9;
  *report = fit_logistic(problem, options, &model);
  return model;
}

struct Optimum {
  bool balanced;
  double loss;
  double parameters[12];  // [features + 1][classes]
  double log_p[3];        // of the first row
};
// scikit-learn's LogisticRegression(C=4, tol=1e-12), class_weight None and "balanced".
const Optimum kOptima[] = {{false,
                            15.130200302,
                            {-0.835431, 0.134784, 0.700647, -0.344182, -0.816155, 1.160337,
                             0.302038, -0.305983, 0.003945, 0.199672, 0.631604, -0.831276},
                            {-0.887437, -0.915873, -1.670659}},
                           {true,
                            15.315149198,
                            {-0.871632, 0.202013, 0.669618, -0.360534, -0.777595, 1.13813, 0.358348,
                             -0.272415, -0.085933, 0.400982, 0.380632, -0.781614},
                            {-0.684055, -1.162201, -1.70026}}};

TEST(LogisticRegression, FindsTheOptimumThatScikitLearnFinds) {
  const Data data = small_data();
  const std::vector<size_t> rows = first_rows(15);
  for (const Optimum& optimum : kOptima) {
    for (const bool sparse : {false, true}) {
      const FeatureRows x = sparse ? as_sparse(data.x) : data.x;
      const LogisticProblem problem{
          x, data.labels, rows, 3, class_weights(data.labels, rows, 3, optimum.balanced), 0.25};
      FitReport report;
      const LogisticModel model = fit_tightly(problem, &report);
      EXPECT_TRUE(report.converged);
      EXPECT_NEAR(report.loss, optimum.loss, 1e-7);
      double logits[3], sum = 0;
      model.logits(x, 0, logits);
      for (const double logit : logits) sum += std::exp(logit);
      for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(logits[c] - std::log(sum), optimum.log_p[c], 1e-5);
      for (size_t i = 0; i < 12; ++i)
        EXPECT_NEAR(model.parameters[i], optimum.parameters[i], 1e-4) << i;
    }
  }
}

TEST(LogisticRegression, GradientIsTheDifferenceQuotient) {
  const Data data = small_data();
  const std::vector<size_t> rows = {1, 2, 3, 5, 8, 13};
  const LogisticProblem problem{data.x, data.labels, rows, 3, {0.5, 2, 1.25}, 0.7};
  LogisticModel model(3, 3);
  for (size_t i = 0; i < model.parameters.size(); ++i)
    model.parameters[i] = std::sin(double(3 * i + 1));
  std::vector<double> gradient, ignored;
  logistic_loss(problem, model, &gradient);
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    constexpr double kStep = 1e-5;
    LogisticModel up = model, down = model;
    up.parameters[i] += kStep;
    down.parameters[i] -= kStep;
    const double quotient =
        (logistic_loss(problem, up, &ignored) - logistic_loss(problem, down, &ignored)) /
        (2 * kStep);
    EXPECT_NEAR(gradient[i], quotient, 1e-7) << i;
  }
}

// Features that say nothing: the bias alone makes the classes' frequencies.
TEST(LogisticRegression, BiasLearnsFrequencies) {
  FeatureRows x;
  x.features = 1;
  x.values.assign(10, 0.0f);
  const std::vector<uint32_t> labels = {0, 0, 0, 0, 0, 1, 1, 1, 2, 2};
  const std::vector<size_t> rows = first_rows(10);
  FitReport report;
  const LogisticModel model = fit_tightly({x, labels, rows, 3, {}, 1}, &report);
  double logits[3];
  model.logits(x, 0, logits);
  EXPECT_NEAR(logits[0] - logits[1], std::log(5.0 / 3), 1e-7);
  EXPECT_NEAR(logits[0] - logits[2], std::log(5.0 / 2), 1e-7);
}

// m rows at +1 of class 1 and m at -1 of class 0: W = (-w, w), where the derivative of
// 2 m ln(1 + exp(-2 w)) + l2 w^2 is zero, so l2 w (1 + exp(2 w)) = 2 m. Separable: only the penalty
// keeps w finite.
TEST(LogisticRegression, SeparableDataHasTheOptimumOfThePenalty) {
  constexpr size_t kEach = 20;
  FeatureRows x;
  x.features = 1;
  std::vector<uint32_t> labels;
  for (size_t i = 0; i < 2 * kEach; ++i) {
    x.values.push_back(i % 2 ? 1.0f : -1.0f);
    labels.push_back(i % 2);
  }
  const std::vector<size_t> rows = first_rows(2 * kEach);
  for (const double l2 : {10.0, 1.0, 0.01}) {
    FitReport report;
    const LogisticModel model = fit_tightly({x, labels, rows, 2, {}, l2}, &report);
    EXPECT_TRUE(report.converged);
    const double w = model.parameters[1];
    EXPECT_NEAR(model.parameters[0], -w, 1e-9);
    EXPECT_NEAR(l2 * w * (1 + std::exp(2 * w)), 2.0 * kEach, 1e-4);
    EXPECT_EQ(measure(predict(model, x, labels, rows)).accuracy, 1);
  }
}

TEST(LogisticRegression, AWeightIsAsManyCopies) {
  const Data data = small_data();
  const std::vector<size_t> rows = first_rows(15);
  std::vector<size_t> copies = rows;
  for (const size_t row : rows)
    if (data.labels[row] == 1) copies.insert(copies.end(), {row, row});
  FitReport weighted, copied;
  const LogisticModel a = fit_tightly({data.x, data.labels, rows, 3, {1, 3, 1}, 0.1}, &weighted);
  const LogisticModel b = fit_tightly({data.x, data.labels, copies, 3, {}, 0.1}, &copied);
  EXPECT_NEAR(weighted.loss, copied.loss, 1e-9);
  for (size_t i = 0; i < a.parameters.size(); ++i)
    EXPECT_NEAR(a.parameters[i], b.parameters[i], 1e-5);
}

TEST(LogisticRegression, BalancedWeightsAreTextsByClassesAndTheirTexts) {
  const std::vector<uint32_t> labels = {0, 0, 0, 1, 2, 2};
  const std::vector<double> weights = class_weights(labels, first_rows(6), 3, true);
  EXPECT_EQ(weights, (std::vector<double>{6.0 / 9, 6.0 / 3, 6.0 / 6}));
  EXPECT_TRUE(class_weights(labels, first_rows(6), 3, false).empty());
}

}  // namespace
}  // namespace mote::tool
