#include "tools/developer/train_classifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

namespace mote::tool {
namespace {

constexpr size_t kFolds = 5;
constexpr double kPenalties[] = {10, 3, 1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001};
constexpr size_t kPatience = 1;  // penalties in a row that may be worse than the best

// SplitMix64 (Steele et al. 2014, Fast Splittable Pseudorandom Number Generators): the same on
// every system, unlike the standard library's distributions.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

// Rows of each class, in an order that the seed gives.
std::vector<std::vector<size_t>> shuffled_by_class(const std::vector<uint32_t>& labels,
                                                   const std::vector<size_t>& rows, size_t classes,
                                                   uint64_t seed) {
  std::vector<std::vector<size_t>> by_class(classes);
  for (const size_t row : rows) by_class[labels[row]].push_back(row);
  Random random(seed);
  for (std::vector<size_t>& of_class : by_class)
    for (size_t i = of_class.size(); i > 1; --i)
      std::swap(of_class[i - 1], of_class[random.next() % i]);
  return by_class;
}

// Calls work(i) for i < count on up to `threads` threads.
void parallel(size_t count, uint32_t threads, const std::function<void(size_t)>& work) {
  const size_t used = std::max<size_t>(1, std::min<size_t>(threads, count));
  std::vector<std::thread> others;
  const auto run = [&](size_t thread) {
    for (size_t i = thread; i < count; i += used) work(i);
  };
  for (size_t thread = 1; thread < used; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
}

// One fold of cross-validation: what it trains on, what it is measured on, its model on the way.
struct Fold {
  std::vector<size_t> training, held_out;
  LogisticModel model;
};

std::vector<Fold> make_folds(const std::vector<uint32_t>& labels, const std::vector<size_t>& rows,
                             size_t features, size_t classes, uint64_t seed) {
  const auto by_class = shuffled_by_class(labels, rows, classes, seed);
  size_t count = kFolds;
  for (const std::vector<size_t>& of_class : by_class) count = std::min(count, of_class.size());
  count = std::max<size_t>(count, 2);
  std::vector<size_t> fold_of(labels.size());
  size_t next = 0;  // classes go on where the one before ended, so that folds are of equal size
  for (const std::vector<size_t>& of_class : by_class)
    for (const size_t row : of_class) fold_of[row] = next++ % count;
  std::vector<Fold> folds(count, Fold{{}, {}, LogisticModel(features, classes)});
  for (size_t f = 0; f < count; ++f)
    for (const size_t row : rows)
      (fold_of[row] == f ? folds[f].held_out : folds[f].training).push_back(row);
  return folds;
}

struct CrossValidation {
  const FeatureRows& x;
  const std::vector<uint32_t>& labels;
  const std::vector<size_t>& rows;
  const TrainOptions& options;
  std::vector<Fold> folds;

  // Logits of each row by the fold that did not see it, in the order of rows.
  Predictions run(double l2, size_t classes) {
    std::vector<double> logits(labels.size() * classes);
    parallel(folds.size(), options.threads, [&](size_t f) {
      Fold& fold = folds[f];
      const LogisticProblem problem{x,
                                    labels,
                                    fold.training,
                                    classes,
                                    class_weights(labels, fold.training, classes, options.balanced),
                                    l2};
      FitOptions fit;
      fit.tolerance = 1e-4;
      fit_logistic(problem, fit, &fold.model);
      for (const size_t row : fold.held_out)
        fold.model.logits(x, row, logits.data() + row * classes);
    });
    Predictions predictions;
    predictions.classes = classes;
    for (const size_t row : rows) {
      predictions.labels.push_back(labels[row]);
      predictions.logits.insert(predictions.logits.end(), logits.data() + row * classes,
                                logits.data() + (row + 1) * classes);
    }
    return predictions;
  }
};

// Fills l2 and trials; *out_of_fold gets the predictions with the chosen one.
void choose_penalty(const FeatureRows& x, const std::vector<uint32_t>& labels, size_t classes,
                    const std::vector<size_t>& rows, const TrainOptions& options, TrainedHead* head,
                    Predictions* out_of_fold) {
  CrossValidation validation{x, labels, rows, options,
                             make_folds(labels, rows, x.features, classes, options.seed + 1)};
  const double* const first = options.l2 > 0 ? &options.l2 : kPenalties;
  const size_t count = options.l2 > 0 ? 1 : std::size(kPenalties);
  size_t best = 0;
  for (size_t i = 0; i < count && i <= best + kPatience; ++i) {
    Predictions predictions = validation.run(first[i], classes);
    const Metrics metrics = measure(predictions, calibrate_temperature(predictions));
    head->trials.push_back({first[i], metrics.log_loss, metrics.accuracy});
    if (i == 0 || metrics.log_loss < head->trials[best].log_loss) {
      best = i;
      *out_of_fold = std::move(predictions);
    }
    if (options.on_progress) options.on_progress(i + 1);
  }
  head->l2 = first[best];
}

}  // namespace

Split stratified_split(const std::vector<uint32_t>& labels, size_t classes, double fraction,
                       uint64_t seed) {
  std::vector<size_t> all(labels.size());
  std::iota(all.begin(), all.end(), size_t{0});
  Split split;
  if (fraction <= 0) {
    split.training = std::move(all);
    return split;
  }
  for (const std::vector<size_t>& rows : shuffled_by_class(labels, all, classes, seed)) {
    const size_t wished = size_t(std::lround(fraction * double(rows.size())));
    const size_t most = rows.size() > 2 ? rows.size() - 2 : 0;
    const size_t count = std::min(std::max<size_t>(wished, 1), most);
    split.validation.insert(split.validation.end(), rows.begin(), rows.begin() + count);
    split.training.insert(split.training.end(), rows.begin() + count, rows.end());
  }
  std::sort(split.training.begin(), split.training.end());
  std::sort(split.validation.begin(), split.validation.end());
  return split;
}

std::vector<double> class_weights(const std::vector<uint32_t>& labels,
                                  const std::vector<size_t>& rows, size_t classes, bool balanced) {
  if (!balanced) return {};
  std::vector<double> weights(classes);
  for (const size_t row : rows) ++weights[labels[row]];
  for (double& weight : weights)
    if (weight > 0) weight = double(rows.size()) / (double(classes) * weight);
  return weights;
}

LogisticModel fit_rows(const FeatureRows& x, const std::vector<uint32_t>& labels, size_t classes,
                       const std::vector<size_t>& rows, double l2, bool balanced) {
  LogisticModel model(x.features, classes);
  fit_logistic({x, labels, rows, classes, class_weights(labels, rows, classes, balanced), l2}, {},
               &model);
  return model;
}

Predictions predict(const LogisticModel& model, const FeatureRows& x,
                    const std::vector<uint32_t>& labels, const std::vector<size_t>& rows) {
  Predictions predictions;
  predictions.classes = model.classes;
  predictions.logits.resize(rows.size() * model.classes);
  for (size_t i = 0; i < rows.size(); ++i) {
    predictions.labels.push_back(labels[rows[i]]);
    model.logits(x, rows[i], predictions.logits.data() + i * model.classes);
  }
  return predictions;
}

TrainedHead train_head(const FeatureRows& x, const std::vector<uint32_t>& labels, size_t classes,
                       const Split& split, const TrainOptions& options) {
  TrainedHead head;
  head.l2 = options.l2;
  Predictions out_of_fold;
  if (options.l2 <= 0 || split.validation.empty())
    choose_penalty(x, labels, classes, split.training, options, &head, &out_of_fold);
  head.validation =
      split.validation.empty()
          ? std::move(out_of_fold)
          : predict(fit_rows(x, labels, classes, split.training, head.l2, options.balanced), x,
                    labels, split.validation);
  head.temperature = calibrate_temperature(head.validation);
  return head;
}

}  // namespace mote::tool
