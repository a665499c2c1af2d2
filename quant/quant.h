// The oracle: what every format means, value by value. Never optimised; kernels are tested against it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace mote::quant {

float f16_to_f32(uint16_t half);
uint16_t f32_to_f16(float value);  // nearest even; overflow gives infinity; NaN stays NaN
float bf16_to_f32(uint16_t value);
uint16_t f32_to_bf16(float value);  // nearest even

// Whether decode() knows the format.
bool can_decode(Format format);
// values: whole blocks. out: [values].
void decode(Format format, const uint8_t* blocks, size_t values, float* out);

// Whether encode() knows the format.
bool can_encode(Format format);
// Rounds to the nearest representable; the scale choice of each format is said at its function.
void encode(Format format, const float* values, size_t count, uint8_t* out);

// Activations of one token: per 32 values scale = max|x| / 127 and q = nearest even of x * (127 / max|x|), within ±127.
// sum16: sums of 16 q; scaled_sum: scale * (sum of the 32 q). A block of zeros has scale 0.
// columns: a multiple of 32. A NaN or infinity makes its block's scale NaN, so that it shows in every output.
void quantize_activations(const float* x, size_t columns, int8_t* q, float* scale, float* scaled_sum,
                          int32_t* sum16);

// One output of a linear layer in the canonical order of sums, from oracle values: what every kernel must give.
// row: `columns` weights in the format. For float formats x are the f32 activations and the order is one chain of
// fused multiply-adds over ascending columns; for block formats see kernels/kernels.h.
float linear_output(Format format, const uint8_t* row, size_t columns, const float* x, const int8_t* q,
                    const float* scale, const float* scaled_sum);

}  // namespace mote::quant
