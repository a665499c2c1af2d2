// tokenizer.json: WordPiece, Unigram, byte-level BPE, and BPE as SentencePiece has it.
#include <algorithm>
#include <map>

#include "tools/developer/tokenizer_import.h"
#include "tools/failure.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;

constexpr char kAlone[] = "; --no-tokenizer converts the weights alone";
constexpr char kMark[] = "\xe2\x96\x81";  // U+2581
constexpr float kNeverMerged = -1e9f;

// The steps of a byte-level pre-tokenizer as one text each, so that a whole one is known by
// comparing texts.
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

void describe_step(const Json& step, std::string* out) {
  if (!step.is_object()) return void(*out += "?\n");
  const std::string type = json_text(step, "type");
  if (type == "Sequence") {
    const auto inner = step.find("pretokenizers");
    if (inner == step.end() || !inner->is_array()) return void(*out += "?\n");
    for (const Json& item : *inner) describe_step(item, out);
  } else if (type == "Digits") {
    *out +=
        json_flag(step, "individual_digits", false) ? "digits one by one\n" : "digits in runs\n";
  } else if (type == "ByteLevel" && !json_flag(step, "add_prefix_space", true)) {
    *out += json_flag(step, "use_regex", true) ? "bytes with pattern\n" : "bytes\n";
  } else if (type == "Split" && json_text(step, "behavior") == "Isolated" &&
             !json_flag(step, "invert", false) && step.contains("pattern") &&
             step["pattern"].is_object() && step["pattern"].contains("Regex")) {
    *out += "split at " + json_text(step["pattern"], "Regex") + "\n";
  } else {
    *out += step.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
}

class JsonImporter {
 public:
  JsonImporter(Config tokenizer, TokenizerImport& import)
      : tokenizer_(std::move(tokenizer)), model_(tokenizer_.child("model")), import_(import) {}

  void run() {
    const std::string type = model_.text("type", guessed_type());
    if (type == "WordPiece") return word_piece();
    if (type == "Unigram") return unigram();
    if (type != "BPE")
      model_.fail("type", "expected WordPiece, Unigram or BPE, found " + type + kAlone);
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!model_.text(key, "").empty())
        model_.fail(key, "is not known here, found " + model_.shown(key) + kAlone);
    if (model_.boolean("byte_fallback", false)) return sentencepiece_bpe();
    byte_level_bpe();
  }

 private:
  GgufKeys& keys() { return import_.keys(); }
  // Files of old versions do not say.
  std::string guessed_type() const {
    if (model_.has("merges")) return "BPE";
    const Json* vocab = model_.find("vocab");
    return vocab && vocab->is_array() ? "Unigram" : vocab ? "WordPiece" : "?";
  }

  void place_vocab() {
    const Config vocab = model_.child("vocab");
    if (vocab.json().empty()) model_.fail("vocab", "is missing or empty");
    for (const auto& [token, id] : vocab.json().items()) {
      if (!id.is_number_unsigned())
        tokenizer_.fail("model.vocab",
                        "token \"" + token + "\": expected an id, found " + json_shown(id));
      import_.place(id.get<uint64_t>(), token, TokenizerImport::kNormal, model_);
    }
  }

  // changes: the normalizer may make another text of a token's.
  void place_added_tokens(bool changes) {
    const Json* added = tokenizer_.find("added_tokens");
    if (!added) return;
    if (!added->is_array()) tokenizer_.fail("added_tokens", "expected an array");
    for (const Json& item : *added) {
      AddedToken token;
      token.text = item.is_object() ? json_text(item, "content") : "";
      if (token.text.empty() || !item.contains("id") || !item["id"].is_number_unsigned())
        tokenizer_.fail("added_tokens",
                        "expected objects with id and content, found " + json_shown(item));
      token.special = json_flag(item, "special", false);
      token.lstrip = json_flag(item, "lstrip", false);
      token.rstrip = json_flag(item, "rstrip", false);
      token.single_word = json_flag(item, "single_word", false);
      token.normalized = json_flag(item, "normalized", !token.special);
      if (token.normalized && !token.special && changes)
        import_.warn(tokenizer_.path() + ": added token \"" + token.text +
                     "\" is looked for in the text as given, not in the normalized one");
      import_.add(item["id"].get<uint64_t>(), token, tokenizer_);
    }
  }

  uint32_t unknown_id(int64_t id) {
    if (id < 0)
      model_.fail("unk_token",
                  "expected a token of the vocabulary, found " + model_.shown("unk_token"));
    keys().set("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(id));
    return static_cast<uint32_t>(id);
  }

  void word_piece() {
    const BertFlags flags = bert_flags(tokenizer_);
    place_vocab();
    const uint32_t unknown = unknown_id(import_.find(model_.text("unk_token", "[UNK]")));
    import_.set_type(unknown, TokenizerImport::kUnknown);
    place_added_tokens(flags.lowercase || flags.strip_accents);
    import_.mark_special_tokens();
    import_.mark_word_starts(model_.text("continuing_subword_prefix", "##"));
    keys().set("tokenizer.ggml.model", std::string("bert"));
    keys().set("tokenizer.ggml.pre", std::string("bert-bge"));
    keys().set("tokenizer.ggml.normalizer.lowercase", flags.lowercase);
    keys().set("tokenizer.ggml.normalizer.strip_accents", flags.strip_accents);
    keys().set("mote.wordpiece.clean_text", flags.clean_text);
    keys().set("mote.wordpiece.chinese_spaces", flags.chinese_spaces);
    keys().set("mote.wordpiece.max_characters", model_.number("max_input_chars_per_word", 100));
    import_.set_frame(post_processor(tokenizer_).frame);
    import_.finish(false);
  }

  void unigram() {
    const Json* vocab = model_.find("vocab");
    if (!vocab || !vocab->is_array() || vocab->empty())
      model_.fail("vocab", "expected an array of pieces and scores");
    if (model_.boolean("byte_fallback", false))
      model_.fail("byte_fallback", std::string("is not known for Unigram") + kAlone);
    uint64_t id = 0;
    for (const Json& item : *vocab) {
      if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_number())
        model_.fail("vocab", "item " + std::to_string(id) +
                                 ": expected a piece and its score, found " + json_shown(item));
      import_.place(id++, item[0].get<std::string>(), TokenizerImport::kNormal, model_,
                    item[1].get<float>());
    }
    import_.set_scores();
    const Json* unk = model_.find("unk_id");
    const bool known = unk && unk->is_number_unsigned() && unk->get<uint64_t>() < id;
    const uint32_t unknown = unknown_id(known ? unk->get<int64_t>() : -1);
    import_.set_type(unknown, TokenizerImport::kUnknown);
    std::string charsmap;
    const std::vector<std::string> steps = normalizer_steps(tokenizer_, &charsmap);
    const Metaspace spaces = metaspace(tokenizer_);
    place_added_tokens(!steps.empty());
    keys().set("tokenizer.ggml.model", std::string("t5"));
    keys().set("tokenizer.ggml.pre", std::string("default"));
    keys().set("tokenizer.ggml.add_space_prefix", spaces.prefix);
    keys().set("tokenizer.ggml.remove_extra_whitespaces", spaces.splits_white_space);
    keys().set("mote.normalizer", steps);
    if (!charsmap.empty())
      keys().set("tokenizer.ggml.precompiled_charsmap",
                 std::vector<uint8_t>(charsmap.begin(), charsmap.end()));
    keys().set("mote.unigram.prefix", std::string(spaces.first_only ? "first" : "always"));
    keys().set("mote.unigram.split_white_space", spaces.splits_white_space);
    keys().set("mote.unigram.split_marks", spaces.splits_marks);
    import_.set_frame(post_processor(tokenizer_).frame);
    import_.finish(false);
  }

  // Both forms: "a b" and ["a", "b"].
  std::string merge_text(const Json& merge, size_t index) const {
    const auto wrong = [&] {
      model_.fail("merges", "item " + std::to_string(index) + ": expected a pair, found " +
                                json_shown(merge));
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

  std::vector<std::string> merges() const {
    const Json* found = model_.find("merges");
    if (!found || !found->is_array()) model_.fail("merges", "expected an array");
    std::vector<std::string> texts;
    texts.reserve(found->size());
    for (const Json& merge : *found) texts.push_back(merge_text(merge, texts.size()));
    return texts;
  }

  // ByteLevel with a space in front is ByteLevel without, and a flag.
  Json without_prefix_space(bool* prefix) const {
    const Json* pre = tokenizer_.find("pre_tokenizer");
    if (!pre) return Json();
    Json copy = *pre;
    if (copy.is_object() && json_text(copy, "type") == "ByteLevel") {
      *prefix = json_flag(copy, "add_prefix_space", true);
      copy["add_prefix_space"] = false;
    }
    return copy;
  }

  void byte_level_bpe() {
    bool prefix = false;
    const Json pre = without_prefix_space(&prefix);
    const std::string name = pre_tokenizer_name(pre);
    if (name.empty()) tokenizer_.fail("pre_tokenizer", "is not known: " + json_shown(pre) + kAlone);
    const std::vector<std::string> steps = normalizer_steps(tokenizer_, nullptr);
    const PostProcessor post = post_processor(tokenizer_);
    place_vocab();
    place_added_tokens(!steps.empty() && steps != std::vector<std::string>{"nfc"});
    keys().set("tokenizer.ggml.model", std::string("gpt2"));
    keys().set("tokenizer.ggml.pre", name);
    keys().set("tokenizer.ggml.merges", merges());
    keys().set("tokenizer.ggml.add_space_prefix", prefix);
    if (!steps.empty()) keys().set("mote.normalizer", steps);
    if (post.frame.surrounds()) {
      keys().set("mote.bpe.trim_offsets", post.trims_offsets);
      import_.set_frame(post.frame);
      return import_.finish(false);
    }
    import_.finish(true);
    set_generator_frame(post.frame);
  }

  // Spaces become U+2581, in the normalizer or in the pre-tokenizer; nothing else is known.
  bool sentencepiece_prefix() {
    bool prefix = false, replaces = false;
    for (const Json& step : component_steps(tokenizer_, "normalizer", "normalizers")) {
      const std::string type = json_text(step, "type");
      const Json pattern = step.contains("pattern") ? step["pattern"] : Json();
      if (type == "Prepend" && json_text(step, "prepend") == kMark)
        prefix = true;
      else if (type == "Replace" && pattern == Json{{"String", " "}} &&
               json_text(step, "content") == kMark)
        replaces = true;
      else
        tokenizer_.fail("normalizer",
                        "is not known for this tokenizer: " + json_shown(step) + kAlone);
    }
    for (const Json& step : component_steps(tokenizer_, "pre_tokenizer", "pretokenizers")) {
      const std::string type = json_text(step, "type"), scheme = json_text(step, "prepend_scheme");
      if (type == "Split" && replaces) continue;  // at spaces, of which there are none any more
      if (type != "Metaspace" || json_text(step, "replacement") != kMark ||
          json_flag(step, "split", true))
        tokenizer_.fail("pre_tokenizer",
                        "is not known for this tokenizer: " + json_shown(step) + kAlone);
      replaces = true;
      prefix = scheme.empty() ? json_flag(step, "add_prefix_space", true) : scheme != "never";
      if (prefix)
        import_.warn(tokenizer_.path() +
                     ": a space is put in front of what begins with one or follows a special token "
                     "too, as SentencePiece does it");
    }
    if (!replaces)
      tokenizer_.fail("normalizer",
                      std::string("expected one that replaces spaces by U+2581") + kAlone);
    return prefix;
  }

  // BPE with byte_fallback, in the form that SentencePiece models have: a token's score is the rank
  // of the first merge that makes it.
  void sentencepiece_bpe() {
    const bool prefix = sentencepiece_prefix();
    std::map<std::string, float> scores;
    for (const std::string& merge : merges()) {
      std::string token = merge;
      token.erase(token.find(' '), 1);
      scores.emplace(token, -1.0f - static_cast<float>(scores.size()));
    }
    const Config vocab = model_.child("vocab");
    if (vocab.json().empty()) model_.fail("vocab", "is missing or empty");
    const std::string unknown = model_.text("unk_token", "");
    for (const auto& [token, id] : vocab.json().items()) {
      if (!id.is_number_unsigned())
        model_.fail("vocab", "token \"" + token + "\": expected an id, found " + json_shown(id));
      const bool is_byte = token.size() == 6 && token.compare(0, 3, "<0x") == 0 && token[5] == '>';
      const auto score = scores.find(token);
      import_.place(id.get<uint64_t>(), token,
                    is_byte            ? TokenizerImport::kByte
                    : token == unknown ? TokenizerImport::kUnknown
                                       : TokenizerImport::kNormal,
                    model_, score == scores.end() ? kNeverMerged : score->second);
    }
    import_.set_scores();
    place_added_tokens(false);
    keys().set("tokenizer.ggml.model", std::string("llama"));
    keys().set("tokenizer.ggml.pre", std::string("default"));
    keys().set("tokenizer.ggml.add_space_prefix", prefix);
    import_.finish(true);
    set_generator_frame(post_processor(tokenizer_).frame);
  }

  void set_generator_frame(const ImportedFrame& frame) {
    const bool begins = !frame.single.empty() && frame.single[0] >= 0;
    keys().set("tokenizer.ggml.add_bos_token", import_.settings().boolean("add_bos_token", begins));
    keys().set("tokenizer.ggml.add_eos_token", import_.settings().boolean("add_eos_token", false));
  }

  Config tokenizer_, model_;
  TokenizerImport& import_;
};

}  // namespace

std::string pre_tokenizer_name(const Json& pre_tokenizer) {
  std::string steps;
  describe_step(pre_tokenizer, &steps);
  for (const KnownPreTokenizer& known : kPreTokenizers)
    if (steps == known.steps) return known.name;
  return "";
}

void import_tokenizer_json(Config tokenizer, TokenizerImport& import) {
  JsonImporter(std::move(tokenizer), import).run();
}

}  // namespace mote::tool
