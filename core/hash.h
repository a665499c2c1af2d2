// A hash that notices accidents: a damaged state, another file. No protection against intent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mote {

// Of the bytes in little-endian order, over what came before (`seed`). Every step maps its 64 bits
// and the state one to one, so that a change within 8 aligned bytes always changes the result; four
// chains side by side keep it at memory speed.
inline uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15u;  // odd
  const auto* p = static_cast<const uint8_t*>(data);
  const auto mix = [](uint64_t state, uint64_t word) {
    state = (state ^ word) * kMultiplier;
    return state ^ state >> 29;
  };
  uint64_t chain[4] = {seed, 1, 2, 3};
  const size_t whole = bytes / 32 * 32;
  for (size_t i = 0; i < whole; i += 32)
    for (size_t c = 0; c < 4; ++c) {
      uint64_t word = 0;
      std::memcpy(&word, p + i + 8 * c, 8);
      chain[c] = mix(chain[c], word);
    }
  for (size_t i = whole; i < bytes; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, p + i, bytes - i < 8 ? bytes - i : 8);
    chain[0] = mix(chain[0], word);
  }
  uint64_t all = mix(chain[0], bytes);
  for (size_t c = 1; c < 4; ++c) all = mix(all, chain[c]);
  return all;
}

}  // namespace mote
