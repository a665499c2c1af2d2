// Plain C++, one row a "vector". See simd_int8.h, which includes this.
#pragma once

namespace mote::MOTE_ISA {
namespace {

constexpr int kLanes = 1;
constexpr bool kFused = false;
struct Bytes {
  int8_t byte[4];
};
using Ints = int32_t;
using Floats = float;

MOTE_INLINE Bytes load_bytes(const uint8_t* p) { return read<Bytes>(p); }
MOTE_INLINE void store_bytes(uint8_t* p, Bytes v) { std::memcpy(p, &v, sizeof(v)); }
MOTE_INLINE Floats load_floats(const float* p) { return *p; }
MOTE_INLINE void store_floats(float* p, Floats v) { *p = v; }
MOTE_INLINE Floats set_float(float v) { return v; }
MOTE_INLINE Floats add(Floats a, Floats b) { return a + b; }
MOTE_INLINE Floats multiply(Floats a, Floats b) { return a * b; }
MOTE_INLINE Floats fma(Floats a, Floats b, Floats c) { return a * b + c; }
MOTE_INLINE Floats to_float(Ints v) { return static_cast<float>(v); }

MOTE_INLINE void load_quads(const uint8_t* p, size_t, Bytes out[4]) {
  for (int j = 0; j < 4; ++j) out[j] = read<Bytes>(p + 4 * j);
}
MOTE_INLINE Ints load_words(const uint8_t* p, size_t) { return read<int32_t>(p); }

MOTE_INLINE Floats load_halves(const uint8_t* p) { return f16_to_float(read<uint16_t>(p)); }
MOTE_INLINE Floats low_f16(Ints v) { return f16_to_float(static_cast<uint16_t>(v)); }
MOTE_INLINE Floats high_f16(Ints v) { return f16_to_float(static_cast<uint16_t>(v >> 16)); }
MOTE_INLINE Floats low_bf16(Ints v) { return float_of(static_cast<uint32_t>(v) << 16); }
MOTE_INLINE Floats high_bf16(Ints v) { return float_of(static_cast<uint32_t>(v) & 0xffff0000); }
MOTE_INLINE Floats as_floats(Bytes v) { return read<float>(&v); }
MOTE_INLINE Ints as_ints(Bytes v) { return read<int32_t>(&v); }
MOTE_INLINE Bytes low_nibbles(Bytes v) {
  for (int8_t& b : v.byte) b = static_cast<int8_t>(b & 15);
  return v;
}
MOTE_INLINE Bytes high_nibbles(Bytes v) {
  for (int8_t& b : v.byte) b = static_cast<int8_t>(b >> 4 & 15);
  return v;
}

template <int kBits>
MOTE_INLINE Ints shift_right(Ints v) {
  return v >> kBits;
}
MOTE_INLINE Ints set_int(int32_t v) { return v; }
MOTE_INLINE Bytes raise(Bytes v, int) { return v; }  // kByteOffset is 0

constexpr int kByteOffset = 0;
MOTE_INLINE Bytes weight_bytes(Bytes v) { return v; }

struct ActivationBlock {
  const int8_t* q;
  MOTE_INLINE explicit ActivationBlock(const int8_t* from) : q(from) {}
  static MOTE_INLINE ActivationBlock of_four(const int8_t* from) { return ActivationBlock(from); }
};

template <Weights, int, int = 8>
struct Dot {
  Ints sum;
  MOTE_INLINE void begin(Ints first) { sum = first; }
  MOTE_INLINE void step(int i, Bytes w, const ActivationBlock& x) {
    for (int k = 0; k < 4; ++k) sum += w.byte[k] * x.q[4 * i + k];
  }
  MOTE_INLINE Ints finish(Ints) { return sum; }
};

}  // namespace
}  // namespace mote::MOTE_ISA
