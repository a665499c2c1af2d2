// Keys of a GGUF file to be written, in order.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mote::tool {

class GgufKeys {
 public:
  using Value = std::variant<uint32_t, float, bool, std::string, std::vector<std::string>,
                             std::vector<int32_t>, std::vector<float>, std::vector<bool>,
                             std::vector<uint8_t>>;

  // A key that is there already gets the new value.
  void set(const std::string& name, Value value) {
    for (auto& [key, old] : keys_)
      if (key == name) return void(old = std::move(value));
    keys_.emplace_back(name, std::move(value));
  }
  const Value* find(const std::string& name) const {
    for (const auto& [key, value] : keys_)
      if (key == name) return &value;
    return nullptr;
  }
  auto begin() const { return keys_.begin(); }
  auto end() const { return keys_.end(); }
  size_t size() const { return keys_.size(); }

 private:
  std::vector<std::pair<std::string, Value>> keys_;
};

}  // namespace mote::tool
