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
}
void store_value(const KvRows* rows) {
  if (rows->type == KvType::f16) store_values<uint16_t>(*rows);
  if (rows->type == KvType::f32) store_values<float>(*rows);
}

}  // namespace MOTE_ISA
}  // namespace mote
