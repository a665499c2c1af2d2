#include "kernels/declarations.h"
#include "kernels/simd_int8.h"

namespace mote::MOTE_ISA {
namespace {
constexpr int kBlock = 32;
constexpr float kInfinity = __builtin_inff();
}  // namespace

// Meaning: quant::quantize_activations, bit for bit; corrections instead of sums.
void quantize_activations(const float* x, size_t columns, int8_t* q, float* scale,
                          float* scaled_sum, int32_t* correction) {
  for (size_t b = 0; b < columns / kBlock; ++b, x += kBlock, q += kBlock) {
    float largest = 0, spread = 0;
    for (int i = 0; i < kBlock; ++i) {
      const float magnitude = __builtin_fabsf(x[i]);
      largest = magnitude > largest ? magnitude : largest;
      spread += x[i] * 0.0f;  // NaN if any value is not finite
    }
    const float factor = 127.0f / largest;
    const bool finite = spread == 0, zero = !(factor < kInfinity);
    int32_t sums[2] = {0, 0};
    const float used = finite && !zero ? factor : 0.0f;
    for (int i = 0; i < kBlock; ++i) {
      // Adding 1.5 * 2^23 rounds to the nearest even integer.
      const float rounded = (finite ? x[i] : 0.0f) * used + 0x1.8p23f;
      int32_t level = read<int32_t>(&rounded) - 0x4b400000;
      level = level > 127 ? 127 : level < -127 ? -127 : level;
      q[i] = static_cast<int8_t>(level);
      sums[i / 16] += level;
    }
    scale[b] = !finite ? __builtin_nanf("") : zero ? 0.0f : largest / 127.0f;
    scaled_sum[b] = scale[b] * static_cast<float>(sums[0] + sums[1]);
    correction[2 * b] = -128 * (sums[0] + sums[1]);
    correction[2 * b + 1] = -128 * sums[0];
  }
}

}  // namespace mote::MOTE_ISA
