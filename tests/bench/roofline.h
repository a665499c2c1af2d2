// What this machine can do at best: the bound that kernel benchmarks are held against.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mote::bench {

// Sum of the 8-byte words of a buffer: reads as fast as the memory gives.
uint64_t read_all(const uint8_t* p, size_t bytes);

// Runs `iterations` rounds of the widest int8 dot product instruction that the CPU has, and returns
// the operations done (a multiplication and an addition each count). `name` is that instruction;
// null and 0 operations: none is known.
uint64_t int8_dot_peak(uint64_t iterations, const char** name);
// The same for f32 fused multiply-adds.
uint64_t float_fma_peak(uint64_t iterations, const char** name);

}  // namespace mote::bench
