#include "tools/developer/safetensors.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "quant/quant.h"
#include "tools/failure.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100u << 20;  // as the format's own reader has it

struct TypeBytes {
  const char* name;
  uint32_t bytes;
};
constexpr TypeBytes kTypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                                {"U64", 8}, {"I32", 4}, {"U32", 4}, {"I16", 2},  {"U16", 2},
                                {"I8", 1},  {"U8", 1},  {"BOOL", 1}};

template <class T, class Out>
void convert(const uint8_t* data, size_t count, Out* out) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    out[i] = static_cast<Out>(value);
  }
}

template <class Out>
bool convert_plain(const std::string& dtype, const uint8_t* data, size_t count, Out* out) {
  if (dtype == "F64") return convert<double>(data, count, out), true;
  if (dtype == "F32") return convert<float>(data, count, out), true;
  if (dtype == "I64") return convert<int64_t>(data, count, out), true;
  if (dtype == "U64") return convert<uint64_t>(data, count, out), true;
  if (dtype == "I32") return convert<int32_t>(data, count, out), true;
  if (dtype == "U32") return convert<uint32_t>(data, count, out), true;
  if (dtype == "I16") return convert<int16_t>(data, count, out), true;
  if (dtype == "U16") return convert<uint16_t>(data, count, out), true;
  if (dtype == "I8") return convert<int8_t>(data, count, out), true;
  if (dtype == "U8" || dtype == "BOOL") return convert<uint8_t>(data, count, out), true;
  return false;
}

bool natural_number(const Json& value, uint64_t* out) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<int64_t>() < 0))
    return false;
  *out = value.get<uint64_t>();
  return true;
}

// One row of the header. Returns what is wrong with it, or null.
const char* parse_entry(const Json& json, uint64_t data_start, uint64_t file_bytes,
                        SafetensorsEntry* entry) {
  if (!json.is_object()) return "expected an object";
  const auto dtype = json.find("dtype"), shape = json.find("shape"),
             offsets = json.find("data_offsets");
  if (dtype == json.end() || !dtype->is_string()) return "dtype is missing or not a text";
  if (shape == json.end() || !shape->is_array()) return "shape is missing or not an array";
  if (offsets == json.end() || !offsets->is_array() || offsets->size() != 2)
    return "data_offsets is missing or not a pair";
  entry->dtype = dtype->get<std::string>();
  const uint32_t type_bytes = safetensors_type_bytes(entry->dtype);
  if (type_bytes == 0) return "dtype is not known";
  uint64_t bytes = type_bytes;
  for (const Json& item : *shape) {
    uint64_t size = 0;
    if (!natural_number(item, &size)) return "shape holds something that is not a natural number";
    if (__builtin_mul_overflow(bytes, size, &bytes)) return "shape is too large";
    entry->shape.push_back(size);
  }
  uint64_t first = 0, last = 0;
  if (!natural_number((*offsets)[0], &first) || !natural_number((*offsets)[1], &last) ||
      first > last)
    return "data_offsets are not an ascending pair of natural numbers";
  if (last > file_bytes - data_start) return "data lies behind the end of the file";
  if (last - first != bytes) return "data_offsets do not agree with dtype and shape";
  entry->offset = data_start + first;
  entry->bytes = bytes;
  return nullptr;
}

std::string system_error() { return std::strerror(errno); }

}  // namespace

uint64_t SafetensorsEntry::values() const {
  uint64_t count = 1;
  for (uint64_t size : shape) count *= size;
  return count;
}

std::string SafetensorsEntry::describe() const {
  std::string text = dtype + " [";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

uint32_t safetensors_type_bytes(const std::string& dtype) {
  for (const TypeBytes& type : kTypes)
    if (dtype == type.name) return type.bytes;
  return 0;
}

SafetensorsReader::SafetensorsReader(const std::string& path) : path_(path) {
  errno = 0;
  file_.open(path, std::ios::binary | std::ios::ate);
  if (!file_) throw Failure(path + ": cannot open: " + system_error());
  const auto end = file_.tellg();
  if (end < 0) throw Failure(path + ": cannot read: " + system_error());
  const auto file_bytes = static_cast<uint64_t>(end);
  uint8_t length[8];
  file_.seekg(0);
  if (file_bytes < 8 || !file_.read(reinterpret_cast<char*>(length), 8))
    throw Failure(path + ": not a safetensors file: only " + std::to_string(file_bytes) + " bytes");
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | length[i];
  if (header_bytes > file_bytes - 8 || header_bytes > kMaxHeaderBytes)
    throw Failure(path + ": header of " + std::to_string(header_bytes) +
                  " bytes, but the file has " + std::to_string(file_bytes) +
                  ": damaged, cut short or not a safetensors file");
  std::string header(header_bytes, '\0');
  if (!file_.read(header.data(), static_cast<std::streamsize>(header_bytes)))
    throw Failure(path + ": cannot read the header: " + system_error());
  parse(header, 8 + header_bytes, file_bytes);
}

void SafetensorsReader::parse(const std::string& header, uint64_t data_start, uint64_t file_bytes) {
  const Json json = Json::parse(header, nullptr, false);
  if (!json.is_object()) throw Failure(path_ + ": the header is not a JSON object");
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") continue;
    SafetensorsEntry entry;
    if (const char* wrong = parse_entry(value, data_start, file_bytes, &entry))
      throw Failure(path_ + ": tensor " + name + ": " + wrong);
    entries_.emplace(name, std::move(entry));
  }
  check_coverage(data_start, file_bytes);
}

void SafetensorsReader::check_coverage(uint64_t data_start, uint64_t file_bytes) const {
  std::vector<std::pair<const std::string*, const SafetensorsEntry*>> order;
  for (const auto& [name, entry] : entries_) order.emplace_back(&name, &entry);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second->offset != b.second->offset ? a.second->offset < b.second->offset
                                                : a.second->bytes < b.second->bytes;
  });
  uint64_t at = data_start;
  for (const auto& [name, entry] : order) {
    if (entry->offset != at)
      throw Failure(path_ + ": tensor " + *name + " starts at byte " +
                    std::to_string(entry->offset) + ", expected " + std::to_string(at) +
                    ": tensors overlap or leave a gap");
    at += entry->bytes;
  }
  if (at != file_bytes)
    throw Failure(path_ + ": the tensors end at byte " + std::to_string(at) + ", the file at " +
                  std::to_string(file_bytes));
}

const SafetensorsEntry* SafetensorsReader::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

const SafetensorsEntry& SafetensorsReader::at(const std::string& name) const {
  if (const SafetensorsEntry* entry = find(name)) return *entry;
  throw Failure(path_ + ": there is no tensor " + name);
}

void SafetensorsReader::read(const SafetensorsEntry& entry, uint64_t first, uint64_t bytes,
                             void* out) {
  if (first > entry.bytes || bytes > entry.bytes - first)
    throw Failure(path_ + ": read behind the end of a tensor");
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(entry.offset + first));
  if (!file_.read(static_cast<char*>(out), static_cast<std::streamsize>(bytes)))
    throw Failure(path_ + ": cannot read: " + system_error());
}

std::vector<float> SafetensorsReader::read_floats(const std::string& name) {
  const SafetensorsEntry& entry = at(name);
  std::vector<uint8_t> bytes(entry.bytes);
  read(entry, 0, entry.bytes, bytes.data());
  std::vector<float> values(entry.values());
  values_to_f32(entry.dtype, bytes.data(), values.size(), values.data());
  return values;
}

std::vector<int64_t> SafetensorsReader::read_integers(const std::string& name) {
  const SafetensorsEntry& entry = at(name);
  std::vector<uint8_t> bytes(entry.bytes);
  read(entry, 0, entry.bytes, bytes.data());
  std::vector<int64_t> values(entry.values());
  if (entry.dtype[0] == 'F' ||
      !convert_plain(entry.dtype, bytes.data(), values.size(), values.data()))
    throw Failure(path_ + ": tensor " + name + ": expected integers, found " + entry.describe());
  return values;
}

SafetensorsWriter::SafetensorsWriter(std::string path)
    : path_(std::move(path)), temporary_(path_ + "." + std::to_string(::getpid()) + ".partial") {}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_.is_open()) {
    file_.close();
    std::remove(temporary_.c_str());
  }
}

void SafetensorsWriter::declare(const std::string& name, const std::string& dtype,
                                std::vector<uint64_t> shape) {
  SafetensorsEntry entry;
  entry.dtype = dtype;
  entry.shape = std::move(shape);
  entry.bytes = entry.values() * safetensors_type_bytes(dtype);
  entries_[name] = std::move(entry);
  order_.push_back(name);
}

void SafetensorsWriter::begin(const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const std::string& name : order_) {
    SafetensorsEntry& entry = entries_[name];
    entry.offset = at;
    at += entry.bytes;
    header[name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.offset, at}}};
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts aligned
  for (auto& [name, entry] : entries_) entry.offset += 8 + text.size();
  std::error_code ignored;
  const auto found = std::filesystem::status(path_, ignored);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found))
    throw Failure(path_ + ": expected a file or nothing there, found a folder, device or pipe");
  errno = 0;
  file_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!file_) throw Failure(path_ + ": cannot create " + temporary_ + ": " + system_error());
  uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<uint8_t>(uint64_t{text.size()} >> (8 * i));
  file_.write(reinterpret_cast<const char*>(length), 8);
  file_.write(text.data(), static_cast<std::streamsize>(text.size()));
}

void SafetensorsWriter::write(const std::string& name, uint64_t first, const void* data,
                              uint64_t bytes) {
  const SafetensorsEntry& entry = entries_.at(name);
  if (first > entry.bytes || bytes > entry.bytes - first)
    throw Failure(path_ + ": tensor " + name + ": more was written than declared");
  file_.seekp(static_cast<std::streamoff>(entry.offset + first));
  if (!file_.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes)))
    throw Failure(temporary_ + ": cannot write: " + system_error());
}

void SafetensorsWriter::finish() {
  file_.flush();
  const bool written = static_cast<bool>(file_);
  file_.close();
  if (!written || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const std::string reason = system_error();
    std::remove(temporary_.c_str());
    throw Failure(path_ + ": cannot write: " + reason);
  }
}

void values_to_f32(const std::string& dtype, const uint8_t* data, size_t count, float* out) {
  if (dtype == "F16" || dtype == "BF16") {
    const bool brain = dtype == "BF16";
    for (size_t i = 0; i < count; ++i) {
      uint16_t bits;
      std::memcpy(&bits, data + 2 * i, 2);
      out[i] = brain ? quant::bf16_to_f32(bits) : quant::f16_to_f32(bits);
    }
  } else if (!convert_plain(dtype, data, count, out)) {
    throw Failure("type " + dtype + " cannot be read as floats");
  }
}

}  // namespace mote::tool
