// Real numbers as decimal text and back: exact, the same in every locale, without memory or the C++
// run-time library (unlike std::to_chars and std::from_chars of a double).
#pragma once

#include <string_view>

namespace mote {

// d.ddd × 10^exponent: digits[0] before the point, the last digit is not 0 (unless it is the only
// one).
struct Decimal {
  char digits[17];
  int count;
  int exponent;
};

// The fewest digits that read back as the same value; of those the nearest. value: finite and >= 0.
Decimal shortest_decimal(double value);

// Reads all of text as [-+] digits [. digits] [e [-+] digits], with at least one digit; a value
// beyond the range becomes infinite or 0. False, and *value as it was: something else is there.
bool parse_real(std::string_view text, double* value);

}  // namespace mote
