#include "core/real.h"

#include <gtest/gtest.h>

#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "core/slice.h"

namespace mote {
namespace {

// Digits and exponent as the standard library prints them.
std::string standard_text(double value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr};
}

std::string our_text(double value) {
  const Decimal decimal = shortest_decimal(value);
  std::string text(1, decimal.digits[0]);
  if (decimal.count > 1)
    text += "." + std::string(decimal.digits + 1, static_cast<size_t>(decimal.count - 1));
  char exponent[16];
  std::snprintf(exponent, sizeof exponent, "e%+03d", decimal.exponent);
  return text + exponent;
}

double standard_value(const std::string& text) {
  double value = -1;
  const char* start = text.c_str() + (text[0] == '+');
  const auto result = std::from_chars(start, text.c_str() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range) return std::strtod(text.c_str(), nullptr);
  return value;
}

double random_double(std::mt19937_64& random) {
  for (;;) {
    const uint64_t bits = random() & ~(uint64_t(1) << 63);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value)) return value;
  }
}

TEST(Real, PrintsFewestDigits) {
  for (const double value :
       {0.0, 1.0, 0.1, 0.5, 1.0 / 3, 100.0, 1e22, 1e23, 5e-324, 2.2250738585072014e-308,
        1.7976931348623157e308, 123456789012345680.0, 9007199254740993.0, 4.35, 0.3})
    EXPECT_EQ(our_text(value), standard_text(value));
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const double value = random_double(random);
    ASSERT_EQ(our_text(value), standard_text(value));
    const double plain = static_cast<double>(random() % 100000) / 1000;
    ASSERT_EQ(our_text(plain), standard_text(plain));
  }
}

TEST(Real, ReadsWhatTheStandardLibraryReads) {
  std::string long_tie = "9007199254740993." + std::string(900, '0');  // between two doubles
  for (const std::string& text : {std::string("0"),
                                  std::string("-0"),
                                  std::string("1"),
                                  std::string("+1.5"),
                                  std::string("-2.50"),
                                  std::string(".5"),
                                  std::string("5."),
                                  std::string("00012"),
                                  std::string("0.00012"),
                                  std::string("1e3"),
                                  std::string("1E+3"),
                                  std::string("12e-5"),
                                  std::string("1e400"),
                                  std::string("-1e400"),
                                  std::string("1e-400"),
                                  std::string("1e99999999999"),
                                  std::string("0e99999999999"),
                                  std::string("1e-99999999999"),
                                  std::string("2.4703282292062328e-324"),
                                  long_tie,
                                  long_tie + "1",
                                  "0." + std::string(400, '0') + "1",
                                  "1" + std::string(400, '0'),
                                  "1" + std::string(900, '0') + "e-900",
                                  std::string(1000, '7')}) {
    double value = -1;
    ASSERT_TRUE(parse_real(text, &value)) << text;
    const double expected = standard_value(text);
    EXPECT_EQ(value, expected) << text;
    EXPECT_EQ(std::signbit(value), std::signbit(expected)) << text;
  }
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    const double expected = random_double(random);
    char text[64];
    const int length = std::snprintf(text, sizeof text, "%.*e", int(random() % 20), expected);
    double value = -1;
    ASSERT_TRUE(parse_real({text, static_cast<size_t>(length)}, &value));
    ASSERT_EQ(value, standard_value(text)) << text;
  }
}

TEST(Real, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", "+", ".", "-.", "e5", "1e", "1e+", "1e-", "1.2.3", " 1", "1 ",
                           "1x", "0x10", "--1", "inf", "nan", "1,5", "1e5.0"}) {
    double value = 7;
    EXPECT_FALSE(parse_real(text, &value)) << text;
    EXPECT_EQ(value, 7) << text;
  }
}

TEST(Real, DoesNotDependOnTheLocale) {
  const char* chosen = nullptr;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ps_AF.UTF-8"})
    if ((chosen = std::setlocale(LC_NUMERIC, name)) != nullptr) break;
  if (!chosen) GTEST_SKIP() << "no locale with another decimal point is installed";
  double value = 0;
  EXPECT_TRUE(parse_real("1.25", &value));
  EXPECT_EQ(value, 1.25);
  EXPECT_EQ(our_text(1.25), "1.25e+00");
  std::setlocale(LC_NUMERIC, "C");
}

TEST(Slice, StaysInside) {
  EXPECT_EQ(slice("hello", 1, 3), "ell");
  EXPECT_EQ(slice("hello", 2), "llo");
  EXPECT_EQ(slice("hello", 5), "");
  EXPECT_EQ(slice("hello", 6), "");
  EXPECT_EQ(slice("hello", SIZE_MAX, SIZE_MAX), "");
  EXPECT_EQ(slice("hello", 4, 9), "o");
  EXPECT_EQ(slice({}, 0), "");
}

}  // namespace
}  // namespace mote
