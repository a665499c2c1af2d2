// Parts of a text whose bounds are known to be right. (string_view::substr and compare would check
// them and throw.)
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace mote {

// [from, end) of text, end <= text.size().
inline std::string_view text_part(std::string_view text, size_t from, size_t end) {
  return {text.data() + from, end - from};
}
// Whether part stands at text[at], at <= text.size().
inline bool has_at(std::string_view text, size_t at, std::string_view part) {
  return text.size() - at >= part.size() &&
         std::memcmp(text.data() + at, part.data(), part.size()) == 0;
}

}  // namespace mote
