// What a model puts around one text or two: [CLS] a [SEP] b [SEP], <s> a </s></s> b </s>.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mote {

struct Frame {
  static constexpr size_t kMaxParts = 16;
  static constexpr int32_t kFirst = -1, kSecond = -2;  // instead of an id: the tokens of that text

  struct Part {
    int32_t id;
    uint8_t type;  // token type (segment) of this token, or of the text's tokens
  };
  Part parts[kMaxParts] = {};
  size_t count = 0;

  void add(int32_t id, uint8_t type) { parts[count++] = {id, type}; }
  // Tokens of its own.
  size_t added() const {
    size_t tokens = 0;
    for (size_t i = 0; i < count; ++i) tokens += parts[i].id >= 0;
    return tokens;
  }
};

}  // namespace mote
