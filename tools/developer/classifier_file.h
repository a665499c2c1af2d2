// A classifier as a file: an encoder with a linear head on its pooled embedding.
#pragma once

#include <string>
#include <vector>

#include "tools/developer/logistic_regression.h"

namespace mote::tool {

// Throws Failure where `output` is the encoder's own file or its folder does not exist: known
// before any work.
void check_classifier_output(const std::string& encoder, const std::string& output);

// Writes `output`: keys and tensors of the encoder's file as they are, but for those of a head or
// pooler that it has, and the head: cls.output.weight [classes][features] and cls.output.bias in
// f32, the labels' names, and keys that say that it reads the pooled embedding (`pooling`: mean,
// cls, max or last) brought to length 1. Throws Failure; then no file is left behind, and one that
// was there stays.
void write_classifier(const std::string& encoder, const std::string& output,
                      const std::string& pooling, const std::vector<std::string>& labels,
                      const LogisticModel& head);

}  // namespace mote::tool
