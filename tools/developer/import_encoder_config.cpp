// What config.json says of encoders only, and of their heads.
#include <algorithm>

#include "tools/developer/import_architecture.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;

// An activation's name in the file for its name in Hugging Face's settings.
std::string activation_name(const Config& config, const char* key, const std::string& fallback) {
  static constexpr const char* kNames[][2] = {
      {"gelu", "gelu"},           {"gelu_python", "gelu"}, {"gelu_new", "gelu_tanh"},
      {"gelu_fast", "gelu_tanh"}, {"silu", "silu"},        {"gelu_pytorch_tanh", "gelu_tanh"},
      {"swish", "silu"},          {"relu", "relu"},        {"tanh", "tanh"}};
  const std::string name = key ? config.text(key, fallback) : fallback;
  for (const auto& row : kNames)
    if (name == row[0]) return row[1];
  config.fail(key, "expected gelu, gelu_new, gelu_pytorch_tanh, relu, silu or tanh, found " + name);
}

// Names in the order of their numbers; empty: the config has none.
std::vector<std::string> label_names(const Config& config) {
  std::vector<std::string> names;
  const Json* labels = config.find("id2label");
  if (!labels) return names;
  const bool object = labels->is_object() && !labels->empty();
  if (!object) config.fail("id2label", "expected an object, found " + config.shown("id2label"));
  for (size_t i = 0; i < labels->size(); ++i) {
    const auto found = labels->find(std::to_string(i));
    if (found == labels->end() || !found->is_string())
      config.fail("id2label", "expected a text for each of 0.." +
                                  std::to_string(labels->size() - 1) + ", there is none for " +
                                  std::to_string(i));
    names.push_back(found->get<std::string>());
  }
  return names;
}

bool has_labels(const HeadRule& head) {
  const std::string task = head.task;
  return task == "classify" || task == "tag";
}

std::string pooling_name(const Config& config, const char* key) {
  const std::string name = config.text(key, "cls");
  if (name != "cls" && name != "mean") config.fail(key, "expected cls or mean, found " + name);
  return name;
}

// sentence-transformers' names of poolings, those that there are here.
constexpr const char* kPoolings[][2] = {{"pooling_mode_mean_tokens", "mean"},
                                        {"pooling_mode_cls_token", "cls"},
                                        {"pooling_mode_max_tokens", "max"},
                                        {"pooling_mode_lasttoken", "last"}};

std::string read_pooling(const Config& config) {
  if (config.has("pooling_mode")) {  // of later versions: one text
    const std::string mode = config.text("pooling_mode");
    if (mode == "lasttoken") return "last";
    for (const auto& row : kPoolings)
      if (mode == row[1]) return mode;
    config.fail("pooling_mode", "expected mean, cls, max or lasttoken, found " + mode);
  }
  std::string pooling;
  for (const auto& row : kPoolings) {
    if (!config.boolean(row[0], false)) continue;
    if (!pooling.empty())
      config.fail(row[0], "expected one pooling only, found " + pooling + " too");
    pooling = row[1];
  }
  for (const auto& [key, value] : config.json().items())
    if (pooling.empty() && key.rfind("pooling_mode_", 0) == 0 && value == true)
      config.fail(key, "expected mean, cls, max or last token, which this is not");
  return pooling.empty() ? "mean" : pooling;
}

// The type without its module: "sentence_transformers.models.Pooling".
std::string module_type(const std::string& type) { return type.substr(type.rfind('.') + 1); }

}  // namespace

void read_encoder(const Config& config, const ImportArchitecture& architecture, ImportSizes* sizes,
                  GgufKeys* keys) {
  const EncoderRule& rule = *architecture.encoder;
  const std::string prefix = std::string(architecture.architecture) + ".";
  sizes->embedding =
      rule.embedding_size ? config.number("embedding_size", sizes->hidden) : sizes->hidden;
  sizes->positions = config.number(architecture.setting(config, "max_position_embeddings"));
  sizes->token_types = rule.token_types ? config.number("type_vocab_size", 2) : 0;
  if (rule.padded_positions) {
    sizes->first_position =
        static_cast<uint32_t>(std::clamp(config.real("pad_token_id", 1), 0.0, 1e9)) + 1;
    if (sizes->first_position >= sizes->positions)
      config.fail("max_position_embeddings", "expected more than pad_token_id + 1");
    keys->set(prefix + "context_length", sizes->positions - sizes->first_position);
  }
  // Beyond these NomicBERT would stretch its rotary positions.
  if (config.has("max_trained_positions"))
    keys->set(prefix + "context_length",
              std::min(sizes->positions, config.number("max_trained_positions")));
  keys->set(prefix + "attention.causal", false);
  if (rule.epsilon != 0.0)
    keys->set(prefix + "attention.layer_norm_epsilon", static_cast<float>(rule.epsilon));
  if (const std::string name = activation_name(config, rule.activation_key, rule.activation);
      rule.activation_key)
    keys->set("mote.activation", name);
  if (sizes->embedding != sizes->hidden) keys->set("mote.embedding_width", sizes->embedding);
  if (rule.groups) {
    sizes->blocks = config.number("num_hidden_groups", 1);
    if (sizes->blocks > sizes->layers)
      config.fail("num_hidden_groups", "expected at most num_hidden_layers");
    keys->set("mote.layer_groups", sizes->blocks);
  }
  if (rule.buckets) {
    sizes->buckets = config.number("relative_attention_num_buckets", 32);
    keys->set(prefix + "attention.relative_buckets_count", sizes->buckets);
  }
  if (sizes->token_types) keys->set("tokenizer.ggml.token_type_count", sizes->token_types);
  if (has_labels(*architecture.head)) {
    const size_t names = label_names(config).size();
    sizes->labels = config.number("num_labels", names ? static_cast<uint32_t>(names) : 2);
    if (names && names != sizes->labels)
      config.fail("num_labels", "expected " + std::to_string(names) + ", as many as id2label has");
  }
}

void read_head(const Config& config, const ImportArchitecture& architecture,
               const ImportSizes& sizes, bool dense, GgufKeys* keys) {
  const HeadRule& head = *architecture.head;
  keys->set("mote.task", std::string(head.task));
  keys->set("mote.head.activation", !dense ? "none"
                                    : head.activation
                                        ? std::string(head.activation)
                                        : activation_name(config, head.activation_key, "gelu"));
  if (!has_labels(head)) return;
  std::vector<std::string> names = label_names(config);
  for (uint32_t i = 0; names.size() < sizes.labels; ++i)
    names.push_back("LABEL_" + std::to_string(i));
  keys->set(std::string(architecture.architecture) + ".classifier.output_labels", names);
  if (std::string(head.task) == "tag") return;
  if (head.pooling_key) keys->set("mote.head.pooling", pooling_name(config, head.pooling_key));
  const std::string problem = config.text("problem_type", "");
  constexpr const char* kProblems[] = {"single_label_classification", "multi_label_classification",
                                       "regression"};
  if (problem.empty()) return;
  if (std::find(std::begin(kProblems), std::end(kProblems), problem) == std::end(kProblems))
    config.fail("problem_type",
                "expected single_label_classification, multi_label_classification or regression, "
                "found " +
                    problem);
  keys->set("mote.head.problem", problem);
}

bool is_sentence_model(const HuggingFaceFolder& folder) {
  const auto modules = folder.json_list("modules.json");
  return modules && std::any_of(modules->begin(), modules->end(), [](const Config& module) {
           return module_type(module.text("type")) == "Pooling";
         });
}

void read_sentence_settings(const HuggingFaceFolder& folder, const ImportArchitecture& architecture,
                            GgufKeys* keys) {
  constexpr uint32_t kMean = 1, kCls = 2, kLast = 3;
  std::string pooling = "mean";
  if (const auto modules = folder.json_list("modules.json")) {
    for (const Config& module : *modules) {
      const std::string type = module_type(module.text("type"));
      const std::string path = module.text("path", "");
      if (type == "Transformer") continue;
      if (type == "Normalize") {
        keys->set("mote.normalize", true);
      } else if (type == "Pooling") {
        const auto config = folder.json_file((path + "/config.json").c_str());
        if (!config) module.fail("path", "there is no " + path + "/config.json");
        pooling = read_pooling(*config);
      } else {
        module.fail("type", "expected Transformer, Pooling or Normalize, found " + type);
      }
    }
  }
  keys->set(std::string(architecture.architecture) + ".pooling_type", pooling == "cls"    ? kCls
                                                                      : pooling == "last" ? kLast
                                                                                          : kMean);
  if (pooling == "max") keys->set("mote.pooling", pooling);
  if (const auto config = folder.json_file("sentence_bert_config.json");
      config && config->has("max_seq_length")) {
    const std::string name = std::string(architecture.architecture) + ".context_length";
    const uint32_t context = std::get<uint32_t>(*keys->find(name));
    keys->set("mote.max_tokens", std::min(config->number("max_seq_length"), context));
  }
}

}  // namespace mote::tool
