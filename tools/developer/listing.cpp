#include "tools/developer/listing.h"

#include <algorithm>
#include <cstring>

#include "core/gguf.h"
#include "core/mapped_file.h"
#include "tools/developer/status.h"

namespace mote::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kShownElements = 8;

template <class T>
T load(const uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

// The element of a number type at data; *bytes gets its size.
Json number(GgufType type, const uint8_t* data, size_t* bytes) {
  const auto as = [&](auto value) {
    *bytes = sizeof value;
    return Json(value);
  };
  switch (type) {
    case GgufType::u8:
      return as(load<uint8_t>(data));
    case GgufType::i8:
      return as(load<int8_t>(data));
    case GgufType::u16:
      return as(load<uint16_t>(data));
    case GgufType::i16:
      return as(load<int16_t>(data));
    case GgufType::u32:
      return as(load<uint32_t>(data));
    case GgufType::i32:
      return as(load<int32_t>(data));
    case GgufType::f32:
      return as(load<float>(data));
    case GgufType::boolean:
      return as(load<uint8_t>(data) != 0);
    case GgufType::u64:
      return as(load<uint64_t>(data));
    case GgufType::i64:
      return as(load<int64_t>(data));
    case GgufType::f64:
      return as(load<double>(data));
    case GgufType::text:
    case GgufType::array:
      break;
  }
  *bytes = 0;
  return nullptr;
}

Json array(const GgufKey& key) {
  Json values = Json::array();
  const uint64_t shown = std::min(key.count, kShownElements);
  if (key.element == GgufType::text) {
    GgufTexts texts(key);
    std::string_view text;
    while (values.size() < shown && texts.next(&text)) values.push_back(std::string(text));
    return values;
  }
  const uint8_t* at = key.data;
  for (uint64_t i = 0; i < shown; ++i) {
    size_t bytes = 0;
    values.push_back(number(key.element, at, &bytes));
    at += bytes;
  }
  return values;
}

ListedKey list_key(const GgufKey& key) {
  ListedKey listed;
  listed.name = std::string(key.name);
  listed.type = type_name(key.type);
  if (key.type == GgufType::array) {
    listed.type = std::string("array of ") + type_name(key.element);
    listed.count = key.count;
    listed.value = array(key);
  } else if (key.type == GgufType::text) {
    listed.value = std::string(reinterpret_cast<const char*>(key.data), key.bytes);
  } else {
    size_t bytes = 0;
    listed.value = number(key.type, key.data, &bytes);
  }
  return listed;
}

}  // namespace

FileListing list_file(const std::string& path) {
  Allocator allocator;
  MappedFile mapped;
  check(mapped.open(path.c_str(), 0, allocator));
  GgufFile file;
  check(file.open(mapped.data(), mapped.size(), path, allocator));
  FileListing listing;
  listing.version = file.version();
  listing.file_bytes = mapped.size();
  std::string_view architecture;
  check(file.get_text("general.architecture", "", &architecture));
  listing.architecture = std::string(architecture);
  for (const GgufKey& key : file.keys()) listing.keys.push_back(list_key(key));
  for (const Tensor& tensor : file.tensors()) {
    listing.tensors.push_back({std::string(tensor.name),
                               format_info(tensor.format).name,
                               {tensor.shape, tensor.shape + tensor.dimensions},
                               tensor.bytes});
    listing.parameters += tensor.values();
  }
  return listing;
}

}  // namespace mote::tool
