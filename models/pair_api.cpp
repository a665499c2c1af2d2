// mote.h: two texts as an encoder is given them, window by window.
#include <algorithm>

#include "models/api_arguments.h"
#include "models/text_sequence.h"

namespace mote {
namespace {

struct PairCall {
  mote_session* session;
  std::string_view texts[2];
  uint32_t flags;
  mote_token* tokens;
  uint8_t* types;
  int8_t* text_indices;
  size_t capacity;
};

Status count_tokens(const PairCall& call, size_t text, size_t* count) {
  const Status status = call.session->model->tokenizer.encode(
      call.texts[text], call.flags, call.session->scratch_arena(), nullptr, 0, count);
  return status.code() == MOTE_ERROR_BUFFER ? kOk : status;
}

// The tokens of a window into their places in the sequence.
Status write_window(const PairCall& call, const Frame& frame, const TextWindow& window) {
  const Tokenizer& tokenizer = call.session->model->tokenizer;
  size_t at = 0;
  for (size_t part = 0; part < frame.count; ++part) {
    const int32_t id = frame.parts[part].id;
    const size_t text = id == Frame::kSecond;
    const size_t length = id >= 0 ? 1 : window.count(text);
    for (size_t i = 0; i < length; ++i) {
      if (call.types) call.types[at + i] = frame.parts[part].type;
      if (call.text_indices) call.text_indices[at + i] = id >= 0 ? -1 : static_cast<int8_t>(text);
    }
    if (id >= 0) {
      call.tokens[at] = {id, 0, 0};
    } else if (length > 0) {
      size_t count = 0;
      const Status status =
          tokenizer.encode(call.texts[text], call.flags, call.session->scratch_arena(),
                           call.tokens + at, length, &count, {}, nullptr, window.begin[text]);
      if (!status.ok() && status.code() != MOTE_ERROR_BUFFER) return status;
    }
    at += length;
  }
  return kOk;
}

Status tokenize_pair(const PairCall& call, size_t max_tokens, size_t stride, size_t index,
                     size_t* count, size_t* windows) {
  const mote_model& model = *call.session->model;
  if (!model.tokenizer.present()) return fail(MOTE_ERROR_TASK, "%s has no tokenizer", model.name);
  const Frame& frame = model.tokenizer.frame(true);
  if (frame.count == 0)
    return fail(MOTE_ERROR_TASK, "%s does not say how it takes two texts", model.name);
  if (max_tokens == 0) max_tokens = model.tokenizer.max_tokens();
  if (max_tokens == 0 && model.has_weights) max_tokens = model.transformer.spec.context;
  if (max_tokens == 0)
    return fail(MOTE_ERROR_ARGUMENT, "max_tokens: %s does not say how long a sequence may be",
                model.name);
  for (std::string_view text : call.texts)
    if (text.size() > call.session->sizes.text_bytes)
      return fail(MOTE_ERROR_CAPACITY, "text: %zu bytes, the session's text_bytes is %zu",
                  text.size(), call.session->sizes.text_bytes);
  TextLengths lengths;
  lengths.pair = true;
  MOTE_TRY(count_tokens(call, 0, &lengths.first));
  MOTE_TRY(count_tokens(call, 1, &lengths.second));
  TextWindows all;
  MOTE_TRY(all.open(frame, lengths, max_tokens, stride, 1));
  if (index >= all.count())
    return fail(MOTE_ERROR_ARGUMENT, "window: expected less than %zu, found %zu", all.count(),
                index);
  const TextWindow window = all.window(index);
  *windows = all.count();
  *count = sequence_tokens(frame, window);
  if (*count > call.capacity)
    return fail(MOTE_ERROR_BUFFER, "tokens: expected room for %zu, found %zu", *count,
                call.capacity);
  return write_window(call, frame, window);
}

}  // namespace
}  // namespace mote

extern "C" mote_status mote_tokenize_pair(mote_session* session, mote_text first, mote_text second,
                                          uint32_t flags, uint32_t max_tokens, uint32_t stride,
                                          size_t window, mote_token* tokens, uint8_t* types,
                                          int8_t* texts, size_t capacity, size_t* count,
                                          size_t* windows) {
  using namespace mote;
  const Entry entry(session);
  return finish([&]() -> Status {
    MOTE_TRY(entry.status());
    MOTE_TRY(need(count, "count"));
    MOTE_TRY(need(windows, "windows"));
    *count = *windows = 0;
    if (capacity) MOTE_TRY(need(tokens, "tokens"));
    MOTE_TRY(read_text(&first, "first"));
    MOTE_TRY(read_text(&second, "second"));
    if (flags & ~uint32_t(MOTE_TOKENIZE_SPECIAL))
      return fail(MOTE_ERROR_ARGUMENT, "flags: expected MOTE_TOKENIZE_SPECIAL, found %u", flags);
    return tokenize_pair({session,
                          {{first.data, first.length}, {second.data, second.length}},
                          flags,
                          tokens,
                          types,
                          texts,
                          capacity},
                         max_tokens, stride, window, count, windows);
  }());
}
