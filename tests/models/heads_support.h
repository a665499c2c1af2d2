// What the tests of heads share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/arena.h"
#include "core/utf8.h"
#include "mote.h"
#include "tests/models/tokenizer_support.h"

namespace mote::test {

// Something that plans its memory in an arena, over just as much as it asks for.
template <class T>
class Planned {
 public:
  template <class... Sizes>
  explicit Planned(Sizes... sizes) {
    Arena measuring;
    object_.plan(measuring, sizes...);
    memory_.resize(measuring.used() + Arena::kAlignment);
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    Arena arena(
        memory_.data() + (Arena::kAlignment - address % Arena::kAlignment) % Arena::kAlignment,
        measuring.used());
    object_.plan(arena, sizes...);
  }
  T& get() { return object_; }

 private:
  std::vector<uint8_t> memory_;
  T object_;
};

// Tokens without ids from offsets in code points.
inline std::vector<mote_token> tokens_at(const std::string& text, const nlohmann::json& offsets) {
  std::vector<uint32_t> bytes;  // of each code point
  for (size_t at = 0; at < text.size(); at += read_utf8(text, at).length)
    bytes.push_back(static_cast<uint32_t>(at));
  bytes.push_back(static_cast<uint32_t>(text.size()));
  std::vector<mote_token> tokens;
  for (const auto& offset : offsets)
    tokens.push_back({0, bytes.at(offset[0].get<size_t>()), bytes.at(offset[1].get<size_t>())});
  return tokens;
}

}  // namespace mote::test
