// What `mote train` tells of a trained classifier.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/command_line.h"
#include "tools/developer/classifier_metrics.h"

namespace mote::tool {

// The head on the embeddings and the baseline on the same texts.
struct MeasuredPart {
  Metrics uncalibrated, metrics;  // with temperature 1, and with the fitted one
  Metrics baseline;
};

struct TrainReport {
  std::string output;
  std::vector<std::string> labels;
  std::vector<size_t> label_texts;  // of each label
  size_t texts = 0, training_texts = 0, duplicates = 0, truncated = 0;
  bool cross_validated = false;  // there was no validation part
  double l2 = 0, baseline_l2 = 0, temperature = 1;
  size_t baseline_terms = 0;
  MeasuredPart validation;
  std::optional<MeasuredPart> test;
  double embed_seconds = 0, seconds = 0;
};

Json report_json(const TrainReport& report);
std::string report_text(const TrainReport& report);

}  // namespace mote::tool
