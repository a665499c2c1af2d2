#include "tools/developer/import_tokenizer.h"

#include <algorithm>

#include "tools/failure.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;

// The steps of a pre-tokenizer as one text each, so that a whole one is known by comparing texts.
struct KnownPreTokenizer {
  const char* name;
  const char* steps;
};
#define MOTE_LLAMA_STYLE_PATTERN(digits)                                  \
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" digits \
  R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
constexpr KnownPreTokenizer kPreTokenizers[] = {
    {"gpt-2", "bytes with pattern\n"},
    {"smollm", "digits one by one\nbytes with pattern\n"},
    {"llama-bpe", "split at " MOTE_LLAMA_STYLE_PATTERN("{1,3}") "\nbytes\n"},
    {"qwen2", "split at " MOTE_LLAMA_STYLE_PATTERN("") "\nbytes\n"},
};
#undef MOTE_LLAMA_STYLE_PATTERN

bool flag(const Json& json, const char* key, bool fallback) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : fallback;
}
std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

void describe_step(const Json& step, std::string* out) {
  if (!step.is_object()) return void(*out += "?\n");
  const std::string type = text_of(step, "type");
  if (type == "Sequence") {
    const auto inner = step.find("pretokenizers");
    if (inner == step.end() || !inner->is_array()) return void(*out += "?\n");
    for (const Json& item : *inner) describe_step(item, out);
  } else if (type == "Digits") {
    *out += flag(step, "individual_digits", false) ? "digits one by one\n" : "digits in runs\n";
  } else if (type == "ByteLevel" && !flag(step, "add_prefix_space", true)) {
    *out += flag(step, "use_regex", true) ? "bytes with pattern\n" : "bytes\n";
  } else if (type == "Split" && text_of(step, "behavior") == "Isolated" &&
             !flag(step, "invert", false) && step.contains("pattern") &&
             step["pattern"].is_object() && step["pattern"].contains("Regex")) {
    *out += "split at " + text_of(step["pattern"], "Regex") + "\n";
  } else {
    *out += step.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
}

enum TokenType : int32_t { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };

class Importer {
 public:
  Importer(const HuggingFaceFolder& folder, Config tokenizer, uint32_t vocab_size, GgufKeys* keys,
           const Warn& warn)
      : folder_(folder),
        tokenizer_(std::move(tokenizer)),
        model_(tokenizer_.child("model")),
        vocab_size_(vocab_size),
        keys_(*keys),
        warn_(warn) {
    if (auto settings = folder.json_file("tokenizer_config.json")) settings_ = *std::move(settings);
    if (auto special = folder.json_file("special_tokens_map.json")) special_ = *std::move(special);
    if (auto generation = folder.json_file("generation_config.json"))
      generation_ = *std::move(generation);
  }

  void run() {
    check_kind();
    read_tokens();
    read_merges();
    set_special_ids();
    set_frame();
  }

 private:
  void check_kind() {
    const std::string type = model_.text("type", model_.has("merges") ? "BPE" : "?");
    if (type != "BPE" || model_.boolean("byte_fallback", false))
      model_.fail("type", "expected byte-level BPE, found " + type +
                              (type == "BPE" ? " with byte_fallback (SentencePiece)" : "") +
                              "; --no-tokenizer converts the weights alone");
    const Json* pre = tokenizer_.find("pre_tokenizer");
    const std::string name = pre ? pre_tokenizer_name(*pre) : "";
    if (name.empty())
      tokenizer_.fail("pre_tokenizer", "is not known: " + (pre ? pre->dump() : "null") +
                                           "; --no-tokenizer converts the weights alone");
    if (const Json* normalizer = tokenizer_.find("normalizer")) {
      if (text_of(*normalizer, "type") != "NFC" || name != "qwen2")
        tokenizer_.fail("normalizer", "is not known for this tokenizer: " + normalizer->dump());
      warn_(tokenizer_.path() + ": the NFC normalizer is left out: give composed text");
    }
    keys_.set("tokenizer.ggml.model", std::string("gpt2"));
    keys_.set("tokenizer.ggml.pre", name);
  }

  uint32_t token_id(const Json& value, const std::string& token) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= vocab_size_)
      tokenizer_.fail("model.vocab", "token \"" + token + "\": expected an id below vocab_size " +
                                         std::to_string(vocab_size_) + ", found " + value.dump());
    return value.get<uint32_t>();
  }

  void place(uint32_t id, const std::string& token, int32_t type) {
    tokens_[id] = token;
    types_[id] = type;
    ids_[token] = id;
  }

  void read_tokens() {
    tokens_.resize(vocab_size_);
    types_.assign(vocab_size_, kUnused);
    for (uint32_t i = 0; i < vocab_size_; ++i) tokens_[i] = "[PAD" + std::to_string(i) + "]";
    const Config vocab = model_.child("vocab");
    if (vocab.json().empty()) model_.fail("vocab", "is missing or empty");
    for (const auto& [token, id] : vocab.json().items()) {
      const uint32_t number = token_id(id, token);
      if (types_[number] != kUnused)
        vocab.fail(token,
                   "has id " + std::to_string(number) + ", and so has \"" + tokens_[number] + "\"");
      place(number, token, kNormal);
    }
    const Json* added = tokenizer_.find("added_tokens");
    if (!added) return;
    if (!added->is_array()) tokenizer_.fail("added_tokens", "expected an array");
    for (const Json& item : *added) {
      if (!item.is_object() || !item.contains("id") || text_of(item, "content").empty())
        tokenizer_.fail("added_tokens", "expected objects with id and content");
      const std::string content = text_of(item, "content");
      place(token_id(item["id"], content), content,
            flag(item, "special", false) ? kControl : kUserDefined);
    }
  }

  // Both forms: "a b" and ["a", "b"].
  std::string merge_text(const Json& merge, size_t index) const {
    const auto wrong = [&] {
      model_.fail("merges", "item " + std::to_string(index) + ": expected a pair, found " +
                                merge.dump(-1, ' ', false, Json::error_handler_t::replace));
    };
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      const auto left = merge[0].get<std::string>(), right = merge[1].get<std::string>();
      if (left.empty() || right.empty() || (left + right).find(' ') != std::string::npos) wrong();
      return left + " " + right;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t space = text.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == text.size() ||
        text.find(' ', space + 1) != std::string::npos)
      wrong();
    return text;
  }

  void read_merges() {
    const Json* merges = model_.find("merges");
    if (!merges || !merges->is_array()) model_.fail("merges", "expected an array");
    std::vector<std::string> texts;
    texts.reserve(merges->size());
    for (const Json& merge : *merges) texts.push_back(merge_text(merge, texts.size()));
    keys_.set("tokenizer.ggml.tokens", tokens_);
    keys_.set("tokenizer.ggml.token_type", types_);
    keys_.set("tokenizer.ggml.merges", std::move(texts));
  }

  // A special token is a text, or an object with its content.
  static std::string special_text(const Config& config, const char* key) {
    const Json* value = config.find(key);
    if (!value) return "";
    return value->is_string()   ? value->get<std::string>()
           : value->is_object() ? text_of(*value, "content")
                                : "";
  }

  // Ids that a config file gives directly: a number or several.
  std::vector<uint32_t> config_ids(const Config& config, const char* key) const {
    std::vector<uint32_t> ids;
    const auto take = [&](const Json& value) {
      if (value.is_number_unsigned() && value.get<uint64_t>() < vocab_size_)
        ids.push_back(value.get<uint32_t>());
    };
    if (const Json* value = config.find(key)) {
      if (value->is_array())
        for (const Json& item : *value) take(item);
      else
        take(*value);
    }
    return ids;
  }

  bool special_id(const char* token_key, const char* id_key, uint32_t* id) const {
    for (const Config* config : {&settings_, &special_}) {
      const auto found = ids_.find(special_text(*config, token_key));
      if (found != ids_.end()) return *id = found->second, true;
    }
    for (const Config* config : {&generation_, &folder_.config()}) {
      const std::vector<uint32_t> ids = config_ids(*config, id_key);
      if (!ids.empty()) return *id = ids[0], true;
    }
    return false;
  }

  void set_special_ids() {
    uint32_t id = 0;
    if (special_id("bos_token", "bos_token_id", &id)) keys_.set("tokenizer.ggml.bos_token_id", id);
    if (special_id("unk_token", "unk_token_id", &id))
      keys_.set("tokenizer.ggml.unknown_token_id", id);
    if (special_id("pad_token", "pad_token_id", &id))
      keys_.set("tokenizer.ggml.padding_token_id", id);
    if (!special_id("eos_token", "eos_token_id", &id)) {
      warn_(folder_.path() + ": no end token is named; a generation will not end by itself");
      return;
    }
    keys_.set("tokenizer.ggml.eos_token_id", id);
    // A generation may end with others too (end of turn, end of message).
    const char* const more[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    size_t next = 0;
    for (uint32_t end : config_ids(generation_, "eos_token_id")) {
      if (end == id) continue;
      if (next == std::size(more)) {
        warn_(generation_.path() + ": eos_token_id: only three end tokens are carried over");
        break;
      }
      keys_.set(more[next++], end);
    }
  }

  // Whether the post-processor puts the token in front of a text.
  static bool starts_with_special(const Json& processor) {
    if (!processor.is_object()) return false;
    if (text_of(processor, "type") == "Sequence" && processor.contains("processors") &&
        processor["processors"].is_array()) {
      for (const Json& inner : processor["processors"])
        if (starts_with_special(inner)) return true;
      return false;
    }
    return text_of(processor, "type") == "TemplateProcessing" && processor.contains("single") &&
           processor["single"].is_array() && !processor["single"].empty() &&
           processor["single"][0].is_object() && processor["single"][0].contains("SpecialToken");
  }

  void set_frame() {
    const Json* processor = tokenizer_.find("post_processor");
    const bool by_processor = processor && starts_with_special(*processor);
    keys_.set("tokenizer.ggml.add_bos_token", settings_.boolean("add_bos_token", by_processor));
    keys_.set("tokenizer.ggml.add_eos_token", settings_.boolean("add_eos_token", false));
    keys_.set("tokenizer.ggml.add_space_prefix", false);
  }

  const HuggingFaceFolder& folder_;
  Config tokenizer_, model_, settings_, special_, generation_;
  uint32_t vocab_size_;
  GgufKeys& keys_;
  const Warn& warn_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
  std::map<std::string, uint32_t> ids_;
};

// A template of the folder's own file, or of tokenizer_config.json: one, or several with names.
void import_chat_template(const HuggingFaceFolder& folder, GgufKeys* keys, const Warn& warn) {
  if (auto text = folder.text_file("chat_template.jinja")) {
    keys->set("tokenizer.chat_template", *std::move(text));
    return;
  }
  const auto settings = folder.json_file("tokenizer_config.json");
  const Json* value = settings ? settings->find("chat_template") : nullptr;
  if (!value) return;
  if (value->is_string()) return keys->set("tokenizer.chat_template", value->get<std::string>());
  std::vector<std::string> names;
  if (value->is_array())
    for (const Json& item : *value) {
      const std::string name = item.is_object() ? text_of(item, "name") : "";
      if (name.empty()) continue;
      if (name == "default")
        keys->set("tokenizer.chat_template", text_of(item, "template"));
      else
        keys->set("tokenizer.chat_template." + name, text_of(item, "template")),
            names.push_back(name);
    }
  if (!names.empty()) keys->set("tokenizer.chat_templates", names);
  if (!keys->find("tokenizer.chat_template"))
    warn(settings->path() + ": chat_template: there is no default one; the model will not chat");
}

}  // namespace

std::string pre_tokenizer_name(const Json& pre_tokenizer) {
  std::string steps;
  describe_step(pre_tokenizer, &steps);
  for (const KnownPreTokenizer& known : kPreTokenizers)
    if (steps == known.steps) return known.name;
  return "";
}

void import_tokenizer(const HuggingFaceFolder& folder, uint32_t vocab_size, GgufKeys* keys,
                      const Warn& warn) {
  std::optional<Config> tokenizer = folder.json_file("tokenizer.json");
  if (!tokenizer) {
    for (const char* other : {"tokenizer.model", "vocab.json", "spiece.model", "vocab.txt"})
      if (folder.has_file(other))
        throw Failure(folder.path() + ": there is " + other +
                      " but no tokenizer.json, which is what is read here; --no-tokenizer converts "
                      "the weights alone");
    warn(folder.path() + ": no tokenizer files: the model takes and gives token ids only");
    return;
  }
  Importer(folder, *std::move(tokenizer), vocab_size, keys, warn).run();
  import_chat_template(folder, keys, warn);
}

}  // namespace mote::tool
