// Errors of layers as a picture.
#pragma once

#include <string>
#include <vector>

namespace mote::tool {

struct LayerError {
  std::string name;
  double log10_relative_l2 = 0;  // of the whole tensor; -20 where it is equal
  double max_abs = 0;
  double relative_max = 0;  // max |a - b| / max |b|
};

// An SVG bar chart of log10_relative_l2. Throws Failure.
void write_error_plot(const std::string& path, const std::vector<LayerError>& layers);

}  // namespace mote::tool
