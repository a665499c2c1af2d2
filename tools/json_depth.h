// Bounds on JSON: how deeply it is nested, how long its integers are.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace mote::tool {

// The first place from i on that is in no text, quotes included; json.size(): there is none.
inline size_t skip_texts(std::string_view json, size_t i) {
  while (i < json.size() && json[i] == '"') {
    for (++i; i < json.size() && json[i] != '"'; ++i)
      if (json[i] == '\\') ++i;
    ++i;
  }
  return std::min(i, json.size());
}

// Whether arrays and objects lie deeper in each other than anybody means: writing them would need a
// stack as deep.
inline bool nested_deeply(std::string_view json) {
  constexpr size_t kMost = 256;
  size_t depth = 0;
  for (size_t i = skip_texts(json, 0); i < json.size(); i = skip_texts(json, i + 1)) {
    const char c = json[i];
    if (c == '[' || c == '{') {
      if (++depth > kMost) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

// The first integer that 64 bits do not hold, which a parser would round; empty: there is none.
inline std::string_view long_integer(std::string_view json) {
  for (size_t i = skip_texts(json, 0); i < json.size(); i = skip_texts(json, i + 1)) {
    const char c = json[i];
    if (c != '-' && (c < '0' || c > '9')) continue;
    const size_t end = std::min(json.find_first_not_of("-+.eE0123456789", i), json.size());
    const std::string_view number = json.substr(i, end - i);
    i = end - 1;
    if (number.find_first_of(".eE") != number.npos) continue;
    uint64_t natural = 0;
    int64_t integer = 0;
    const char *const first = number.data(), *const last = first + number.size();
    const bool fits = c == '-' ? std::from_chars(first, last, integer).ec == std::errc()
                               : std::from_chars(first, last, natural).ec == std::errc();
    if (!fits && number.size() > 1) return number;
  }
  return {};
}

}  // namespace mote::tool
