#include "tools/developer/import_tokenizer.h"

#include "tools/developer/tokenizer_import.h"
#include "tools/failure.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;

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
      const std::string name = item.is_object() ? json_text(item, "name") : "";
      if (name.empty()) continue;
      if (name == "default")
        keys->set("tokenizer.chat_template", json_text(item, "template"));
      else
        keys->set("tokenizer.chat_template." + name, json_text(item, "template")),
            names.push_back(name);
    }
  if (!names.empty()) keys->set("tokenizer.chat_templates", names);
  if (!keys->find("tokenizer.chat_template"))
    warn(settings->path() + ": chat_template: there is no default one; the model will not chat");
}

// The names under which folders have a SentencePiece model.
constexpr const char* kSentencePieceFiles[] = {"sentencepiece.bpe.model", "tokenizer.model",
                                               "spiece.model", "spm.model"};

const char* sentencepiece_file(const HuggingFaceFolder& folder) {
  for (const char* name : kSentencePieceFiles)
    if (folder.has_file(name)) return name;
  return nullptr;
}

// BPE with byte_fallback: a SentencePiece model has its scores themselves.
bool is_sentencepiece_bpe(const Config& tokenizer) {
  const Config model = tokenizer.child("model");
  return model.text("type", "") == "BPE" && model.boolean("byte_fallback", false);
}

// False: there is no tokenizer.
bool import_any(TokenizerImport& import) {
  const HuggingFaceFolder& folder = import.folder();
  const char* const sentencepiece = sentencepiece_file(folder);
  std::optional<Config> tokenizer = folder.json_file("tokenizer.json");
  if (tokenizer && !(sentencepiece && is_sentencepiece_bpe(*tokenizer)))
    import_tokenizer_json(*std::move(tokenizer), import);
  else if (sentencepiece)
    import_sentencepiece(sentencepiece, import);
  else if (folder.has_file("vocab.txt"))
    import_vocab_txt(import);
  else if (folder.has_file("vocab.json") && folder.has_file("merges.txt"))
    import_vocab_json(import);
  else if (folder.has_file("vocab.json"))
    throw Failure(folder.path() +
                  ": there is vocab.json but neither tokenizer.json nor merges.txt; "
                  "--no-tokenizer converts the weights alone");
  else
    return false;
  return true;
}

}  // namespace

void import_tokenizer(const HuggingFaceFolder& folder, uint32_t vocab_size, GgufKeys* keys,
                      const Warn& warn) {
  TokenizerImport import(folder, vocab_size, keys, warn);
  if (!import_any(import))
    return warn(folder.path() + ": no tokenizer files: the model takes and gives token ids only");
  import_chat_template(folder, keys, warn);
}

}  // namespace mote::tool
