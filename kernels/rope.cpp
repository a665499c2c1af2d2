// Rotary positions.
#include "kernels/declarations.h"
#include "kernels/simd.h"

namespace mote {
namespace MOTE_ISA {

// Halves: element i turns with element i + pairs.
static MOTE_INLINE void turn(F32& a, F32& b, F32 cosine, F32 sine) {
  const F32 turned = fma(a, cosine, zero() - b * sine);
  b = fma(b, cosine, a * sine);
  a = turned;
}
static void rope_halves(float* x, const float* cosine, const float* sine, size_t pairs) {
  size_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes) {
    F32 a = load(x + i), b = load(x + pairs + i);
    turn(a, b, load(cosine + i), load(sine + i));
    store(x + i, a);
    store(x + pairs + i, b);
  }
  if (i < pairs) {
    const size_t n = pairs - i;
    F32 a = load_partial(x + i, n), b = load_partial(x + pairs + i, n);
    turn(a, b, load_partial(cosine + i, n), load_partial(sine + i, n));
    store_partial(x + i, a, n);
    store_partial(x + pairs + i, b, n);
  }
}

static void rope_neighbours(float* __restrict x, const float* __restrict cosine,
                            const float* __restrict sine, size_t pairs) {
  for (size_t i = 0; i < pairs; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cosine[i] - b * sine[i];
    x[2 * i + 1] = b * cosine[i] + a * sine[i];
  }
}

void rope(float* x, size_t heads, size_t head_stride, const float* cosine, const float* sine,
          size_t pairs, bool interleaved) {
  for (size_t h = 0; h < heads; ++h, x += head_stride) {
    if (interleaved)
      rope_neighbours(x, cosine, sine, pairs);
    else
      rope_halves(x, cosine, sine, pairs);
  }
}

}  // namespace MOTE_ISA
}  // namespace mote
