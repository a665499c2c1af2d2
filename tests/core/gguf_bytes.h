// A GGUF file byte by byte, with the place of every field that it holds, so that tests can damage
// each.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace mote::test {

struct Field {
  std::string label;
  size_t at, bytes;
};

class GgufBytes {
 public:
  std::vector<uint8_t> bytes;
  std::vector<Field> fields;

  template <class T>
  GgufBytes& put(const std::string& label, T value) {
    fields.push_back({label, bytes.size(), sizeof value});
    const auto* raw = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
    return *this;
  }
  GgufBytes& u32(const std::string& label, uint32_t value) { return put(label, value); }
  GgufBytes& u64(const std::string& label, uint64_t value) { return put(label, value); }
  GgufBytes& text(const std::string& label, std::string_view value) {
    u64(label + " length", value.size());
    bytes.insert(bytes.end(), value.begin(), value.end());
    return *this;
  }
  GgufBytes& header(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    for (const char c : std::string_view("GGUF")) bytes.push_back(static_cast<uint8_t>(c));
    return u32("version", version).u64("tensor count", tensors).u64("key count", keys);
  }
  // A key's name and type; its value comes next.
  GgufBytes& key(std::string_view name, uint32_t type) {
    return text("key name", name).u32("key type", type);
  }
  GgufBytes& key_u32(std::string_view name, uint32_t value) {
    return key(name, 4).u32(std::string(name) + " value", value);
  }
  GgufBytes& key_text(std::string_view name, std::string_view value) {
    return key(name, 8).text(std::string(name) + " value", value);
  }
  GgufBytes& array(std::string_view name, uint32_t element, uint64_t count) {
    return key(name, 9).u32("element type", element).u64("array length", count);
  }
  GgufBytes& tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t format,
                    uint64_t offset) {
    text("tensor name", name).u32("dimensions", static_cast<uint32_t>(shape.size()));
    for (const uint64_t size : shape) u64("dimension", size);
    return u32("tensor type", format).u64("offset", offset);
  }
  GgufBytes& align(size_t alignment = 32) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  // Data of `count` bytes that are all different from their neighbours.
  GgufBytes& data(size_t count) {
    for (size_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(i * 37 + 1));
    return *this;
  }
};

// Every kind of thing that a file may hold, with no byte to spare: 2 tensors, 64 and 72 bytes.
inline GgufBytes sample_file(uint32_t version = 3) {
  GgufBytes file;
  file.header(2, 9, version);
  file.key_text("general.architecture", "llama");
  file.key_u32("llama.block_count", 2);
  file.key("flag", 7).put<uint8_t>("flag value", 1);
  file.key("small", 1).put<int8_t>("small value", -3);
  file.key("large", 10).put<uint64_t>("large value", uint64_t{1} << 40);
  file.key("factor", 6).put<float>("factor value", 0.5f);
  file.key("precise", 12).put<double>("precise value", 1e-5);
  file.array("tokens", 8, 3).text("token", "a").text("token", "").text("token", "ccc");
  file.array("scores", 6, 2).put<float>("score", 1.5f).put<float>("score", -2.0f);
  file.tensor("a.weight", {8, 2}, 0, 0);
  file.tensor("b.weight", {64, 1, 2}, 2, 64);
  return file.align().data(64 + 72);
}

}  // namespace mote::test
