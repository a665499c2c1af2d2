#include "tools/developer/tfidf.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace mote::tool {
namespace {

// Each term with how often it occurs.
std::map<std::string, size_t> count_terms(std::string_view text) {
  std::map<std::string, size_t> counts;
  const std::vector<std::string> words = words_of(text);
  for (size_t i = 0; i < words.size(); ++i) {
    ++counts[words[i]];
    if (i > 0) ++counts[words[i - 1] + " " + words[i]];
  }
  return counts;
}

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (char c : text) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    const bool part =
        (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<uint8_t>(c) >= 0x80;
    if (part && !inside) words.emplace_back();
    if (part) words.back() += c;
    inside = part;
  }
  return words;
}

TfIdf::TfIdf(const std::vector<std::string>& texts, const std::vector<size_t>& rows,
             size_t max_terms) {
  std::map<std::string, size_t> texts_with;
  for (const size_t row : rows)
    for (const auto& [term, count] : count_terms(texts[row])) ++texts_with[term];
  std::vector<std::pair<std::string, size_t>> terms(texts_with.begin(), texts_with.end());
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  terms.resize(std::min(terms.size(), max_terms));
  for (const auto& [term, count] : terms)
    terms_.emplace(
        term, Term{uint32_t(terms_.size()), 1 + std::log((1.0 + rows.size()) / (1.0 + count))});
}

FeatureRows TfIdf::transform(const std::vector<std::string>& texts) const {
  FeatureRows rows;
  rows.features = terms_.size();
  rows.sparse = true;
  for (const std::string& text : texts) {
    std::map<uint32_t, double> row;
    double square = 0;
    for (const auto& [term, count] : count_terms(text)) {
      const auto found = terms_.find(term);
      if (found == terms_.end()) continue;
      const double value = (1 + std::log(double(count))) * found->second.weight;
      row[found->second.column] = value;
      square += value * value;
    }
    for (const auto& [column, value] : row) {
      rows.columns.push_back(column);
      rows.values.push_back(float(value / std::sqrt(square)));
    }
    rows.starts.push_back(rows.values.size());
  }
  return rows;
}

}  // namespace mote::tool
