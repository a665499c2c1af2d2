// Damages a valid GGUF file in random places: the numbers, names, values and lengths that it
// declares, the tokenizer's arrays, the tensor table, the template's text, and single bytes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gguf_builder.h"

namespace mote::test {

class FileMutator {
 public:
  using Below = std::function<uint32_t(uint32_t limit)>;  // a choice in [0, limit)
  explicit FileMutator(Below below) : below_(std::move(below)) {}

  Bytes damage(const GgufBuilder& good) {
    GgufBuilder bad = good;
    what_.clear();
    const uint32_t changes = below_(4) ? 1 : below_(5);  // many at once are soon refused
    for (uint32_t i = 0; i < changes; ++i) damage_structure(&bad);
    size_t header = 0;
    Bytes bytes = bad.build(&header);
    const uint32_t cuts = changes == 0 || below_(16) == 0 ? 1 + below_(2) : 0;
    for (uint32_t i = 0; i < cuts; ++i) damage_bytes(&bytes, std::min(header, bytes.size()));
    return bytes;
  }
  // What the last damage() did.
  const std::string& what() const { return what_; }

 private:
  static constexpr size_t kLongText = 1 << 14;

  template <class Container>
  auto& any_of(Container& items) {
    return items[below_(static_cast<uint32_t>(std::size(items)))];
  }
  void note(const std::string& what) { what_ += (what_.empty() ? "" : "; ") + what; }

  // Numbers at which something overflows or ends, or near to the right one.
  uint64_t odd_number(uint64_t right) {
    static const uint64_t numbers[] = {
        0,       1,       2,       3,       4,       7,          8,          15,
        16,      31,      32,      33,      63,      64,         65,         128,
        255,     256,     300,     512,     513,     1024,       4096,       65535,
        1 << 16, 1 << 20, 1 << 24, 1 << 26, 1 << 30, 0x7fffffff, 0x80000000, 0xffffffff};
    switch (below_(6)) {
      case 0:
        return right + 1;
      case 1:
        return right - 1;
      case 2:
        return right ^ uint64_t { 1 } << below_(64);
      case 3:
        return right * (2 + below_(3));
      case 4:
        return (uint64_t{1} << (32 + below_(32))) - below_(2);
      default:
        return any_of(numbers);
    }
  }
  float odd_float() {
    static const float floats[] = {0.0f,    -0.0f, 1.0f,  -1.0f, 1e-45f,   1e-30f,
                                   3.4e38f, 1e30f, -1e9f, 0.5f,  INFINITY, NAN};
    return any_of(floats);
  }
  std::string odd_text(const std::string& right) {
    static const char* texts[] = {"",
                                  " ",
                                  "a",
                                  "\xff",
                                  "\xe2\x96\x81",
                                  "<0x41>",
                                  "<0xZZ>",
                                  "<|im_end|>",
                                  "h e",
                                  "\x01\x1b[31m",
                                  "{{ messages }}",
                                  "{% for a in range(9999999) %}{{ a }}{% endfor %}",
                                  "{% if",
                                  "{{ 1 // 0 }}",
                                  "((((((((((((((((",
                                  "\xf0\x9f\x98\x80"};
    std::string text = right;
    const size_t at = below_(static_cast<uint32_t>(text.size() + 1));
    switch (below_(6)) {
      case 0:
        return any_of(texts);
      case 1:
        return text.insert(at, any_of(texts));
      case 2:
        return text.substr(0, at);
      case 3:
        return text.erase(at, below_(9));
      case 4:  // Doubled again and again, a text would take all memory.
        return text.size() < kLongText ? text + text : text.substr(text.size() / 2);
      default:
        if (at < text.size()) text[at] = static_cast<char>(below_(256));
        return text;
    }
  }

  void damage_structure(GgufBuilder* bad) {
    switch (below_(16)) {
      case 0:
        return damage_header(bad);
      case 1:
      case 2:
      case 3:
        return damage_tensor(bad);
      case 4:
      case 5:
        return damage_template(bad);
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
        return damage_array(bad);
      default:
        return damage_key(bad);
    }
  }

  void damage_header(GgufBuilder* bad) {
    note("header");
    switch (below_(5)) {
      case 0:
        bad->version = static_cast<uint32_t>(odd_number(bad->version));
        break;
      case 1:
        bad->key_count = odd_number(bad->keys.size());
        break;
      case 2:
        bad->tensor_count = odd_number(bad->tensors.size());
        break;
      case 3:
        bad->magic[below_(4)] ^= static_cast<char>(1 << below_(8));
        break;
      default:
        bad->u32("general.alignment", static_cast<uint32_t>(odd_number(32)));
    }
  }

  void damage_key(GgufBuilder* bad) {
    if (bad->keys.empty()) return;
    const size_t index = below_(static_cast<uint32_t>(bad->keys.size()));
    GgufBuilder::Key& key = bad->keys[index];
    note("key " + key.name);
    switch (below_(10)) {
      case 0:
        key.name = odd_text(key.name);
        break;
      case 1:
        bad->keys.erase(bad->keys.begin() + static_cast<ptrdiff_t>(index));
        break;
      case 2:
        bad->keys.push_back(GgufBuilder::Key(key));
        break;
      case 3:
        key.type = static_cast<uint32_t>(odd_number(key.type));
        break;
      case 4:
        key.value = any_of(bad->keys).value;
        break;
      default:
        damage_value(&key);
    }
  }

  void damage_value(GgufBuilder::Key* key) {
    const auto type = static_cast<GgufType>(key->type);
    Bytes& value = key->value;
    if (type == GgufType::array) return damage_elements(key);
    if (type == GgufType::text && value.size() >= 8) {
      if (below_(4) == 0) return set_number(&value, 0, 8, odd_number(value.size() - 8));
      const std::string text(value.begin() + 8, value.end());
      value.clear();
      return put_text(&value, odd_text(text));
    }
    if (type == GgufType::f32 && value.size() == 4 && below_(2)) {
      value.clear();
      return put(&value, odd_float());
    }
    set_number(&value, 0, value.size(), odd_number(number(value, 0, value.size())));
  }

  void damage_array(GgufBuilder* bad) {
    std::vector<GgufBuilder::Key*> arrays;
    for (GgufBuilder::Key& key : bad->keys)
      if (key.type == static_cast<uint32_t>(GgufType::array)) arrays.push_back(&key);
    if (arrays.empty()) return;
    GgufBuilder::Key* key = any_of(arrays);
    note("array " + key->name);
    damage_elements(key);
  }

  // The element type, the count, or some elements.
  void damage_elements(GgufBuilder::Key* key) {
    constexpr size_t kStart = 12;  // behind type and count
    Bytes& value = key->value;
    if (value.size() < kStart) return;
    const uint64_t count = number(value, 4, 8);
    const auto type = static_cast<GgufType>(number(value, 0, 4));
    const size_t size = type_bytes(type);
    switch (below_(8)) {
      case 0:
        return set_number(&value, 0, 4, odd_number(number(value, 0, 4)));
      case 1:
        return set_number(&value, 4, 8, odd_number(count));
      default:
        if (type == GgufType::text) return damage_texts(&value, count);
        const size_t held = size ? (value.size() - kStart) / size : 0;
        if (held == 0) return;
        const size_t at = kStart + below_(static_cast<uint32_t>(held)) * size;
        if (type != GgufType::f32 || below_(2))
          return set_number(&value, at, size, odd_number(number(value, at, size)));
        const float wrong = odd_float();
        std::memcpy(value.data() + at, &wrong, sizeof wrong);
    }
  }

  void damage_texts(Bytes* value, uint64_t count) {
    std::vector<std::string> texts;
    for (size_t at = 12; texts.size() < count && value->size() - at >= 8;) {
      const uint64_t length = number(*value, at, 8);
      at += 8;
      if (length > value->size() - at) break;
      texts.emplace_back(reinterpret_cast<const char*>(value->data()) + at, length);
      at += length;
    }
    if (texts.empty()) return;
    const uint32_t changes = below_(8) ? 1 : static_cast<uint32_t>(texts.size());
    for (uint32_t i = 0; i < changes; ++i) {
      std::string& text = any_of(texts);
      text = below_(3) ? odd_text(text) : std::string(any_of(texts));
    }
    if (below_(8) == 0) texts.resize(below_(static_cast<uint32_t>(texts.size() + 3)));
    value->clear();
    put(value, static_cast<uint32_t>(GgufType::text));
    put<uint64_t>(value, texts.size());
    for (const std::string& text : texts) put_text(value, text);
  }

  void damage_template(GgufBuilder* bad) {
    for (GgufBuilder::Key& key : bad->keys) {
      if (key.name != "tokenizer.chat_template" || key.value.size() < 8) continue;
      std::string text(key.value.begin() + 8, key.value.end());
      const uint32_t changes = 1 + below_(3);
      for (uint32_t i = 0; i < changes; ++i) text = odd_text(text);
      note("template " + text);
      key.value.clear();
      return put_text(&key.value, text);
    }
  }

  void damage_tensor(GgufBuilder* bad) {
    if (bad->tensors.empty()) return;
    const size_t index = below_(static_cast<uint32_t>(bad->tensors.size()));
    GgufBuilder::TensorEntry& tensor = bad->tensors[index];
    note("tensor " + tensor.name);
    switch (below_(12)) {
      case 0:
        tensor.name = odd_text(tensor.name);
        break;
      case 1:
        tensor.name_length = odd_number(tensor.name.size());
        break;
      case 2:
        tensor.dimensions = static_cast<uint32_t>(odd_number(tensor.shape.size()));
        break;
      case 3:
        tensor.offset = odd_number(0) * (below_(2) ? 1 : 32);
        break;
      case 4:
        tensor.format = below_(42);
        break;
      case 5:
        bad->tensors.erase(bad->tensors.begin() + static_cast<ptrdiff_t>(index));
        break;
      case 6:
        bad->tensors.push_back(GgufBuilder::TensorEntry(tensor));
        break;
      case 7:
        std::reverse(tensor.shape.begin(), tensor.shape.end());
        break;
      case 8:
        tensor.data.resize(below_(static_cast<uint32_t>(tensor.data.size() + 1)));
        break;
      case 9:
        for (uint32_t i = 0; i < 4 && !tensor.data.empty(); ++i)
          any_of(tensor.data) = static_cast<uint8_t>(below_(2) ? 0xff : below_(256));
        break;
      default:
        any_of(tensor.shape) = odd_number(any_of(tensor.shape));
    }
  }

  // Flips, sets, cuts out, doubles and swaps within the first `header` bytes.
  void damage_bytes(Bytes* bytes, size_t header) {
    if (header < 32) return;
    const auto place = [&] { return below_(static_cast<uint32_t>(header)); };
    const size_t at = place(), length = 1 + below_(below_(2) ? 8 : 64);
    const auto end = std::min(at + length, bytes->size());
    const auto first = bytes->begin() + static_cast<ptrdiff_t>(at);
    const auto last = bytes->begin() + static_cast<ptrdiff_t>(end);
    note("bytes at " + std::to_string(at));
    switch (below_(6)) {
      case 0:
        (*bytes)[at] ^= static_cast<uint8_t>(1 << below_(8));
        break;
      case 1:
        std::fill(first, last, static_cast<uint8_t>(below_(2) ? 0xff : below_(256)));
        break;
      case 2:
        bytes->erase(first, last);
        break;
      case 3: {
        const Bytes copy(first, last);
        bytes->insert(first, copy.begin(), copy.end());
        break;
      }
      case 4:
        for (size_t i = at, j = place(); i < end && j < header; ++i, ++j)
          std::swap((*bytes)[i], (*bytes)[j]);
        break;
      default:
        if (below_(8) == 0)
          bytes->resize(at);
        else
          (*bytes)[at] = static_cast<uint8_t>(below_(256));
    }
  }

  static uint64_t number(const Bytes& bytes, size_t at, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, std::min<size_t>({size, 8, bytes.size() - at}));
    return value;
  }
  static void set_number(Bytes* bytes, size_t at, size_t size, uint64_t value) {
    if (bytes->size() > at)
      std::memcpy(bytes->data() + at, &value, std::min<size_t>({size, 8, bytes->size() - at}));
  }

  Below below_;
  std::string what_;
};

}  // namespace mote::test
