#include "models/tokenizers/tokenizer.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "models/tokenizers/bpe.h"
#include "models/tokenizers/sentencepiece.h"
#include "models/tokenizers/special_matcher.h"
#include "models/tokenizers/text_part.h"
#include "models/tokenizers/token_sink.h"
#include "models/tokenizers/vocabulary.h"

namespace mote {
namespace {

enum class Kind : uint8_t { bpe, sentencepiece };

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

struct Tokenizer::State {
  static constexpr size_t kMaxEnds = 16;

  Allocator* allocator = nullptr;
  Kind kind = Kind::bpe;
  Vocabulary vocabulary;
  SpecialMatcher specials;
  Bpe bpe;
  SentencePiece sentencepiece;
  int32_t bos = -1, eos = -1, unknown = -1;
  int32_t ends[kMaxEnds];
  size_t end_count = 0;
  bool adds_bos = false, adds_eos = false;

  Status open(const GgufFile& file, const Log& log);
  Status read_id(const GgufFile& file, const char* key, int32_t* id) const;
  Status read_special_ids(const GgufFile& file, const Log& log);
  Status read_frame(const GgufFile& file, const Log& log);
  void add_end(int32_t id);
};

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
  MOTE_TRY(read_id(file, kBos, &bos));
  MOTE_TRY(read_id(file, kEos, &eos));
  MOTE_TRY(read_id(file, "tokenizer.ggml.eot_token_id", &eot));
  MOTE_TRY(read_id(file, "tokenizer.ggml.eom_token_id", &eom));
  MOTE_TRY(read_id(file, "tokenizer.ggml.unknown_token_id", &unknown));
  if (!vocabulary.has_types()) {
    for (int32_t id : {bos, eos})
      if (id >= 0) vocabulary.set_type(id, TokenType::control);
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

Status Tokenizer::State::read_frame(const GgufFile& file, const Log& log) {
  const bool by_default = kind == Kind::sentencepiece || bpe.adds_bos();
  MOTE_TRY(file.get_bool("tokenizer.ggml.add_bos_token", by_default, &adds_bos));
  MOTE_TRY(file.get_bool("tokenizer.ggml.add_eos_token", false, &adds_eos));
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

Status Tokenizer::State::open(const GgufFile& file, const Log& log) {
  std::string_view model;
  MOTE_TRY(file.get_text(kModel, &model));
  if (model == "gpt2") {
    kind = Kind::bpe;
  } else if (model == "llama") {
    kind = Kind::sentencepiece;
  } else {
    return fail(MOTE_ERROR_UNSUPPORTED, "%.*s: key %s: \"%.*s\" is not a known tokenizer",
                static_cast<int>(file.name().size()), file.name().data(), kModel,
                static_cast<int>(std::min<size_t>(model.size(), 64)), model.data());
  }
  MOTE_TRY(vocabulary.open(file, *allocator));
  MOTE_TRY(read_special_ids(file, log));
  if (kind == Kind::bpe)
    MOTE_TRY(bpe.open(file, vocabulary, *allocator, log));
  else
    MOTE_TRY(sentencepiece.open(file, vocabulary, unknown));
  MOTE_TRY(specials.open(vocabulary, *allocator, kind == Kind::sentencepiece));
  return read_frame(file, log);
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

uint32_t Tokenizer::size() const { return state_ ? state_->vocabulary.size() : 0; }
int32_t Tokenizer::bos() const { return state_ ? state_->bos : -1; }
int32_t Tokenizer::eos() const { return state_ ? state_->eos : -1; }
bool Tokenizer::adds_bos() const { return state_ && state_->adds_bos; }
// A byte token gives one byte, even where the file has no text for it.
size_t Tokenizer::longest_piece() const {
  return state_ ? std::max<size_t>(state_->vocabulary.longest(), 1) : 0;
}

bool Tokenizer::is_end(int32_t id) const {
  if (!state_ || id < 0) return false;
  const int32_t *begin = state_->ends, *end = begin + state_->end_count;
  return std::find(begin, end, id) != end;
}

TokenType Tokenizer::type(int32_t id) const {
  return state_ && state_->vocabulary.contains(id) ? state_->vocabulary.type(id)
                                                   : TokenType::unused;
}

std::string_view Tokenizer::stored_text(int32_t id) const {
  return state_ && state_->vocabulary.contains(id) ? state_->vocabulary.text(id)
                                                   : std::string_view();
}

int32_t Tokenizer::find(std::string_view stored_text) const {
  return state_ ? state_->vocabulary.find(stored_text) : -1;
}

size_t Tokenizer::scratch_bytes(size_t text_bytes) const {
  if (!state_) return 0;
  Arena measure;
  SentencePiece::Scratch pieces;
  if (text_bytes > kMaxTextBytes) text_bytes = kMaxTextBytes;
  if (state_->kind == Kind::bpe)
    Bpe::plan(measure, text_bytes, &pieces.merger);
  else
    SentencePiece::plan(measure, text_bytes, &pieces);
  return measure.used();
}

Status Tokenizer::encode(std::string_view text, uint32_t flags, Arena scratch, mote_token* tokens,
                         size_t capacity, size_t* count, LiteralPlaces literal) const {
  *count = 0;
  if (!state_) return fail(MOTE_ERROR_TASK, "this model has no tokenizer");
  if (text.size() > kMaxTextBytes)
    return fail(MOTE_ERROR_ARGUMENT, "text: expected at most %zu bytes, found %zu", kMaxTextBytes,
                text.size());
  const State& state = *state_;
  SentencePiece::Scratch pieces{};
  if (state.kind == Kind::bpe)
    Bpe::plan(scratch, text.size(), &pieces.merger);
  else
    SentencePiece::plan(scratch, text.size(), &pieces);
  if (!text.empty() && (scratch.failed() || scratch.measuring()))
    return fail(MOTE_ERROR_MEMORY, "tokenizer: a text of %zu bytes needs %zu bytes of scratch",
                text.size(), scratch_bytes(text.size()));
  TokenSink sink(tokens, capacity);
  if ((flags & MOTE_TOKENIZE_FRAME) && state.adds_bos) sink.put_frame(state.bos, 0);
  for (size_t at = 0; at < text.size();) {
    const SpecialMatcher::Match match =
        state.specials.find(text, at, (flags & MOTE_TOKENIZE_SPECIAL) != 0, literal);
    const std::string_view plain = text_part(text, at, match.start);
    if (state.kind == Kind::bpe)
      state.bpe.encode(plain, at, pieces.merger, sink);
    else
      state.sentencepiece.encode(plain, at, pieces, sink);
    if (match.id >= 0) sink.put(match.id, match.start);
    at = match.end;
  }
  sink.finish(text.size());
  if ((flags & MOTE_TOKENIZE_FRAME) && state.adds_eos) sink.put_frame(state.eos, text.size());
  *count = sink.count();
  if (*count > capacity)
    return fail(MOTE_ERROR_BUFFER, "tokens: expected room for %zu, found %zu", *count, capacity);
  return kOk;
}

size_t Tokenizer::find_control(std::string_view text, size_t from, size_t* end) const {
  *end = text.size();
  while (state_ && from < text.size()) {
    const SpecialMatcher::Match match = state_->specials.find(text, from, true);
    if (match.id < 0) break;
    if (state_->vocabulary.type(match.id) != TokenType::user_defined) {
      *end = match.end;
      return match.start;
    }
    from = match.end;
  }
  return text.size();
}

size_t Tokenizer::decode(int32_t id, bool first, bool skip_special, char* out,
                         size_t capacity) const {
  if (!state_ || !state_->vocabulary.contains(id)) return 0;
  const TokenType type = state_->vocabulary.type(id);
  const bool special = type == TokenType::control || type == TokenType::unknown;
  if (special && skip_special) return 0;
  if (special || type == TokenType::user_defined) {
    const std::string_view text = state_->vocabulary.text(id);
    std::copy_n(text.data(), std::min(text.size(), capacity), out);
    return text.size();
  }
  if (state_->kind == Kind::bpe) return state_->bpe.decode(id, out, capacity);
  return state_->sentencepiece.decode(id, first, out, capacity);
}

}  // namespace mote
