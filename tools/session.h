// Models and sessions of mote.h that close themselves, and the options that every command with a
// model has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "mote.h"
#include "tools/command_line.h"

namespace mote::tool {

// Throws Failure with the library's message unless the status is MOTE_OK.
void check(mote_status status);

struct ModelOptions {
  std::string path;
  uint32_t threads = 0, context = 0;  // 0: the library's choice
  std::string kv = "f16";

  void add_model(CLI::App& app);
  void add_threads(CLI::App& app);
  void add_context(CLI::App& app);
  void add_kv(CLI::App& app);
  uint32_t kv_type() const;
};

class Model {
 public:
  // Warnings of the library go to stderr. The environment's MOTE_ISA forces an instruction set.
  explicit Model(const std::string& path);
  // data is aligned to 32 bytes and stays.
  Model(const void* data, size_t bytes);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() { mote_model_close(model_); }

  const mote_model* get() const { return model_; }
  const mote_model_info& info() const { return info_; }
  bool can(uint32_t task) const { return (info_.tasks & task) != 0; }
  // Throws Failure that says what the model lacks.
  void need(uint32_t task, const char* what) const;
  // Throws Failure unless there is a conversation with the model: it has no chat template, or one
  // that cannot be read. instead: what the user can do.
  void need_chat(const char* instead) const;
  bool has_template() const { return value("tokenizer.chat_template").has_value(); }
  // A key of the file as text, if it is there.
  std::optional<std::string> value(const char* key) const;

 private:
  void describe();

  std::string path_;
  mote_model* model_ = nullptr;
  mote_model_info info_{};
};

class Session {
 public:
  Session(const Model& model, const mote_session_options& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { mote_session_destroy(session_); }

  mote_session* get() const { return session_; }
  // Threads that run in it, counted where the system tells.
  uint32_t threads() const { return threads_; }
  // Tokens that it holds.
  size_t capacity() const { return capacity_; }

 private:
  mote_session* session_ = nullptr;
  size_t capacity_;
  uint32_t threads_ = 1;
};

// Tokens that a session of this model holds unless asked otherwise.
uint32_t default_capacity(const Model& model);

// Options with the size field set. text_bytes: at least this, and at least the library's default.
mote_session_options session_options(const Model& model, const ModelOptions& options,
                                     size_t text_bytes = 0);

// Ids of a text. flags: MOTE_TOKENIZE_...
std::vector<mote_token> tokenize(const Session& session, const std::string& text, uint32_t flags);
std::string detokenize(const Session& session, const std::vector<int32_t>& ids, uint32_t flags);

inline mote_text as_text(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace mote::tool
