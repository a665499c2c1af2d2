#include "models/tokenizers/tokenizer.h"

#include <algorithm>

#include "core/utf8.h"
#include "models/tokenizers/text_part.h"
#include "models/tokenizers/tokenizer_state.h"

namespace mote {

void Tokenizer::State::plan(Arena& arena, size_t text_bytes, Scratch* scratch) const {
  switch (kind) {
    case Kind::bpe:
      return bpe.plan(arena, text_bytes, &scratch->bpe);
    case Kind::sentencepiece:
      return SentencePiece::plan(arena, text_bytes, &scratch->sentencepiece);
    case Kind::wordpiece:
      return wordpiece.plan(arena, text_bytes, &scratch->wordpiece);
    case Kind::unigram:
      return unigram.plan(arena, text_bytes, &scratch->unigram);
  }
}

Status Tokenizer::State::encode(std::string_view text, size_t base, Scratch& scratch,
                                TokenSink& sink) const {
  switch (kind) {
    case Kind::bpe:
      return bpe.encode(text, base, scratch.bpe, sink);
    case Kind::sentencepiece:
      sentencepiece.encode(text, base, scratch.sentencepiece, sink);
      return kOk;
    case Kind::wordpiece:
      wordpiece.encode(text, base, scratch.wordpiece, sink);
      return kOk;
    case Kind::unigram:
      return unigram.encode(text, base, scratch.unigram, sink);
  }
  return kOk;
}

Status Tokenizer::State::encode_between(std::string_view text, size_t begin,
                                        SpecialMatcher::Pass pass, uint32_t flags,
                                        LiteralPlaces literal, Scratch& scratch,
                                        TokenSink& sink) const {
  using Pass = SpecialMatcher::Pass;
  const bool all = (flags & MOTE_TOKENIZE_SPECIAL) != 0;
  for (size_t at = begin, next = begin; at < text.size() || next < text.size();) {
    SpecialMatcher::Match match = specials.find(text, next, at, pass, all, literal);
    if (match.start > at) {
      const std::string_view before = text_part(text, 0, match.start);
      if (pass == Pass::first && specials.has_late())
        MOTE_TRY(encode_between(before, at, Pass::late, flags, literal, scratch, sink));
      else
        MOTE_TRY(encode(text_part(before, at, match.start), at, scratch, sink));
    }
    if (match.id < 0) break;
    next = match.next;
    sink.begin_word();
    if (!is_encoder) {
      sink.put(match.id, std::max(match.start, at));
      at = std::max(match.end, at);
      continue;
    }
    at = match.end;
    if (kind == Kind::bpe) bpe.trim_special(text, &match.start, &match.end);
    sink.put_range(match.id, match.start, match.end);
  }
  return kOk;
}

uint32_t Tokenizer::size() const { return state_ ? state_->vocabulary.size() : 0; }
int32_t Tokenizer::bos() const { return state_ ? state_->bos : -1; }
int32_t Tokenizer::eos() const { return state_ ? state_->eos : -1; }
int32_t Tokenizer::unknown() const { return state_ ? state_->unknown : -1; }
int32_t Tokenizer::padding() const { return state_ ? state_->padding : -1; }
int32_t Tokenizer::mask() const { return state_ ? state_->mask : -1; }
bool Tokenizer::adds_bos() const { return state_ && state_->adds_bos; }
uint32_t Tokenizer::max_tokens() const { return state_ ? state_->max_tokens : 0; }
const Frame& Tokenizer::frame(bool pair) const {
  static constexpr Frame kNone{};
  return state_ ? state_->frames[pair] : kNone;
}
// A byte token gives one byte, even where the file has no text for it; WordPiece puts a space in
// front.
size_t Tokenizer::longest_piece() const { return state_ ? state_->vocabulary.longest() + 1 : 0; }

bool Tokenizer::partitions() const { return state_ && !state_->is_encoder; }

bool Tokenizer::marks_continuations() const { return state_ && state_->kind == Kind::wordpiece; }

size_t Tokenizer::piece_characters(int32_t id) const {
  if (!state_ || !state_->vocabulary.contains(id)) return 0;
  if (state_->kind == Kind::wordpiece) return state_->wordpiece.piece_characters(id);
  const std::string_view text = state_->vocabulary.text(id);
  size_t characters = 0;
  for (size_t at = 0; at < text.size(); ++characters) at += read_utf8(text, at).length;
  return characters;
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
  State::Scratch pieces;
  state_->plan(measure, std::min(text_bytes, kMaxTextBytes), &pieces);
  return measure.used();
}

size_t Tokenizer::most_tokens(size_t text_bytes) const {
  if (!state_) return 0;
  size_t halves = 3;  // of a token, for each byte
  if (state_->kind == Kind::bpe) halves = state_->bpe.longest_result(2);
  if (state_->kind == Kind::sentencepiece) halves = 6;
  // Each word may have a mark in front; the spaces between, or special tokens, leave half a byte.
  if (state_->kind == Kind::unigram) halves = state_->unigram.longest_result(2) + 1;
  size_t tokens = 0;
  if (__builtin_mul_overflow(text_bytes, halves, &tokens)) return SIZE_MAX;
  return tokens / 2 + tokens % 2 + 1;
}

Status Tokenizer::encode(std::string_view text, uint32_t flags, Arena scratch, mote_token* tokens,
                         size_t capacity, size_t* count, LiteralPlaces literal,
                         uint8_t* word_starts, size_t skipped) const {
  *count = 0;
  if (!state_) return fail(MOTE_ERROR_TASK, "this model has no tokenizer");
  if (text.size() > kMaxTextBytes)
    return fail(MOTE_ERROR_ARGUMENT, "text: expected at most %zu bytes, found %zu", kMaxTextBytes,
                text.size());
  const State& state = *state_;
  State::Scratch pieces{};
  state.plan(scratch, text.size(), &pieces);
  if (!text.empty() && (scratch.failed() || scratch.measuring()))
    return fail(MOTE_ERROR_MEMORY, "tokenizer: a text of %zu bytes needs %zu bytes of scratch",
                text.size(), scratch_bytes(text.size()));
  TokenSink sink(tokens, capacity, word_starts, skipped);
  const Frame& frame = state.frames[0];
  size_t part = 0;
  for (; frame.parts[part].id >= 0; ++part)
    if (flags & MOTE_TOKENIZE_FRAME) sink.put_frame(frame.parts[part].id, 0);
  MOTE_TRY(
      state.encode_between(text, 0, SpecialMatcher::Pass::first, flags, literal, pieces, sink));
  sink.finish(text.size());
  for (++part; part < frame.count; ++part)
    if (flags & MOTE_TOKENIZE_FRAME)
      sink.put_frame(frame.parts[part].id, state.is_encoder ? 0 : text.size());
  *count = sink.count();
  const size_t kept = *count > skipped ? *count - skipped : 0;
  if (kept > capacity)
    return fail(MOTE_ERROR_BUFFER, "tokens: expected room for %zu, found %zu", kept, capacity);
  return kOk;
}

size_t Tokenizer::find_control(std::string_view text, size_t from, size_t* end) const {
  *end = text.size();
  while (state_ && from < text.size()) {
    const SpecialMatcher::Match match =
        state_->specials.find(text, from, from, SpecialMatcher::Pass::first, true);
    if (match.id < 0) break;
    if (state_->vocabulary.type(match.id) != TokenType::user_defined) {
      *end = match.next;
      return match.name;
    }
    from = match.next;
  }
  return text.size();
}

size_t Tokenizer::decode(int32_t id, bool first, bool skip_special, char* out,
                         size_t capacity) const {
  if (!state_ || !state_->vocabulary.contains(id)) return 0;
  const TokenType type = state_->vocabulary.type(id);
  const bool special = type == TokenType::control || type == TokenType::unknown;
  if (special && skip_special) return 0;
  if (state_->kind == Kind::wordpiece) return state_->wordpiece.decode(id, first, out, capacity);
  if (special || type == TokenType::user_defined) {
    const std::string_view text = state_->vocabulary.text(id);
    std::copy_n(text.data(), std::min(text.size(), capacity), out);
    return text.size();
  }
  switch (state_->kind) {
    case Kind::bpe:
      return state_->bpe.decode(id, out, capacity);
    case Kind::unigram:
      if (type != TokenType::byte) return state_->unigram.decode(id, first, out, capacity);
      break;
    default:
      break;
  }
  return state_->sentencepiece.decode(id, first, out, capacity);
}

}  // namespace mote
