// Activations of the feed-forward part, alone or as a gate: activation(gate) * up.
#include "kernels/declarations.h"
#include "kernels/simd.h"

namespace mote {
namespace MOTE_ISA {

struct Silu {
  MOTE_INLINE F32 operator()(F32 x) const {
    const F32 one = broadcast(1.0f);
    return divide(x, one + exp(zero() - x));
  }
};
// 0.5 x (1 + tanh(u)) = x / (1 + e^(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  MOTE_INLINE F32 operator()(F32 x) const {
    const F32 cubic =
        fma(x * x, broadcast(-2 * 0.7978845608f * 0.044715f), broadcast(-2 * 0.7978845608f));
    return divide(x, broadcast(1.0f) + exp(x * cubic));
  }
};
// x times the normal distribution function of x, from erfc on the side where nothing cancels.
struct GeluErf {
  MOTE_INLINE F32 operator()(F32 x) const {
    const F32 half = broadcast(0.5f) * erfc_positive(abs(x) * broadcast(0.7071067812f));
    return x * select(x < zero(), half, broadcast(1.0f) - half);
  }
};

template <class Function>
static MOTE_INLINE void map(float* y, const float* x, size_t n, Function f) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(x + i)));
  if (i < n) store_partial(y + i, f(load_partial(x + i, n - i)), n - i);
}
template <class Function>
static MOTE_INLINE void map_gate(float* y, const float* gate, const float* up, size_t n,
                                 Function f) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(gate + i)) * load(up + i));
  if (i < n)
    store_partial(y + i, f(load_partial(gate + i, n - i)) * load_partial(up + i, n - i), n - i);
}

void silu(float* y, const float* x, size_t n) { map(y, x, n, Silu{}); }
void silu_gate(float* y, const float* gate, const float* up, size_t n) {
  map_gate(y, gate, up, n, Silu{});
}
void gelu_tanh(float* y, const float* x, size_t n) { map(y, x, n, GeluTanh{}); }
void gelu_tanh_gate(float* y, const float* gate, const float* up, size_t n) {
  map_gate(y, gate, up, n, GeluTanh{});
}
void gelu_erf(float* y, const float* x, size_t n) { map(y, x, n, GeluErf{}); }
void gelu_erf_gate(float* y, const float* gate, const float* up, size_t n) {
  map_gate(y, gate, up, n, GeluErf{});
}
void relu(float* y, const float* x, size_t n) {
  map(y, x, n, [](F32 v) MOTE_LAMBDA { return select(v < zero(), zero(), v); });  // NaN stays
}

}  // namespace MOTE_ISA
}  // namespace mote
