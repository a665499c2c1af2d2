// mote.h: arguments are checked here, and nothing else is done here.
#include <algorithm>
#include <cstring>
#include <new>

#include "core/status.h"
#include "models/api_arguments.h"
#include "models/key_text.h"
#include "models/session.h"
#include "mote.h"

#define MOTE_STRINGIFY_(x) #x
#define MOTE_STRINGIFY(x) MOTE_STRINGIFY_(x)

namespace {

using mote::check_info_size;
using mote::Entry;
using mote::fail;
using mote::finish;
using mote::kOk;
using mote::need;
using mote::read_options;
using mote::read_text;
using mote::Status;
using mote::write_info;

Status need_weights(const mote_session& session) {
  if (!session.model->has_weights)
    return fail(MOTE_ERROR_TASK, "%s holds a vocabulary only, no weights", session.model->name);
  return kOk;
}
Status need_generator(const mote_session& session) {
  MOTE_TRY(need_weights(session));
  if (!session.model->transformer.spec.causal)
    return fail(MOTE_ERROR_TASK, "%s is an encoder, it generates no text", session.model->name);
  return kOk;
}
Status need_tokenizer(const mote_session& session) {
  if (!session.model->tokenizer.present())
    return fail(MOTE_ERROR_TASK, "%s has no tokenizer", session.model->name);
  return kOk;
}

Status open_model(const char* path, const void* data, size_t bytes, const mote_model_options* given,
                  mote_model** out) {
  MOTE_TRY(need(out, "model"));
  *out = nullptr;
  mote_model_options options;
  MOTE_TRY(read_options(given, "mote_model_options", &options));
  if (options.flags & ~7u)
    return fail(MOTE_ERROR_ARGUMENT, "mote_model_options.flags: expected bits 1, 2 and 4, found %u",
                options.flags);
  if (options.allocator && (!options.allocator->allocate || !options.allocator->release))
    return fail(MOTE_ERROR_ARGUMENT, "mote_model_options.allocator: expected both functions");
  const mote::Kernels* kernels = mote::select_kernels(options.isa);
  if (!kernels)
    return fail(MOTE_ERROR_CPU,
                "mote_model_options.isa: \"%s\" is not on this CPU or not in this build",
                options.isa);
  mote::Allocator allocator(options.allocator);
  void* memory = allocator.allocate(sizeof(mote_model), alignof(mote_model));
  if (!memory) return fail(MOTE_ERROR_MEMORY, "model: no memory for %zu bytes", sizeof(mote_model));
  auto* model = new (memory) mote_model(options, path ? path : "model in memory");
  model->transformer.kernels = kernels;
  Status status = path ? model->file.open(path, options.flags, model->allocator)
                       : model->file.open_memory(data, bytes);
  if (status.ok()) status = model->read();
  if (!status.ok()) {
    mote_model_close(model);
    return status;
  }
  model->log.write(MOTE_LOG_INFO, "%s: opened, %llu parameters, instruction set %s", model->name,
                   static_cast<unsigned long long>(model->transformer.weights.parameters),
                   kernels->isa);
  *out = model;
  return kOk;
}

Status create_session(const mote_model* model, const mote_session_options* given, void* memory,
                      size_t bytes, mote_session** out) {
  MOTE_TRY(need(out, "session"));
  *out = nullptr;
  MOTE_TRY(need(model, "model"));
  mote_session_options options;
  MOTE_TRY(read_options(given, "mote_session_options", &options));
  if (options.executor && !options.executor->run)
    return fail(MOTE_ERROR_ARGUMENT, "mote_session_options.executor: expected run, found null");
  mote::SessionSizes sizes;
  MOTE_TRY(mote::resolve_sizes(*model, options, &sizes));
  const size_t needed = mote::session_bytes(*model, sizes);
  if (memory && bytes < needed)
    return fail(MOTE_ERROR_MEMORY, "session memory: expected %zu bytes, found %zu", needed, bytes);
  mote::Allocator allocator = model->allocator;
  void* block = memory               ? memory
                : needed == SIZE_MAX ? nullptr
                                     : allocator.allocate(needed, mote::Arena::kAlignment);
  if (!block) return fail(MOTE_ERROR_MEMORY, "session: no memory for %zu bytes", needed);
  const auto address = reinterpret_cast<uintptr_t>(block);
  const size_t skip =
      (mote::Arena::kAlignment - address % mote::Arena::kAlignment) % mote::Arena::kAlignment;
  mote::Arena arena(static_cast<uint8_t*>(block) + skip, needed - skip);
  auto* session = new (arena.take<mote_session>(1)) mote_session;
  session->memory = block;
  session->memory_bytes = needed;
  session->owns_memory = !memory;
  session->plan(arena, *model, sizes);
  session->utc_offset = mote::local_utc_offset();
  const Status status =
      arena.failed()
          ? fail(MOTE_ERROR_MEMORY, "session memory: planned %zu bytes do not suffice", needed)
          : session->team.start(options.executor);
  if (!status.ok()) {
    mote_session_destroy(session);
    return status;
  }
  *out = session;
  return kOk;
}

Status check_generate_options(const mote_generate_options& options) {
  if (options.stop_count > mote::StopStrings::kMaxCount)
    return fail(MOTE_ERROR_ARGUMENT,
                "mote_generate_options.stop_count: expected at most %zu, found %u",
                mote::StopStrings::kMaxCount, options.stop_count);
  if (options.stop_count) MOTE_TRY(need(options.stop, "mote_generate_options.stop"));
  if (options.flags & ~uint64_t(MOTE_GENERATE_IGNORE_END | MOTE_GENERATE_ALWAYS_DRAFT))
    return fail(MOTE_ERROR_ARGUMENT,
                "mote_generate_options.flags: expected bits 1 and 2, found %llu",
                static_cast<unsigned long long>(options.flags));
  MOTE_TRY(mote::Sampler::check(options));
  if (options.draft_tokens > MOTE_MAX_DRAFT)
    return fail(MOTE_ERROR_ARGUMENT,
                "mote_generate_options.draft_tokens: expected at most %d, found %u",
                int(MOTE_MAX_DRAFT), options.draft_tokens);
  if (options.reserved)
    return fail(MOTE_ERROR_ARGUMENT, "mote_generate_options.reserved: expected 0, found %u",
                options.reserved);
  if (options.ids_capacity) MOTE_TRY(need(options.ids, "mote_generate_options.ids"));
  return kOk;
}

// Copies with measured lengths, checked.
Status read_stops(const mote_generate_options& options,
                  mote_text (&stops)[mote::StopStrings::kMaxCount]) {
  for (uint32_t i = 0; i < options.stop_count; ++i) {
    stops[i] = options.stop[i];
    MOTE_TRY(read_text(&stops[i], "mote_generate_options.stop"));
    if (stops[i].length < 1 || stops[i].length > mote::StopStrings::kMaxBytes)
      return fail(MOTE_ERROR_ARGUMENT, "stop string %u: expected 1..%zu bytes, found %zu", i,
                  mote::StopStrings::kMaxBytes, stops[i].length);
  }
  return kOk;
}

Status read_messages(const mote_session& session, const mote_message* messages, size_t count) {
  MOTE_TRY(need(messages, "messages"));
  if (count == 0 || count > session.sizes.capacity)
    return fail(MOTE_ERROR_ARGUMENT, "messages: expected 1..%zu, found %zu", session.sizes.capacity,
                count);
  for (size_t i = 0; i < count; ++i) {
    mote_message message = messages[i];
    MOTE_TRY(read_text(&message.role, "message.role"));
    MOTE_TRY(read_text(&message.content, "message.content"));
  }
  return kOk;
}

Status read_prompt(const mote_session& session, const mote_prompt* given, mote_prompt* prompt) {
  MOTE_TRY(need(given, "prompt"));
  *prompt = *given;
  const bool has_text = prompt->text.data || prompt->text.length;
  const int forms = (prompt->messages != nullptr) + has_text + (prompt->ids != nullptr);
  if (forms != 1)
    return fail(MOTE_ERROR_ARGUMENT,
                "prompt: expected exactly one of messages, text and ids, found %d of them", forms);
  if (prompt->messages) MOTE_TRY(read_messages(session, prompt->messages, prompt->message_count));
  return read_text(&prompt->text, "prompt.text");
}

}  // namespace

uint32_t mote_version(void) { return MOTE_VERSION_MAJOR << 16 | MOTE_VERSION_MINOR << 8; }

const char* mote_status_text(mote_status status) {
  static constexpr const char* kTexts[] = {"done",
                                           "wrong argument",
                                           "input or output failed",
                                           "bad file",
                                           "not supported",
                                           "no such task",
                                           "not enough memory",
                                           "buffer too small",
                                           "session full",
                                           "context exceeded",
                                           "chat template failed",
                                           "state does not fit",
                                           "session busy",
                                           "cancelled",
                                           "deadline passed",
                                           "instruction set not available"};
  const size_t count = sizeof kTexts / sizeof *kTexts;
  return status >= 0 && size_t(status) < count ? kTexts[status] : "unknown status";
}

const char* mote_last_error(void) { return mote::last_error(); }

mote_status mote_model_open(const char* path, const mote_model_options* options,
                            mote_model** model) {
  Status status = need(path, "path");
  if (!status.ok() && model) *model = nullptr;
  if (status.ok()) status = open_model(path, nullptr, 0, options, model);
  return finish(status);
}

mote_status mote_model_open_memory(const void* data, size_t bytes,
                                   const mote_model_options* options, mote_model** model) {
  Status status = need(data, "data");
  if (!status.ok() && model) *model = nullptr;
  if (status.ok()) status = open_model(nullptr, data, bytes, options, model);
  return finish(status);
}

void mote_model_close(mote_model* model) {
  if (!model) return;
  mote::Allocator allocator = model->allocator;
  model->~mote_model();
  allocator.release(model, sizeof *model);
}

mote_status mote_model_describe(const mote_model* model, mote_model_info* info) {
  Status status = need(model, "model");
  if (status.ok()) status = check_info_size(info, "mote_model_info");
  if (!status.ok()) return finish(status);
  const mote::Spec& spec = model->transformer.spec;
  mote_model_info full = {};
  std::string_view architecture, name;
  if (!model->gguf.get_text("general.architecture", "", &architecture).ok()) architecture = {};
  if (!model->gguf.get_text("general.name", "", &name).ok()) name = {};
  full.tasks = model->tasks();
  full.architecture = {architecture.data(), architecture.size()};
  full.name = {name.data(), name.size()};
  full.isa = model->transformer.kernels->isa;
  full.parameters = model->transformer.weights.parameters;
  full.file_bytes = model->file.size();
  full.heap_bytes = model->allocator.bytes_in_use();
  full.layers = spec.layers;
  full.hidden_size = spec.hidden;
  full.vocabulary_size = model->has_weights           ? spec.vocabulary
                         : model->tokenizer.present() ? model->tokenizer.size()
                                                      : 0;
  full.context_length = spec.context;
  full.embedding_size = spec.hidden;
  full.label_count = uint32_t(model->labels.size());
  full.multi_label = spec.head.problem == mote::Problem::multi_label;
  write_info(full, info);
  return finish(kOk);
}

mote_status mote_model_label(const mote_model* model, uint32_t index, mote_text* name) {
  Status status = need(model, "model");
  if (status.ok()) status = need(name, "name");
  if (!status.ok()) return finish(status);
  *name = {nullptr, 0};
  const size_t count = model->labels.size();
  if (count == 0)
    status =
        fail(MOTE_ERROR_TASK, "%s has no labels, found a request for label %u", model->name, index);
  else if (index >= count)
    status = fail(MOTE_ERROR_ARGUMENT, "label: expected 0..%zu, found %u", count - 1, index);
  else
    *name = {model->labels[index].data(), model->labels[index].size()};
  return finish(status);
}

mote_status mote_model_value(const mote_model* model, const char* key, char* buffer,
                             size_t capacity, size_t* length) {
  Status status = need(model, "model");
  if (status.ok()) status = need(key, "key");
  if (status.ok()) status = need(length, "length");
  if (status.ok() && capacity) status = need(buffer, "buffer");
  if (status.ok()) status = mote::key_as_text(model->gguf, key, buffer, capacity, length);
  return finish(status);
}

mote_status mote_session_size(const mote_model* model, const mote_session_options* given,
                              size_t* bytes) {
  Status status = need(model, "model");
  if (status.ok()) status = need(bytes, "bytes");
  mote_session_options options;
  mote::SessionSizes sizes;
  if (status.ok()) status = read_options(given, "mote_session_options", &options);
  if (status.ok()) status = mote::resolve_sizes(*model, options, &sizes);
  if (status.ok()) *bytes = mote::session_bytes(*model, sizes);
  if (status.ok() && *bytes == SIZE_MAX)
    status =
        fail(MOTE_ERROR_MEMORY, "session: capacity %zu needs more bytes than an address can hold",
             sizes.capacity);
  return finish(status);
}

mote_status mote_session_create(const mote_model* model, const mote_session_options* options,
                                void* memory, size_t bytes, mote_session** session) {
  return finish(create_session(model, options, memory, bytes, session));
}

void mote_session_destroy(mote_session* session) {
  if (!session) return;
  void* memory = session->memory;
  const size_t bytes = session->memory_bytes;
  const bool owned = session->owns_memory;
  mote::Allocator allocator = session->model->allocator;
  session->~mote_session();
  if (owned) allocator.release(memory, bytes);
}

void mote_session_cancel(mote_session* session) {
  if (session) session->cancelled.store(1, std::memory_order_relaxed);
}

uint32_t mote_session_threads(const mote_session* session) {
  return session ? session->team.threads() : 0;
}

size_t mote_session_position(const mote_session* session) { return session ? session->held : 0; }

mote_status mote_session_rewind(mote_session* session, size_t position) {
  Entry entry(session);
  Status status = entry.status();
  if (status.ok()) status = session->rewind(position);
  return finish(status);
}

mote_status mote_session_save(mote_session* session, void* buffer, size_t capacity, size_t* bytes) {
  Entry entry(session);
  const Status status = [&] {
    MOTE_TRY(entry.status());
    MOTE_TRY(need(bytes, "bytes"));
    *bytes = 0;
    MOTE_TRY(need_generator(*session));
    return mote::save_state(*session, buffer, capacity, bytes);
  }();
  return finish(status);
}

mote_status mote_session_restore(mote_session* session, const void* state, size_t bytes) {
  Entry entry(session);
  const Status status = [&] {
    MOTE_TRY(entry.status());
    MOTE_TRY(need(state, "state"));
    MOTE_TRY(need_generator(*session));
    return mote::restore_state(*session, state, bytes);
  }();
  return finish(status);
}

mote_status mote_tokenize(mote_session* session, mote_text text, uint32_t flags, mote_token* tokens,
                          size_t capacity, size_t* count) {
  Entry entry(session);
  const Status status = [&] {
    MOTE_TRY(entry.status());
    MOTE_TRY(need(count, "count"));
    *count = 0;
    if (capacity) MOTE_TRY(need(tokens, "tokens"));
    MOTE_TRY(read_text(&text, "text"));
    if (flags & ~uint32_t(MOTE_TOKENIZE_FRAME | MOTE_TOKENIZE_SPECIAL))
      return fail(MOTE_ERROR_ARGUMENT, "flags: expected MOTE_TOKENIZE_FRAME and _SPECIAL, found %u",
                  flags);
    MOTE_TRY(need_tokenizer(*session));
    if (text.length > session->sizes.text_bytes)
      return fail(MOTE_ERROR_CAPACITY, "text: %zu bytes, the session's text_bytes is %zu",
                  text.length, session->sizes.text_bytes);
    return session->model->tokenizer.encode({text.data, text.length}, flags,
                                            session->scratch_arena(), tokens, capacity, count);
  }();
  return finish(status);
}

mote_status mote_detokenize(mote_session* session, const int32_t* ids, size_t count, uint32_t flags,
                            char* text, size_t capacity, size_t* length) {
  Entry entry(session);
  const Status status = [&] {
    MOTE_TRY(entry.status());
    MOTE_TRY(need(length, "length"));
    *length = 0;
    if (count) MOTE_TRY(need(ids, "ids"));
    if (capacity) MOTE_TRY(need(text, "text"));
    if (flags & ~uint32_t(MOTE_DETOKENIZE_SKIP_SPECIAL))
      return fail(MOTE_ERROR_ARGUMENT, "flags: expected MOTE_DETOKENIZE_SKIP_SPECIAL, found %u",
                  flags);
    MOTE_TRY(need_tokenizer(*session));
    return mote::detokenize(*session, ids, count, flags & MOTE_DETOKENIZE_SKIP_SPECIAL, text,
                            capacity, length);
  }();
  return finish(status);
}

mote_status mote_template_render(mote_session* session, const mote_message* messages, size_t count,
                                 char* text, size_t capacity, size_t* length) {
  Entry entry(session);
  const Status status = [&] {
    MOTE_TRY(entry.status());
    MOTE_TRY(need(length, "length"));
    *length = 0;
    if (capacity) MOTE_TRY(need(text, "text"));
    MOTE_TRY(read_messages(*session, messages, count));
    return mote::render_messages(*session, messages, count, text, capacity, length);
  }();
  return finish(status);
}

mote_status mote_template_render_json(mote_session* session, mote_text chat_template,
                                      mote_text context, char* text, size_t capacity,
                                      size_t* length) {
  Entry entry(session);
  const Status status = [&] {
    MOTE_TRY(entry.status());
    MOTE_TRY(need(length, "length"));
    *length = 0;
    if (capacity) MOTE_TRY(need(text, "text"));
    MOTE_TRY(read_text(&chat_template, "chat_template"));
    MOTE_TRY(read_text(&context, "context"));
    return mote::render_json(*session, {chat_template.data, chat_template.length},
                             {context.data, context.length}, text, capacity, length);
  }();
  return finish(status);
}

mote_status mote_generate(mote_session* session, const mote_prompt* given_prompt,
                          const mote_generate_options* given, mote_generate_result* result) {
  Entry entry(session);
  mote_generate_result full = {};
  const Status status = [&] {
    MOTE_TRY(entry.status());
    MOTE_TRY(need_generator(*session));
    mote_generate_options options;
    mote_text stops[mote::StopStrings::kMaxCount];
    mote_prompt prompt;
    MOTE_TRY(read_options(given, "mote_generate_options", &options));
    if (result) MOTE_TRY(check_info_size(result, "mote_generate_result"));
    MOTE_TRY(check_generate_options(options));
    MOTE_TRY(read_stops(options, stops));
    options.stop = stops;
    MOTE_TRY(read_prompt(*session, given_prompt, &prompt));
    return mote::generate(*session, prompt, options, &full);
  }();
  if (result && result->size >= 8 && result->size <= 4096) write_info(full, result);
  return finish(status);
}

mote_status mote_session_append(mote_session* session, const int32_t* ids, size_t count,
                                uint32_t deadline_ms, const float** logits) {
  Entry entry(session);
  if (logits) *logits = nullptr;
  const Status status = [&] {
    MOTE_TRY(entry.status());
    MOTE_TRY(need_generator(*session));
    MOTE_TRY(need(ids, "ids"));
    if (count == 0)
      return fail(MOTE_ERROR_ARGUMENT, "ids: expected at least one token, found none");
    return mote::append(*session, ids, count, deadline_ms, logits);
  }();
  return finish(status);
}

mote_status mote_score(mote_session* session, const int32_t* ids, size_t count, float* nll) {
  Entry entry(session);
  const Status status = [&] {
    MOTE_TRY(entry.status());
    MOTE_TRY(need_generator(*session));
    MOTE_TRY(need(ids, "ids"));
    if (count == 0)
      return fail(MOTE_ERROR_ARGUMENT, "ids: expected at least one token, found none");
    if (count > 1) MOTE_TRY(need(nll, "nll"));
    Status scored = kOk;
    session->team.run([&] { scored = mote::score(*session, ids, count, nll); });
    return scored;
  }();
  return finish(status);
}
