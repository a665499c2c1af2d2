#include "tests/kernels/simd_probe.h"

#include "kernels/simd.h"

namespace mote::MOTE_ISA {
namespace {

void store_int(int32_t* y, I32 v) {
  float lanes[kLanes];
  store(lanes, as_float(v));
  std::memcpy(y, lanes, sizeof(lanes));
}
I32 load_int(const int32_t* x) {
  float lanes[kLanes];
  std::memcpy(lanes, x, sizeof(lanes));
  return as_int(load(lanes));
}

}  // namespace

extern const test::SimdProbe simd_probe;
const test::SimdProbe simd_probe = {
    kLanes,
#define MOTE_OP(name) [](float* y, const float* x) { store(y, name(load(x))); },
    MOTE_SIMD_UNARY(MOTE_OP)
#undef MOTE_OP
#define MOTE_OP(name) \
  [](float* y, const float* a, const float* b) { store(y, name(load(a), load(b))); },
        MOTE_SIMD_BINARY(MOTE_OP)
#undef MOTE_OP
            [](float* y, const float* a, const float* b,
               const float* c){store(y, fma(load(a), load(b), load(c)));
}  // namespace mote::MOTE_ISA
,
    [](float* y, const float* a, const float* b) {
      store(y, select(load(a) < load(b), load(a), load(b) + load(b)));
    },
    [](int32_t* y, const float* x) { store_int(y, round_to_int(load(x))); },
    [](float* y, const int32_t* x) { store(y, to_float(load_int(x))); },
    [](int32_t* y, const int32_t* x) { store_int(y, shift_left<23>(load_int(x))); },
    [](float* y) { store(y, lane_numbers()); }, [](const float* x) { return sum(load(x)); },
    [](const float* x) { return largest(load(x)); },
    [](const float* x) { return first_lane(load(x)); },
    [](float* y, const float* x, size_t n) { store_partial(y, load_partial(x, n), n); },
    [](float* y, const float* x, size_t n) { store(y, load_partial(x, n)); },
    [](float* y, const uint16_t* x) { store(y, load_f16(x)); },
    [](uint16_t* y, const float* x) { store_f16(y, load(x)); },
    [](float* y, const uint16_t* x) { store(y, load_bf16(x)); },
    [](uint16_t x) { return f16_to_float(x); }, [](float x) { return float_to_f16(x); },
    [](uint16_t x) { return bf16_to_float(x); },
}
;

}  // namespace mote::MOTE_ISA
