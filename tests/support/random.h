// Random test data that is the same on every machine and every run.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mote::test {

// PCG32 (O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms").
class Random {
 public:
  explicit Random(uint64_t seed = 1) : state_(seed * 0x9e3779b97f4a7c15u + 1442695040888963407u) {
    bits();
  }
  uint32_t bits() {
    const uint64_t old = state_;
    state_ = old * 6364136223846793005u + 1442695040888963407u;
    const auto mixed = static_cast<uint32_t>(((old >> 18) ^ old) >> 27);
    const auto turn = static_cast<uint32_t>(old >> 59);
    return mixed >> turn | mixed << (-turn & 31);
  }
  // In [0, limit).
  uint32_t below(uint32_t limit) {
    return static_cast<uint32_t>(static_cast<uint64_t>(bits()) * limit >> 32);
  }
  // In [low, high].
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<uint32_t>(high - low + 1)));
  }
  // In [0, 1).
  float uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24f; }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  // Standard normal (Box and Muller).
  float normal() {
    const double u = (bits() + 1.0) * 0x1p-32, v = bits() * 0x1p-32;
    return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * 3.14159265358979 * v));
  }
  std::vector<float> normals(size_t count, float deviation = 1.0f) {
    std::vector<float> values(count);
    for (float& value : values) value = normal() * deviation;
    return values;
  }
  std::vector<uint8_t> bytes(size_t count) {
    std::vector<uint8_t> values(count);
    for (uint8_t& value : values) value = static_cast<uint8_t>(bits() >> 24);
    return values;
  }

 private:
  uint64_t state_;
};

}  // namespace mote::test
