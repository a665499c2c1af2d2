#include <cstring>

#include "core/utf8.h"
#include "models/tokenizers/tokenizer.h"

namespace mote {

size_t CharacterStream::push(std::string_view bytes, char* out) {
  size_t length = 0;
  for (char byte : bytes) {
    pending_[count_++] = byte;
    while (count_ > 0) {
      const std::string_view waiting(pending_, count_);
      if (incomplete_utf8_tail(waiting) == count_) break;
      const CodePoint point = read_utf8(waiting, 0);
      length += write_utf8(point.value, out + length);
      count_ -= point.length;
      std::memmove(pending_, pending_ + point.length, count_);
    }
  }
  return length;
}

size_t CharacterStream::finish(char* out) {
  if (count_ == 0) return 0;
  count_ = 0;
  return write_utf8(0xfffd, out);
}

}  // namespace mote
