// Norms of one row.
#include "kernels/declarations.h"
#include "kernels/simd.h"

namespace mote {
namespace MOTE_ISA {

// Sum over the row of term(vector), in an order that only n decides: four running vectors, then the
// tail.
template <class Term>
static MOTE_INLINE float row_sum(const float* x, size_t n, Term term) {
  F32 a = zero(), b = zero(), c = zero(), d = zero();
  size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = a + term(load(x + i));
    b = b + term(load(x + i + kLanes));
    c = c + term(load(x + i + 2 * kLanes));
    d = d + term(load(x + i + 3 * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) a = a + term(load(x + i));
  if (i < n) {
    const Mask inside = lane_numbers() < broadcast(static_cast<float>(n - i));
    b = b + select(inside, term(load_partial(x + i, n - i)), zero());
  }
  return sum((a + b) + (c + d));
}

void rms_norm(float* y, const float* x, const float* weight, size_t n, float eps) {
  const float squares = row_sum(x, n, [](F32 v) MOTE_LAMBDA { return v * v; });
  const F32 factor = broadcast(1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + eps));
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(x + i) * factor * load(weight + i));
  if (i < n)
    store_partial(y + i, load_partial(x + i, n - i) * factor * load_partial(weight + i, n - i),
                  n - i);
}

void layer_norm(float* y, const float* x, const float* weight, const float* bias, size_t n,
                float eps) {
  const float count = static_cast<float>(n);
  // The second sum takes back what the first one rounded away.
  const float rough = row_sum(x, n, [](F32 v) MOTE_LAMBDA { return v; }) / count;
  const F32 about = broadcast(rough);
  const F32 mean =
      broadcast(rough + row_sum(x, n, [about](F32 v) MOTE_LAMBDA { return v - about; }) / count);
  const float squares =
      row_sum(x, n, [mean](F32 v) MOTE_LAMBDA { return (v - mean) * (v - mean); });
  const F32 factor = broadcast(1.0f / __builtin_sqrtf(squares / count + eps));
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F32 v = (load(x + i) - mean) * factor * load(weight + i);
    store(y + i, bias ? v + load(bias + i) : v);
  }
  if (i < n) {
    const F32 v = (load_partial(x + i, n - i) - mean) * factor * load_partial(weight + i, n - i);
    store_partial(y + i, bias ? v + load_partial(bias + i, n - i) : v, n - i);
  }
}

}  // namespace MOTE_ISA
}  // namespace mote
