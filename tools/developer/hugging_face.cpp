#include "tools/developer/hugging_face.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tools/failure.h"
#include "tools/json_depth.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;

std::string shorten(std::string text) {
  return text.size() > 120 ? text.substr(0, 120) + "..." : text;
}
std::string show(const Json& value) {
  return shorten(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

Config::Config(std::string path, Json value) : path_(std::move(path)), value_(std::move(value)) {
  if (!value_.is_object()) throw Failure(path_ + ": expected a JSON object");
}

void Config::fail(const std::string& key, const std::string& what) const {
  throw Failure(path_ + ": " + prefix_ + key + ": " + what);
}

const Json* Config::find(const char* key) const {
  const auto found = value_.find(key);
  return found == value_.end() || found->is_null() ? nullptr : &*found;
}

std::string Config::shown(const char* key) const {
  const auto found = value_.find(key);
  return found == value_.end() ? "nothing" : show(*found);
}

uint32_t Config::number(const char* key) const {
  const Json* value = find(key);
  if (!value) fail(key, "is missing");
  if (!value->is_number_integer() || (!value->is_number_unsigned() && value->get<int64_t>() < 1) ||
      value->get<uint64_t>() < 1 || value->get<uint64_t>() > UINT32_MAX)
    fail(key, "expected a whole number from 1 to 4294967295, found " + show(*value));
  return value->get<uint32_t>();
}

uint32_t Config::number(const char* key, uint32_t fallback) const {
  return has(key) ? number(key) : fallback;
}

double Config::real(const char* key) const {
  const Json* value = find(key);
  if (!value) fail(key, "is missing");
  if (!value->is_number() || !std::isfinite(value->get<double>()))
    fail(key, "expected a number, found " + show(*value));
  return value->get<double>();
}

double Config::real(const char* key, double fallback) const {
  return has(key) ? real(key) : fallback;
}

bool Config::boolean(const char* key, bool fallback) const {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_boolean()) fail(key, "expected true or false, found " + show(*value));
  return value->get<bool>();
}

std::string Config::text(const char* key) const {
  const Json* value = find(key);
  if (!value) fail(key, "is missing");
  if (!value->is_string()) fail(key, "expected a text, found " + show(*value));
  return value->get<std::string>();
}

std::string Config::text(const char* key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

Config Config::child(const char* key) const {
  Config inner;
  inner.path_ = path_;
  inner.prefix_ = prefix_ + key + ".";
  if (const Json* value = find(key)) {
    if (!value->is_object()) fail(key, "expected an object, found " + show(*value));
    inner.value_ = *value;
  }
  return inner;
}

HuggingFaceFolder::HuggingFaceFolder(std::string path, Weights weights) : path_(std::move(path)) {
  std::error_code error;
  if (!std::filesystem::is_directory(path_, error))
    throw Failure(path_ + ": is not a folder; convert reads a Hugging Face model folder");
  std::optional<Config> config = json_file("config.json");
  if (!config) throw Failure(path_ + ": there is no config.json");
  config_ = *std::move(config);
  if (weights == Weights::all) open_weights();
}

bool HuggingFaceFolder::has_file(const char* name) const {
  std::error_code error;
  return std::filesystem::is_regular_file(std::filesystem::path(path_) / name, error);
}

std::optional<std::string> HuggingFaceFolder::text_file(const char* name) const {
  if (!has_file(name)) return std::nullopt;
  const std::string path = (std::filesystem::path(path_) / name).string();
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw Failure(path + ": cannot read");
  return text;
}

std::optional<Json> HuggingFaceFolder::parse_file(const char* name) const {
  const std::optional<std::string> text = text_file(name);
  if (!text) return std::nullopt;
  if (nested_deeply(*text))
    throw Failure(path_of(name) + ": arrays and objects are nested too deeply");
  try {
    return Json::parse(*text);
  } catch (const Json::exception& error) {
    throw Failure(path_of(name) + ": cannot be read as JSON: " + error.what());
  }
}

std::string HuggingFaceFolder::path_of(const char* name) const {
  return (std::filesystem::path(path_) / name).string();
}

std::optional<Config> HuggingFaceFolder::json_file(const char* name) const {
  std::optional<Json> value = parse_file(name);
  if (!value) return std::nullopt;
  return Config(path_of(name), *std::move(value));
}

std::optional<std::vector<Config>> HuggingFaceFolder::json_list(const char* name) const {
  const std::optional<Json> value = parse_file(name);
  if (!value) return std::nullopt;
  if (!value->is_array()) throw Failure(path_of(name) + ": expected a JSON array");
  std::vector<Config> list;
  for (const Json& item : *value) list.emplace_back(path_of(name), item);
  return list;
}

SafetensorsReader* HuggingFaceFolder::open_file(const std::string& name) {
  std::unique_ptr<SafetensorsReader>& file = files_[name];
  if (!file)
    file = std::make_unique<SafetensorsReader>((std::filesystem::path(path_) / name).string());
  return file.get();
}

void HuggingFaceFolder::open_weights() {
  if (has_file("model.safetensors")) {
    SafetensorsReader* file = open_file("model.safetensors");
    for (const auto& [name, entry] : file->entries()) weights_[name] = {file, &entry};
    return;
  }
  if (const std::optional<Config> index = json_file("model.safetensors.index.json"))
    return open_shards(*index);
  if (has_file("pytorch_model.bin") || has_file("pytorch_model.bin.index.json"))
    throw Failure(
        path_ +
        ": the weights are in pytorch_model.bin, a format that can run programs and is not read "
        "here; in "
        "Python load the model and call model.save_pretrained(folder, safe_serialization=True)");
  throw Failure(path_ + ": there is neither model.safetensors nor model.safetensors.index.json");
}

void HuggingFaceFolder::open_shards(const Config& index) {
  const Config map = index.child("weight_map");
  if (map.json().empty()) index.fail("weight_map", "is missing or empty");
  for (const auto& [name, value] : map.json().items()) {
    const std::string file_name = value.is_string() ? value.get<std::string>() : "";
    // A shard lies in the folder itself: a path could lead anywhere.
    if (file_name.empty() || file_name[0] == '.' ||
        file_name.find_first_of("/\\") != std::string::npos)
      map.fail(name, "expected a file name, found " + show(value));
    if (!has_file(file_name.c_str()))
      throw Failure(path_ + ": shard " + file_name + " is missing; " + index.path() +
                    " says that it holds tensor " + name);
    SafetensorsReader* file = open_file(file_name);
    const SafetensorsEntry* entry = file->find(name);
    if (!entry)
      throw Failure(file->path() + ": there is no tensor " + name + ", but " + index.path() +
                    " says that it is there");
    weights_[name] = {file, entry};
  }
}

}  // namespace mote::tool
