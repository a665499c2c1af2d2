// std::string_view::substr without its exception, which would need the C++ run-time library.
#pragma once

#include <cstddef>
#include <string_view>

namespace mote {

// Bytes [position, position + count) of text, as far as it has them; nothing from behind its end.
inline std::string_view slice(std::string_view text, size_t position,
                              size_t count = std::string_view::npos) {
  if (position > text.size()) position = text.size();
  if (count > text.size() - position) count = text.size() - position;
  return {text.data() + position, count};
}

}  // namespace mote
