// Words and pairs of neighbouring words, weighed: the baseline that a model has to beat.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/developer/logistic_regression.h"

namespace mote::tool {

// Words of a text: runs of letters and digits of ASCII, in lower case, and bytes beyond ASCII.
std::vector<std::string> words_of(std::string_view text);

// A term (a word, or two neighbours) that occurs n times in a text has the value
// (1 + ln n) * (1 + ln((1 + texts) / (1 + texts with the term))); then the row is brought to
// length 1.
class TfIdf {
 public:
  // Learns the terms of texts[rows] and how many texts have each. At most max_terms: the most
  // frequent ones, of equal ones the first in the order of bytes.
  TfIdf(const std::vector<std::string>& texts, const std::vector<size_t>& rows, size_t max_terms);

  size_t terms() const { return terms_.size(); }
  // Terms that were not learned are left out.
  FeatureRows transform(const std::vector<std::string>& texts) const;

 private:
  struct Term {
    uint32_t column;
    double weight;
  };
  std::unordered_map<std::string, Term> terms_;
};

}  // namespace mote::tool
