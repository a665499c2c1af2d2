#include <algorithm>
#include <cstring>
#include <new>

#include "models/tokenizers/tokenizer_state.h"

namespace mote {
namespace {

constexpr char kModel[] = "tokenizer.ggml.model";
constexpr char kBos[] = "tokenizer.ggml.bos_token_id";
constexpr char kEos[] = "tokenizer.ggml.eos_token_id";

// Tokens that end a turn or a text by what they are called, for files that name only one of them by
// key.
constexpr std::string_view kEndNames[] = {"<|im_end|>",
                                          "<|eot_id|>",
                                          "<|eom_id|>",
                                          "<|end_of_text|>",
                                          "<|endoftext|>",
                                          "<end_of_turn>",
                                          "<|end|>",
                                          "<EOT>",
                                          "<|eot|>",
                                          "<\xef\xbd\x9c"
                                          "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"};

}  // namespace

Status Tokenizer::State::read_id(const GgufFile& file, const char* key, int32_t* id) const {
  if (!file.find(key)) return kOk;
  uint32_t value = 0;
  MOTE_TRY(file.get_u32(key, &value));
  if (value >= vocabulary.size())
    return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %s: expected a token id below %u, found %u",
                static_cast<int>(file.name().size()), file.name().data(), key, vocabulary.size(),
                value);
  *id = static_cast<int32_t>(value);
  return kOk;
}

void Tokenizer::State::add_end(int32_t id) {
  if (id < 0 || std::find(ends, ends + end_count, id) != ends + end_count) return;
  if (end_count < kMaxEnds) ends[end_count++] = id;
}

Status Tokenizer::State::read_special_ids(const GgufFile& file, const Log& log) {
  if (kind == Kind::sentencepiece && vocabulary.size() > 2) {  // SentencePiece's own defaults
    if (vocabulary.type(0) == TokenType::unknown) unknown = 0;
    if (vocabulary.type(1) == TokenType::control) bos = 1;
    if (vocabulary.type(2) == TokenType::control) eos = 2;
  }
  int32_t eot = -1, eom = -1;
  // BERT's own names; a key of the others wins.
  MOTE_TRY(read_id(file, "tokenizer.ggml.cls_token_id", &bos));
  MOTE_TRY(read_id(file, "tokenizer.ggml.seperator_token_id", &eos));  // the name is spelt so
  MOTE_TRY(read_id(file, kBos, &bos));
  MOTE_TRY(read_id(file, kEos, &eos));
  MOTE_TRY(read_id(file, "tokenizer.ggml.eot_token_id", &eot));
  MOTE_TRY(read_id(file, "tokenizer.ggml.eom_token_id", &eom));
  MOTE_TRY(read_id(file, "tokenizer.ggml.unknown_token_id", &unknown));
  MOTE_TRY(read_id(file, "tokenizer.ggml.padding_token_id", &padding));
  MOTE_TRY(read_id(file, "tokenizer.ggml.mask_token_id", &mask));
  if (!vocabulary.has_types()) {
    for (int32_t id : {bos, eos})
      if (id >= 0) vocabulary.set_type(id, TokenType::control);
  }
  if (kind == Kind::wordpiece || kind == Kind::unigram) {  // these generate nothing, so end nothing
    const int32_t size = static_cast<int32_t>(vocabulary.size());
    for (int32_t id = 0; unknown < 0 && id < size; ++id)
      if (vocabulary.type(id) == TokenType::unknown) unknown = id;
    return kOk;
  }
  for (int32_t id : {eos, eot, eom}) add_end(id);
  for (std::string_view name : kEndNames) {
    const int32_t id = vocabulary.find(name);
    if (id < 0) continue;
    if (vocabulary.type(id) != TokenType::control) {
      // Else a text could end the model's turn, or show where it did.
      log.write(MOTE_LOG_INFO, "%.*s: token %d \"%.*s\" is taken as a control token",
                static_cast<int>(file.name().size()), file.name().data(), id,
                static_cast<int>(name.size()), name.data());
      vocabulary.set_type(id, TokenType::control);
    }
    add_end(id);
  }
  return kOk;
}

Status Tokenizer::State::read_frame_flags(const GgufFile& file, const Log& log) {
  is_encoder = kind == Kind::wordpiece || kind == Kind::unigram;
  bool by_default = is_encoder || kind == Kind::sentencepiece;
  if (kind == Kind::bpe) MOTE_TRY(Bpe::default_frame(file, &by_default, &is_encoder));
  MOTE_TRY(file.get_bool("tokenizer.ggml.add_bos_token", by_default, &adds_bos));
  MOTE_TRY(file.get_bool("tokenizer.ggml.add_eos_token", is_encoder, &adds_eos));
  const auto check = [&](bool* adds, int32_t id, const char* key) {
    if (!*adds || id >= 0) return;
    log.write(MOTE_LOG_WARNING, "%.*s: key %s is missing: the token is not added to texts",
              static_cast<int>(file.name().size()), file.name().data(), key);
    *adds = false;
  };
  check(&adds_bos, bos, kBos);
  check(&adds_eos, eos, kEos);
  return kOk;
}

// mote.frame.single and .pair: ids, -1 where the text stands, -2 where the second one does;
// .single_types and .pair_types: token types of these (default: 0).
Status Tokenizer::State::read_frame(const GgufFile& file, bool pair) {
  const char* const name = pair ? "mote.frame.pair" : "mote.frame.single";
  const char* const types_name = pair ? "mote.frame.pair_types" : "mote.frame.single_types";
  const int name_length = static_cast<int>(file.name().size());
  const GgufKey *ids = nullptr, *types = nullptr;
  if (!file.find(name)) return kOk;
  MOTE_TRY(file.get_array(name, GgufType::i32, 0, &ids));
  if (ids->count > Frame::kMaxParts)
    return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %s: expected at most %zu ids, found %llu",
                name_length, file.name().data(), name, Frame::kMaxParts,
                static_cast<unsigned long long>(ids->count));
  if (file.find(types_name))
    MOTE_TRY(file.get_array(types_name, GgufType::i32, ids->count, &types));
  Frame frame;
  size_t texts[2] = {0, 0};
  for (size_t i = 0; i < ids->count; ++i) {
    int32_t id = 0, type = 0;
    std::memcpy(&id, ids->data + i * sizeof id, sizeof id);
    if (types) std::memcpy(&type, types->data + i * sizeof type, sizeof type);
    if (id < Frame::kSecond || (id >= 0 && !vocabulary.contains(id)) || type < 0 || type > 255)
      return fail(MOTE_ERROR_BAD_FILE,
                  "%.*s: key %s: item %zu: expected an id from -2 and below %u of type 0 to 255, "
                  "found %d of type %d",
                  name_length, file.name().data(), name, i, vocabulary.size(), id, type);
    if (id < 0) ++texts[id == Frame::kFirst ? 0 : 1];
    frame.add(id, static_cast<uint8_t>(type));
  }
  if (texts[0] != 1 || texts[1] != (pair ? 1 : 0))
    return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %s: expected %s, found %zu and %zu", name_length,
                file.name().data(), name, pair ? "-1 and -2 once each" : "-1 once and no -2",
                texts[0], texts[1]);
  frames[pair] = frame;
  return kOk;
}

Status Tokenizer::State::read_frames(const GgufFile& file) {
  Frame& single = frames[0];
  if (adds_bos) single.add(bos, 0);
  single.add(Frame::kFirst, 0);
  if (adds_eos) single.add(eos, 0);
  if (is_encoder && adds_bos && adds_eos) {
    // As BERT has it, or RoBERTa.
    const bool is_bert = kind == Kind::wordpiece;
    Frame& pair = frames[1] = single;
    if (!is_bert) pair.add(eos, 0);
    pair.add(Frame::kSecond, is_bert);
    pair.add(eos, is_bert);
  }
  MOTE_TRY(read_frame(file, false));
  MOTE_TRY(read_frame(file, true));
  is_encoder |= frames[1].count > 0 && kind != Kind::sentencepiece;  // whose tokens partition
  return file.get_u32("mote.max_tokens", 0, &max_tokens);
}

Status Tokenizer::State::open(const GgufFile& file, const Log& log) {
  std::string_view model;
  MOTE_TRY(file.get_text(kModel, &model));
  struct KindName {
    const char* name;
    Kind kind;
  };
  constexpr KindName kKinds[] = {{"gpt2", Kind::bpe},
                                 {"llama", Kind::sentencepiece},
                                 {"bert", Kind::wordpiece},
                                 {"t5", Kind::unigram}};
  const KindName* const found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                             [&](const KindName& k) { return model == k.name; });
  if (found == std::end(kKinds))
    return fail(MOTE_ERROR_UNSUPPORTED, "%.*s: key %s: \"%.*s\" is not a known tokenizer",
                static_cast<int>(file.name().size()), file.name().data(), kModel, MOTE_SHOW(model));
  kind = found->kind;
  MOTE_TRY(vocabulary.open(file, *allocator));
  MOTE_TRY(read_special_ids(file, log));
  MOTE_TRY(read_frame_flags(file, log));
  MOTE_TRY(read_frames(file));
  MOTE_TRY(open_kind(file, log));
  // A mask takes the space before it with it in the tokenizers that frame texts as RoBERTa does.
  const bool strips = kind != Kind::wordpiece && is_encoder;
  return specials.open(file, vocabulary, *allocator, kind == Kind::sentencepiece,
                       strips ? mask : -1);
}

Status Tokenizer::State::open_kind(const GgufFile& file, const Log& log) {
  switch (kind) {
    case Kind::bpe:
      if (is_encoder) bpe.set_covers();
      return bpe.open(file, vocabulary, *allocator, log);
    case Kind::sentencepiece:
      return sentencepiece.open(file, vocabulary, unknown);
    case Kind::wordpiece:
      return wordpiece.open(file, vocabulary, unknown, log);
    case Kind::unigram:
      return unigram.open(file, vocabulary, unknown, *allocator);
  }
  return kOk;
}

Tokenizer::~Tokenizer() {
  if (!state_) return;
  Allocator* allocator = state_->allocator;
  state_->~State();
  allocator->release(state_, sizeof(State));
}

Status Tokenizer::open(const GgufFile& file, Allocator& allocator, const Log& log) {
  if (state_) return fail(MOTE_ERROR_ARGUMENT, "the tokenizer is open already");
  if (!file.find(kModel) && !file.find("tokenizer.ggml.tokens")) return kOk;
  std::string_view model;
  if (file.get_text(kModel, &model).ok() && (model == "none" || model == "no_vocab")) return kOk;
  void* memory = allocator.allocate(sizeof(State), alignof(State));
  if (!memory) return fail(MOTE_ERROR_MEMORY, "tokenizer: no memory for %zu bytes", sizeof(State));
  State* state = new (memory) State;
  state->allocator = &allocator;
  const Status status = state->open(file, log);
  if (status.ok()) {
    state_ = state;
  } else {
    state->~State();
    allocator.release(memory, sizeof(State));
  }
  return status;
}

}  // namespace mote
