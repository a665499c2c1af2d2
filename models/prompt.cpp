// Prompts to ids: a text, messages through the chat template, or ids as they are.
#include <time.h>

#include <algorithm>
#include <cstring>

#include "models/session.h"

namespace mote {
namespace {

Status no_tokenizer(const mote_session& session) {
  return fail(MOTE_ERROR_TASK, "%s has no tokenizer: give the prompt as ids", session.model->name);
}

Status need_chat_template(const mote_model& model) {
  if (model.chat_status != MOTE_OK) return fail(model.chat_status, "%s", model.chat_error);
  if (!model.chat.present()) return fail(MOTE_ERROR_TASK, "%s has no chat template", model.name);
  return kOk;
}

// In no text: stands before what reads like a control token within a message, so that it is not one
// in the prompt.
constexpr char kGuard = '\xff';
constexpr char kNoText =
    '\xfe';  // what a byte kGuard of a message becomes: no text either, it reads the same

size_t measured(const mote_text& text) {
  return text.length == MOTE_NUL_TERMINATED ? std::strlen(text.data) : text.length;
}

// Copies text to out, which has room for room bytes, with guards; returns the length, or SIZE_MAX
// if it is more.
size_t copy_guarded(const Tokenizer& tokenizer, std::string_view text, bool guarded, char* out,
                    size_t room) {
  size_t length = 0, end = 0;
  size_t control = guarded ? tokenizer.find_control(text, 0, &end) : text.size();
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == control) {
      if (length == room) return SIZE_MAX;
      out[length++] = kGuard;
      control = tokenizer.find_control(text, i + 1, &end);
    }
    if (length == room) return SIZE_MAX;
    out[length++] = text[i] == kGuard ? kNoText : text[i];
  }
  return length;
}

// The messages with measured lengths, in scratch.
Status copy_messages(const mote_session& session, const mote_message* messages, size_t count,
                     bool guarded, Arena* scratch, const mote_message** copies) {
  auto* copy = scratch->take<mote_message>(count);
  const size_t room = guarded_bytes(session.sizes.text_bytes);
  char* text = scratch->take<char>(room);
  if (scratch->failed())
    return fail(MOTE_ERROR_CAPACITY, "messages: %zu are too many for the session's text_bytes %zu",
                count, session.sizes.text_bytes);
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    const mote_text* from[] = {&messages[i].role, &messages[i].content};
    mote_text* to[] = {&copy[i].role, &copy[i].content};
    for (size_t part = 0; part < 2; ++part) {
      const std::string_view given(from[part]->data, measured(*from[part]));
      const size_t length =
          copy_guarded(session.model->tokenizer, given, guarded, text + used, room - used);
      if (length == SIZE_MAX)
        return fail(MOTE_ERROR_CAPACITY,
                    "messages: message %zu does not fit into the session's text_bytes %zu", i,
                    session.sizes.text_bytes);
      *to[part] = {text + used, length};
      used += length;
    }
  }
  *copies = copy;
  return kOk;
}

Status render(mote_session& session, const mote_message* messages, size_t count, bool guarded,
              char* text, size_t capacity, size_t* length) {
  const mote_model& model = *session.model;
  MOTE_TRY(need_chat_template(model));
  Arena scratch = session.scratch_arena();
  TemplateInput input;
  MOTE_TRY(copy_messages(session, messages, count, guarded, &scratch, &input.messages));
  input.message_count = count;
  if (model.tokenizer.present()) {
    const Tokenizer& tokenizer = model.tokenizer;
    if (tokenizer.bos() >= 0) input.bos_token = tokenizer.stored_text(tokenizer.bos());
    if (tokenizer.eos() >= 0) input.eos_token = tokenizer.stored_text(tokenizer.eos());
  }
  input.now = int64_t(time(nullptr)) + session.utc_offset;
  return model.chat.render(input, scratch.rest(), text, capacity, length);
}

// Takes the guards out of text and says where they stood.
Status remove_guards(Arena* scratch, char* text, size_t* length, LiteralPlaces* literal) {
  literal->count = size_t(std::count(text, text + *length, kGuard));
  if (literal->count == 0) return kOk;
  auto* places = scratch->take<uint32_t>(literal->count);
  if (!places)
    return fail(MOTE_ERROR_CAPACITY,
                "prompt: %zu names of control tokens in the messages are too many", literal->count);
  size_t clean = 0, place = 0;
  for (size_t i = 0; i < *length; ++i) {
    if (text[i] == kGuard)
      places[place++] = uint32_t(clean);
    else
      text[clean++] = text[i];
  }
  *length = clean;
  literal->at = places;
  return kOk;
}

// Ids of a text, without an end token that the frame may have put behind it.
Status text_ids(mote_session& session, std::string_view text, uint32_t flags, Arena scratch,
                LiteralPlaces literal, size_t* count) {
  const Tokenizer& tokenizer = session.model->tokenizer;
  size_t found = 0;
  const size_t room = session.sizes.capacity;
  const Status status =
      tokenizer.encode(text, flags, scratch, session.tokens, room + 1, &found, literal);
  if (!status.ok() && status.code() != MOTE_ERROR_BUFFER) return status;
  if (status.ok() && found && (flags & MOTE_TOKENIZE_FRAME)) {
    const mote_token& last = session.tokens[found - 1];
    if (last.id == tokenizer.eos() && last.byte_start == last.byte_end) --found;
  }
  if (found > room)
    return fail(MOTE_ERROR_CAPACITY, "prompt: %zu tokens, the session holds %zu", found, room);
  for (size_t i = 0; i < found; ++i) session.prompt[i] = session.tokens[i].id;
  *count = found;
  return kOk;
}

Status message_ids(mote_session& session, const mote_prompt& prompt, size_t* count) {
  const mote_model& model = *session.model;
  size_t length = 0;
  const Status status = render(session, prompt.messages, prompt.message_count, true,
                               session.rendered, session.rendered_bytes, &length);
  if (status.code() == MOTE_ERROR_BUFFER)
    return fail(MOTE_ERROR_CAPACITY,
                "prompt: %zu bytes through the chat template, expected at most %zu; a larger "
                "text_bytes gives room",
                length, session.rendered_bytes);
  MOTE_TRY(status);
  Arena scratch = session.scratch_arena();
  LiteralPlaces literal;
  MOTE_TRY(remove_guards(&scratch, session.rendered, &length, &literal));
  MOTE_TRY(text_ids(session, {session.rendered, length}, MOTE_TOKENIZE_SPECIAL, scratch.rest(),
                    literal, count));
  // The model's first token, where the template did not write it.
  const int32_t bos = model.tokenizer.bos();
  if (!model.tokenizer.adds_bos() || bos < 0 || (*count && session.prompt[0] == bos)) return kOk;
  if (*count == session.sizes.capacity)
    return fail(MOTE_ERROR_CAPACITY, "prompt: %zu tokens, the session holds %zu", *count + 1,
                session.sizes.capacity);
  std::memmove(session.prompt + 1, session.prompt, *count * sizeof *session.prompt);
  session.prompt[0] = bos;
  ++*count;
  return kOk;
}

}  // namespace

Status render_messages(mote_session& session, const mote_message* messages, size_t count,
                       char* text, size_t capacity, size_t* length) {
  return render(session, messages, count, false, text, capacity, length);
}

Status render_json(mote_session& session, std::string_view chat_template, std::string_view context,
                   char* text, size_t capacity, size_t* length) {
  const mote_model& model = *session.model;
  if (context.size() > session.sizes.text_bytes)
    return fail(MOTE_ERROR_CAPACITY, "context: %zu bytes, the session's text_bytes is %zu",
                context.size(), session.sizes.text_bytes);
  TemplateInput input;
  input.context_json = context;
  Arena scratch = session.scratch_arena();
  if (chat_template.empty()) {
    MOTE_TRY(need_chat_template(model));
    return model.chat.render(input, scratch, text, capacity, length);
  }
  const mote_allocator in_scratch = {
      &scratch,
      [](void* arena, size_t bytes, size_t) {
        return static_cast<void*>(static_cast<Arena*>(arena)->take<uint8_t>(bytes));
      },
      [](void*, void*, size_t) {}};
  Allocator allocator(&in_scratch);
  ChatTemplate parsed;
  MOTE_TRY(parsed.parse(chat_template, allocator));
  return parsed.render(input, scratch.rest(), text, capacity, length);
}

Status prompt_ids(mote_session& session, const mote_prompt& prompt, size_t* count) {
  if (prompt.ids) {
    if (prompt.id_count > session.sizes.capacity)
      return fail(MOTE_ERROR_CAPACITY, "prompt: %zu tokens, the session holds %zu", prompt.id_count,
                  session.sizes.capacity);
    MOTE_TRY(session.check_ids(prompt.ids, prompt.id_count));
    std::memcpy(session.prompt, prompt.ids, prompt.id_count * sizeof *prompt.ids);
    *count = prompt.id_count;
  } else if (!session.model->tokenizer.present()) {
    return no_tokenizer(session);
  } else if (prompt.messages) {
    MOTE_TRY(message_ids(session, prompt, count));
  } else {
    if (prompt.text.length > session.sizes.text_bytes)
      return fail(MOTE_ERROR_CAPACITY, "prompt: %zu bytes of text, the session's text_bytes is %zu",
                  prompt.text.length, session.sizes.text_bytes);
    MOTE_TRY(text_ids(session, {prompt.text.data, prompt.text.length}, MOTE_TOKENIZE_FRAME,
                      session.scratch_arena(), {}, count));
  }
  if (*count == 0)
    return fail(MOTE_ERROR_ARGUMENT, "prompt: expected at least one token, found none");
  return kOk;
}

}  // namespace mote
