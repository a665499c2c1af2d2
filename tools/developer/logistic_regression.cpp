#include "tools/developer/logistic_regression.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace mote::tool {
namespace {

using Vector = std::vector<double>;

// y += a * x
void add_scaled(double a, const double* x, double* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// y += the sum of a[k] * x[k] over four, x[k] being `step` apart: y is loaded and stored once.
void add_four(const double (&a)[4], const double* x, size_t step, double* y, size_t n) {
  for (size_t i = 0; i < n; ++i)
    y[i] += a[0] * x[i] + a[1] * x[step + i] + a[2] * x[2 * step + i] + a[3] * x[3 * step + i];
}

// Adds the row's share of the logits: x W.
void add_product(const FeatureRows& x, size_t row, const double* weights, size_t classes,
                 double* logits) {
  if (x.sparse) {
    for (size_t i = x.starts[row]; i < x.starts[row + 1]; ++i)
      add_scaled(x.values[i], weights + x.columns[i] * classes, logits, classes);
    return;
  }
  const float* values = x.values.data() + row * x.features;
  size_t f = 0;
  for (; f + 4 <= x.features; f += 4)
    add_four({values[f], values[f + 1], values[f + 2], values[f + 3]}, weights + f * classes,
             classes, logits, classes);
  for (; f < x.features; ++f) add_scaled(values[f], weights + f * classes, logits, classes);
}

// Adds to the gradient [features][classes] the rows' outer products of features and derivatives by
// the logits, `derivatives` [count][classes].
void add_outer_products(const FeatureRows& x, const size_t* rows, size_t count,
                        const double* derivatives, size_t classes, double* gradient) {
  if (!x.sparse && count == 4) {
    const float* values[4];
    for (size_t k = 0; k < 4; ++k) values[k] = x.values.data() + rows[k] * x.features;
    for (size_t f = 0; f < x.features; ++f)
      add_four({values[0][f], values[1][f], values[2][f], values[3][f]}, derivatives, classes,
               gradient + f * classes, classes);
    return;
  }
  for (size_t k = 0; k < count; ++k, derivatives += classes) {
    if (x.sparse) {
      for (size_t i = x.starts[rows[k]]; i < x.starts[rows[k] + 1]; ++i)
        add_scaled(x.values[i], derivatives, gradient + x.columns[i] * classes, classes);
    } else {
      for (size_t f = 0; f < x.features; ++f)
        add_scaled(x.values[rows[k] * x.features + f], derivatives, gradient + f * classes,
                   classes);
    }
  }
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double largest(const Vector& a) {
  double most = 0;
  for (const double value : a) most = std::max(most, std::fabs(value));
  return most;
}

double weight_of(const LogisticProblem& problem, uint32_t label) {
  return problem.class_weights.empty() ? 1.0 : problem.class_weights[label];
}

// The cost of a row; its logits become the derivatives of the cost by them.
double row_loss(const LogisticProblem& problem, uint32_t label, double* logits) {
  const size_t classes = problem.classes;
  const double weight = weight_of(problem, label), own = logits[label];
  const double most = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (size_t c = 0; c < classes; ++c) sum += logits[c] = std::exp(logits[c] - most);
  for (size_t c = 0; c < classes; ++c) logits[c] *= weight / sum;
  logits[label] -= weight;
  return weight * (std::log(sum) + most - own);
}

// Steps and changes of the gradient that L-BFGS remembers: they stand for the inverse Hessian.
class History {
 public:
  void add(Vector step, Vector change) {
    const double product = dot(step, change);
    if (!(product > 1e-12 * dot(change, change))) return;  // no curvature that can be trusted
    if (pairs_.size() == kPairs) pairs_.pop_front();
    pairs_.push_back({std::move(step), std::move(change), product});
  }
  void clear() { pairs_.clear(); }
  bool empty() const { return pairs_.empty(); }

  // Minus the inverse Hessian times the gradient: the two loops of Algorithm 7.4.
  Vector direction(const Vector& gradient) const {
    Vector q = gradient;
    Vector alpha(pairs_.size());
    for (size_t i = pairs_.size(); i-- > 0;) {
      alpha[i] = dot(pairs_[i].step, q) / pairs_[i].product;
      add_scaled(-alpha[i], pairs_[i].change.data(), q.data(), q.size());
    }
    const Pair* last = pairs_.empty() ? nullptr : &pairs_.back();
    const double scale = last ? last->product / dot(last->change, last->change)
                              : 1.0 / std::max(1.0, std::sqrt(dot(gradient, gradient)));
    for (double& value : q) value *= scale;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const double beta = dot(pairs_[i].change, q) / pairs_[i].product;
      add_scaled(alpha[i] - beta, pairs_[i].step.data(), q.data(), q.size());
    }
    for (double& value : q) value = -value;
    return q;
  }

 private:
  static constexpr size_t kPairs = 10;
  struct Pair {
    Vector step, change;
    double product;
  };
  std::deque<Pair> pairs_;
};

}  // namespace

void LogisticModel::logits(const FeatureRows& x, size_t row, double* out) const {
  std::copy_n(parameters.data() + features * classes, classes, out);
  add_product(x, row, parameters.data(), classes, out);
}

void LogisticModel::divide(double temperature) {
  for (double& parameter : parameters) parameter /= temperature;
}

double logistic_loss(const LogisticProblem& problem, const LogisticModel& model,
                     std::vector<double>* gradient) {
  constexpr size_t kBlock = 4;  // rows
  const size_t classes = problem.classes, weights = model.features * classes;
  gradient->assign(model.parameters.size(), 0.0);
  double loss = 0, square = 0;
  Vector derivatives(kBlock * classes);
  for (size_t first = 0; first < problem.rows.size(); first += kBlock) {
    const size_t* rows = problem.rows.data() + first;
    const size_t count = std::min(kBlock, problem.rows.size() - first);
    for (size_t k = 0; k < count; ++k) {
      double* p = derivatives.data() + k * classes;
      model.logits(problem.x, rows[k], p);
      loss += row_loss(problem, problem.labels[rows[k]], p);
      add_scaled(1.0, p, gradient->data() + weights, classes);
    }
    add_outer_products(problem.x, rows, count, derivatives.data(), classes, gradient->data());
  }
  for (size_t i = 0; i < weights; ++i) {
    square += model.parameters[i] * model.parameters[i];
    (*gradient)[i] += problem.l2 * model.parameters[i];
  }
  return loss + 0.5 * problem.l2 * square;
}

FitReport fit_logistic(const LogisticProblem& problem, const FitOptions& options,
                       LogisticModel* model) {
  double total = 0;
  for (const size_t row : problem.rows) total += weight_of(problem, problem.labels[row]);
  const size_t size = model->parameters.size();
  FitReport report;
  History history;
  Vector gradient, next_gradient;
  LogisticModel next = *model;
  report.loss = logistic_loss(problem, *model, &gradient);
  for (; report.steps < options.max_steps; ++report.steps) {
    report.converged = largest(gradient) <= options.tolerance * total;
    if (report.converged) break;
    const Vector direction = history.direction(gradient);
    const double slope = dot(direction, gradient);
    // Halve the step until the loss falls enough (Armijo). The function is convex, so curvature is
    // positive along every step.
    constexpr double kEnough = 1e-4, kSmallest = 1e-12;
    double step = 1, loss = 0;
    for (; step >= kSmallest; step *= 0.5) {
      next.parameters = model->parameters;
      add_scaled(step, direction.data(), next.parameters.data(), size);
      loss = logistic_loss(problem, next, &next_gradient);
      if (loss <= report.loss + kEnough * step * slope) break;
    }
    if (step < kSmallest) {
      if (history.empty()) break;  // as low as the arithmetic can see
      history.clear();
      continue;
    }
    Vector moved = next.parameters, change = next_gradient;
    add_scaled(-1, model->parameters.data(), moved.data(), size);
    add_scaled(-1, gradient.data(), change.data(), size);
    history.add(std::move(moved), std::move(change));
    std::swap(model->parameters, next.parameters);
    std::swap(gradient, next_gradient);
    report.loss = loss;
  }
  return report;
}

}  // namespace mote::tool
