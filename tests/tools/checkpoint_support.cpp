#include "tests/tools/checkpoint_support.h"

#include <cstdlib>
#include <filesystem>

#include "tests/support/tiny_model.h"

namespace mote::test {

std::string tiny_folder(const std::string& name) {
  const char* shared = std::getenv("MOTE_SHARED_DIR");
  for (const std::string& base : {std::string(MOTE_TEST_DATA "/tiny/"),
                                  (shared ? shared : "") + std::string("/goldens/tiny/")})
    if (std::filesystem::exists(base + name + "/config.json")) return base + name;
  return "";
}

Checkpoint Checkpoint::load(const std::string& name) {
  const std::string folder = tiny_folder(name);
  Checkpoint checkpoint;
  checkpoint.config = Json::parse(read_all(folder + "/config.json"));
  checkpoint.tensors = SafeTensors(folder + "/model.safetensors").all();
  if (std::filesystem::exists(folder + "/generation_config.json"))
    checkpoint.files["generation_config.json"] = read_all(folder + "/generation_config.json");
  return checkpoint;
}

Json Checkpoint::tokenizer_json() {
  Json vocab = Json::object(), merges = Json::array(), added = Json::array();
  const auto tokens = TinyModel::tokens();
  for (size_t i = 0; i < tokens.size(); ++i)
    if (i < 3)
      added.push_back(
          {{"id", i}, {"content", tokens[i]}, {"special", true}, {"normalized", false}});
    else
      vocab[tokens[i]] = i;
  for (const std::string& merge : TinyModel::merges()) merges.push_back(merge);
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Digits"}, {"individual_digits", true}},
              {{"type", "ByteLevel"},
               {"add_prefix_space", false},
               {"trim_offsets", true},
               {"use_regex", true}}}}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

std::string safetensors_bytes(const std::map<std::string, SafeTensor>& tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string body;
  for (const auto& [name, tensor] : tensors) {
    const size_t first = body.size();
    body.append(tensor.bytes.begin(), tensor.bytes.end());
    header[name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {first, body.size()}}};
  }
  const std::string text = header.dump();
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(text.size() >> (8 * i));
  return bytes + text + body;
}

std::string Checkpoint::write(const TemporaryFolder& folder, const std::string& name,
                              size_t shards) const {
  const std::string path = folder.path(name);
  std::filesystem::create_directory(path);
  folder.write(name + "/config.json", config.dump());
  for (const auto& [file, text] : files) {
    if (file.find('/') != std::string::npos)
      std::filesystem::create_directories(std::filesystem::path(path + "/" + file).parent_path());
    folder.write(name + "/" + file, text);
  }
  if (shards == 1) {
    folder.write(name + "/model.safetensors", safetensors_bytes(tensors));
    return path;
  }
  std::vector<std::map<std::string, SafeTensor>> parts(shards);
  Json map;
  size_t next = 0;
  for (const auto& [tensor_name, tensor] : tensors) {
    const size_t part = next++ % shards;
    parts[part][tensor_name] = tensor;
    map[tensor_name] = "model-" + std::to_string(part) + ".safetensors";
  }
  for (size_t i = 0; i < shards; ++i)
    folder.write(name + "/model-" + std::to_string(i) + ".safetensors",
                 safetensors_bytes(parts[i]));
  folder.write(name + "/model.safetensors.index.json",
               Json{{"metadata", Json::object()}, {"weight_map", map}}.dump());
  return path;
}

}  // namespace mote::test
