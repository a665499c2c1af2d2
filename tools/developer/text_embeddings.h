// Vectors of texts by a frozen encoder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/developer/logistic_regression.h"
#include "tools/session.h"

namespace mote::tool {

struct Embedded {
  FeatureRows rows;      // dense, [texts][embedding size], each of length 1
  size_t truncated = 0;  // texts that were longer than the model takes
};

// Throws Failure, also where Ctrl-C ended it. on_progress: texts done.
Embedded embed_texts(const Model& model, const ModelOptions& options,
                     const std::vector<std::string>& texts,
                     const std::function<void(size_t done)>& on_progress);

}  // namespace mote::tool
