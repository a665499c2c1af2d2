// Runs a kernel over rows of every length up to two vectors and some longer ones, misaligned, and
// ending at a guard page.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/kernels/kernel_support.h"
#include "tests/support/guard_page.h"
#include "tests/support/random.h"

namespace mote::test {

inline std::vector<size_t> row_lengths() {
  std::vector<size_t> lengths;
  for (size_t n = 1; n <= 2 * 16 + 1; ++n) lengths.push_back(n);
  for (size_t n : {47, 64, 65, 100, 127, 129, 576, 1025, 3001}) lengths.push_back(n);
  return lengths;
}

// A copy of x that ends `slack` floats before a guard page: 0 is the page itself, others misalign.
inline Guarded<float> guarded(const std::vector<float>& x, size_t slack) {
  Guarded<float> copy(x.size(), slack);
  std::copy(x.begin(), x.end(), copy.data());
  return copy;
}

// f(n, slack) for every length and some misalignments.
template <class F>
void for_each_row(F f) {
  for (size_t n : row_lengths())
    for (size_t slack : {0, 1, 3}) {
      SCOPED_TRACE("n " + std::to_string(n) + ", " + std::to_string(slack) + " behind");
      f(n, slack);
      if (testing::Test::HasFailure()) return;
    }
}

// |a - b| <= absolute + relative * |b|; both NaN or the same infinity count as equal.
inline void expect_close(float a, double b, double relative, double absolute, size_t i) {
  if (std::isnan(b)) {
    EXPECT_TRUE(std::isnan(a)) << "element " << i << ": " << a;
  } else if (std::isinf(b)) {
    EXPECT_EQ(a, b) << "element " << i;
  } else {
    EXPECT_LE(std::fabs(a - b), absolute + relative * std::fabs(b))
        << "element " << i << ": " << a << ", expected " << b;
  }
}

}  // namespace mote::test
