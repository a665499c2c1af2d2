#include "models/chat/template.h"

#include <cstdio>
#include <new>

#include "models/chat/evaluate.h"
#include "models/chat/node.h"
#include "models/chat/parser.h"
#include "models/chat/text.h"

namespace mote {

using chat::Evaluator;
using chat::Heap;
using chat::Kind;
using chat::Node;
using chat::Output;
using chat::Value;

struct ChatTemplate::State {
  Allocator* allocator;
  HeapArray<char> source;  // only if line ends had to be changed
  HeapArray<char> strings;
  HeapArray<Node> nodes;
  uint32_t body = 0;
  size_t source_bytes = 0;
};

static constexpr size_t kMaxSource = 4 << 20;

ChatTemplate::~ChatTemplate() { reset(); }

void ChatTemplate::reset() {
  if (!state_) return;
  Allocator& allocator = *state_->allocator;
  state_->~State();
  allocator.release(state_, sizeof(State));
  state_ = nullptr;
}

// \r\n and \r become \n, as Jinja reads a template.
static Status normalise_line_ends(std::string_view* source, HeapArray<char>* copy,
                                  Allocator& allocator) {
  if (source->find('\r') == std::string_view::npos) return kOk;
  MOTE_TRY(copy->allocate(allocator, source->size(), "chat template"));
  size_t size = 0;
  for (size_t i = 0; i < source->size(); ++i) {
    const char c = (*source)[i];
    if (c == '\r' && i + 1 < source->size() && (*source)[i + 1] == '\n') continue;
    (*copy)[size++] = c == '\r' ? '\n' : c;
  }
  *source = std::string_view(copy->data(), size);
  return kOk;
}

Status ChatTemplate::parse(std::string_view source, Allocator& allocator) {
  reset();
  if (source.size() > kMaxSource)
    return fail(MOTE_ERROR_TEMPLATE, "chat template: %zu bytes, expected %zu at most",
                source.size(), kMaxSource);
  void* memory = allocator.allocate(sizeof(State), alignof(State));
  if (!memory)
    return fail(MOTE_ERROR_MEMORY, "chat template: no memory for %zu bytes", sizeof(State));
  state_ = new (memory) State{};
  state_->allocator = &allocator;
  state_->source_bytes = source.size();
  const Status status = parse_into_state(source);
  if (!status.ok()) reset();
  return status;
}

Status ChatTemplate::parse_into_state(std::string_view source) {
  State& state = *state_;
  MOTE_TRY(normalise_line_ends(&source, &state.source, *state.allocator));
  if (source.find('\\') != std::string_view::npos)
    MOTE_TRY(state.strings.allocate(*state.allocator, source.size(), "chat template"));
  chat::Parser parser(source, state.strings.data(), state.nodes, *state.allocator);
  return parser.parse(&state.body);
}

size_t ChatTemplate::scratch_bytes(size_t text_bytes) const {
  if (!state_) return 0;
  Arena arena;
  size_t bytes = 0;
  if (__builtin_mul_overflow(text_bytes, size_t{3}, &bytes) ||
      __builtin_add_overflow(bytes, 2 * state_->source_bytes + kFixedScratch, &bytes))
    return SIZE_MAX;
  arena.take<uint8_t>(bytes);
  return arena.used();
}

static Status define_messages(const TemplateInput& input, Evaluator& evaluator) {
  if (input.message_count > UINT32_MAX)
    return fail(MOTE_ERROR_ARGUMENT, "%zu messages are too many", input.message_count);
  for (size_t i = 0; i < input.message_count; ++i) {
    const mote_message& message = input.messages[i];
    if (message.role.length > UINT32_MAX || message.content.length > UINT32_MAX)
      return fail(MOTE_ERROR_ARGUMENT, "message %zu: more than 4 GiB of text", i);
  }
  Value messages = Value::of(Kind::messages);
  messages.message = input.messages;
  messages.size = static_cast<uint32_t>(input.message_count);
  MOTE_TRY(evaluator.define("messages", messages));
  MOTE_TRY(evaluator.define("add_generation_prompt", Value::of(input.add_generation_prompt)));
  MOTE_TRY(evaluator.define("bos_token", Value::of(input.bos_token)));
  MOTE_TRY(evaluator.define("eos_token", Value::of(input.eos_token)));
  MOTE_TRY(evaluator.define("tools", Value::none()));
  MOTE_TRY(evaluator.define("documents", Value::none()));
  if (input.now != 0) evaluator.set_now(input.now);
  return kOk;
}

// The variables of a JSON object; "now" also sets the clock of strftime_now.
static Status define_context(std::string_view json, Heap& heap, Evaluator& evaluator) {
  Value context, value;
  MOTE_TRY(chat::read_json(heap, json, &context));
  if (!context.is(Kind::dict))
    return fail(MOTE_ERROR_TEMPLATE, "context JSON: expected an object, found a %s",
                type_name(context));
  evaluator.set_context(context);
  for (const char* name : {"tools", "documents"})
    if (!find_key(context, std::string_view(name), &value))
      MOTE_TRY(evaluator.define(name, Value::none()));
  if (!find_key(context, std::string_view("now"), &value) || value.is(Kind::none)) return kOk;
  int64_t seconds = 0;
  if (!value.is_string() || !chat::parse_time(value.string(), &seconds))
    return fail(MOTE_ERROR_TEMPLATE, "context JSON: expected \"now\" as \"2026-01-15T09:30:00\"");
  evaluator.set_now(seconds);
  return kOk;
}

Status ChatTemplate::render(const TemplateInput& input, Arena scratch, char* text, size_t capacity,
                            size_t* length) const {
  *length = 0;
  if (!state_) return fail(MOTE_ERROR_TASK, "the model has no chat template");
  const size_t bytes = scratch.left();
  uint8_t* memory = scratch.take<uint8_t>(bytes / Arena::kAlignment * Arena::kAlignment);
  if (!memory) return fail(MOTE_ERROR_MEMORY, "chat template: no scratch memory");
  Heap heap(memory, bytes / Arena::kAlignment * Arena::kAlignment, input.keep_scratch);
  Output output(heap, text, capacity);
  Evaluator evaluator(state_->nodes.data(), heap, output);
  MOTE_TRY(input.context_json.empty() ? define_messages(input, evaluator)
                                      : define_context(input.context_json, heap, evaluator));
  const Status status = evaluator.run(state_->body);
  if (!status.ok()) {
    char where[48];
    snprintf(where, sizeof where, "chat template line %u", evaluator.line());
    return with_context(status, where);
  }
  *length = output.length();
  if (output.length() > capacity)
    return fail(MOTE_ERROR_BUFFER, "the rendered template has %zu bytes, the buffer %zu",
                output.length(), capacity);
  return kOk;
}

}  // namespace mote
