// What the importers of tokenizer files share: the vocabulary while it is gathered, and the keys
// that it becomes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/developer/gguf_keys.h"
#include "tools/developer/hugging_face.h"
#include "tools/developer/import_tokenizer.h"

namespace mote::tool {

inline bool json_flag(const nlohmann::json& json, const char* key, bool fallback) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : fallback;
}
inline std::string json_text(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}
std::string json_shown(const nlohmann::json& json);

// Where a text stands in a frame, as mote.frame.* has it.
constexpr int32_t kFirstText = -1, kSecondText = -2;
struct ImportedFrame {
  std::vector<int32_t> single, single_types, pair, pair_types;
  // Tokens before and behind the text: what an encoder has.
  bool surrounds() const {
    return single.size() >= 3 && single.front() >= 0 && single.back() >= 0 && !pair.empty();
  }
};

// A token that stands for itself in a text.
struct AddedToken {
  std::string text;
  bool special = true, lstrip = false, rstrip = false, single_word = false, normalized = false;
};

class TokenizerImport {
 public:
  enum TokenType : int32_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6
  };

  TokenizerImport(const HuggingFaceFolder& folder, uint32_t vocab_size, GgufKeys* keys,
                  const Warn& warn);

  const HuggingFaceFolder& folder() const { return folder_; }
  const Config& settings() const { return settings_; }  // tokenizer_config.json
  GgufKeys& keys() { return keys_; }
  void warn(const std::string& message) const { warn_(message); }
  uint32_t size() const { return vocab_size_; }

  // Puts a token in; where: for messages. An id that is taken by another token, or is not below
  // size(), is a Failure.
  void place(uint64_t id, const std::string& token, int32_t type, const Config& where,
             float score = 0);
  // Over whatever has the id.
  void add(uint64_t id, const AddedToken& token, const Config& where);
  void set_type(uint32_t id, int32_t type) { types_[id] = type; }
  int64_t find(const std::string& token) const;  // -1: none
  // What the roles' tokens are where no file names them: of a vocabulary alone.
  void set_usual_tokens(std::map<std::string, std::string> by_role) { usual_ = std::move(by_role); }
  // The text that tokenizer_config.json or special_tokens_map.json gives a role, or the usual one;
  // empty: none.
  AddedToken special_token(const char* role) const;
  // Throws Failure where the vocabulary lacks it.
  uint32_t needed_token(const char* role, const std::string& path) const;
  // Warns where there are fewer tokens than vocab_size.
  void warn_of_unused(const std::string& path) const;
  // Adds what these files call special, where the vocabulary has it as a normal token.
  void mark_special_tokens();

  void set_frame(const ImportedFrame& frame) { frame_ = frame; }
  // WordPiece: writes tokens as llama.cpp does, U+2581 before those that begin a word and nothing
  // before those that have the prefix.
  void mark_word_starts(const std::string& prefix);
  void set_scores() { has_scores_ = true; }

  // Writes all keys but those of the model itself (merges, flags).
  void finish(bool generates);

 private:
  std::vector<uint32_t> config_ids(const Config& config, const char* key) const;
  bool special_id(const char* token_key, const char* id_key, uint32_t* id) const;
  void set_end_ids();
  void set_encoder_ids();
  void set_frame_keys();
  void set_max_tokens();

  const HuggingFaceFolder& folder_;
  Config settings_, special_, generation_;
  uint32_t vocab_size_;
  GgufKeys& keys_;
  const Warn& warn_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
  std::vector<float> scores_;
  bool has_scores_ = false;
  std::map<std::string, uint32_t> ids_;
  std::map<std::string, std::string> usual_;
  std::vector<int32_t> lstrip_, rstrip_, single_word_, late_;
  ImportedFrame frame_;
};

// ---- Parts of tokenizer.json. Each throws Failure where it finds what is not known here.

// The steps of a component ("normalizer", ...): those of a Sequence (under `list`) one by one, a
// single one as itself.
std::vector<nlohmann::json> component_steps(const Config& tokenizer, const char* component,
                                            const char* list);
// The steps of a normalizer, as mote.normalizer has them; *charsmap gets the bytes of a precompiled
// one.
std::vector<std::string> normalizer_steps(const Config& tokenizer, std::string* charsmap);
// Flags of BERT's normalizer (none: all off).
struct BertFlags {
  bool clean_text = false, chinese_spaces = false, strip_accents = false, lowercase = false;
};
BertFlags bert_flags(const Config& tokenizer);
// A Metaspace pre-tokenizer, alone or behind WhitespaceSplit.
struct Metaspace {
  bool splits_white_space = false, prefix = true, first_only = false, splits_marks = true;
};
Metaspace metaspace(const Config& tokenizer);
// The frame of a post-processor, and what it does with offsets (null: it says nothing).
struct PostProcessor {
  ImportedFrame frame;
  bool trims_offsets = false;
};
PostProcessor post_processor(const Config& tokenizer);

// ---- Whole tokenizers.

void import_tokenizer_json(Config tokenizer, TokenizerImport& import);
// vocab.txt; vocab.json with merges.txt; a SentencePiece model.
void import_vocab_txt(TokenizerImport& import);
void import_vocab_json(TokenizerImport& import);
void import_sentencepiece(const char* name, TokenizerImport& import);

}  // namespace mote::tool
