// Puts a file, whatever is in it, through everything that a model may be used for: it is refused in
// words, or it serves. Says what went wrong otherwise; crashes are the sanitizers' and guard
// pages'.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "models/encoder.h"
#include "models/session.h"
#include "mote.h"

namespace mote::test {

// Counts what is allocated, and refuses what is beyond a limit: of bytes in all, or of allocations.
class LimitedAllocator {
 public:
  explicit LimitedAllocator(size_t most_bytes, size_t most_allocations = SIZE_MAX)
      : limit_(most_bytes), left_(most_allocations) {
    allocator_.user = this;
    allocator_.allocate = [](void* user, size_t bytes, size_t alignment) -> void* {
      auto* self = static_cast<LimitedAllocator*>(user);
      if (bytes > self->limit_ - self->used_ || self->left_ == 0) {
        self->refused_ = bytes;
        return nullptr;
      }
      --self->left_;
      void* memory = nullptr;
      if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) != 0) return nullptr;
      self->used_ += bytes;
      return memory;
    };
    allocator_.release = [](void* user, void* memory, size_t bytes) {
      static_cast<LimitedAllocator*>(user)->used_ -= bytes;
      std::free(memory);
    };
  }
  LimitedAllocator(const LimitedAllocator&) = delete;

  const mote_allocator* get() const { return &allocator_; }
  size_t used() const { return used_; }
  size_t refused() const { return refused_; }  // bytes of the last that was too many

 private:
  mote_allocator allocator_{};
  size_t limit_, left_, used_ = 0, refused_ = 0;
};

class FileTrial {
 public:
  // data: aligned to 32 bytes.
  FileTrial(const uint8_t* data, size_t bytes, const char* isa)
      : allocator_(kFixedBytes + kBytesPerFileByte * bytes) {
    run(data, bytes, isa);
    if (allocator_.refused())
      fault("a file of " + std::to_string(bytes) + " bytes wants to allocate " +
            std::to_string(allocator_.refused()));
    if (allocator_.used()) fault(std::to_string(allocator_.used()) + " bytes were not released");
  }

  bool opened() const { return opened_; }
  bool computed() const { return computed_; }
  const std::string& faults() const { return faults_; }  // empty: none

 private:
  // A key takes 14 bytes of the file and, while the table of keys grows, ten times that of memory;
  // a session of the trial has a few rows per column of the matrices.
  static constexpr size_t kFixedBytes = 1 << 20, kBytesPerFileByte = 32;
  static constexpr std::string_view kText =
      "Hello, the w\xc3\xb6rld\n\n\t 123 <|im_end|> [user] \xff\xc3 \xf0\x9f\x98\x80   </s> end";

  static constexpr mote_message kMessages[] = {
      {{"system", 6}, {"Be nice. ", MOTE_NUL_TERMINATED}},
      {{"user", 4}, {"Hi {{ x }} <|im_end|>", MOTE_NUL_TERMINATED}}};

  void fault(const std::string& what) { faults_ += what + "\n"; }

  static bool is_printable(std::string_view text) {
    return std::none_of(text.begin(), text.end(),
                        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  }
  // Whether the call went well; if not, it must have said why, with one of the expected statuses.
  bool check(const char* call, mote_status status, std::vector<mote_status> expected) {
    const std::string message = mote_last_error();
    if (status == MOTE_OK) return true;
    if (std::find(expected.begin(), expected.end(), status) == expected.end())
      fault(std::string(call) + ": status " + std::to_string(status) + ": " + message);
    if (message.empty()) fault(std::string(call) + ": no message");
    if (!is_printable(message)) fault(std::string(call) + ": control characters: " + message);
    return false;
  }

  void run(const uint8_t* data, size_t bytes, const char* isa) {
    mote_model_options options{};
    options.size = sizeof options;
    options.isa = isa;
    options.allocator = allocator_.get();
    options.log_user = this;
    options.log = [](void* user, int32_t, const char* message, size_t length) {
      if (!is_printable({message, length}) || length == 0)
        static_cast<FileTrial*>(user)->fault("log: \"" + std::string(message, length) + "\"");
    };
    mote_model* model = nullptr;
    opened_ = check("open", mote_model_open_memory(data, bytes, &options, &model),
                    {MOTE_ERROR_BAD_FILE, MOTE_ERROR_UNSUPPORTED});
    if (!opened_ && model) fault("open failed and gave a model");
    if (!opened_ && !std::strstr(mote_last_error(), "model in memory"))
      fault(std::string("the message does not name the file: ") + mote_last_error());
    if (opened_) use(model);
    mote_model_close(model);
  }

  void use(const mote_model* model) {
    mote_model_info info{};
    info.size = sizeof info;
    check("describe", mote_model_describe(model, &info), {});
    for (const char* key : {"general.name", "tokenizer.ggml.tokens", "tokenizer.ggml.scores"}) {
      char text[64];
      size_t length = 0;
      check("value", mote_model_value(model, key, text, sizeof text, &length),
            {MOTE_ERROR_BAD_FILE, MOTE_ERROR_BUFFER, MOTE_ERROR_ARGUMENT});
    }
    mote_session_options options{};
    options.size = sizeof options;
    options.capacity = std::min(48u, info.context_length ? info.context_length : 48u);
    options.batch_tokens = 8;
    options.text_bytes = 256;
    options.threads = 1;
    mote_session* session = nullptr;
    if (!check("create", mote_session_create(model, &options, nullptr, 0, &session), {})) return;
    if (info.tasks & MOTE_TASK_TOKENIZE) tokenize(session);
    render(session);
    if (info.tasks & MOTE_TASK_GENERATE) compute(session, info.vocabulary_size);
    if (info.tasks & MOTE_TASK_EMBED) encode(session, info.vocabulary_size);
    if ((info.tasks & MOTE_TASK_EMBED) && (info.tasks & MOTE_TASK_TOKENIZE))
      understand(session, info);
    mote_session_destroy(session);
  }

  void tokenize(mote_session* session) {
    for (uint32_t flags = 0; flags < 4; ++flags) {
      mote_token tokens[512];
      size_t count = 0, length = 0;
      if (!check("tokenize",
                 mote_tokenize(session, {kText.data(), kText.size()}, flags, tokens, 512, &count),
                 {}))
        return;
      std::vector<int32_t> ids;
      for (size_t i = 0; i < count; ++i) {
        ids.push_back(tokens[i].id);
        if (tokens[i].byte_end < tokens[i].byte_start || tokens[i].byte_end > kText.size())
          fault("a token outside the text");
      }
      std::vector<char> text(1 << 16);
      check("detokenize",
            mote_detokenize(session, ids.data(), count, flags & 1 ? 4 : 0, text.data(), text.size(),
                            &length),
            {MOTE_ERROR_BUFFER});
    }
  }

  void render(mote_session* session) {
    std::vector<char> text(1 << 12);
    size_t length = 0;
    check("render", mote_template_render(session, kMessages, 2, text.data(), text.size(), &length),
          {MOTE_ERROR_TASK, MOTE_ERROR_TEMPLATE, MOTE_ERROR_BUFFER, MOTE_ERROR_MEMORY,
           MOTE_ERROR_ARGUMENT});
  }

  void compute(mote_session* session, uint32_t vocabulary) {
    const auto last = static_cast<int32_t>(vocabulary) - 1;
    const int32_t ids[] = {0, last, last / 2};
    const float* logits = nullptr;
    float nll[2];
    computed_ =
        check("append", mote_session_append(session, ids, 3, 0, &logits), {MOTE_ERROR_CAPACITY});
    if (computed_ && !logits) fault("no logits");
    check("score", mote_score(session, ids, 3, nll), {MOTE_ERROR_CAPACITY});
    mote_prompt prompt{};
    prompt.ids = ids;
    prompt.id_count = 2;
    generate(session, prompt, 0.0f);
    generate(session, prompt, 0.8f);
    prompt = {};
    prompt.messages = kMessages;
    prompt.message_count = 2;
    generate(session, prompt, 0.0f);
  }

  void encode(mote_session* session, uint32_t vocabulary) {
    const auto last = static_cast<int32_t>(vocabulary) - 1;
    const int32_t ids[] = {0, last, last / 2};
    const uint8_t types[] = {0, 1, 1};
    const Sequence sequences[] = {{ids, types, 3}, {ids, nullptr, 1}, {ids, nullptr, 2}};
    EncoderOutputs outputs;
    const Status status = mote::encode(session, sequences, 3, {}, &outputs);
    computed_ = check("encode", status.code(), {MOTE_ERROR_CAPACITY, MOTE_ERROR_ARGUMENT});
    if (!computed_) return;
    const uint32_t row = 5;
    session->team.run([&] {
      session->transformer.pooled(session->team, Pooling::max);
      if (session->model->transformer.spec.head.kind == HeadKind::masked_lm)
        session->transformer.masked_logits(session->team, &row, 1);
    });
  }

  // Every call that takes texts, with the whole text and over windows.
  void understand(mote_session* session, const mote_model_info& info) {
    const mote_text text = {kText.data(), kText.size()};
    const mote_input inputs[] = {{text, {nullptr, 0}}, {{"a", 1}, text}};
    const std::vector<mote_status> expected = {MOTE_ERROR_ARGUMENT, MOTE_ERROR_TASK,
                                               MOTE_ERROR_BAD_FILE, MOTE_ERROR_BUFFER,
                                               MOTE_ERROR_CAPACITY};
    for (const uint32_t too_long : {MOTE_LONG_TRUNCATE, MOTE_LONG_WINDOWS}) {
      mote_text_options options{};
      options.size = sizeof options;
      options.too_long = too_long;
      std::vector<float> vectors(2 * size_t(info.embedding_size));
      std::vector<mote_label_score> scores(2 * size_t(info.label_count) + 64);
      mote_span spans[64];
      mote_report reports[2];
      size_t count = 0;
      check("embed",
            mote_embed(session, inputs, 2, &options, vectors.data(), vectors.size(), reports),
            expected);
      check("classify",
            mote_classify(session, inputs, 2, &options, scores.data(), scores.size(), reports),
            expected);
      check("tag", mote_tag(session, text, &options, spans, 64, &count, reports), expected);
      check("answer",
            mote_answer(session, inputs[1].text, text, &options, spans, 64, &count, nullptr),
            expected);
      check("fill", mote_fill(session, text, &options, scores.data(), 64, &count, reports),
            expected);
    }
  }

  void generate(mote_session* session, const mote_prompt& prompt, float temperature) {
    mote_generate_options options{};
    options.size = sizeof options;
    options.max_tokens = 3;
    options.temperature = temperature;
    options.top_k = 20;
    options.repeat_penalty = 1.1f;
    options.user = this;
    options.on_text = [](void* user, const char* text, size_t length) {
      static_cast<FileTrial*>(user)->text_.append(text, length);
      return 0;
    };
    mote_generate_result result{};
    result.size = sizeof result;
    check("generate", mote_generate(session, &prompt, &options, &result),
          {MOTE_ERROR_BAD_FILE, MOTE_ERROR_CAPACITY, MOTE_ERROR_TASK, MOTE_ERROR_TEMPLATE,
           MOTE_ERROR_MEMORY, MOTE_ERROR_ARGUMENT});
    if (result.generated_tokens > 3) fault("more tokens than asked for");
  }

  LimitedAllocator allocator_;
  bool opened_ = false, computed_ = false;
  std::string text_;  // generated
  std::string faults_;
};

}  // namespace mote::test
