// mote.h for tests: handles that close themselves, options with their size filled in, the
// instruction set from MOTE_ISA.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cpu.h"
#include "kernels/kernels.h"
#include "mote.h"

namespace mote::test {

// A copy of some bytes at an address that is `offset` beyond a multiple of 64.
class AlignedBytes {
 public:
  explicit AlignedBytes(const std::vector<uint8_t>& from, size_t offset = 0)
      : memory_(from.size() + 128), size_(from.size()) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    start_ = (64 - address % 64) % 64 + offset;
    std::memcpy(memory_.data() + start_, from.data(), from.size());
  }
  AlignedBytes(const AlignedBytes&) = delete;
  const uint8_t* data() const { return memory_.data() + start_; }
  size_t size() const { return size_; }

 private:
  std::vector<uint8_t> memory_;
  size_t size_, start_;
};

inline const char* chosen_isa() {
  const char* isa = std::getenv("MOTE_ISA");
  return isa && *isa ? isa : nullptr;
}

// All instruction sets that this build has and this CPU can run; only the chosen one if MOTE_ISA
// names it.
inline std::vector<std::string> isas_here() {
  if (chosen_isa()) return {chosen_isa()};
  size_t count = 0;
  const IsaTable* tables = isa_tables(&count);
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i)
    if (tables[i].supported(cpu_features())) names.push_back(tables[i].kernels->isa);
  return names;
}

inline mote_text text_of(std::string_view text) { return {text.data(), text.size()}; }

inline mote_model_options model_options(const char* isa = chosen_isa()) {
  mote_model_options options{};
  options.size = sizeof options;
  options.isa = isa;
  return options;
}

class Model {
 public:
  Model() = default;
  explicit Model(const std::string& path, const char* isa = chosen_isa()) {
    const mote_model_options options = model_options(isa);
    EXPECT_EQ(mote_model_open(path.c_str(), &options, &handle_), MOTE_OK) << mote_last_error();
  }
  explicit Model(const AlignedBytes& bytes, const char* isa = chosen_isa()) {
    const mote_model_options options = model_options(isa);
    EXPECT_EQ(mote_model_open_memory(bytes.data(), bytes.size(), &options, &handle_), MOTE_OK)
        << mote_last_error();
  }
  Model(const Model&) = delete;
  Model(Model&& other) noexcept { std::swap(handle_, other.handle_); }
  Model& operator=(Model&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Model() { mote_model_close(handle_); }
  mote_model* get() const { return handle_; }
  operator const mote_model*() const { return handle_; }

 private:
  mote_model* handle_ = nullptr;
};

struct SessionOptions : mote_session_options {
  SessionOptions() : mote_session_options{} { size = sizeof(mote_session_options); }
  SessionOptions(uint32_t tokens, uint32_t batch, uint32_t thread_count, uint32_t kv = MOTE_KV_F16)
      : SessionOptions() {
    capacity = tokens;
    batch_tokens = batch;
    threads = thread_count;
    kv_type = kv;
  }
};

class Session {
 public:
  explicit Session(const Model& model, const mote_session_options& options = SessionOptions()) {
    EXPECT_EQ(mote_session_create(model, &options, nullptr, 0, &handle_), MOTE_OK)
        << mote_last_error();
  }
  Session(const Session&) = delete;
  ~Session() { mote_session_destroy(handle_); }
  mote_session* get() const { return handle_; }
  operator mote_session*() const { return handle_; }

 private:
  mote_session* handle_ = nullptr;
};

inline std::vector<int32_t> tokenize(mote_session* session, std::string_view text,
                                     uint32_t flags = 0) {
  std::vector<mote_token> tokens(text.size() + 8);
  size_t count = 0;
  EXPECT_EQ(mote_tokenize(session, text_of(text), flags, tokens.data(), tokens.size(), &count),
            MOTE_OK)
      << mote_last_error();
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(tokens[i].id);
  return ids;
}

inline std::string detokenize(mote_session* session, const std::vector<int32_t>& ids,
                              uint32_t flags = 0) {
  size_t length = 0;
  mote_status status = mote_detokenize(session, ids.data(), ids.size(), flags, nullptr, 0, &length);
  EXPECT_TRUE(status == MOTE_OK || status == MOTE_ERROR_BUFFER) << mote_last_error();
  std::string text(length, '\0');
  status = mote_detokenize(session, ids.data(), ids.size(), flags, &text[0], text.size(), &length);
  EXPECT_EQ(status, MOTE_OK) << mote_last_error();
  return text;
}

inline mote_prompt prompt_of(const std::vector<int32_t>& ids) {
  mote_prompt prompt{};
  prompt.ids = ids.data();
  prompt.id_count = ids.size();
  return prompt;
}
inline mote_prompt prompt_of(std::string_view text) {
  mote_prompt prompt{};
  prompt.text = text_of(text);
  return prompt;
}

// A generation with everything that it hands out.
struct Generation {
  mote_status status = MOTE_OK;
  mote_generate_result result{};
  std::vector<int32_t> ids;
  std::string text;
  std::vector<std::string> pieces;  // of on_text
};

struct GenerateOptions : mote_generate_options {
  GenerateOptions() : mote_generate_options{} { size = sizeof(mote_generate_options); }
  explicit GenerateOptions(uint32_t most_tokens) : GenerateOptions() { max_tokens = most_tokens; }
};

// Sets on_text (unless given), ids and user; on_logits and on_progress stay the caller's, but share
// `user`.
inline Generation generate(mote_session* session, const mote_prompt& prompt,
                           mote_generate_options options = GenerateOptions()) {
  Generation out;
  out.ids.resize(4096);
  out.result.size = sizeof out.result;
  options.ids = out.ids.data();
  options.ids_capacity = out.ids.size();
  if (!options.on_text) {
    options.user = &out;
    options.on_text = [](void* user, const char* text, size_t length) {
      auto* generation = static_cast<Generation*>(user);
      generation->text.append(text, length);
      generation->pieces.emplace_back(text, length);
      return 0;
    };
  }
  out.status = mote_generate(session, &prompt, &options, &out.result);
  out.ids.resize(out.result.generated_tokens);
  return out;
}

}  // namespace mote::test
