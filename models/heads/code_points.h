// Places of a text in code points.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/utf8.h"

namespace mote {

// Counts the code points in front of bytes of a text. Places that ascend cost one pass in all.
class CodePointCounter {
 public:
  explicit CodePointCounter(std::string_view text) : text_(text) {}
  // Code points that begin before `byte`; a bad sequence is one.
  size_t before(size_t byte) {
    if (byte < byte_) byte_ = count_ = 0;
    for (; byte_ < byte && byte_ < text_.size(); ++count_) byte_ += read_utf8(text_, byte_).length;
    return count_;
  }

 private:
  std::string_view text_;
  size_t byte_ = 0, count_ = 0;
};

inline size_t count_code_points(std::string_view text) {
  return CodePointCounter(text).before(text.size());
}

}  // namespace mote
