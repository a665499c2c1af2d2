// The search behind the encoders: the scales, minimums and levels of one block that come closest to
// its values.
#pragma once

#include <cstdint>

namespace mote::quant {

// What a format can say. Value i of a block, in group g: scale * multiplier[g] * level[i] -
// minimum * minimum_multiplier[g], where scale and minimum are float16.
struct FitShape {
  int groups, group;                          // values per group: 16 or 32
  int least, greatest;                        // levels
  bool iq4;                                   // levels are kIq4Levels, and Fit::level holds which
  int multiplier_least, multiplier_greatest;  // both 1: the format has none
  int minimum_greatest;  // of its multipliers from 0; 0: no minimum; 1: one of either sign
};

struct Fit {
  uint16_t scale, minimum;  // float16 bits
  int multiplier[16], minimum_multiplier[16];
  int8_t level[256];
};

// Finds the Fit with the least sum over i of importance[i] * (x[i] - decoded[i])^2, as far as a
// search of a few dozen trials per group and scale goes; importance null, or nowhere positive and
// finite: all equal. Scales beyond float16 become its greatest value, and levels follow. x: groups
// * group values. False: some are not finite. The result is the same on every machine.
bool fit_block(const FitShape& shape, const float* x, const float* importance, Fit* fit);

}  // namespace mote::quant
