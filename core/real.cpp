#include "core/real.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mote {
namespace {

constexpr int kMaxDigits = 800;          // 767 decide a double; what follows can only break a tie
constexpr int kMaxExponent = 1'000'000;  // far beyond any double; ten times as much fits an int

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The value of digits × 10^exponent. Written without a point, whose character the locale chooses.
double read_scaled(const char* digits, int count, int exponent) {
  char text[kMaxDigits + 16];
  std::memcpy(text, digits, static_cast<size_t>(count));
  std::snprintf(text + count, 16, "e%d", exponent);
  return std::strtod(text, nullptr);
}

}  // namespace

Decimal shortest_decimal(double value) {
  Decimal result{};
  for (int precision = 0; precision < 17; ++precision) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*e", precision, value);
    const char* at = text;
    result.count = 0;
    for (; *at && *at != 'e'; ++at)
      if (is_digit(*at)) result.digits[result.count++] = *at;
    result.exponent = *at ? std::atoi(at + 1) : 0;
    const double back =
        read_scaled(result.digits, result.count, result.exponent - (result.count - 1));
    if (back == value) break;
  }
  return result;
}

bool parse_real(std::string_view text, double* value) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool negative = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) ++at;

  // The value is digits × 10^exponent.
  char digits[kMaxDigits];
  int count = 0, exponent = 0;
  bool any = false, fraction = false, rest = false;
  for (; at < end && (is_digit(*at) || (*at == '.' && !fraction)); ++at) {
    if (*at == '.') {
      fraction = true;
      continue;
    }
    any = true;
    const bool kept = count < kMaxDigits - 1;  // one place is for the rest
    if (!kept && *at != '0') rest = true;
    if (kept && (count > 0 || *at != '0')) digits[count++] = *at;
    const int step = (kept ? 0 : 1) - (fraction ? 1 : 0);
    if (exponent > -kMaxExponent && exponent < kMaxExponent) exponent += step;
  }
  if (!any) return false;
  if (rest) digits[count++] = '1', --exponent;

  if (at < end && (*at == 'e' || *at == 'E')) {
    const bool down = ++at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) ++at;
    if (at == end) return false;
    int written = 0;
    for (; at < end && is_digit(*at); ++at)
      if (written < kMaxExponent) written = written * 10 + (*at - '0');
    exponent += down ? -written : written;
  }
  if (at != end) return false;
  const double magnitude = count == 0 ? 0.0 : read_scaled(digits, count, exponent);
  *value = negative ? -magnitude : magnitude;
  return true;
}

}  // namespace mote
