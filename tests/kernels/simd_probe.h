// The operations of kernels/simd.h as functions over one vector, compiled once per instruction set
// (simd_probe.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

// name(float x)
#define MOTE_SIMD_UNARY(OP) OP(exp) OP(exp_negative) OP(tanh) OP(erfc_positive) OP(sqrt) OP(abs)
// name(float x, float y)
#define MOTE_SIMD_BINARY(OP) OP(min) OP(max) OP(copy_sign) OP(divide)

namespace mote::test {

struct SimdProbe {
  size_t lanes;
#define MOTE_OP(name) void (*name)(float* y, const float* x);
  MOTE_SIMD_UNARY(MOTE_OP)
#undef MOTE_OP
#define MOTE_OP(name) void (*name)(float* y, const float* a, const float* b);
  MOTE_SIMD_BINARY(MOTE_OP)
#undef MOTE_OP
  void (*fma)(float* y, const float* a, const float* b, const float* c);
  void (*select_less)(float* y, const float* a, const float* b);  // a < b ? a : 2 b
  void (*round_to_int)(int32_t* y, const float* x);
  void (*to_float)(float* y, const int32_t* x);
  void (*shift_left_23)(int32_t* y, const int32_t* x);
  void (*lane_numbers)(float* y);
  float (*sum)(const float* x);
  float (*largest)(const float* x);
  float (*first_lane)(const float* x);
  void (*partial)(float* y, const float* x, size_t n);  // store_partial(load_partial)
  void (*load_partial)(float* y, const float* x, size_t n);
  void (*load_f16)(float* y, const uint16_t* x);
  void (*store_f16)(uint16_t* y, const float* x);
  void (*load_bf16)(float* y, const uint16_t* x);
  float (*f16_to_float)(uint16_t x);
  uint16_t (*float_to_f16)(float x);
  float (*bf16_to_float)(uint16_t x);
};

}  // namespace mote::test
