// How much each input of each matrix matters, from what a model computes while it reads a text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/gguf.h"

namespace mote::tool {

class Importance {
 public:
  // Runs the model over the text, in windows of 512 tokens. model and file are the same file: the
  // latter's tensors are what find() is asked for. Throws Failure where the model cannot read text.
  Importance(const std::string& model, const std::string& text, uint32_t threads,
             const GgufFile& file);

  // Mean squares of the inputs of the matrix whose data is this, [columns], none 0. Null: the text
  // did not come by it.
  const float* find(const uint8_t* matrix, size_t columns) const;

 private:
  std::map<const uint8_t*, std::vector<float>> weights_;
};

}  // namespace mote::tool
