// Builds GGUF files in memory for tests, damaged ones too: every number that a file declares can be
// set to something wrong. Independent of core/gguf_writer.h on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/gguf.h"
#include "core/tensor.h"
#include "quant/quant.h"

namespace mote::test {

using Bytes = std::vector<uint8_t>;

template <class T>
void put(Bytes* out, T value) {
  uint8_t bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  for (const uint8_t byte : bytes) out->push_back(byte);  // GCC 12 warns of insert() here
}
inline void put_text(Bytes* out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out->insert(out->end(), text.begin(), text.end());
}

class GgufBuilder {
 public:
  struct Key {
    std::string name;
    uint32_t type;
    Bytes value;  // of an array: element type, count and elements
  };
  struct TensorEntry {
    std::string name;
    std::vector<uint64_t> shape;
    uint32_t format;
    Bytes data;
    std::optional<uint64_t> offset;         // instead of the right one
    std::optional<uint32_t> dimensions;     // instead of shape.size()
    std::optional<uint64_t> name_length{};  // instead of name.size()
  };
  std::vector<Key> keys;
  std::vector<TensorEntry> tensors;
  uint32_t version = 3;
  uint32_t alignment = 32;
  std::string magic = "GGUF";
  std::optional<uint64_t> key_count, tensor_count;

  template <class T>
  void value(const std::string& name, GgufType type, T number) {
    Bytes bytes;
    put(&bytes, number);
    set(name, type, std::move(bytes));
  }
  void u32(const std::string& name, uint32_t number) { value(name, GgufType::u32, number); }
  void f32(const std::string& name, float number) { value(name, GgufType::f32, number); }
  void boolean(const std::string& name, bool b) { value<uint8_t>(name, GgufType::boolean, b); }
  void text(const std::string& name, std::string_view content) {
    Bytes bytes;
    put_text(&bytes, content);
    set(name, GgufType::text, std::move(bytes));
  }
  void texts(const std::string& name, const std::vector<std::string>& items) {
    Bytes bytes = array_start(GgufType::text, items.size());
    for (const std::string& item : items) put_text(&bytes, item);
    set(name, GgufType::array, std::move(bytes));
  }
  template <class T>
  void array(const std::string& name, GgufType element, const std::vector<T>& items) {
    Bytes bytes = array_start(element, items.size());
    for (T item : items) put(&bytes, item);
    set(name, GgufType::array, std::move(bytes));
  }
  // Adds the key, or replaces its value in place.
  void set(const std::string& name, GgufType type, Bytes bytes) {
    for (Key& key : keys)
      if (key.name == name) {
        key.type = static_cast<uint32_t>(type);
        key.value = std::move(bytes);
        return;
      }
    keys.push_back({name, static_cast<uint32_t>(type), std::move(bytes)});
  }
  void remove_key(const std::string& name) {
    keys.erase(keys.begin() + (&key(name) - keys.data()));
  }
  Key& key(const std::string& name) {
    for (Key& k : keys)
      if (k.name == name) return k;
    throw std::out_of_range("no key " + name);
  }

  void tensor(const std::string& name, std::vector<uint64_t> shape, Format format,
              const std::vector<float>& values) {
    Bytes data(row_bytes(format, values.size()));
    quant::encode(format, values.data(), values.size(), data.data());
    raw_tensor(name, std::move(shape), format, std::move(data));
  }
  void raw_tensor(const std::string& name, std::vector<uint64_t> shape, Format format, Bytes data) {
    tensors.push_back(
        {name, std::move(shape), static_cast<uint32_t>(format), std::move(data), {}, {}});
  }
  void remove_tensor(const std::string& name) {
    tensors.erase(tensors.begin() + (&find_tensor(name) - tensors.data()));
  }
  TensorEntry& find_tensor(const std::string& name) {
    for (TensorEntry& t : tensors)
      if (t.name == name) return t;
    throw std::out_of_range("no tensor " + name);
  }

  // header_bytes: gets the size of everything in front of the tensors' data, without padding.
  Bytes build(size_t* header_bytes = nullptr) const {
    Bytes out(magic.begin(), magic.end());
    put(&out, version);
    put<uint64_t>(&out, tensor_count.value_or(tensors.size()));
    put<uint64_t>(&out, key_count.value_or(keys.size()));
    for (const Key& key : keys) {
      put_text(&out, key.name);
      put(&out, key.type);
      out.insert(out.end(), key.value.begin(), key.value.end());
    }
    uint64_t offset = 0;
    for (const TensorEntry& tensor : tensors) {
      put<uint64_t>(&out, tensor.name_length.value_or(tensor.name.size()));
      out.insert(out.end(), tensor.name.begin(), tensor.name.end());
      put<uint32_t>(&out, tensor.dimensions.value_or(static_cast<uint32_t>(tensor.shape.size())));
      for (uint64_t size : tensor.shape) put(&out, size);
      put(&out, tensor.format);
      put<uint64_t>(&out, tensor.offset.value_or(offset));
      offset = padded(offset + tensor.data.size());
    }
    if (header_bytes) *header_bytes = out.size();
    for (const TensorEntry& tensor : tensors) {
      out.resize(padded(out.size()));
      out.insert(out.end(), tensor.data.begin(), tensor.data.end());
    }
    return out;
  }

 private:
  static Bytes array_start(GgufType element, uint64_t count) {
    Bytes bytes;
    put(&bytes, static_cast<uint32_t>(element));
    put(&bytes, count);
    return bytes;
  }
  uint64_t padded(uint64_t at) const { return (at + alignment - 1) / alignment * alignment; }
};

}  // namespace mote::test
