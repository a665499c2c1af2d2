// Random weights of any format.
#pragma once

#include <cstring>
#include <vector>

#include "kernels/kernels.h"
#include "quant/quant.h"
#include "tests/support/random.h"

namespace mote::test {

inline void set_half(uint8_t* p, float value) {
  const uint16_t half = quant::f32_to_f16(value);
  std::memcpy(p, &half, sizeof(half));
}

// Valid blocks of any bit pattern, with scales about 0.01; float formats get normal values. Of a
// packed format its native form.
inline std::vector<uint8_t> random_weights(Format wanted, size_t values, Random* random) {
  const Format format = native_format(wanted);
  const size_t bytes = row_bytes(format, values);
  if (!needs_quantized_activations(format)) {
    std::vector<uint8_t> out(bytes);
    const std::vector<float> floats = random->normals(values, 0.1f);
    quant::encode(format, floats.data(), values, out.data());
    return out;
  }
  std::vector<uint8_t> out = random->bytes(bytes);
  const FormatInfo& info = format_info(format);
  // Where the scales are, and the minimums.
  size_t scale = 0, minimum = 0;
  if (format == Format::q4_1 || format == Format::q5_1 || format == Format::q4_k ||
      format == Format::q5_k)
    minimum = 2;
  if (format == Format::q2_k) scale = 80, minimum = 82;
  if (format == Format::q3_k) scale = 108;
  if (format == Format::q6_k) scale = 208;
  const float most = info.values == 256 ? 0.001f : 0.02f;
  for (size_t at = 0; at < bytes; at += info.bytes) {
    set_half(&out[at + scale], random->uniform(-most, most));
    if (minimum) set_half(&out[at + minimum], random->uniform(-5 * most, 5 * most));
  }
  return out;
}

}  // namespace mote::test
