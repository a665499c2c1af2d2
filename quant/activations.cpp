// The oracle of quantized activations.
#include <algorithm>
#include <cmath>
#include <limits>

#include "quant/quant.h"

namespace mote::quant {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

bool all_finite(const float* x) {
  for (int i = 0; i < 32; ++i)
    if (!std::isfinite(x[i])) return false;
  return true;
}

}  // namespace

void quantize_activations(const float* x, size_t columns, int8_t* q, float* scale,
                          float* scaled_sum, int32_t* sum16) {
  for (size_t b = 0; b < columns / 32; ++b) {
    const float* block = x + b * 32;
    float largest = 0.0f;
    for (int i = 0; i < 32; ++i) largest = std::fmax(largest, std::fabs(block[i]));
    const float factor = 127.0f / largest;
    const bool finite = all_finite(block), zero = !std::isfinite(factor);
    int32_t sums[2] = {0, 0};
    for (int i = 0; i < 32; ++i) {
      int level = 0;
      if (finite && !zero) {
        level = static_cast<int>(std::nearbyint(block[i] * factor));
        level = level > 127 ? 127 : level < -127 ? -127 : level;
      }
      q[b * 32 + i] = static_cast<int8_t>(level);
      sums[i / 16] += level;
    }
    scale[b] = !finite ? kNaN : zero ? 0.0f : largest / 127.0f;
    scaled_sum[b] = scale[b] * static_cast<float>(sums[0] + sums[1]);
    sum16[b * 2] = sums[0];
    sum16[b * 2 + 1] = sums[1];
  }
}

namespace {

// The largest magnitude of 4 columns.
float group_maximum(const float* x) {
  float largest = 0.0f;
  for (int i = 0; i < 4; ++i) largest = std::fmax(largest, std::fabs(x[i]));
  return largest;
}

struct BlockOutlier {
  float largest = 0.0f, second = 0.0f;
  size_t group = 0;
  explicit BlockOutlier(const float* x) {
    for (size_t g = 0; g < 8; ++g) {
      const float maximum = group_maximum(x + 4 * g);
      second = std::fmax(second, std::fmin(maximum, largest));
      if (maximum > largest) largest = maximum, group = g;
    }
  }
};

// The block with the largest magnitude, the first of equal ones, but for those that are chosen;
// `blocks` where none is left.
size_t largest_block(const float* x, size_t blocks, const size_t* chosen, size_t count) {
  size_t best = blocks;
  float largest = -1.0f;
  for (size_t b = 0; b < blocks; ++b) {
    if (std::find(chosen, chosen + count, b) != chosen + count) continue;
    const float magnitude = BlockOutlier(x + 32 * b).largest;
    if (magnitude > largest) largest = magnitude, best = b;
  }
  return best;
}

int8_t nearest_level(float value) { return static_cast<int8_t>(std::nearbyint(value)); }

// The levels of an outlier's 4 columns, and their sum; what they leave stays in the block.
float take_outlier(const BlockOutlier& outlier, float* block, int8_t* levels) {
  const float step = outlier.largest / 127.0f, factor = 127.0f / outlier.largest;
  int32_t sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    float& value = block[4 * outlier.group + i];
    levels[i] = nearest_level(value * factor);
    sum += levels[i];
    const float taken = static_cast<float>(levels[i]) * step;
    value -= taken;
  }
  return static_cast<float>(sum);
}

// The levels of a block, the sums of 16 and of all.
float round_block(const float* x, float factor, int8_t* q, int32_t* sums) {
  sums[0] = sums[1] = 0;
  for (int i = 0; i < 32; ++i) {
    q[i] = nearest_level(x[i] * factor);
    sums[i / 16] += q[i];
  }
  return static_cast<float>(sums[0] + sums[1]);
}

}  // namespace

size_t separate_outliers(const float* x, size_t columns, int8_t* q, float* scale, float* scaled_sum,
                         int32_t* sum16, uint32_t* group, int8_t* outlier_q, float* outlier_scale) {
  const size_t blocks = columns / 32;
  float totals[8] = {};
  for (size_t b = 0; b < blocks; ++b) {
    if (!all_finite(x + 32 * b)) return 0;
    const float largest = BlockOutlier(x + 32 * b).largest;
    totals[b % 8] += largest * largest;
  }
  const float total = ((totals[0] + totals[4]) + (totals[2] + totals[6])) +
                      ((totals[1] + totals[5]) + (totals[3] + totals[7]));
  size_t n = 0;
  for (size_t b = 0; b < blocks; ++b) {
    const float* block = x + 32 * b;
    const BlockOutlier outlier(block);
    const float gain = (outlier.largest - outlier.second) * (outlier.largest + outlier.second);
    if (!(gain * static_cast<float>(2 * blocks) > total)) continue;
    float rest[32];
    std::copy(block, block + 32, rest);
    outlier_scale[n] = outlier.largest / 127.0f;
    const float taken = outlier_scale[n] * take_outlier(outlier, rest, outlier_q + 4 * n);
    const float most = std::fmax(outlier.second, outlier.largest / 254.0f);
    scale[b] = most / 127.0f;
    const float own = scale[b] * round_block(rest, 127.0f / most, q + 32 * b, sum16 + 2 * b);
    scaled_sum[b] = own + taken;
    group[n++] = static_cast<uint32_t>(8 * b + outlier.group);
  }
  return n;
}

size_t quantize_row(const float* x, size_t columns, int8_t* q, float* scale, float* scaled_sum,
                    int32_t* sum16, uint32_t* group, int8_t* outlier_q, float* outlier_scale) {
  const size_t blocks = columns / 32;
  bool finite = true;
  for (size_t b = 0; b < blocks; ++b) finite = finite && all_finite(x + 32 * b);
  size_t chosen[kRowOutliers], count = 0;
  float most = 0.0f;  // the largest magnitude of the blocks that are not chosen
  for (; finite; ++count) {
    const size_t best = largest_block(x, blocks, chosen, count);
    most = best < blocks ? BlockOutlier(x + 32 * best).largest : 0.0f;
    if (count == kRowOutliers || !std::isfinite(127.0f / most)) break;
    if (!std::isfinite(2.0f * most)) break;
    chosen[count] = best;
  }
  std::sort(chosen, chosen + count);
  float rest[kRowOutliers][32], taken[kRowOutliers];
  for (size_t n = 0; n < count; ++n) {
    const float* block = x + 32 * chosen[n];
    const BlockOutlier outlier(block);
    std::copy(block, block + 32, rest[n]);
    group[n] = static_cast<uint32_t>(8 * chosen[n] + outlier.group);
    outlier_scale[n] = outlier.largest / 127.0f;
    taken[n] = outlier_scale[n] * take_outlier(outlier, rest[n], outlier_q + 4 * n);
    most = std::fmax(most, std::fmax(outlier.second, outlier.largest / 254.0f));
  }
  const float factor = 127.0f / most, zeros[32] = {};
  const bool zero = !finite || !std::isfinite(factor);
  for (size_t b = 0, n = 0; b < blocks; ++b) {
    const bool own = n < count && chosen[n] == b;
    const float* block = zero ? zeros : own ? rest[n] : x + 32 * b;
    scale[b] = !finite ? kNaN : zero ? 0.0f : most / 127.0f;
    const float sum = round_block(block, zero ? 0.0f : factor, q + 32 * b, sum16 + 2 * b);
    scaled_sum[b] = scale[b] * sum;
    if (own) scaled_sum[b] += taken[n++];
  }
  return count;
}

}  // namespace mote::quant
