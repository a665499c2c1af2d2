// The oracle of quantized activations.
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

int8_t nearest_level(float value) { return static_cast<int8_t>(std::nearbyint(value)); }

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
    const float step = outlier.largest / 127.0f, factor = 127.0f / outlier.largest;
    const float most = std::fmax(outlier.second, outlier.largest / 254.0f);
    const float rest_factor = 127.0f / most;
    int32_t outlier_sum = 0, sums[2] = {0, 0};
    for (size_t i = 0; i < 32; ++i) {
      float rest = block[i];
      if (i / 4 == outlier.group) {
        const int8_t level = nearest_level(rest * factor);
        outlier_q[4 * n + i % 4] = level;
        outlier_sum += level;
        const float taken = static_cast<float>(level) * step;
        rest -= taken;
      }
      q[32 * b + i] = nearest_level(rest * rest_factor);
      sums[i / 16] += q[32 * b + i];
    }
    scale[b] = most / 127.0f;
    const float own = scale[b] * static_cast<float>(sums[0] + sums[1]);
    scaled_sum[b] = own + step * static_cast<float>(outlier_sum);
    sum16[2 * b] = sums[0];
    sum16[2 * b + 1] = sums[1];
    group[n] = static_cast<uint32_t>(8 * b + outlier.group);
    outlier_scale[n++] = step;
  }
  return n;
}

}  // namespace mote::quant
