#include "tools/session.h"

#include <algorithm>
#include <cstdlib>

namespace mote::tool {
namespace {

constexpr uint32_t kDefaultContext = 2048, kTextBytesPerToken = 16;  // as mote.h says

void log_to_stderr(void*, int32_t level, const char* message, size_t length) {
  if (level <= MOTE_LOG_WARNING)
    complain((level == MOTE_LOG_WARNING ? "warning: " : "") + std::string(message, length));
}

mote_model_options model_options() {
  mote_model_options options{};
  options.size = sizeof options;
  const char* isa = std::getenv("MOTE_ISA");
  options.isa = isa && *isa ? isa : nullptr;
  options.log = log_to_stderr;
  return options;
}

}  // namespace

uint32_t default_capacity(const Model& model) {
  const uint32_t trained = model.info().context_length;
  return trained ? std::min(trained, kDefaultContext) : kDefaultContext;
}

void check(mote_status status) {
  if (status == MOTE_OK) return;
  const std::string message = mote_last_error();
  throw Failure(message.empty() ? mote_status_text(status) : message);
}

void ModelOptions::add_model(CLI::App& app) {
  app.add_option("-m,--model", path, "the model, a GGUF file")->required();
}
void ModelOptions::add_threads(CLI::App& app) {
  app.add_option("-t,--threads", threads, "threads (default: the fast cores)")
      ->check(within(1, 256));
}
void ModelOptions::add_context(CLI::App& app) {
  app.add_option("--ctx", context,
                 "tokens the session holds (default: 2048, or what the model knows)")
      ->check(within(1, UINT32_MAX));
}
void ModelOptions::add_kv(CLI::App& app) {
  app.add_option("--kv", kv, "the cache's type: f16 (default), q8_0, f32")
      ->check(one_of({"f16", "q8_0", "f32"}));
}
uint32_t ModelOptions::kv_type() const {
  return kv == "f32" ? MOTE_KV_F32 : kv == "q8_0" ? MOTE_KV_Q8_0 : MOTE_KV_F16;
}

Model::Model(const std::string& path) : path_(path) {
  const mote_model_options options = model_options();
  check(mote_model_open(path.c_str(), &options, &model_));
  describe();
}

Model::Model(const void* data, size_t bytes) : path_("model in memory") {
  const mote_model_options options = model_options();
  check(mote_model_open_memory(data, bytes, &options, &model_));
  describe();
}

void Model::describe() {
  info_.size = sizeof info_;
  if (const mote_status status = mote_model_describe(model_, &info_); status != MOTE_OK) {
    const Failure failure{mote_last_error()};
    mote_model_close(model_);
    throw failure;
  }
}

void Model::need(uint32_t task, const char* what) const {
  if (!can(task)) throw Failure(path_ + ": the model has no " + what);
}

void Model::need_chat(const char* instead) const {
  if (can(MOTE_TASK_CHAT)) return;
  // Opening the model has warned of the fault that the template has.
  const bool wrong = can(MOTE_TASK_TOKENIZE) && can(MOTE_TASK_GENERATE) && has_template();
  throw Failure(path_ +
                (wrong ? ": the model's chat template cannot be read, "
                       : ": the model has no chat template, ") +
                "so there is no conversation with it; " + instead);
}

std::optional<std::string> Model::value(const char* key) const {
  size_t length = 0;
  const mote_status status = mote_model_value(model_, key, nullptr, 0, &length);
  if (status != MOTE_OK && status != MOTE_ERROR_BUFFER) return std::nullopt;
  std::string text(length, '\0');
  check(mote_model_value(model_, key, text.data(), text.size(), &length));
  return text;
}

Session::Session(const Model& model, const mote_session_options& options)
    : capacity_(options.capacity ? options.capacity : default_capacity(model)) {
  check(mote_session_create(model.get(), &options, nullptr, 0, &session_));
  threads_ = mote_session_threads(session_);
}

mote_session_options session_options(const Model& model, const ModelOptions& options,
                                     size_t text_bytes) {
  mote_session_options session{};
  session.size = sizeof session;
  session.capacity = options.context;
  session.threads = options.threads;
  session.kv_type = options.kv_type();
  const uint64_t capacity = options.context ? options.context : default_capacity(model);
  // The library's own default is enough unless a text is longer than that.
  if (text_bytes > capacity * kTextBytesPerToken)
    session.text_bytes = static_cast<uint32_t>(std::min<size_t>(text_bytes, UINT32_MAX));
  return session;
}

std::vector<mote_token> tokenize(const Session& session, const std::string& text, uint32_t flags) {
  std::vector<mote_token> tokens(text.size() / 2 + 16);
  size_t count = 0;
  mote_status status =
      mote_tokenize(session.get(), as_text(text), flags, tokens.data(), tokens.size(), &count);
  if (status == MOTE_ERROR_BUFFER) {
    tokens.resize(count);
    status =
        mote_tokenize(session.get(), as_text(text), flags, tokens.data(), tokens.size(), &count);
  }
  check(status);
  tokens.resize(count);
  return tokens;
}

std::string detokenize(const Session& session, const std::vector<int32_t>& ids, uint32_t flags) {
  std::string text(ids.size() * 8 + 16, '\0');
  size_t length = 0;
  mote_status status = mote_detokenize(session.get(), ids.data(), ids.size(), flags, text.data(),
                                       text.size(), &length);
  if (status == MOTE_ERROR_BUFFER) {
    text.resize(length);
    status = mote_detokenize(session.get(), ids.data(), ids.size(), flags, text.data(), text.size(),
                             &length);
  }
  check(status);
  text.resize(length);
  return text;
}

}  // namespace mote::tool
