// mote compare: runs a reference's inputs and reports the error of each layer and of the logits.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/commands.h"
#include "tools/developer/encoder_run.h"
#include "tools/developer/error_plot.h"
#include "tools/developer/forward_run.h"

namespace mote::tool {
namespace {

struct Options {
  RunOptions run;
  std::string reference, plot;
  double tolerance = 0;
};

// Errors of one tensor against its reference, gathered row by row.
class Comparison {
 public:
  Comparison(std::string name, SafetensorsReader& reference, const std::vector<uint64_t>& shape)
      : name_(std::move(name)), width_(shape.size() > 1 ? shape[1] : 1) {
    const SafetensorsEntry& entry = reference.at(name_);
    if (entry.shape != shape) {
      SafetensorsEntry expected = entry;
      expected.shape = shape;
      throw Failure(reference.path() + ": tensor " + name_ + ": expected " + expected.describe() +
                    ", found " + entry.describe());
    }
    reference_ = reference.read_floats(name_);
    for (float value : reference_) max_reference_ = std::max(max_reference_, std::fabs(value));
  }

  void add(uint64_t row, uint64_t rows, const float* values) {
    const float* expected = reference_.data() + row * width_;
    for (uint64_t i = 0; i < rows * width_; ++i) {
      const double difference = double(values[i]) - double(expected[i]);
      if (std::isnan(difference)) broken_ = true;
      squares_ += difference * difference;
      reference_squares_ += double(expected[i]) * double(expected[i]);
      max_difference_ = std::max(max_difference_, std::fabs(difference));
    }
  }

  LayerError result() const {
    LayerError error;
    error.name = name_;
    error.max_abs = broken_ ? NAN : max_difference_;
    error.relative_max = broken_ ? NAN : max_difference_ / max_reference_;
    // 20 digits stand for "equal".
    const double relative = std::sqrt(squares_ / reference_squares_);
    error.log10_relative_l2 = broken_ ? NAN : std::max(std::log10(relative), -20.0);
    return error;
  }

 private:
  std::string name_;
  uint64_t width_;
  std::vector<float> reference_;
  float max_reference_ = 0;
  double squares_ = 0, reference_squares_ = 0, max_difference_ = 0;
  bool broken_ = false;
};

struct Greedy {
  size_t expected = 0, equal = 0;  // equal: before the first difference
};

struct Report {
  std::vector<LayerError> layers;
  Greedy greedy;
};

Greedy compare_greedy(ForwardRun& forward, SafetensorsReader& reference, const Sequence& prompt) {
  Greedy greedy;
  const std::vector<int64_t> expected = reference.read_integers("greedy");
  greedy.expected = expected.size();
  const Sequence found = forward.greedy(prompt, expected.size());
  while (greedy.equal < expected.size() && found[greedy.equal] == expected[greedy.equal])
    ++greedy.equal;
  return greedy;
}

// All that the model gives and the reference has; what only the reference has is a Failure.
Report compare_encoder(const Options& o, const Model& model, SafetensorsReader& reference,
                       const std::vector<Sequence>& sequences) {
  const std::vector<NamedTensor> tensors =
      run_encoder(model, o.run, sequences, read_token_types(reference, sequences), true);
  Report report;
  std::vector<std::string> inputs = {"input_ids", "attention_mask", "token_type_ids", "lengths"};
  for (const NamedTensor& tensor : tensors) {
    if (!reference.find(tensor.name)) continue;
    Comparison comparison(tensor.name, reference, tensor.shape);
    comparison.add(0, tensor.shape[0], tensor.values.data());
    report.layers.push_back(comparison.result());
    inputs.push_back(tensor.name);
  }
  for (const auto& [name, entry] : reference.entries())
    if (std::find(inputs.begin(), inputs.end(), name) == inputs.end())
      throw Failure(reference.path() + ": tensor " + name + ": the model gives none");
  return report;
}

Report compare(const Options& o) {
  SafetensorsReader reference(o.reference);
  const std::vector<Sequence> sequences = read_sequences(reference);
  const Model model(o.run.model);
  model.need(MOTE_TASK_GENERATE | MOTE_TASK_EMBED, "weights to run");
  if (is_encoder(model)) return compare_encoder(o, model, reference, sequences);
  const bool greedy = reference.find("greedy") != nullptr;
  uint64_t rows = 0, longest = 0;
  for (const Sequence& sequence : sequences) {
    rows += sequence.size();
    longest = std::max<uint64_t>(longest, sequence.size());
  }
  if (greedy) longest = std::max(longest, sequences[0].size() + reference.at("greedy").values());
  ForwardRun forward(model, o.run, longest);
  const Spec& spec = forward.spec();
  std::vector<Comparison> layers;
  for (uint32_t layer = 0; layer <= spec.layers; ++layer)
    layers.emplace_back("hidden_states_" + std::to_string(layer), reference,
                        std::vector<uint64_t>{rows, spec.hidden});
  layers.emplace_back("logits", reference, std::vector<uint64_t>{rows, spec.vocabulary});
  uint64_t first = 0;
  RunSink sink;
  sink.hidden = [&](uint32_t layer, size_t position, size_t tokens, const float* values) {
    layers[layer].add(first + position, tokens, values);
  };
  sink.logits = [&](size_t position, size_t tokens, const float* values) {
    layers.back().add(first + position, tokens, values);
  };
  for (const Sequence& sequence : sequences) {
    forward.run(sequence, sink);
    first += sequence.size();
  }
  Report report;
  for (const Comparison& layer : layers) report.layers.push_back(layer.result());
  if (greedy) report.greedy = compare_greedy(forward, reference, sequences[0]);
  return report;
}

void print_report(const Report& report, bool json) {
  if (json) {
    Json layers = Json::array();
    for (const LayerError& layer : report.layers)
      layers.push_back({{"name", layer.name},
                        {"log10_relative_l2", layer.log10_relative_l2},
                        {"max_abs", layer.max_abs},
                        {"relative_max", layer.relative_max}});
    Json object = {{"layers", layers}};
    if (report.greedy.expected)
      object["greedy"] = {{"expected", report.greedy.expected}, {"equal", report.greedy.equal}};
    return print_json(object);
  }
  print("name                log10 relative L2     max abs  max abs / max\n");
  char row[160];
  for (const LayerError& layer : report.layers) {
    std::snprintf(row, sizeof row, "%-19s %17.2f %11.3g %14.3g\n", layer.name.c_str(),
                  layer.log10_relative_l2, layer.max_abs, layer.relative_max);
    print(row);
  }
  if (report.greedy.expected)
    print("greedy: " + std::to_string(report.greedy.equal) + " of " +
          std::to_string(report.greedy.expected) + " tokens equal\n");
}

// What is beyond the tolerance, or an empty text.
std::string excess(const Report& report, double tolerance) {
  for (const LayerError& layer : report.layers)
    if (!(layer.relative_max <= tolerance)) {
      char text[200];
      std::snprintf(text, sizeof text,
                    "%s: expected errors up to %g of the largest value, found %g",
                    layer.name.c_str(), tolerance, layer.relative_max);
      return text;
    }
  if (report.greedy.equal < report.greedy.expected)
    return "greedy: token " + std::to_string(report.greedy.equal) + " differs";
  return "";
}

}  // namespace

int run_compare(const Arguments& arguments) {
  CommandLine line("compare", "Runs a reference's inputs and reports the error layer by layer.");
  Options o;
  line.app.add_option("-m,--model", o.run.model, "the model, a GGUF file")->required();
  line.app
      .add_option("--reference", o.reference,
                  "safetensors with input_ids, hidden_states_... and logits")
      ->required();
  line.app.add_option("--tolerance", o.tolerance,
                      "exit status 1 if an error is above this part of the largest value, or a "
                      "greedy token differs");
  line.app.add_option("--plot", o.plot, "draw the errors to this SVG file");
  line.app
      .add_option("--kv", o.run.kv,
                  "the cache's type: f16, q8_0, f32 (default for float files: f32, else f16)")
      ->check(one_of({"f16", "q8_0", "f32"}));
  line.app.add_option("--chunk", o.run.chunk, "tokens in one pass (default 256)")
      ->check(within(1, 1 << 20));
  line.app.add_option("-t,--threads", o.run.threads, "threads")->check(within(1, 256));
  line.add_json();
  if (!line.parse(arguments)) return 0;
  const Report report = compare(o);
  if (!o.plot.empty()) write_error_plot(o.plot, report.layers);
  print_report(report, line.json);
  if (line.app.count("--tolerance") == 0) return 0;
  const std::string fault = excess(report, o.tolerance);
  if (!fault.empty()) complain(fault);
  return fault.empty() ? 0 : 1;
}

}  // namespace mote::tool
