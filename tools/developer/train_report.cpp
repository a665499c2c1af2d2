#include "tools/developer/train_report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace mote::tool {
namespace {

__attribute__((format(printf, 1, 2))) std::string printed(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

Json metrics_json(const Metrics& metrics) {
  return {{"accuracy", metrics.accuracy},
          {"macro_f1", metrics.macro_f1},
          {"log_loss", metrics.log_loss},
          {"calibration_error", metrics.calibration_error}};
}

void add_part(const MeasuredPart& part, size_t classes, Json* json) {
  json->update(metrics_json(part.metrics));
  (*json)["calibration_error_before"] = part.uncalibrated.calibration_error;
  Json rows = Json::array();
  for (size_t c = 0; c < classes; ++c) {
    const auto row = part.metrics.confusion.begin() + ptrdiff_t(c * classes);
    rows.push_back(std::vector<size_t>(row, row + ptrdiff_t(classes)));
  }
  (*json)["confusion"] = std::move(rows);
  (*json)["baseline"] = metrics_json(part.baseline);
}

// Labels cut to a width, padded with spaces; continuation bytes take no room.
std::string column(const std::string& label, size_t width) {
  std::string out;
  size_t characters = 0;
  for (const char c : label) {
    const bool begins = (static_cast<uint8_t>(c) & 0xc0) != 0x80;
    if (begins && characters == width) break;
    characters += begins;
    out += c;
  }
  return out + std::string(width - characters, ' ');
}

// Rows: the texts' labels. Columns: the predicted ones, by number.
std::string confusion_table(const Metrics& metrics, const std::vector<std::string>& labels) {
  constexpr size_t kMostLabels = 32, kLabelWidth = 20;
  const size_t classes = labels.size();
  if (classes > kMostLabels) return "";
  size_t cell = 3;
  for (const size_t count : metrics.confusion)
    cell = std::max(cell, std::to_string(count).size() + 1);
  std::string table = printed("  %-*s", int(kLabelWidth + 3), "label \\ predicted");
  for (size_t c = 0; c < classes; ++c) table += printed("%*zu", int(cell), c + 1);
  table += "\n";
  for (size_t c = 0; c < classes; ++c) {
    table += printed("%3zu ", c + 1) + column(labels[c], kLabelWidth) + " ";
    for (size_t other = 0; other < classes; ++other) {
      const size_t count = metrics.confusion[c * classes + other];
      table += count ? printed("%*zu", int(cell), count) : printed("%*s", int(cell), ".");
    }
    table += "\n";
  }
  return table;
}

std::string part_text(const char* what, const MeasuredPart& part,
                      const std::vector<std::string>& labels) {
  std::string text = printed("\n%s: %zu texts\n", what, part.metrics.texts);
  text += printed("  %-32s %8s %8s %11s\n", "", "accuracy", "macro F1", "calibration");
  const auto row = [&](const char* name, const Metrics& m) {
    text +=
        printed("  %-32s %8.4f %8.4f %11.4f\n", name, m.accuracy, m.macro_f1, m.calibration_error);
  };
  row("encoder and head", part.metrics);
  row("  before calibration", part.uncalibrated);
  row("words and pairs (TF-IDF)", part.baseline);
  return text + "\n" + confusion_table(part.metrics, labels);
}

}  // namespace

Json report_json(const TrainReport& report) {
  Json json;
  json["labels"] = report.labels;
  add_part(report.validation, report.labels.size(), &json);
  json["measured_on"] = report.cross_validated ? "cross-validation" : "validation";
  json["texts"] = report.texts;
  json["training_texts"] = report.training_texts;
  json["validation_texts"] = report.validation.metrics.texts;
  json["label_texts"] = report.label_texts;
  json["duplicates"] = report.duplicates;
  json["truncated"] = report.truncated;
  json["l2"] = report.l2;
  json["temperature"] = report.temperature;
  json["baseline"]["l2"] = report.baseline_l2;
  json["baseline"]["terms"] = report.baseline_terms;
  if (report.test) {
    Json test;
    test["texts"] = report.test->metrics.texts;
    add_part(*report.test, report.labels.size(), &test);
    json["test"] = std::move(test);
  }
  json["output"] = report.output;
  json["embed_seconds"] = report.embed_seconds;
  json["seconds"] = report.seconds;
  return json;
}

std::string report_text(const TrainReport& report) {
  const auto [least, most] =
      std::minmax_element(report.label_texts.begin(), report.label_texts.end());
  std::string text = printed(
      "%zu texts, %zu labels with %zu to %zu texts each; l2 %g, temperature "
      "%.3f\n",
      report.texts, report.labels.size(), *least, *most, report.l2, report.temperature);
  text += part_text(report.cross_validated ? "cross-validation" : "validation", report.validation,
                    report.labels);
  if (report.test) text += part_text("test", *report.test, report.labels);
  return text;
}

}  // namespace mote::tool
