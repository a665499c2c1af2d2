// What a GGUF file holds, for people: it needs no model that mote can run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mote::tool {

struct ListedKey {
  std::string name, type;
  nlohmann::ordered_json value;  // of a long array: its first elements
  uint64_t count = 1;            // of an array
};

struct ListedTensor {
  std::string name, format;
  std::vector<uint64_t> shape;  // as the file has it: the first is the fastest
  uint64_t bytes = 0;
};

struct FileListing {
  uint32_t version = 0;
  uint64_t file_bytes = 0, parameters = 0;
  std::string architecture;
  std::vector<ListedKey> keys;
  std::vector<ListedTensor> tensors;
};

// Throws Failure for a damaged file.
FileListing list_file(const std::string& path);

}  // namespace mote::tool
