// Null pointers, zero sizes and nonsense to every function of mote.h: a status and a message, never
// a signal.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "tests/support/scripted.h"

namespace mote::test {
namespace {

#define EXPECT_ARGUMENT(call)                      \
  do {                                             \
    EXPECT_EQ(call, MOTE_ERROR_ARGUMENT) << #call; \
    EXPECT_STRNE(mote_last_error(), "") << #call;  \
  } while (0)

class Arguments : public testing::Test {
 protected:
  Arguments()
      : bytes_(TinyModel().bytes()), model_(bytes_), session_(model_, SessionOptions(64, 16, 1)) {}
  void TearDown() override {
    Scripted scripted;
    scripted.script = byte_script("fine");
    scripted.run(session_, prompt_of("x"));
    EXPECT_EQ(scripted.text, "fine") << "the session is no longer usable: " << mote_last_error();
  }
  AlignedBytes bytes_;
  Model model_;
  Session session_;
};

TEST_F(Arguments, Library) {
  EXPECT_EQ(mote_version(),
            uint32_t{MOTE_VERSION_MAJOR << 16 | MOTE_VERSION_MINOR << 8} | (mote_version() & 255));
  std::set<std::string> texts;
  for (mote_status status = MOTE_OK; status <= MOTE_ERROR_CPU; ++status)
    EXPECT_TRUE(texts.insert(mote_status_text(status)).second) << status;
  for (mote_status status : {-1, MOTE_ERROR_CPU + 1, INT32_MAX, INT32_MIN})
    EXPECT_GT(std::strlen(mote_status_text(status)), 0u);
  ASSERT_NE(mote_last_error(), nullptr);
}

TEST_F(Arguments, LastErrorBelongsToTheThread) {
  mote_model* model = nullptr;
  EXPECT_ARGUMENT(mote_model_open(nullptr, nullptr, &model));
  const std::string mine = mote_last_error();
  std::thread([&] {
    EXPECT_STREQ(mote_last_error(), "");
    size_t count = 0;
    EXPECT_ARGUMENT(mote_tokenize(nullptr, text_of("x"), 0, nullptr, 0, &count));
    EXPECT_NE(mine, mote_last_error());
  }).join();
  EXPECT_EQ(mine, mote_last_error());
}

TEST_F(Arguments, OpenModel) {
  mote_model* model = reinterpret_cast<mote_model*>(8);
  EXPECT_ARGUMENT(mote_model_open(nullptr, nullptr, &model));
  EXPECT_EQ(model, nullptr);
  EXPECT_ARGUMENT(mote_model_open("x.gguf", nullptr, nullptr));
  EXPECT_ARGUMENT(mote_model_open_memory(nullptr, 100, nullptr, &model));
  EXPECT_ARGUMENT(mote_model_open_memory(bytes_.data(), bytes_.size(), nullptr, nullptr));
  EXPECT_EQ(mote_model_open_memory(bytes_.data(), 0, nullptr, &model), MOTE_ERROR_BAD_FILE);

  const auto open = [&](const mote_model_options& options) {
    model = reinterpret_cast<mote_model*>(8);
    const mote_status status =
        mote_model_open_memory(bytes_.data(), bytes_.size(), &options, &model);
    if (status != MOTE_OK) {
      EXPECT_EQ(model, nullptr);
      EXPECT_STRNE(mote_last_error(), "");
    }
    return status;
  };
  mote_model_options options{};
  EXPECT_EQ(open(options), MOTE_ERROR_ARGUMENT) << "size 0";
  options.size = 3;
  EXPECT_EQ(open(options), MOTE_ERROR_ARGUMENT);
  options.size = 0xffffffff;
  EXPECT_EQ(open(options), MOTE_ERROR_ARGUMENT);
  options = model_options();
  options.flags = 0x80000000;
  EXPECT_EQ(open(options), MOTE_ERROR_ARGUMENT);
  options = model_options("no such set");
  EXPECT_EQ(open(options), MOTE_ERROR_CPU);
  EXPECT_NE(std::string(mote_last_error()).find("no such set"), std::string::npos);
  options = model_options("");
  EXPECT_EQ(open(options), MOTE_ERROR_CPU);
  options = model_options();
  mote_allocator half{};
  half.allocate = [](void*, size_t, size_t) -> void* { return nullptr; };
  options.allocator = &half;
  EXPECT_EQ(open(options), MOTE_ERROR_ARGUMENT);
  mote_model_close(nullptr);
}

TEST_F(Arguments, OpenFile) {
  mote_model* model = nullptr;
  for (const char* path : {"", "/nonexistent/model.gguf", "/", "/dev/null", "."}) {
    const mote_status status = mote_model_open(path, nullptr, &model);
    EXPECT_TRUE(status == MOTE_ERROR_IO || status == MOTE_ERROR_BAD_FILE) << path << " " << status;
    EXPECT_EQ(model, nullptr);
    EXPECT_NE(std::string(mote_last_error()).find(path), std::string::npos) << mote_last_error();
  }
}

// A program that was compiled against an older header passes a smaller struct; one against a newer
// header a larger one.
TEST_F(Arguments, StructSizesOfOtherVersions) {
  struct Newer {
    mote_session_options options;
    uint64_t added[4];
  } newer{};
  newer.options = SessionOptions(64, 16, 1);
  newer.options.size = sizeof newer;
  mote_session* session = nullptr;
  EXPECT_EQ(mote_session_create(model_, &newer.options, nullptr, 0, &session), MOTE_OK)
      << mote_last_error();
  mote_session_destroy(session);
  newer.added[2] = 1;
  session = nullptr;
  EXPECT_ARGUMENT(mote_session_create(model_, &newer.options, nullptr, 0, &session));
  EXPECT_EQ(session, nullptr);

  // Only the first fields: what lies behind is not read.
  SessionOptions older(64, 16, 77777);
  older.size = offsetof(mote_session_options, kv_type);
  older.kv_type = 99;
  EXPECT_EQ(mote_session_create(model_, &older, nullptr, 0, &session), MOTE_OK)
      << mote_last_error();
  mote_session_destroy(session);
  size_t full = 0, part = 0;
  const SessionOptions same(64, 16, 0);
  EXPECT_EQ(mote_session_size(model_, &older, &part), MOTE_OK);
  EXPECT_EQ(mote_session_size(model_, &same, &full), MOTE_OK);
  EXPECT_EQ(part, full);

  mote_model_info info;
  std::memset(static_cast<void*>(&info), 0xab, sizeof info);
  info.size = offsetof(mote_model_info, isa);
  EXPECT_EQ(mote_model_describe(model_, &info), MOTE_OK);
  EXPECT_EQ(info.size, offsetof(mote_model_info, isa));
  EXPECT_EQ(std::string(info.architecture.data, info.architecture.length), "llama");
  EXPECT_EQ(info.reserved, 0xababababu) << "written behind the caller's struct";
  EXPECT_EQ(info.layers, 0xababababu);

  mote_generate_result result;
  std::memset(static_cast<void*>(&result), 0xab, sizeof result);
  result.size = offsetof(mote_generate_result, stop_index);
  const GenerateOptions two(2);
  const mote_prompt prompt = prompt_of("abc");
  EXPECT_EQ(mote_generate(session_, &prompt, &two, &result), MOTE_OK);
  EXPECT_EQ(result.stop_index, 0xababababu);
  EXPECT_EQ(result.prompt_tokens, 3u);
}

TEST_F(Arguments, DescribeLabelValue) {
  mote_model_info info{};
  info.size = sizeof info;
  EXPECT_ARGUMENT(mote_model_describe(nullptr, &info));
  EXPECT_ARGUMENT(mote_model_describe(model_, nullptr));
  info.size = 0;
  EXPECT_ARGUMENT(mote_model_describe(model_, &info));
  mote_text name{};
  EXPECT_ARGUMENT(mote_model_label(nullptr, 0, &name));
  EXPECT_ARGUMENT(mote_model_label(model_, 0, nullptr));
  EXPECT_NE(mote_model_label(model_, 0, &name), MOTE_OK);
  size_t length = 77;
  char buffer[8] = "1234567";
  EXPECT_ARGUMENT(mote_model_value(nullptr, "a", buffer, 8, &length));
  EXPECT_ARGUMENT(mote_model_value(model_, nullptr, buffer, 8, &length));
  EXPECT_ARGUMENT(mote_model_value(model_, "general.name", nullptr, 8, &length));
  EXPECT_ARGUMENT(mote_model_value(model_, "general.name", buffer, 8, nullptr));
  EXPECT_NE(mote_model_value(model_, "no.such.key", buffer, 8, &length), MOTE_OK);
  EXPECT_NE(std::string(mote_last_error()).find("no.such.key"), std::string::npos);
  EXPECT_EQ(mote_model_value(model_, "general.name", buffer, 8, &length), MOTE_OK);
  EXPECT_EQ(std::string(buffer, length), "tiny");
  EXPECT_EQ(mote_model_value(model_, "llama.block_count", buffer, 8, &length), MOTE_OK);
  EXPECT_EQ(std::string(buffer, length), "3");
  std::memcpy(buffer, "1234567", 8);
  mote_model_value(model_, "general.name", buffer, 2, &length);
  EXPECT_EQ(length, 4u);
  EXPECT_EQ(std::string(buffer, 7).substr(2), "34567") << "written behind the capacity";
}

TEST_F(Arguments, CreateSession) {
  size_t bytes = 0;
  mote_session* session = nullptr;
  const SessionOptions good(64, 16, 1);
  EXPECT_ARGUMENT(mote_session_size(nullptr, &good, &bytes));
  EXPECT_ARGUMENT(mote_session_size(model_, &good, nullptr));
  EXPECT_ARGUMENT(mote_session_create(nullptr, &good, nullptr, 0, &session));
  EXPECT_ARGUMENT(mote_session_create(model_, &good, nullptr, 0, nullptr));
  EXPECT_EQ(mote_session_create(model_, nullptr, nullptr, 0, &session), MOTE_OK)
      << mote_last_error();
  mote_session_destroy(session);
  mote_session_destroy(nullptr);
  EXPECT_EQ(mote_session_position(nullptr), 0u);
  const auto create = [&](const SessionOptions& options) {
    session = reinterpret_cast<mote_session*>(8);
    const mote_status status = mote_session_create(model_, &options, nullptr, 0, &session);
    if (status != MOTE_OK) {
      EXPECT_EQ(session, nullptr);
    } else {
      mote_session_destroy(session);
    }
    size_t needed = 1;
    EXPECT_EQ(mote_session_size(model_, &options, &needed), status) << "size and create disagree";
    return status;
  };
  SessionOptions options = good;
  options.size = 0;
  EXPECT_EQ(create(options), MOTE_ERROR_ARGUMENT);
  options = good;
  options.kv_type = 17;
  EXPECT_EQ(create(options), MOTE_ERROR_ARGUMENT);
  options = good;
  options.threads = 0xffffffff;
  EXPECT_EQ(create(options), MOTE_ERROR_ARGUMENT);
  options = good;
  options.capacity = 0xffffffff;
  EXPECT_EQ(create(options), MOTE_ERROR_CONTEXT);
  options = good;
  options.text_bytes = 0xffffffff;
  EXPECT_NE(create(options), MOTE_OK);
  options = good;
  options.batch_tokens = 0xffffffff;
  EXPECT_EQ(create(options), MOTE_OK) << "more than the capacity is the capacity";
  options = SessionOptions(1, 1, 1);
  EXPECT_EQ(create(options), MOTE_OK);
  mote_executor nothing{};
  options = good;
  options.executor = &nothing;
  EXPECT_ARGUMENT(mote_session_create(model_, &options, nullptr, 0, &session));
}

TEST_F(Arguments, TokensAndTemplates) {
  size_t count = 0, length = 0;
  mote_token tokens[16];
  char text[64];
  const int32_t id = 5;
  const mote_message message = {text_of("user"), text_of("hi")};
  EXPECT_ARGUMENT(mote_tokenize(nullptr, text_of("x"), 0, tokens, 16, &count));
  EXPECT_ARGUMENT(mote_tokenize(session_, text_of("x"), 0, tokens, 16, nullptr));
  EXPECT_ARGUMENT(mote_tokenize(session_, text_of("x"), 0, nullptr, 16, &count));
  EXPECT_ARGUMENT(mote_tokenize(session_, {nullptr, 4}, 0, tokens, 16, &count));
  EXPECT_ARGUMENT(mote_tokenize(session_, {nullptr, MOTE_NUL_TERMINATED}, 0, tokens, 16, &count));
  EXPECT_ARGUMENT(mote_tokenize(session_, text_of("x"), 0xfff0, tokens, 16, &count));
  EXPECT_EQ(mote_tokenize(session_, {nullptr, 0}, 0, tokens, 16, &count), MOTE_OK);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(mote_tokenize(session_, {"xyz", MOTE_NUL_TERMINATED}, 0, tokens, 16, &count), MOTE_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(mote_tokenize(session_, text_of("xyz"), 0, tokens, 2, &count), MOTE_ERROR_BUFFER);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(mote_tokenize(session_, text_of("xyz"), 0, nullptr, 0, &count), MOTE_ERROR_BUFFER);
  EXPECT_EQ(count, 3u);

  EXPECT_ARGUMENT(mote_detokenize(nullptr, &id, 1, 0, text, 64, &length));
  EXPECT_ARGUMENT(mote_detokenize(session_, nullptr, 1, 0, text, 64, &length));
  EXPECT_ARGUMENT(mote_detokenize(session_, &id, 1, 0, nullptr, 64, &length));
  EXPECT_ARGUMENT(mote_detokenize(session_, &id, 1, 0, text, 64, nullptr));
  EXPECT_ARGUMENT(mote_detokenize(session_, &id, 1, 0xff00, text, 64, &length));
  EXPECT_EQ(mote_detokenize(session_, nullptr, 0, 0, nullptr, 0, &length), MOTE_OK);
  EXPECT_EQ(length, 0u);
  const int32_t letters[3] = {TinyModel::byte_token('a'), TinyModel::byte_token('b'),
                              TinyModel::byte_token('c')};
  std::memset(text, '#', sizeof text);
  EXPECT_EQ(mote_detokenize(session_, letters, 3, 0, text, 2, &length), MOTE_ERROR_BUFFER);
  EXPECT_EQ(length, 3u);
  EXPECT_EQ(text[2], '#');

  EXPECT_ARGUMENT(mote_template_render(nullptr, &message, 1, text, 64, &length));
  EXPECT_ARGUMENT(mote_template_render(session_, nullptr, 1, text, 64, &length));
  EXPECT_ARGUMENT(mote_template_render(session_, &message, 0, text, 64, &length));
  EXPECT_ARGUMENT(mote_template_render(session_, &message, SIZE_MAX / 2, text, 64, &length));
  EXPECT_ARGUMENT(mote_template_render(session_, &message, 1, nullptr, 64, &length));
  EXPECT_ARGUMENT(mote_template_render(session_, &message, 1, text, 64, nullptr));
  const mote_message bad = {text_of("user"), {nullptr, 3}};
  EXPECT_ARGUMENT(mote_template_render(session_, &bad, 1, text, 64, &length));
  EXPECT_EQ(mote_template_render(session_, &message, 1, nullptr, 0, &length), MOTE_ERROR_BUFFER);
  EXPECT_EQ(length, std::strlen("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_ARGUMENT(
      mote_template_render_json(nullptr, text_of("x"), text_of("{}"), text, 64, &length));
  EXPECT_ARGUMENT(
      mote_template_render_json(session_, {nullptr, 5}, text_of("{}"), text, 64, &length));
  EXPECT_ARGUMENT(
      mote_template_render_json(session_, text_of("x"), {nullptr, 5}, text, 64, &length));
  EXPECT_ARGUMENT(
      mote_template_render_json(session_, text_of("x"), text_of("{}"), text, 64, nullptr));
  EXPECT_NE(mote_template_render_json(session_, text_of("x"), text_of("{"), text, 64, &length),
            MOTE_OK);
  EXPECT_NE(mote_template_render_json(session_, text_of("{% if"), text_of("{}"), text, 64, &length),
            MOTE_OK);
}

TEST_F(Arguments, Generate) {
  const mote_prompt good = prompt_of("abc");
  const GenerateOptions two(2);
  mote_generate_result result{};
  result.size = sizeof result;
  EXPECT_ARGUMENT(mote_generate(nullptr, &good, &two, &result));
  EXPECT_ARGUMENT(mote_generate(session_, nullptr, &two, &result));
  EXPECT_EQ(mote_generate(session_, &good, &two, nullptr), MOTE_OK);
  mote_generate_result zero{};
  EXPECT_ARGUMENT(mote_generate(session_, &good, &two, &zero));
  mote_prompt prompt{};
  EXPECT_ARGUMENT(mote_generate(session_, &prompt, &two, &result));
  prompt = good;
  const int32_t ids[2] = {5, 6};
  prompt.ids = ids;
  prompt.id_count = 2;
  EXPECT_ARGUMENT(mote_generate(session_, &prompt, &two, &result));
  prompt = {};
  prompt.ids = ids;
  EXPECT_ARGUMENT(mote_generate(session_, &prompt, &two, &result));
  prompt = {};
  prompt.id_count = 2;
  EXPECT_ARGUMENT(mote_generate(session_, &prompt, &two, &result));
  prompt = prompt_of("");
  EXPECT_ARGUMENT(mote_generate(session_, &prompt, &two, &result));
  prompt = {};
  prompt.text = {nullptr, 7};
  EXPECT_ARGUMENT(mote_generate(session_, &prompt, &two, &result));
  prompt = {};
  prompt.message_count = 2;
  EXPECT_ARGUMENT(mote_generate(session_, &prompt, &two, &result));
  GenerateOptions options(2);
  options.size = 0;
  EXPECT_ARGUMENT(mote_generate(session_, &good, &options, &result));
  options = GenerateOptions(2);
  options.stop_count = 3;
  EXPECT_ARGUMENT(mote_generate(session_, &good, &options, &result));
  options = GenerateOptions(2);
  options.ids_capacity = 3;
  EXPECT_ARGUMENT(mote_generate(session_, &good, &options, &result));
  options = GenerateOptions(2);
  options.flags = uint64_t{1} << 40;
  EXPECT_ARGUMENT(mote_generate(session_, &good, &options, &result));
  options = GenerateOptions(2);
  options.draft_tokens = MOTE_MAX_DRAFT + 1;
  EXPECT_ARGUMENT(mote_generate(session_, &good, &options, &result));
  options = GenerateOptions(2);
  options.reserved = 1;
  EXPECT_ARGUMENT(mote_generate(session_, &good, &options, &result));
  for (float bad : {-1.0f, HUGE_VALF, std::nanf("")}) {
    options = GenerateOptions(2);
    options.temperature = bad;
    EXPECT_NE(mote_generate(session_, &good, &options, &result), MOTE_OK) << "temperature " << bad;
  }
}

TEST_F(Arguments, AppendScoreRewind) {
  const int32_t id = 5;
  float nll[4];
  const float* logits = &nll[0];
  EXPECT_ARGUMENT(mote_session_append(nullptr, &id, 1, 0, &logits));
  EXPECT_ARGUMENT(mote_session_append(session_, nullptr, 1, 0, &logits));
  EXPECT_EQ(logits, nullptr);
  EXPECT_ARGUMENT(mote_session_append(session_, &id, 0, 0, &logits));
  EXPECT_EQ(mote_session_append(session_, &id, SIZE_MAX, 0, &logits), MOTE_ERROR_CAPACITY);
  EXPECT_ARGUMENT(mote_score(nullptr, &id, 1, nll));
  EXPECT_ARGUMENT(mote_score(session_, nullptr, 1, nll));
  EXPECT_ARGUMENT(mote_score(session_, &id, 0, nll));
  const int32_t two[2] = {5, 6};
  EXPECT_ARGUMENT(mote_score(session_, two, 2, nullptr));
  EXPECT_EQ(mote_score(session_, &id, SIZE_MAX, nll), MOTE_ERROR_CAPACITY);
  EXPECT_ARGUMENT(mote_session_rewind(nullptr, 0));
  EXPECT_NE(mote_session_rewind(session_, SIZE_MAX), MOTE_OK);
  size_t bytes = 0;
  EXPECT_ARGUMENT(mote_session_save(nullptr, nullptr, 0, &bytes));
  EXPECT_ARGUMENT(mote_session_restore(nullptr, nullptr, 0));
}

TEST_F(Arguments, EncoderCallsOnAGenerator) {
  const mote_input input = {text_of("x"), {nullptr, 0}};
  mote_label_score score;
  mote_span span;
  mote_report report;
  float vector[96];
  size_t count = 0;
  EXPECT_EQ(mote_classify(session_, &input, 1, nullptr, &score, 1, &report), MOTE_ERROR_TASK);
  EXPECT_EQ(mote_answer(session_, text_of("q"), text_of("p"), nullptr, &span, 1, &count, vector),
            MOTE_ERROR_TASK);
  EXPECT_EQ(mote_tag(session_, text_of("x"), nullptr, &span, 1, &count, &report), MOTE_ERROR_TASK);
  EXPECT_EQ(mote_embed(session_, &input, 1, nullptr, vector, 96, &report), MOTE_ERROR_TASK);
  EXPECT_EQ(mote_fill(session_, text_of("x"), nullptr, &score, 1, &count, &report),
            MOTE_ERROR_TASK);
  EXPECT_ARGUMENT(mote_classify(nullptr, &input, 1, nullptr, &score, 1, &report));
  EXPECT_ARGUMENT(
      mote_answer(nullptr, text_of("q"), text_of("p"), nullptr, &span, 1, &count, vector));
  EXPECT_ARGUMENT(mote_tag(nullptr, text_of("x"), nullptr, &span, 1, &count, &report));
  EXPECT_ARGUMENT(mote_embed(nullptr, &input, 1, nullptr, vector, 96, &report));
}

// Files that lack a part still open; what needs the part says so.
TEST_F(Arguments, MissingParts) {
  TinyModel tiny;
  tiny.tokenizer = false;
  const AlignedBytes no_tokenizer(tiny.bytes());
  {
    const Model model(no_tokenizer);
    Session session(model, SessionOptions(64, 16, 1));
    size_t count = 0;
    const mote_prompt prompt = prompt_of("x");
    const mote_message message = {text_of("user"), text_of("hi")};
    EXPECT_EQ(mote_tokenize(session, text_of("x"), 0, nullptr, 0, &count), MOTE_ERROR_TASK);
    EXPECT_EQ(mote_detokenize(session, nullptr, 0, 0, nullptr, 0, &count), MOTE_ERROR_TASK);
    EXPECT_EQ(mote_generate(session, &prompt, nullptr, nullptr), MOTE_ERROR_TASK);
    EXPECT_EQ(mote_template_render(session, &message, 1, nullptr, 0, &count), MOTE_ERROR_TASK);
    const std::vector<int32_t> ids = {1, 2, 3};
    EXPECT_EQ(generate(session, prompt_of(ids), GenerateOptions(4)).status, MOTE_OK);
  }
  tiny = TinyModel();
  tiny.weights = false;
  const AlignedBytes vocabulary(tiny.bytes());
  {
    const Model model(vocabulary);
    Session session(model, SessionOptions(64, 16, 1));
    EXPECT_EQ(tokenize(session, "abc").size(), 3u);
    const int32_t id = 4;
    const mote_prompt prompt = prompt_of("x");
    EXPECT_EQ(mote_session_append(session, &id, 1, 0, nullptr), MOTE_ERROR_TASK);
    EXPECT_EQ(mote_generate(session, &prompt, nullptr, nullptr), MOTE_ERROR_TASK);
    EXPECT_EQ(mote_score(session, &id, 1, nullptr), MOTE_ERROR_TASK);
  }
  tiny = TinyModel();
  tiny.chat_template = false;
  const AlignedBytes no_template(tiny.bytes());
  {
    const Model model(no_template);
    Session session(model, SessionOptions(64, 16, 1));
    size_t length = 0;
    const mote_message message = {text_of("user"), text_of("hi")};
    EXPECT_EQ(mote_template_render(session, &message, 1, nullptr, 0, &length), MOTE_ERROR_TASK);
    mote_prompt prompt{};
    prompt.messages = &message;
    prompt.message_count = 1;
    EXPECT_EQ(mote_generate(session, &prompt, nullptr, nullptr), MOTE_ERROR_TASK);
  }
}

// An options pointer of null, and a struct of zeros but for its size, are all defaults.
TEST_F(Arguments, DefaultsAreTheSame) {
  size_t a = 0, b = 0;
  const SessionOptions zeros;
  EXPECT_EQ(mote_session_size(model_, nullptr, &a), MOTE_OK);
  EXPECT_EQ(mote_session_size(model_, &zeros, &b), MOTE_OK);
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace mote::test
