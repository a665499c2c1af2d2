// Reads and writes safetensors files in tests: a JSON header behind its 8-byte length, then the
// tensors' bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace mote::test {

struct SafeTensor {
  std::string dtype;  // F32, F16, BF16, I32, I64, U8, BOOL, ...
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  size_t count() const {
    size_t n = 1;
    for (int64_t size : shape) n *= static_cast<size_t>(size);
    return n;
  }
  // Any of the types above, as floats or integers.
  std::vector<float> floats() const { return convert<float>(); }
  std::vector<double> doubles() const { return convert<double>(); }
  std::vector<int32_t> ints() const { return convert<int32_t>(); }
  std::vector<int64_t> longs() const { return convert<int64_t>(); }

 private:
  template <class From, class To>
  void read(std::vector<To>* out) const {
    for (size_t i = 0; i < out->size(); ++i) {
      From value;
      std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
      (*out)[i] = static_cast<To>(value);
    }
  }
  template <class To>
  std::vector<To> convert() const {
    std::vector<To> out(count());
    if (dtype == "F32")
      read<float>(&out);
    else if (dtype == "F64")
      read<double>(&out);
    else if (dtype == "I64")
      read<int64_t>(&out);
    else if (dtype == "I32")
      read<int32_t>(&out);
    else if (dtype == "I8")
      read<int8_t>(&out);
    else if (dtype == "U8" || dtype == "BOOL")
      read<uint8_t>(&out);
    else if (dtype == "BF16") {
      for (size_t i = 0; i < out.size(); ++i) {
        uint16_t half;
        std::memcpy(&half, bytes.data() + i * 2, 2);
        const uint32_t bits = static_cast<uint32_t>(half) << 16;
        float value;
        std::memcpy(&value, &bits, 4);
        out[i] = static_cast<To>(value);
      }
    } else {
      throw std::runtime_error("safetensors: type " + dtype + " is not read here");
    }
    return out;
  }
};

class SafeTensors {
 public:
  SafeTensors() = default;
  // Throws std::runtime_error where the file is missing or damaged (a test then fails with its
  // message).
  explicit SafeTensors(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path + ": cannot open");
    const std::vector<char> data((std::istreambuf_iterator<char>(file)), {});
    uint64_t header_bytes = 0;
    if (data.size() < 8) throw std::runtime_error(path + ": too short");
    std::memcpy(&header_bytes, data.data(), 8);
    if (header_bytes > data.size() - 8) throw std::runtime_error(path + ": header is cut off");
    const char* body = data.data() + 8 + header_bytes;
    const size_t body_bytes = data.size() - 8 - header_bytes;
    const auto header = nlohmann::json::parse(data.data() + 8, body);
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      SafeTensor tensor;
      tensor.dtype = entry.at("dtype").get<std::string>();
      tensor.shape = entry.at("shape").get<std::vector<int64_t>>();
      const auto first = entry.at("data_offsets").at(0).get<uint64_t>();
      const auto last = entry.at("data_offsets").at(1).get<uint64_t>();
      if (first > last || last > body_bytes)
        throw std::runtime_error(path + ": " + name + " lies outside the file");
      tensor.bytes.assign(body + first, body + last);
      tensors_.emplace(name, std::move(tensor));
    }
  }

  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  const SafeTensor& operator[](const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw std::runtime_error("safetensors: no tensor " + name);
    return found->second;
  }
  std::vector<float> floats(const std::string& name) const { return (*this)[name].floats(); }
  std::vector<int32_t> ints(const std::string& name) const { return (*this)[name].ints(); }
  const std::map<std::string, SafeTensor>& all() const { return tensors_; }

 private:
  std::map<std::string, SafeTensor> tensors_;
};

}  // namespace mote::test
