// Tokenizers of folders without tokenizer.json: vocab.txt (WordPiece), vocab.json with merges.txt
// (byte-level BPE), a SentencePiece model.
#include <cmath>
#include <cstring>
#include <sstream>

#include "tools/developer/tokenizer_import.h"
#include "tools/failure.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;

// [CLS] a [SEP] b [SEP], or RoBERTa's <s> a </s></s> b </s>.
ImportedFrame frame_of(int64_t begin, int64_t end, bool is_bert) {
  ImportedFrame frame;
  if (begin < 0 || end < 0) return frame;
  const int32_t cls = static_cast<int32_t>(begin), sep = static_cast<int32_t>(end);
  frame.single = {cls, kFirstText, sep};
  frame.single_types = {0, 0, 0};
  frame.pair = {cls, kFirstText, sep};
  if (!is_bert) frame.pair.push_back(sep);
  frame.pair.insert(frame.pair.end(), {kSecondText, sep});
  frame.pair_types.assign(frame.pair.size(), 0);
  if (is_bert) frame.pair_types = {0, 0, 0, 1, 1};
  return frame;
}

// As the classes of these tokenizers have them: BERT's, and RoBERTa's and XLM-RoBERTa's.
const std::map<std::string, std::string> kBertTokens = {{"cls_token", "[CLS]"},
                                                        {"sep_token", "[SEP]"},
                                                        {"unk_token", "[UNK]"},
                                                        {"pad_token", "[PAD]"},
                                                        {"mask_token", "[MASK]"}};
const std::map<std::string, std::string> kRobertaTokens = {{"cls_token", "<s>"},
                                                           {"sep_token", "</s>"},
                                                           {"unk_token", "<unk>"},
                                                           {"pad_token", "<pad>"},
                                                           {"mask_token", "<mask>"}};

// A message of a SentencePiece model, in the wire format of protocol buffers.
class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, const std::string& path) : rest_(bytes), path_(path) {}

  bool next() {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field_ = static_cast<uint32_t>(tag >> 3);
    switch (tag & 7) {
      case 0:
        number_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        fail();
    }
    return true;
  }
  uint32_t field() const { return field_; }
  uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  float real() const {
    float value = 0;
    if (bytes_.size() == sizeof value) std::memcpy(&value, bytes_.data(), sizeof value);
    return value;
  }

 private:
  [[noreturn]] void fail() const { throw Failure(path_ + ": is not a SentencePiece model"); }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (!(byte & 0x80)) return value;
    }
    fail();
  }

  std::string_view rest_, bytes_;
  const std::string& path_;
  uint32_t field_ = 0;
  uint64_t number_ = 0;
};

struct SentencePieceModel {
  struct Piece {
    std::string text;
    float score = 0;
    int32_t type = TokenizerImport::kNormal;
  };
  std::vector<Piece> pieces;
  uint64_t model_type = 1;  // 1 Unigram, 2 BPE
  std::string charsmap;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;

  SentencePieceModel(const std::string& bytes, const std::string& path) {
    for (ProtoReader model(bytes, path); model.next();) {
      if (model.field() == 1) read_piece(model.bytes(), path);
      if (model.field() == 2)
        for (ProtoReader trainer(model.bytes(), path); trainer.next();)
          if (trainer.field() == 3) model_type = trainer.number();
      if (model.field() == 3) read_normalizer(model.bytes(), path);
    }
    if (pieces.empty()) throw Failure(path + ": is not a SentencePiece model: it has no pieces");
  }

 private:
  void read_piece(std::string_view bytes, const std::string& path) {
    Piece piece;
    for (ProtoReader field(bytes, path); field.next();) {
      if (field.field() == 1) piece.text = field.bytes();
      if (field.field() == 2) piece.score = field.real();
      if (field.field() == 3) piece.type = static_cast<int32_t>(field.number());
    }
    if (piece.type < 1 || piece.type > 6 || !std::isfinite(piece.score))
      throw Failure(path + ": piece " + std::to_string(pieces.size()) + ": type " +
                    std::to_string(piece.type) + ", score " + std::to_string(piece.score));
    pieces.push_back(std::move(piece));
  }
  void read_normalizer(std::string_view bytes, const std::string& path) {
    for (ProtoReader field(bytes, path); field.next();) {
      if (field.field() == 2) charsmap = field.bytes();
      if (field.field() == 3) add_dummy_prefix = field.number() != 0;
      if (field.field() == 4) remove_extra_whitespaces = field.number() != 0;
      if (field.field() == 5) escape_whitespaces = field.number() != 0;
    }
  }
};

void set_sentencepiece_keys(const SentencePieceModel& model, TokenizerImport& import) {
  GgufKeys& keys = import.keys();
  keys.set("tokenizer.ggml.pre", std::string("default"));
  keys.set("tokenizer.ggml.add_space_prefix", model.add_dummy_prefix);
  keys.set("tokenizer.ggml.remove_extra_whitespaces", model.remove_extra_whitespaces);
  if (!model.charsmap.empty())
    keys.set("tokenizer.ggml.precompiled_charsmap",
             std::vector<uint8_t>(model.charsmap.begin(), model.charsmap.end()));
}

// Tokens that the folder adds behind those of the model: added_tokens.json, added_tokens_decoder.
void add_more_tokens(TokenizerImport& import) {
  if (const auto added = import.folder().json_file("added_tokens.json"))
    for (const auto& [text, id] : added->json().items()) {
      AddedToken token;
      token.text = text;
      if (!id.is_number_unsigned()) added->fail(text, "expected an id, found " + json_shown(id));
      import.add(id.get<uint64_t>(), token, *added);
    }
  const Config decoder = import.settings().child("added_tokens_decoder");
  for (const auto& [id, value] : decoder.json().items()) {
    AddedToken token;
    token.text = value.is_object() ? json_text(value, "content") : "";
    if (token.text.empty() || id.find_first_not_of("0123456789") != std::string::npos ||
        id.size() > 9)
      decoder.fail(id, "expected an id and an object with content");
    token.special = json_flag(value, "special", false);
    token.lstrip = json_flag(value, "lstrip", false);
    token.rstrip = json_flag(value, "rstrip", false);
    token.single_word = json_flag(value, "single_word", false);
    import.add(std::stoul(id), token, decoder);
  }
}

// As XLM-RoBERTa numbers them: its own four, the model's without its first three, and the mask.
void import_unigram(const SentencePieceModel& model, const Config& where, TokenizerImport& import) {
  const char* const own[] = {"<s>", "<pad>", "</s>", "<unk>"};
  uint64_t id = 0;
  for (const char* token : own) {
    const bool unknown = id == 3;
    import.place(id++, token, unknown ? TokenizerImport::kUnknown : TokenizerImport::kControl,
                 where);
  }
  for (size_t i = 3; i < model.pieces.size(); ++i)
    import.place(id++, model.pieces[i].text, model.pieces[i].type, where, model.pieces[i].score);
  import.set_usual_tokens(kRobertaTokens);
  AddedToken mask;
  mask.text = import.special_token("mask_token").text;
  mask.lstrip = true;
  import.add(id, mask, where);
  import.warn_of_unused(where.path());
  import.keys().set("tokenizer.ggml.model", std::string("t5"));
  import.keys().set("tokenizer.ggml.unknown_token_id", uint32_t{3});
  import.set_frame(frame_of(0, 2, false));
  import.finish(false);
}

// Ids are the model's own, as in LLaMA 2 and its kin.
void import_bpe(const SentencePieceModel& model, const Config& where, TokenizerImport& import) {
  for (size_t i = 0; i < model.pieces.size(); ++i)
    import.place(i, model.pieces[i].text, model.pieces[i].type, where, model.pieces[i].score);
  add_more_tokens(import);
  import.keys().set("tokenizer.ggml.model", std::string("llama"));
  // The tokenizer that reads these merges spaces as they are.
  import.keys().set("tokenizer.ggml.remove_extra_whitespaces", false);
  import.finish(true);
  import.keys().set("tokenizer.ggml.add_bos_token",
                    import.settings().boolean("add_bos_token", true));
  import.keys().set("tokenizer.ggml.add_eos_token",
                    import.settings().boolean("add_eos_token", false));
}

}  // namespace

void import_vocab_txt(TokenizerImport& import) {
  const std::string path = import.folder().path() + "/vocab.txt";
  const Config where(path, Json::object());
  std::string text = *import.folder().text_file("vocab.txt");
  std::istringstream lines(text);
  uint64_t id = 0;
  for (std::string line; std::getline(lines, line); ++id) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    import.place(id, line, TokenizerImport::kNormal, where);
  }
  import.warn_of_unused(path);
  import.set_usual_tokens(kBertTokens);
  const uint32_t unknown = import.needed_token("unk_token", path),
                 cls = import.needed_token("cls_token", path),
                 sep = import.needed_token("sep_token", path);
  import.set_type(unknown, TokenizerImport::kUnknown);
  import.mark_special_tokens();
  import.mark_word_starts("##");
  GgufKeys& keys = import.keys();
  const bool lowercase = import.settings().boolean("do_lower_case", true);
  keys.set("tokenizer.ggml.model", std::string("bert"));
  keys.set("tokenizer.ggml.pre", std::string("bert-bge"));
  keys.set("tokenizer.ggml.unknown_token_id", unknown);
  keys.set("tokenizer.ggml.normalizer.lowercase", lowercase);
  keys.set("tokenizer.ggml.normalizer.strip_accents",
           import.settings().boolean("strip_accents", lowercase));
  keys.set("mote.wordpiece.clean_text", true);
  keys.set("mote.wordpiece.chinese_spaces",
           import.settings().boolean("tokenize_chinese_chars", true));
  keys.set("mote.wordpiece.max_characters", uint32_t{100});
  import.set_frame(frame_of(cls, sep, true));
  import.finish(false);
}

void import_vocab_json(TokenizerImport& import) {
  const Config vocab = *import.folder().json_file("vocab.json");
  for (const auto& [token, id] : vocab.json().items()) {
    if (!id.is_number_unsigned()) vocab.fail(token, "expected an id, found " + json_shown(id));
    import.place(id.get<uint64_t>(), token, TokenizerImport::kNormal, vocab);
  }
  import.warn_of_unused(vocab.path());
  import.set_usual_tokens(kRobertaTokens);
  const int64_t begin = import.find(import.special_token("cls_token").text),
                end = import.find(import.special_token("sep_token").text);
  AddedToken mask = import.special_token("mask_token");
  mask.lstrip = true;  // the tokenizer of these files takes it so, whatever they say
  if (const int64_t id = import.find(mask.text); id >= 0)
    import.add(static_cast<uint64_t>(id), mask, vocab);
  import.mark_special_tokens();
  std::vector<std::string> merges;
  std::istringstream lines(import.folder().text_file("merges.txt").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.compare(0, 9, "#version:") == 0) continue;
    const size_t space = line.find(' ');
    if (space == 0 || space == std::string::npos || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string::npos)
      throw Failure(import.folder().path() + "/merges.txt: expected a pair a line, found \"" +
                    line + "\"");
    merges.push_back(line);
  }
  GgufKeys& keys = import.keys();
  keys.set("tokenizer.ggml.model", std::string("gpt2"));
  keys.set("tokenizer.ggml.pre", std::string("gpt-2"));
  keys.set("tokenizer.ggml.merges", merges);
  keys.set("tokenizer.ggml.add_space_prefix", import.settings().boolean("add_prefix_space", false));
  keys.set("mote.bpe.trim_offsets", import.settings().boolean("trim_offsets", true));
  const ImportedFrame frame = frame_of(begin, end, false);
  import.set_frame(frame);
  import.finish(!frame.surrounds());
}

void import_sentencepiece(const char* name, TokenizerImport& import) {
  const std::string path = import.folder().path() + "/" + name;
  const SentencePieceModel model(*import.folder().text_file(name), path);
  const Config where(path, Json::object());
  if (model.model_type != 1 && model.model_type != 2)
    throw Failure(path + ": expected a Unigram or BPE model, found type " +
                  std::to_string(model.model_type) + "; --no-tokenizer converts the weights alone");
  set_sentencepiece_keys(model, import);
  import.set_scores();
  if (model.model_type == 1) return import_unigram(model, where, import);
  import_bpe(model, where, import);
}

}  // namespace mote::tool
