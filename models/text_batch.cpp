#include "models/text_batch.h"

#include <algorithm>
#include <cstring>

#include "models/heads/code_points.h"
#include "models/heads/entities.h"
#include "models/session.h"

namespace mote {
namespace {

constexpr size_t kDefaultStride = 128;
constexpr size_t kTokenSlack = 64;

}  // namespace

void TextBatch::plan(Arena& arena, const mote_model& model, const SessionSizes& sizes) {
  model_ = &model;
  limit_ = sizes.capacity;
  text_bytes_ = sizes.text_bytes;
  batch_tokens_ = sizes.batch_tokens;
  const size_t most = model.tokenizer.most_tokens(sizes.text_bytes);
  token_capacity_ = most > SIZE_MAX - kTokenSlack ? SIZE_MAX : most + kTokenSlack;
  tokens_ = arena.take<mote_token>(token_capacity_);
  marks_ = arena.take<uint8_t>(token_capacity_);
  sequences_ = arena.take<Sequence>(batch_tokens_);
  places_ = arena.take<BatchSequence>(batch_tokens_);
  ids_ = arena.take<int32_t>(batch_tokens_);
  type_ids_ = arena.take<uint8_t>(batch_tokens_);
  pass_tokens_ = arena.take<mote_token>(batch_tokens_);
  pass_marks_ = arena.take<uint8_t>(batch_tokens_);
}

Status TextBatch::tokenize(std::string_view text, const TextRules& rules, Arena scratch,
                           size_t first, size_t* count) {
  const Status status =
      model_->tokenizer.encode(text, rules.tokenize_flags, scratch, tokens_ + first,
                               token_capacity_ - first, count, {}, marks_ + first);
  if (status.code() != MOTE_ERROR_BUFFER) return status;
  return fail(MOTE_ERROR_CAPACITY,
              "text: %zu tokens, the session holds %zu; a larger text_bytes gives room", *count,
              token_capacity_ - first);
}

Status TextBatch::open(size_t index, const mote_input& input, const TextRules& rules, Arena scratch,
                       mote_report* report) {
  *report = {};
  input_ = index;
  windows_ = next_window_ = 0;
  pair_ = input.pair.length > 0;
  windowed_ = pair_ ? rules.windowed : 0;
  if (input.text.length > text_bytes_ || input.pair.length > text_bytes_ - input.text.length)
    return fail(MOTE_ERROR_CAPACITY, "text: %zu bytes, the session's text_bytes is %zu",
                input.text.length + input.pair.length, text_bytes_);
  const std::string_view first(input.text.data, input.text.length);
  const std::string_view second(input.pair.data, input.pair.length);
  TextLengths lengths;
  lengths.pair = pair_;
  MOTE_TRY(tokenize(first, rules, scratch, 0, &lengths.first));
  second_ = lengths.first;
  if (pair_) MOTE_TRY(tokenize(second, rules, scratch, second_, &lengths.second));
  if (rules.marks == TextRules::Marks::subwords) mark_subwords(first, 0, lengths.first);
  return spread(lengths, rules, report);
}

// Which tokens each of the input's sequences has.
Status TextBatch::spread(const TextLengths& lengths, const TextRules& rules, mote_report* report) {
  const Frame& frame = model_->tokenizer.frame(pair_);
  if (pair_ && frame.count == 0)
    return fail(MOTE_ERROR_TASK, "%s takes no pairs of texts", model_->name);
  const size_t whole = frame.added() + lengths.first + lengths.second;
  report->tokens = static_cast<uint32_t>(whole);
  if (whole == 0)
    return fail(MOTE_ERROR_ARGUMENT, "text: no tokens, and %s puts none around it", model_->name);
  cut_ = rules.too_long != MOTE_LONG_WINDOWS;
  size_t windows = 1;
  if (cut_) {
    bool truncated = false;
    if (rules.too_long == MOTE_LONG_ERROR && whole > limit_)
      return fail(MOTE_ERROR_CONTEXT, "text: expected at most %zu tokens, found %zu", limit_,
                  whole);
    MOTE_TRY(truncate(frame, lengths, limit_, rules.truncation, &cut_window_, &truncated));
    report->truncated = truncated;
  } else {
    const size_t other = windowed_ == 0 ? lengths.second : lengths.first;
    const size_t fixed = frame.added() + other;
    const size_t room = fixed < limit_ ? limit_ - fixed : 0;
    const size_t stride =
        rules.window_stride ? rules.window_stride : std::min(kDefaultStride, room / 2);
    MOTE_TRY(spread_.open(frame, lengths, limit_, stride, windowed_));
    windows = spread_.count();
  }
  report->windows = static_cast<uint32_t>(windows);
  windows_ = windows;
  return kOk;
}

void TextBatch::mark_subwords(std::string_view text, size_t first, size_t count) {
  const Tokenizer& tokenizer = model_->tokenizer;
  for (size_t i = first; i < first + count; ++i)
    marks_[i] =
        is_subword(text, tokens_[i], tokenizer.marks_continuations(),
                   tokenizer.piece_characters(tokens_[i].id), tokens_[i].id == tokenizer.unknown());
}

bool TextBatch::fits() const {
  return sequence_tokens(model_->tokenizer.frame(pair_), next_window()) <= batch_tokens_ - used_;
}

void TextBatch::add() {
  const Frame& frame = model_->tokenizer.frame(pair_);
  const TextWindow part = next_window();
  const size_t length = sequence_tokens(frame, part);
  write_sequence(frame, part, tokens_, tokens_ + second_, ids_ + used_, type_ids_ + used_);
  const size_t text = windowed_, from = (text == 1 ? second_ : 0) + part.begin[text];
  BatchSequence& place = places_[count_];
  place.input = input_;
  place.window = static_cast<uint32_t>(next_window_);
  place.windows = static_cast<uint32_t>(windows_);
  place.first = static_cast<uint32_t>(used_);
  place.text = static_cast<uint32_t>(position_of(frame, part, text));
  place.text_tokens = static_cast<uint32_t>(part.count(text));
  std::memcpy(pass_tokens_ + used_ + place.text, tokens_ + from,
              part.count(text) * sizeof *tokens_);
  std::memcpy(pass_marks_ + used_ + place.text, marks_ + from, part.count(text));
  sequences_[count_].ids = ids_ + used_;
  sequences_[count_].type_ids = type_ids_ + used_;
  sequences_[count_].tokens = static_cast<uint32_t>(length);
  used_ += length;
  ++count_;
  ++next_window_;
}

}  // namespace mote
