// The parts of tokenizer.json around its model: normalizer, pre-tokenizer, post-processor.
#include <algorithm>

#include "tools/developer/tokenizer_import.h"
#include "tools/failure.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

using json = nlohmann::json;

constexpr char kAlone[] = "; --no-tokenizer converts the weights alone";

std::vector<json> steps_of(const json* component, const char* list) {
  std::vector<json> steps;
  if (!component || component->is_null()) return steps;
  if (component->is_object() && json_text(*component, "type") == "Sequence" &&
      component->contains(list) && (*component)[list].is_array()) {
    for (const json& inner : (*component)[list])
      for (json& step : steps_of(&inner, list)) steps.push_back(std::move(step));
    return steps;
  }
  steps.push_back(*component);
  return steps;
}

[[noreturn]] void unknown_step(const Config& tokenizer, const char* component, const json& step) {
  tokenizer.fail(component, "is not known for this tokenizer: " + json_shown(step) + kAlone);
}

void replace_steps(const Config& tokenizer, const json& step, std::vector<std::string>* steps) {
  const auto pattern = step.find("pattern");
  const std::string content = json_text(step, "content");
  if (pattern == step.end() || !pattern->is_object()) unknown_step(tokenizer, "normalizer", step);
  const std::string regex = json_text(*pattern, "Regex"), text = json_text(*pattern, "String");
  if (regex == " {2,}" && content == " ")
    steps->push_back("collapse_spaces");
  else if (!text.empty())
    steps->insert(steps->end(), {"replace", text, content});
  else
    unknown_step(tokenizer, "normalizer", step);
}

int32_t id_of(const json& value, const Config& tokenizer, const json& processor) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT32_MAX)
    unknown_step(tokenizer, "post_processor", processor);
  return value.get<int32_t>();
}

// One side of a TemplateProcessing.
void read_template(const Config& tokenizer, const json& processor, const char* side,
                   std::vector<int32_t>* ids, std::vector<int32_t>* types) {
  const auto parts = processor.find(side);
  if (parts == processor.end() || !parts->is_array()) return;
  for (const json& part : *parts) {
    const bool is_text = part.is_object() && part.contains("Sequence");
    if (!is_text && !(part.is_object() && part.contains("SpecialToken")))
      unknown_step(tokenizer, "post_processor", part);
    const json& inner = part[is_text ? "Sequence" : "SpecialToken"];
    const std::string name = json_text(inner, "id");
    const int32_t type =
        inner.contains("type_id") ? id_of(inner["type_id"], tokenizer, processor) : 0;
    const auto put = [&](int32_t id) {
      ids->push_back(id);
      types->push_back(type);
    };
    if (is_text) {
      put(name == "B" ? kSecondText : kFirstText);
      continue;
    }
    const auto special = processor.find("special_tokens");
    if (special == processor.end() || !special->contains(name) ||
        !(*special)[name].contains("ids") || !(*special)[name]["ids"].is_array())
      tokenizer.fail("post_processor", "special_tokens: there is no \"" + name + "\"");
    for (const json& id : (*special)[name]["ids"]) put(id_of(id, tokenizer, processor));
  }
}

// [token, id].
int32_t named_id(const Config& tokenizer, const json& processor, const char* name) {
  const auto found = processor.find(name);
  if (found == processor.end() || !found->is_array() || found->size() != 2)
    unknown_step(tokenizer, "post_processor", processor);
  return id_of((*found)[1], tokenizer, processor);
}

}  // namespace

std::vector<json> component_steps(const Config& tokenizer, const char* component,
                                  const char* list) {
  return steps_of(tokenizer.find(component), list);
}

std::vector<std::string> normalizer_steps(const Config& tokenizer, std::string* charsmap) {
  std::vector<std::string> steps;
  for (const json& step : steps_of(tokenizer.find("normalizer"), "normalizers")) {
    const std::string type = json_text(step, "type");
    if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
      std::string name = type;
      for (char& c : name) c = static_cast<char>(c | 0x20);
      steps.push_back(name);
    } else if (type == "Lowercase") {
      steps.push_back("lowercase");
    } else if (type == "StripAccents") {
      steps.push_back("strip_accents");
    } else if (type == "Strip") {
      if (json_flag(step, "strip_left", true)) steps.push_back("strip_left");
      if (json_flag(step, "strip_right", true)) steps.push_back("strip_right");
    } else if (type == "Replace") {
      replace_steps(tokenizer, step, &steps);
    } else if (type == "Precompiled" && charsmap) {
      *charsmap = decode_base64(json_text(step, "precompiled_charsmap"));
      if (!charsmap->empty()) steps.push_back("precompiled");
    } else {
      unknown_step(tokenizer, "normalizer", step);
    }
  }
  return steps;
}

BertFlags bert_flags(const Config& tokenizer) {
  BertFlags flags;
  const std::vector<json> steps = steps_of(tokenizer.find("normalizer"), "normalizers");
  if (steps.size() > 1 || (steps.size() == 1 && json_text(steps[0], "type") != "BertNormalizer"))
    unknown_step(tokenizer, "normalizer", *tokenizer.find("normalizer"));
  const std::vector<json> pre = steps_of(tokenizer.find("pre_tokenizer"), "pretokenizers");
  if (pre.size() != 1 || json_text(pre[0], "type") != "BertPreTokenizer")
    unknown_step(tokenizer, "pre_tokenizer",
                 tokenizer.has("pre_tokenizer") ? *tokenizer.find("pre_tokenizer") : json());
  if (steps.empty()) return flags;
  const json& bert = steps[0];
  flags.clean_text = json_flag(bert, "clean_text", true);
  flags.chinese_spaces = json_flag(bert, "handle_chinese_chars", true);
  flags.lowercase = json_flag(bert, "lowercase", true);
  flags.strip_accents = json_flag(bert, "strip_accents", flags.lowercase);
  return flags;
}

Metaspace metaspace(const Config& tokenizer) {
  Metaspace result;
  const json* component = tokenizer.find("pre_tokenizer");
  std::vector<json> steps = steps_of(component, "pretokenizers");
  if (!steps.empty() && json_text(steps[0], "type") == "WhitespaceSplit") {
    result.splits_white_space = true;
    steps.erase(steps.begin());
  }
  if (steps.size() != 1 || json_text(steps[0], "type") != "Metaspace" ||
      json_text(steps[0], "replacement") != "\xe2\x96\x81")
    unknown_step(tokenizer, "pre_tokenizer", component ? *component : json());
  const std::string scheme = json_text(steps[0], "prepend_scheme");
  result.prefix =
      scheme.empty() ? json_flag(steps[0], "add_prefix_space", true) : scheme != "never";
  result.first_only = scheme == "first";
  result.splits_marks = json_flag(steps[0], "split", true);
  return result;
}

PostProcessor post_processor(const Config& tokenizer) {
  PostProcessor result;
  ImportedFrame& frame = result.frame;
  for (const json& step : steps_of(tokenizer.find("post_processor"), "processors")) {
    const std::string type = json_text(step, "type");
    if (type == "TemplateProcessing") {
      frame = {};
      read_template(tokenizer, step, "single", &frame.single, &frame.single_types);
      read_template(tokenizer, step, "pair", &frame.pair, &frame.pair_types);
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      const int32_t cls = named_id(tokenizer, step, "cls"), sep = named_id(tokenizer, step, "sep");
      const bool is_bert = type == "BertProcessing";
      frame.single = {cls, kFirstText, sep};
      frame.single_types = {0, 0, 0};
      frame.pair = is_bert ? std::vector<int32_t>{cls, kFirstText, sep, kSecondText, sep}
                           : std::vector<int32_t>{cls, kFirstText, sep, sep, kSecondText, sep};
      frame.pair_types.assign(frame.pair.size(), 0);
      if (is_bert) frame.pair_types = {0, 0, 0, 1, 1};
      if (!is_bert) result.trims_offsets = json_flag(step, "trim_offsets", true);
    } else if (type == "ByteLevel") {
      result.trims_offsets = json_flag(step, "trim_offsets", true);
    } else {
      unknown_step(tokenizer, "post_processor", step);
    }
  }
  return result;
}

}  // namespace mote::tool
