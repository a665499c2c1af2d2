#include "models/model.h"

#include <cstdio>
#include <cstring>

using mote::file_error;
using mote::kOk;
using mote::Status;

mote_model::mote_model(const mote_model_options& options, const char* shown_name)
    : allocator(options.allocator), log{options.log, options.log_user} {
  // The end of a long path says more than its beginning.
  const size_t length = std::strlen(shown_name);
  const bool cut = length >= sizeof name;
  std::snprintf(name, sizeof name, "%s%s", cut ? "..." : "",
                cut ? shown_name + length - (sizeof name - 4) : shown_name);
}

Status mote_model::read() {
  MOTE_TRY(gguf.open(file.data(), file.size(), name, allocator));
  MOTE_TRY(tokenizer.open(gguf, allocator, log));
  has_weights = gguf.tensors().size() > 0;
  if (has_weights)
    MOTE_TRY(read_weights());
  else if (!tokenizer.present() && !gguf.find("tokenizer.chat_template"))
    return file_error(gguf, MOTE_ERROR_BAD_FILE, "expected tensors or a tokenizer, found neither");
  MOTE_TRY(read_end_ids());
  return read_chat_template();
}

Status mote_model::read_end_ids() {
  const auto size = int32_t(tokenizer.present() ? tokenizer.size() : 0);
  size_t count = 0;
  for (int32_t id = 0; id < size; ++id) count += tokenizer.is_end(id);
  MOTE_TRY(end_ids.allocate(allocator, count, "end tokens"));
  count = 0;
  for (int32_t id = 0; id < size; ++id)
    if (tokenizer.is_end(id)) end_ids[count++] = id;
  return kOk;
}

Status mote_model::read_weights() {
  std::string_view architecture;
  MOTE_TRY(gguf.get_text("general.architecture", &architecture));
  const mote::Architecture* found = mote::find_architecture(architecture);
  if (!found)
    return file_error(gguf, MOTE_ERROR_UNSUPPORTED,
                      "key general.architecture: expected %s, found \"%.*s\"",
                      mote::architecture_names(), int(architecture.size()), architecture.data());
  mote::Spec& spec = transformer.spec;
  spec.architecture = architecture;
  MOTE_TRY(found->read(gguf, log, &spec));
  if (tokenizer.present() && tokenizer.size() > spec.vocabulary)
    return file_error(gguf, MOTE_ERROR_BAD_FILE,
                      "tokenizer.ggml.tokens: expected at most %u tokens, found %u",
                      spec.vocabulary, tokenizer.size());
  MOTE_TRY(transformer.weights.bind(gguf, spec, *transformer.kernels, allocator, log));
  for (int set = 0; set < 2; ++set)
    if (spec.position == mote::Position::rope && spec.rope[set].dimensions)
      MOTE_TRY(transformer.rope[set].compute(
          spec.rope[set], set == 0 ? transformer.weights.rope_factors : nullptr, allocator));
  if (spec.relative_buckets)
    MOTE_TRY(transformer.relative_bias.compute(spec, transformer.weights.relative_bias, allocator));
  return read_labels();
}

Status mote_model::read_labels() {
  constexpr size_t kNameBytes = sizeof "LABEL_4294967295";
  const mote::Spec& spec = transformer.spec;
  const uint32_t count = spec.head.kind == mote::HeadKind::answer ? 0 : spec.head.labels;
  if (count == 0) return kOk;
  MOTE_TRY(labels.allocate(allocator, count, "labels"));
  char key[96];
  std::snprintf(key, sizeof key, "%.*s.classifier.output_labels", int(spec.architecture.size()),
                spec.architecture.data());
  if (gguf.find(key)) {
    const mote::GgufKey* names = nullptr;
    MOTE_TRY(gguf.get_array(key, mote::GgufType::text, count, &names));
    mote::GgufTexts texts(*names);
    for (std::string_view& label : labels) texts.next(&label);
    return kOk;
  }
  log.write(MOTE_LOG_WARNING, "%s: key %s is missing: the labels have no names", name, key);
  MOTE_TRY(label_text.allocate(allocator, count * kNameBytes, "labels"));
  for (uint32_t i = 0; i < count; ++i) {
    char* text = label_text.data() + i * kNameBytes;
    labels[i] = {text, size_t(std::snprintf(text, kNameBytes, "LABEL_%u", i))};
  }
  return kOk;
}

// A template that cannot be parsed costs the chat, not the model: the reason waits for whoever
// asks.
Status mote_model::read_chat_template() {
  std::string_view source;
  MOTE_TRY(gguf.get_text("tokenizer.chat_template", "", &source));
  if (source.empty()) return kOk;
  const Status status = chat.parse(source, allocator);
  if (status.code() == MOTE_ERROR_MEMORY) return status;
  if (status.ok()) return kOk;
  chat_status = status.code();
  std::snprintf(chat_error, sizeof chat_error, "%s: %s", name, mote::last_error());
  log.write(MOTE_LOG_WARNING, "%s", chat_error);
  mote::clear_error();
  return kOk;
}

uint32_t mote_model::encoder_tasks() const {
  switch (transformer.spec.head.kind) {
    case mote::HeadKind::classify:
      return MOTE_TASK_EMBED | MOTE_TASK_CLASSIFY;
    case mote::HeadKind::tag:
      return MOTE_TASK_EMBED | MOTE_TASK_TAG;
    case mote::HeadKind::answer:
      return MOTE_TASK_EMBED | MOTE_TASK_ANSWER;
    case mote::HeadKind::masked_lm:
      return MOTE_TASK_EMBED | MOTE_TASK_FILL;
    case mote::HeadKind::none:
      break;
  }
  return MOTE_TASK_EMBED;
}

uint32_t mote_model::tasks() const {
  uint32_t tasks = 0;
  if (tokenizer.present()) tasks |= MOTE_TASK_TOKENIZE;
  if (has_weights)
    tasks |= transformer.spec.causal ? uint32_t(MOTE_TASK_GENERATE) : encoder_tasks();
  if ((tasks & MOTE_TASK_GENERATE) && tokenizer.present() && chat.present())
    tasks |= MOTE_TASK_CHAT;
  return tasks;
}
