// Writing keys and values into the cache: keys transposed in panels, values in rows.
#include "kernels/declarations.h"
#include "kernels/simd.h"

namespace mote {
namespace MOTE_ISA {
namespace {

MOTE_INLINE void store_element(float* p, float x) { *p = x; }
MOTE_INLINE void store_element(uint16_t* p, float x) { *p = float_to_f16(x); }
MOTE_INLINE void store_vector(float* p, F32 x) { store(p, x); }
MOTE_INLINE void store_vector(uint16_t* p, F32 x) { store_f16(p, x); }

// q[i * stride] of one group of a q8_0 cache; returns its scale.
MOTE_INLINE uint16_t store_group(const float* x, size_t n, int8_t* q, size_t stride) {
  uint32_t bits = 0;  // those of non-negative floats are ordered as integers, infinity and NaN last
  for (size_t i = 0; i < n; ++i) {
    const uint32_t magnitude = bits_of(x[i]) & 0x7fffffffu;
    bits = magnitude > bits ? magnitude : bits;
  }
  uint16_t half = float_to_f16(float_bits(bits) / 127.0f);
  if (half >= 0x7c00u) half = 0x7e00u;
  const bool usable = half > 0 && half < 0x7c00u;
  // The scale as it is stored: what it lost by rounding is not lost again in every element.
  const float factor = usable ? 1.0f / f16_to_float(half) : 0.0f;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t shifted = bits_of((usable ? x[i] : 0.0f) * factor + 0x1.8p23f);
    const int32_t level = static_cast<int32_t>(shifted - 0x4b400000u);  // to nearest, ties to even
    q[i * stride] = static_cast<int8_t>(level > 127 ? 127 : level < -127 ? -127 : level);
  }
  return half;
}
// The groups of x, with q[i * stride] and scale[group * scale_stride].
MOTE_INLINE void store_groups(const float* x, size_t head_dim, int8_t* q, size_t stride,
                              uint8_t* scale, size_t scale_stride) {
  for (size_t i = 0; i < head_dim; i += kKvGroup) {
    const size_t n = head_dim - i < kKvGroup ? head_dim - i : kKvGroup;
    const uint16_t half = store_group(x + i, n, q + i * stride, stride);
    std::memcpy(scale + i / kKvGroup * scale_stride * sizeof half, &half, sizeof half);
  }
}
void store_quantized(const KvRows& rows, bool keys) {
  const size_t n = rows.head_dim, bytes = kv_position_bytes(KvType::q8_0, n) * kKeyBlock;
  for (size_t t = 0; t < rows.tokens; ++t) {
    const size_t p = rows.position + t, slot = p % kKeyBlock;
    const float* x = rows.x + t * rows.x_stride;
    uint8_t* block = rows.cache + p / kKeyBlock % rows.blocks * bytes;
    uint8_t* scales = block + kKeyBlock * n;
    auto* q = reinterpret_cast<int8_t*>(block);
    if (keys)
      store_groups(x, n, q + slot, kKeyBlock, scales + 2 * slot, kKeyBlock);
    else
      store_groups(x, n, q + slot * n, 1, scales + 2 * slot * kv_groups(n), 1);
  }
}

template <class T>
void store_keys(const KvRows& rows) {
  for (size_t t = 0; t < rows.tokens; ++t) {
    const size_t p = rows.position + t;
    const float* x = rows.x + t * rows.x_stride;
    T* column = reinterpret_cast<T*>(rows.cache) +
                p / kKeyBlock % rows.blocks * kKeyBlock * rows.head_dim + p % kKeyBlock;
    size_t i = 0;
    for (; i + kLanes <= rows.head_dim; i += kLanes) {
      T lanes[kLanes];
      store_vector(lanes, load(x + i));
      for (size_t j = 0; j < kLanes; ++j) column[(i + j) * kKeyBlock] = lanes[j];
    }
    for (; i < rows.head_dim; ++i) store_element(column + i * kKeyBlock, x[i]);
  }
}
template <class T>
void store_values(const KvRows& rows) {
  for (size_t t = 0; t < rows.tokens; ++t) {
    const size_t p = rows.position + t;
    const float* x = rows.x + t * rows.x_stride;
    T* row = reinterpret_cast<T*>(rows.cache) +
             (p / kKeyBlock % rows.blocks * kKeyBlock + p % kKeyBlock) * rows.head_dim;
    size_t i = 0;
    for (; i + kLanes <= rows.head_dim; i += kLanes) store_vector(row + i, load(x + i));
    for (; i < rows.head_dim; ++i) store_element(row + i, x[i]);
  }
}

}  // namespace

void store_key(const KvRows* rows) {
  if (rows->type == KvType::f16) store_keys<uint16_t>(*rows);
  if (rows->type == KvType::f32) store_keys<float>(*rows);
  if (rows->type == KvType::q8_0) store_quantized(*rows, true);
}
void store_value(const KvRows* rows) {
  if (rows->type == KvType::f16) store_values<uint16_t>(*rows);
  if (rows->type == KvType::f32) store_values<float>(*rows);
  if (rows->type == KvType::q8_0) store_quantized(*rows, false);
}

}  // namespace MOTE_ISA
}  // namespace mote
