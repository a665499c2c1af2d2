#include "tools/developer/tokenizer_import.h"

#include <algorithm>

#include "tools/failure.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;

constexpr char kMark[] = "\xe2\x96\x81";  // U+2581
constexpr uint64_t kNoLimit = 1000000;    // a model_max_length above is "none"

// A special token is a text, or an object with its content.
AddedToken read_token(const Json& value) {
  AddedToken token;
  if (value.is_string()) token.text = value.get<std::string>();
  if (!value.is_object()) return token;
  token.text = json_text(value, "content");
  token.lstrip = json_flag(value, "lstrip", false);
  token.rstrip = json_flag(value, "rstrip", false);
  token.single_word = json_flag(value, "single_word", false);
  return token;
}

}  // namespace

std::string json_shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 400) text = text.substr(0, 400) + "...";
  return text;
}

TokenizerImport::TokenizerImport(const HuggingFaceFolder& folder, uint32_t vocab_size,
                                 GgufKeys* keys, const Warn& warn)
    : folder_(folder), vocab_size_(vocab_size), keys_(*keys), warn_(warn) {
  if (auto settings = folder.json_file("tokenizer_config.json")) settings_ = *std::move(settings);
  if (auto special = folder.json_file("special_tokens_map.json")) special_ = *std::move(special);
  if (auto generation = folder.json_file("generation_config.json"))
    generation_ = *std::move(generation);
  tokens_.resize(vocab_size);
  types_.assign(vocab_size, kUnused);
  scores_.assign(vocab_size, 0);
  for (uint32_t i = 0; i < vocab_size; ++i) tokens_[i] = "[PAD" + std::to_string(i) + "]";
}

void TokenizerImport::place(uint64_t id, const std::string& token, int32_t type,
                            const Config& where, float score) {
  if (id >= vocab_size_)
    where.fail("vocab", "token \"" + token + "\": expected an id below vocab_size " +
                            std::to_string(vocab_size_) + ", found " + std::to_string(id));
  if (types_[id] != kUnused)
    where.fail("vocab." + token,
               "has id " + std::to_string(id) + ", and so has \"" + tokens_[id] + "\"");
  tokens_[id] = token;
  types_[id] = type;
  scores_[id] = score;
  ids_[token] = static_cast<uint32_t>(id);
}

void TokenizerImport::add(uint64_t id, const AddedToken& token, const Config& where) {
  if (id >= vocab_size_)
    where.fail("added_tokens", "token \"" + token.text + "\": expected an id below vocab_size " +
                                   std::to_string(vocab_size_) + ", found " + std::to_string(id));
  tokens_[id] = token.text;
  if (types_[id] != kUnknown) types_[id] = token.special ? kControl : kUserDefined;
  ids_[token.text] = static_cast<uint32_t>(id);
  if (token.lstrip) lstrip_.push_back(static_cast<int32_t>(id));
  if (token.rstrip) rstrip_.push_back(static_cast<int32_t>(id));
  if (token.single_word) single_word_.push_back(static_cast<int32_t>(id));
  if (token.normalized && !token.special) late_.push_back(static_cast<int32_t>(id));
}

int64_t TokenizerImport::find(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : static_cast<int64_t>(found->second);
}

AddedToken TokenizerImport::special_token(const char* role) const {
  AddedToken best;
  for (const Config* config : {&settings_, &special_})
    if (const Json* value = config->find(role)) {
      const AddedToken token = read_token(*value);
      if (!token.text.empty() && (best.text.empty() || value->is_object())) best = token;
    }
  const auto usual = usual_.find(role);
  if (best.text.empty() && usual != usual_.end()) best.text = usual->second;
  return best;
}

uint32_t TokenizerImport::needed_token(const char* role, const std::string& path) const {
  const std::string text = special_token(role).text;
  const int64_t id = find(text);
  if (id < 0) throw Failure(path + ": there is no " + role + " " + text + " in it");
  return static_cast<uint32_t>(id);
}

void TokenizerImport::warn_of_unused(const std::string& path) const {
  const auto unused = static_cast<size_t>(std::count(types_.begin(), types_.end(), kUnused));
  if (unused == 0) return;
  warn_(path + ": has " + std::to_string(vocab_size_ - unused) +
        " tokens, config.json's vocab_size is " + std::to_string(vocab_size_) +
        ": is it cut short? No text becomes one of the others");
}

void TokenizerImport::mark_special_tokens() {
  for (const char* role : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    const AddedToken token = special_token(role);
    const int64_t id = find(token.text);
    if (id >= 0 && types_[id] == kNormal) add(static_cast<uint64_t>(id), token, settings_);
  }
}

void TokenizerImport::mark_word_starts(const std::string& prefix) {
  for (uint32_t id = 0; id < vocab_size_; ++id) {
    if (types_[id] != kNormal) continue;
    std::string& token = tokens_[id];
    if (!prefix.empty() && token.compare(0, prefix.size(), prefix) == 0)
      token.erase(0, prefix.size());
    else
      token.insert(0, kMark);
  }
}

// Ids that a config file gives directly: a number or several.
std::vector<uint32_t> TokenizerImport::config_ids(const Config& config, const char* key) const {
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

bool TokenizerImport::special_id(const char* token_key, const char* id_key, uint32_t* id) const {
  for (const Config* config : {&settings_, &special_})
    if (const Json* value = config->find(token_key)) {
      const auto found = ids_.find(read_token(*value).text);
      if (found != ids_.end()) return *id = found->second, true;
    }
  if (const auto usual = usual_.find(token_key); usual != usual_.end())
    if (const auto found = ids_.find(usual->second); found != ids_.end())
      return *id = found->second, true;
  for (const Config* config : {&generation_, &folder_.config()}) {
    const std::vector<uint32_t> ids = config_ids(*config, id_key);
    if (!ids.empty()) return *id = ids[0], true;
  }
  return false;
}

void TokenizerImport::set_end_ids() {
  uint32_t id = 0;
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

// The frame's own tokens are what BOS and EOS are to other readers.
void TokenizerImport::set_encoder_ids() {
  uint32_t id = 0;
  if (special_id("cls_token", "cls_token_id", &id)) keys_.set("tokenizer.ggml.cls_token_id", id);
  if (special_id("sep_token", "sep_token_id", &id))
    keys_.set("tokenizer.ggml.seperator_token_id", id);  // the ecosystem's spelling
  if (special_id("mask_token", "mask_token_id", &id)) keys_.set("tokenizer.ggml.mask_token_id", id);
  if (!frame_.surrounds()) return;
  keys_.set("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(frame_.single.front()));
  keys_.set("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(frame_.single.back()));
}

void TokenizerImport::set_frame_keys() {
  if (!frame_.single.empty()) {
    keys_.set("mote.frame.single", frame_.single);
    keys_.set("mote.frame.single_types", frame_.single_types);
  }
  if (!frame_.pair.empty()) {
    keys_.set("mote.frame.pair", frame_.pair);
    keys_.set("mote.frame.pair_types", frame_.pair_types);
  }
  keys_.set("tokenizer.ggml.add_bos_token", frame_.surrounds());
  keys_.set("tokenizer.ggml.add_eos_token", frame_.surrounds());
}

// What sentence-transformers cuts texts to counts more than what the tokenizer was saved with. Of
// neither: the model's own positions, which its key context_length has.
void TokenizerImport::set_max_tokens() {
  uint64_t context = kNoLimit;
  if (const auto* name = keys_.find("general.architecture"))
    if (const auto* key = keys_.find(std::get<std::string>(*name) + ".context_length"))
      context = std::get<uint32_t>(*key);
  const auto sentence = folder_.json_file("sentence_bert_config.json");
  for (const auto& [config, key] :
       {std::pair<const Config*, const char*>{sentence ? &*sentence : nullptr, "max_seq_length"},
        std::pair<const Config*, const char*>{&settings_, "model_max_length"}}) {
    const Json* value = config ? config->find(key) : nullptr;
    if (!value || !value->is_number_unsigned()) continue;
    const uint64_t length = value->get<uint64_t>();
    if (length == 0 || length > kNoLimit) continue;
    return keys_.set("mote.max_tokens", static_cast<uint32_t>(std::min(length, context)));
  }
}

void TokenizerImport::finish(bool generates) {
  keys_.set("tokenizer.ggml.tokens", tokens_);
  if (has_scores_) keys_.set("tokenizer.ggml.scores", scores_);
  keys_.set("tokenizer.ggml.token_type", types_);
  if (!lstrip_.empty()) keys_.set("mote.added_tokens.lstrip", lstrip_);
  if (!rstrip_.empty()) keys_.set("mote.added_tokens.rstrip", rstrip_);
  if (!single_word_.empty()) keys_.set("mote.added_tokens.single_word", single_word_);
  if (!late_.empty()) keys_.set("mote.added_tokens.late", late_);
  uint32_t id = 0;
  if (special_id("unk_token", "unk_token_id", &id) &&
      !keys_.find("tokenizer.ggml.unknown_token_id"))
    keys_.set("tokenizer.ggml.unknown_token_id", id);
  if (special_id("pad_token", "pad_token_id", &id))
    keys_.set("tokenizer.ggml.padding_token_id", id);
  if (generates) {
    if (special_id("bos_token", "bos_token_id", &id)) keys_.set("tokenizer.ggml.bos_token_id", id);
    return set_end_ids();
  }
  set_encoder_ids();
  set_frame_keys();
  set_max_tokens();
}

}  // namespace mote::tool
