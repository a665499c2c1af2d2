// A model folder as Hugging Face's libraries write it: config.json, safetensors (one file or
// shards), tokenizer files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/developer/safetensors.h"

namespace mote::tool {

// A JSON object from a file; what is wrong with a value is said with the file's name and the key.
class Config {
 public:
  Config() = default;
  Config(std::string path, nlohmann::json value);

  const std::string& path() const { return path_; }
  const nlohmann::json& json() const { return value_; }
  // A key that is null counts as absent.
  const nlohmann::json* find(const char* key) const;
  bool has(const char* key) const { return find(key) != nullptr; }

  uint32_t number(const char* key) const;  // at least 1
  uint32_t number(const char* key, uint32_t fallback) const;
  double real(const char* key) const;
  double real(const char* key, double fallback) const;
  bool boolean(const char* key, bool fallback) const;
  std::string text(const char* key) const;
  std::string text(const char* key, const std::string& fallback) const;
  // The object under a key, for messages "path: key.inner". Absent: an empty one.
  Config child(const char* key) const;

  // The value of a key for a message, shortened.
  std::string shown(const char* key) const;

  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  std::string path_, prefix_;
  nlohmann::json value_ = nlohmann::json::object();
};

class HuggingFaceFolder {
 public:
  enum class Weights { all, none };
  // Opens config.json and the headers of all weights, or of none. Throws Failure.
  explicit HuggingFaceFolder(std::string path, Weights weights = Weights::all);

  const std::string& path() const { return path_; }
  const Config& config() const { return config_; }
  // A JSON file of the folder, if it is there.
  std::optional<Config> json_file(const char* name) const;
  // A JSON file that is a list of objects.
  std::optional<std::vector<Config>> json_list(const char* name) const;
  std::optional<std::string> text_file(const char* name) const;
  bool has_file(const char* name) const;

  struct Weight {
    SafetensorsReader* file;
    const SafetensorsEntry* entry;
  };
  const std::map<std::string, Weight>& weights() const { return weights_; }

 private:
  std::optional<nlohmann::json> parse_file(const char* name) const;
  std::string path_of(const char* name) const;
  void open_weights();
  void open_shards(const Config& index);
  SafetensorsReader* open_file(const std::string& name);

  std::string path_;
  Config config_;
  std::map<std::string, std::unique_ptr<SafetensorsReader>> files_;
  std::map<std::string, Weight> weights_;
};

}  // namespace mote::tool
