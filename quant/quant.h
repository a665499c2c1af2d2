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

// Whether encode() knows the format: all that decode() knows.
bool can_encode(Format format);
// count: whole blocks; of q8_row one row. Block formats: scales, minimums and levels of each block
// are searched for together, so that the sum of importance * (value - decoded)^2 is small;
// importance: [count], >= 0, null: all equal. A block with a NaN or an infinity gets the scale NaN,
// so that it shows; a scale beyond float16 becomes the greatest one. The same bytes on every
// machine.
void encode(Format format, const float* values, size_t count, uint8_t* out,
            const float* importance = nullptr);

// Activations of one token: per 32 values scale = max|x| / 127 and q = nearest even of x * (127 /
// max|x|), within ±127. sum16: sums of 16 q; scaled_sum: scale * (sum of the 32 q). A block of
// zeros has scale 0, and one so small that 127 / max|x| is infinite counts as zeros. columns: a
// multiple of 32. A NaN or infinity makes its block's scale and scaled_sum NaN (with q 0), so that
// it shows in every output.
void quantize_activations(const float* x, size_t columns, int8_t* q, float* scale,
                          float* scaled_sum, int32_t* sum16);

// A second int8 vector for the outliers of one token, of what quantize_activations() made of x. Of
// a block with the largest magnitude M in a group of 4 columns (the first of equal ones) and m the
// largest of the other groups, that group is an outlier where (M - m) * (M + m) * 2 blocks > T, T
// being the sum of the M * M: eight sums over every eighth block, added 4 by 4, 2 by 2 and 1 by 1
// (so not where a value of the row is no number). In ascending order: group = column / 4,
// outlier_scale = M / 127, outlier_q = nearest even of x * (127 / M); the block then gets scale =
// max(m, M / 254) / 127, q = nearest even of 127 / max(m, M / 254) times what is left of x, its
// sums, and scaled_sum = scale * (sum of q) + outlier_scale * (sum of outlier_q). Returns the
// number of outliers, at most columns / 32.
size_t separate_outliers(const float* x, size_t columns, int8_t* q, float* scale, float* scaled_sum,
                         int32_t* sum16, uint32_t* group, int8_t* outlier_q, float* outlier_scale);

// Activations of one token for q8_row: one scale for the whole row, after the largest group of 4
// columns has been separated in each of at most kRowOutliers blocks: those with the largest
// magnitudes M (the first of equal ones; none whose 127 / M is infinite, nor any if 2 M is). Of
// these outliers group, outlier_scale, outlier_q and what they leave are as above. All blocks have
// scale = most / 127, q = nearest even of 127 / most times what is left of x, and scaled_sum as
// above, most being the largest of all other groups and of M / 254. A row of zeros, or where 127 /
// most is infinite, has scale 0. A NaN or infinity makes all its scales and scaled_sums NaN (with q
// 0). Returns the number of outliers.
size_t quantize_row(const float* x, size_t columns, int8_t* q, float* scale, float* scaled_sum,
                    int32_t* sum16, uint32_t* group, int8_t* outlier_q, float* outlier_scale);

// One output of a linear layer in the canonical order of sums, from oracle values: what every
// kernel must give. row: `columns` weights in the format. For float formats x are the f32
// activations and the order is one chain of fused multiply-adds over ascending columns; for block
// formats see kernels/kernels.h. fused: false for instruction sets that multiply and add in two
// roundings.
float linear_output(Format format, const uint8_t* row, size_t columns, const float* x,
                    const int8_t* q, const float* scale, const float* scaled_sum,
                    bool fused = true);
// What the outliers add to it (block formats), an accumulator of its own.
float linear_outliers(Format format, const uint8_t* row, size_t outliers, const uint32_t* group,
                      const int8_t* outlier_q, const float* outlier_scale, bool fused = true);

}  // namespace mote::quant
