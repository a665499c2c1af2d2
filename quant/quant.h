// The oracle: what every format means, value by value. Never optimised; kernels are tested against
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"
#include "quant/blocks.h"

namespace mote::quant {

float f16_to_f32(uint16_t half);
uint16_t f32_to_f16(float value);  // nearest even; overflow gives infinity; NaN stays NaN
float bf16_to_f32(uint16_t value);
uint16_t f32_to_bf16(float value);  // nearest even

// Whether decode() knows the format.
bool can_decode(Format format);
// values: whole blocks. out: [values].
void decode(Format format, const uint8_t* blocks, size_t values, float* out);

// Whether unpack() knows the format: all that decode() knows and that are made of blocks.
bool can_unpack(Format format);
// Takes one block apart into integers and scales.
void unpack(Format format, const uint8_t* block, Levels* levels);

// Whether encode() knows the format: f32, f16, bf16, q4_0, q4_1, q8_0.
bool can_encode(Format format);
// count: whole blocks. The scale choice of each format is said at its function in encode.cpp. A
// block with a NaN or an infinity gets the scale NaN, so that it shows.
void encode(Format format, const float* values, size_t count, uint8_t* out);

// Activations of one token: per 32 values scale = max|x| / 127 and q = nearest even of x * (127 /
// max|x|), within ±127. sum16: sums of 16 q; scaled_sum: scale * (sum of the 32 q). A block of
// zeros has scale 0, and one so small that 127 / max|x| is infinite counts as zeros. columns: a
// multiple of 32. A NaN or infinity makes its block's scale and scaled_sum NaN (with q 0), so that
// it shows in every output.
void quantize_activations(const float* x, size_t columns, int8_t* q, float* scale,
                          float* scaled_sum, int32_t* sum16);

// A second int8 vector for the `refined` blocks of one token with the largest scales (the first of
// equal ones; scales count as equal where sign, exponent and the first 11 bits of the mantissa
// are), in ascending order: step = scale / 254 and refined_q = nearest even of (x - scale * q) /
// step, within ±127. A block whose scale is at most 2^-100 or NaN has step 0. scaled_sum is
// updated: + step * (sum of the 32 refined_q). refined <= columns / 32 <= 4096.
void refine_activations(const float* x, size_t columns, const int8_t* q, const float* scale,
                        float* scaled_sum, size_t refined, uint32_t* block, int8_t* refined_q,
                        float* step, int32_t* sum16);

// One output of a linear layer in the canonical order of sums, from oracle values: what every
// kernel must give. row: `columns` weights in the format. For float formats x are the f32
// activations and the order is one chain of fused multiply-adds over ascending columns; for block
// formats see kernels/kernels.h. fused: false for instruction sets that multiply and add in two
// roundings.
float linear_output(Format format, const uint8_t* row, size_t columns, const float* x,
                    const int8_t* q, const float* scale, const float* scaled_sum,
                    bool fused = true);
// What the refined blocks add to it (block formats), an accumulator of its own.
float linear_refinement(Format format, const uint8_t* row, size_t refined, const uint32_t* block,
                        const int8_t* refined_q, const float* step, bool fused = true);

}  // namespace mote::quant
