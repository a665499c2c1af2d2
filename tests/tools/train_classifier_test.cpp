// Splits, the choice of the penalty, calibration and measures; the baseline's features.
#include "tools/developer/train_classifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/developer/tfidf.h"

namespace mote::tool {
namespace {

// Classes around three directions, with noise that makes them overlap.
struct Data {
  FeatureRows x;
  std::vector<uint32_t> labels;
};
Data noisy_data(size_t count) {
  Data data;
  data.x.features = 6;
  uint32_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t label = uint32_t(i % 7 == 0 ? 2 : i % 2);
    data.labels.push_back(label);
    for (uint32_t f = 0; f < 6; ++f) {
      state = state * 1664525u + 1013904223u;
      data.x.values.push_back(float(state >> 8) / float(1 << 24) + (f == label ? 0.4f : 0.0f));
    }
  }
  return data;
}

TEST(TrainClassifier, SplitsEveryClassAlike) {
  std::vector<uint32_t> labels;
  for (uint32_t c = 0; c < 3; ++c) labels.insert(labels.end(), c == 0 ? 50 : c == 1 ? 10 : 3, c);
  const Split split = stratified_split(labels, 3, 0.2, 1);
  size_t validation[3] = {};
  for (const size_t row : split.validation) ++validation[labels[row]];
  EXPECT_EQ(validation[0], 10u);
  EXPECT_EQ(validation[1], 2u);
  EXPECT_EQ(validation[2], 1u);
  std::vector<size_t> all = split.training;
  all.insert(all.end(), split.validation.begin(), split.validation.end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < labels.size(); ++i) ASSERT_EQ(all[i], i);
  EXPECT_EQ(all.size(), labels.size());

  EXPECT_EQ(stratified_split(labels, 3, 0.2, 1).validation, split.validation);
  EXPECT_NE(stratified_split(labels, 3, 0.2, 2).validation, split.validation);
  // However much is asked for, two of a class stay to be trained on.
  EXPECT_EQ(stratified_split(labels, 3, 0.9, 1).validation.size(), 45u + 8u + 1u);
  EXPECT_EQ(stratified_split(labels, 3, 0, 1).training.size(), labels.size());
}

TEST(TrainClassifier, ThreadsDoNotChangeABit) {
  const Data data = noisy_data(90);
  for (const double validate : {0.2, 0.0}) {
    const Split split = stratified_split(data.labels, 3, validate, 1);
    TrainOptions options;
    options.threads = 1;
    const TrainedHead one = train_head(data.x, data.labels, 3, split, options);
    options.threads = 4;
    const TrainedHead four = train_head(data.x, data.labels, 3, split, options);
    EXPECT_EQ(one.validation.logits, four.validation.logits);
    EXPECT_EQ(one.l2, four.l2);
    EXPECT_EQ(one.temperature, four.temperature);
    EXPECT_EQ(one.validation.labels.size(), validate > 0 ? split.validation.size() : 90u);
  }
}

TEST(TrainClassifier, TakesThePenaltyWithTheLeastLossAndStopsBehindIt) {
  const Data data = noisy_data(120);
  const Split split = stratified_split(data.labels, 3, 0.25, 1);
  const TrainedHead head = train_head(data.x, data.labels, 3, split, {});
  ASSERT_GE(head.trials.size(), 2u);
  const auto best =
      std::min_element(head.trials.begin(), head.trials.end(),
                       [](const Trial& a, const Trial& b) { return a.log_loss < b.log_loss; });
  EXPECT_EQ(head.l2, best->l2);
  // Either the last penalties were worse, or there were no more.
  EXPECT_TRUE(best + 1 != head.trials.end() || head.l2 == 0.001);
  for (size_t i = 1; i < head.trials.size(); ++i)
    EXPECT_LT(head.trials[i].l2, head.trials[i - 1].l2);
  EXPECT_GT(measure(head.validation).accuracy, 0.6);  // chance: about 0.43

  TrainOptions given;
  given.l2 = 0.5;
  const TrainedHead fixed = train_head(data.x, data.labels, 3, split, given);
  EXPECT_EQ(fixed.l2, 0.5);
  EXPECT_TRUE(fixed.trials.empty());
}

// Two classes at logits (0, z), right with the probability that z would have at temperature 2.
TEST(ClassifierMetrics, TemperatureIsThatOfTheData) {
  Predictions predictions;
  predictions.classes = 2;
  for (const int z : {-4, 4})
    for (size_t i = 0; i < 1000; ++i) {
      predictions.logits.insert(predictions.logits.end(), {0.0, double(z)});
      const bool one = double(i) < 1000 / (1 + std::exp(-z / 2.0));
      predictions.labels.push_back(one);
    }
  const double temperature = calibrate_temperature(predictions);
  EXPECT_NEAR(temperature, 2, 0.01);
  const Metrics before = measure(predictions), after = measure(predictions, temperature);
  EXPECT_NEAR(before.calibration_error, 1 / (1 + std::exp(-4.0)) - 1 / (1 + std::exp(-2.0)), 1e-3);
  EXPECT_LT(after.calibration_error, 1e-3);
  EXPECT_LT(after.log_loss, before.log_loss);
  EXPECT_EQ(after.accuracy, before.accuracy);
}

// All right with logits apart by 1: as certain as n texts allow, (n + 1) / (n + 2).
TEST(ClassifierMetrics, FewTextsMakeNothingCertain) {
  for (const size_t texts : {2u, 10u, 200u}) {
    Predictions right;
    right.classes = 2;
    for (size_t i = 0; i < texts; ++i) {
      right.labels.push_back(0);
      right.logits.insert(right.logits.end(), {1.0, 0.0});
    }
    const double temperature = calibrate_temperature(right);
    EXPECT_NEAR(1 / (1 + std::exp(-1 / temperature)), double(texts + 1) / double(texts + 2), 1e-6);
  }
}

TEST(ClassifierMetrics, TemperatureStaysInItsRange) {
  Predictions right{2, {0, 1}, {.01, 0, 0, .01}}, wrong{2, {1, 0}, {1, 0, 0, 1}};
  EXPECT_NEAR(calibrate_temperature(right), 0.05, 1e-6);
  EXPECT_NEAR(calibrate_temperature(wrong), 20, 1e-6);
}

// Labels 0 0 0 1 1 2, predicted 0 0 1 1 2 2; class 3 never occurs.
TEST(ClassifierMetrics, AccuracyMacroF1AndConfusion) {
  Predictions predictions;
  predictions.classes = 4;
  predictions.labels = {0, 0, 0, 1, 1, 2};
  for (const size_t best : {0, 0, 1, 1, 2, 2})
    for (size_t c = 0; c < 4; ++c) predictions.logits.push_back(c == best ? 1 : 0);
  const Metrics metrics = measure(predictions);
  EXPECT_EQ(metrics.right, 4u);
  EXPECT_DOUBLE_EQ(metrics.accuracy, 4.0 / 6);
  // F1: 2*2/(3+2), 2*1/(2+2), 2*1/(1+2)
  EXPECT_DOUBLE_EQ(metrics.macro_f1, (0.8 + 0.5 + 2.0 / 3) / 3);
  EXPECT_EQ(metrics.confusion,
            (std::vector<size_t>{2, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0}));
  const double confidence = std::exp(1.0) / (std::exp(1.0) + 3);
  EXPECT_NEAR(metrics.calibration_error, std::fabs(4.0 / 6 - confidence), 1e-12);
}

TEST(TfIdf, WordsAreInLowerCaseAndPairsCount) {
  EXPECT_EQ(words_of("It's 7:30, na\xc3\xafve  A_b"),
            (std::vector<std::string>{"it", "s", "7", "30", "na\xc3\xafve", "a", "b"}));
  EXPECT_TRUE(words_of(" .,! ").empty());
}

TEST(TfIdf, WeighsRareTermsMoreAndRowsHaveLengthOne) {
  const std::vector<std::string> texts = {"a b", "a a c", "new words", "b a"};
  // Learned of the first two: a and b, c, "a b", "a a", "a c".
  const TfIdf tfidf(texts, {0, 1}, 100);
  EXPECT_EQ(tfidf.terms(), 6u);
  const FeatureRows rows = tfidf.transform(texts);
  ASSERT_EQ(rows.rows(), 4u);
  ASSERT_EQ(rows.starts, (std::vector<size_t>{0, 3, 7, 7, 9}));
  // a is in both texts: 1 + ln(3 / 3); the others in one: 1 + ln(3 / 2).
  const double rare = 1 + std::log(1.5), often = 1 + std::log(2.0);
  const double first = std::sqrt(1 + 2 * rare * rare);
  EXPECT_NEAR(rows.values[0], 1 / first, 1e-6);
  EXPECT_NEAR(rows.values[1], rare / first, 1e-6);
  const double second = std::sqrt(often * often + 3 * rare * rare);
  EXPECT_NEAR(rows.values[3], often / second, 1e-6);
  EXPECT_EQ(rows.columns[0], 0u);  // the most frequent term is the first
  EXPECT_EQ(TfIdf(texts, {0, 1}, 1).terms(), 1u);
}

}  // namespace
}  // namespace mote::tool
