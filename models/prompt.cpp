// Prompts to ids: a text, messages through the chat template, or ids as they are.
#include <time.h>

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

// Ids of a text, without an end token that the frame may have put behind it.
Status text_ids(mote_session& session, std::string_view text, uint32_t flags, size_t* count) {
  const Tokenizer& tokenizer = session.model->tokenizer;
  size_t found = 0;
  const size_t room = session.sizes.capacity;
  const Status status =
      tokenizer.encode(text, flags, session.scratch_arena(), session.tokens, room + 1, &found);
  if (!status.ok() && status.code() != MOTE_ERROR_BUFFER) return status;
  if (status.ok() && found && session.tokens[found - 1].id == tokenizer.eos() &&
      (flags & MOTE_TOKENIZE_FRAME) &&
      session.tokens[found - 1].byte_start == session.tokens[found - 1].byte_end)
    --found;
  if (found > room)
    return fail(MOTE_ERROR_CAPACITY, "prompt: %zu tokens, the session holds %zu", found, room);
  for (size_t i = 0; i < found; ++i) session.prompt[i] = session.tokens[i].id;
  *count = found;
  return kOk;
}

Status message_ids(mote_session& session, const mote_prompt& prompt, size_t* count) {
  const mote_model& model = *session.model;
  size_t length = 0;
  const Status status = render_messages(session, prompt.messages, prompt.message_count,
                                        session.rendered, session.rendered_bytes, &length);
  if (status.code() == MOTE_ERROR_BUFFER)
    return fail(MOTE_ERROR_CAPACITY,
                "prompt: %zu bytes through the chat template, the session has room for %zu: "
                "expected a larger text_bytes",
                length, session.rendered_bytes);
  MOTE_TRY(status);
  MOTE_TRY(text_ids(session, {session.rendered, length}, MOTE_TOKENIZE_SPECIAL, count));
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
  const mote_model& model = *session.model;
  MOTE_TRY(need_chat_template(model));
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += messages[i].role.length + messages[i].content.length;
  if (bytes > session.sizes.text_bytes)
    return fail(MOTE_ERROR_CAPACITY, "messages: %zu bytes of text, the session's text_bytes is %zu",
                bytes, session.sizes.text_bytes);
  TemplateInput input;
  input.messages = messages;
  input.message_count = count;
  if (model.tokenizer.present()) {
    const Tokenizer& tokenizer = model.tokenizer;
    if (tokenizer.bos() >= 0) input.bos_token = tokenizer.stored_text(tokenizer.bos());
    if (tokenizer.eos() >= 0) input.eos_token = tokenizer.stored_text(tokenizer.eos());
  }
  input.now = int64_t(time(nullptr));
  return model.chat.render(input, session.scratch_arena(), text, capacity, length);
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
    MOTE_TRY(text_ids(session, {prompt.text.data, prompt.text.length}, MOTE_TOKENIZE_FRAME, count));
  }
  if (*count == 0)
    return fail(MOTE_ERROR_ARGUMENT, "prompt: expected at least one token, found none");
  return kOk;
}

}  // namespace mote
