// The session's memory: its size is exact, any address will do, and nothing outside of it is
// touched. Models in memory.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/support/forward_rows.h"
#include "tests/support/guard_page.h"
#include "tests/support/scripted.h"

namespace mote::test {
namespace {

// Every kind of call; true where all went well. Gives the generated ids and the nll of a fixed
// text.
struct Everything {
  std::vector<int32_t> ids;
  std::vector<float> nll;
  bool operator==(const Everything& other) const { return ids == other.ids && nll == other.nll; }
};
Everything use_everything(mote_session* session, size_t capacity) {
  Everything out;
  const std::string text = "the other thing, and caf\xc3\xa9 \xf0\x9f\x98\xb8 1234";
  const auto ids = tokenize(session, text);
  EXPECT_EQ(detokenize(session, ids), text);
  const mote_message message = {text_of("user"), text_of("hi")};
  char rendered[200];
  size_t length = 0;
  EXPECT_EQ(mote_template_render(session, &message, 1, rendered, sizeof rendered, &length), MOTE_OK)
      << mote_last_error();
  const mote_text stops[] = {text_of("never said"), text_of("zz")};
  GenerateOptions options;
  options.stop = stops;
  options.stop_count = 2;
  options.flags = MOTE_GENERATE_IGNORE_END;
  std::vector<int32_t> prompt(ids.begin(), ids.begin() + 5);
  const Generation got = generate(session, prompt_of(prompt), options);
  EXPECT_EQ(got.status, MOTE_OK) << mote_last_error();
  EXPECT_TRUE(got.result.finish == MOTE_FINISH_CAPACITY || got.result.finish == MOTE_FINISH_STOP);
  out.ids = got.ids;
  EXPECT_EQ(mote_session_rewind(session, 0), MOTE_OK);
  std::vector<int32_t> whole;
  for (size_t i = 0; i < capacity; ++i) whole.push_back(static_cast<int32_t>(i * 13 % 300));
  out.nll.resize(capacity - 1);
  EXPECT_EQ(mote_score(session, whole.data(), capacity, out.nll.data()), MOTE_OK)
      << mote_last_error();
  const float* logits = nullptr;
  EXPECT_EQ(mote_session_rewind(session, capacity / 2), MOTE_OK);
  EXPECT_EQ(mote_session_append(session, whole.data(), 2, 0, &logits), MOTE_OK)
      << mote_last_error();
  return out;
}

class SessionMemory : public testing::Test {
 protected:
  SessionMemory() : bytes_(TinyModel().bytes()), model_(bytes_) {}
  AlignedBytes bytes_;
  Model model_;
};

std::vector<SessionOptions> option_list() {
  std::vector<SessionOptions> list = {
      SessionOptions(64, 16, 1), SessionOptions(65, 64, 2),
      SessionOptions(127, 1, 3), SessionOptions(100, 100, 1, MOTE_KV_F32),
      SessionOptions(70, 7, 5),  SessionOptions(1024, 0, 0)};
  list[1].text_bytes = 1000;
  list[2].text_bytes = 77;
  return list;
}

TEST_F(SessionMemory, OneByteLessFails) {
  for (const SessionOptions& options : option_list()) {
    size_t bytes = 0;
    ASSERT_EQ(mote_session_size(model_, &options, &bytes), MOTE_OK) << mote_last_error();
    GuardedBytes memory(bytes);
    mote_session* session = nullptr;
    EXPECT_EQ(mote_session_create(model_, &options, memory.data() + 1, bytes - 1, &session),
              MOTE_ERROR_MEMORY);
    EXPECT_EQ(session, nullptr);
    const std::string message = mote_last_error();
    EXPECT_NE(message.find(std::to_string(bytes)), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(bytes - 1)), std::string::npos) << message;
    EXPECT_EQ(mote_session_create(model_, &options, memory.data(), 0, &session), MOTE_ERROR_MEMORY);
    EXPECT_EQ(mote_session_create(model_, &options, memory.data(), bytes, &session), MOTE_OK)
        << mote_last_error();
    mote_session_destroy(session);
  }
}

TEST_F(SessionMemory, ExactSizeAgainstAGuardPage) {
  for (const SessionOptions& options : option_list()) {
    size_t bytes = 0;
    ASSERT_EQ(mote_session_size(model_, &options, &bytes), MOTE_OK);
    Session own(model_, options);
    const Everything expected = use_everything(own, options.capacity);
    GuardedBytes memory(bytes);
    mote_session* session = nullptr;
    ASSERT_EQ(mote_session_create(model_, &options, memory.data(), bytes, &session), MOTE_OK)
        << mote_last_error();
    EXPECT_TRUE(use_everything(session, options.capacity) == expected);
    mote_session_destroy(session);
  }
}

// Also with memory that was used before, by another session, and is full of its values.
TEST_F(SessionMemory, AnyAddress) {
  const SessionOptions options(64, 16, 2);
  size_t bytes = 0;
  ASSERT_EQ(mote_session_size(model_, &options, &bytes), MOTE_OK);
  Everything expected;
  {
    Session own(model_, options);
    expected = use_everything(own, 64);
  }
  for (size_t behind = 0; behind <= 64; ++behind) {
    GuardedBytes memory(bytes, behind);
    uint8_t* end = memory.data() + bytes;
    for (int time = 0; time < 2; ++time) {
      mote_session* session = nullptr;
      ASSERT_EQ(mote_session_create(model_, &options, memory.data(), bytes, &session), MOTE_OK)
          << mote_last_error();
      EXPECT_TRUE(use_everything(session, 64) == expected) << behind;
      mote_session_destroy(session);
    }
    for (size_t i = 0; i < behind; ++i)
      ASSERT_EQ(end[i], 0xcd) << "written " << i << " bytes behind the end";
    ASSERT_EQ(memory.data()[-1], 0xcd);
  }
}

// The size grows by what the documentation says a token of the cache costs, and is the same each
// time it is asked.
TEST_F(SessionMemory, SizeFollowsTheOptions) {
  const auto size_of = [&](const SessionOptions& options) {
    size_t bytes = 0;
    EXPECT_EQ(mote_session_size(model_, &options, &bytes), MOTE_OK);
    return bytes;
  };
  SessionOptions options(256, 64, 1);
  options.text_bytes = 1000;
  const size_t base = size_of(options);
  EXPECT_EQ(size_of(options), base);
  SessionOptions longer = options;
  longer.capacity = 512;
  // Keys and values of 256 more tokens: 3 layers, 2 heads of 16 values, f16.
  EXPECT_GE(size_of(longer), base + 256u * 3 * 2 * 2 * 16 * 2);
  EXPECT_LE(size_of(longer), base + 256u * 3 * 2 * 2 * 16 * 2 * 2 + 65536);
  SessionOptions wide = options;
  wide.kv_type = MOTE_KV_F32;
  EXPECT_GE(size_of(wide), base + 256u * 3 * 2 * 2 * 16 * 2);
  // 16 bytes and a scale instead of 32: 14 less per head, exactly, for keys and for values.
  SessionOptions narrow = options;
  narrow.kv_type = MOTE_KV_Q8_0;
  EXPECT_EQ(size_of(narrow), base - 256u * 3 * 2 * 2 * 14);
  SessionOptions batch = options;
  batch.batch_tokens = 128;
  EXPECT_GT(size_of(batch), base);
}

TEST_F(SessionMemory, ThroughTheModelsAllocator) {
  struct Counts {
    size_t outstanding = 0, calls = 0, limit = SIZE_MAX;
  } counts;
  mote_allocator allocator{};
  allocator.user = &counts;
  allocator.allocate = [](void* user, size_t bytes, size_t alignment) -> void* {
    auto* c = static_cast<Counts*>(user);
    if (c->outstanding + bytes > c->limit) return nullptr;
    void* memory = nullptr;
    if (posix_memalign(&memory, alignment < 8 ? 8 : alignment, bytes)) return nullptr;
    c->outstanding += bytes;
    ++c->calls;
    return memory;
  };
  allocator.release = [](void* user, void* memory, size_t bytes) {
    static_cast<Counts*>(user)->outstanding -= bytes;
    std::free(memory);
  };
  mote_model_options options = model_options();
  options.allocator = &allocator;
  mote_model* model = nullptr;
  ASSERT_EQ(mote_model_open_memory(bytes_.data(), bytes_.size(), &options, &model), MOTE_OK)
      << mote_last_error();
  mote_model_info info{};
  info.size = sizeof info;
  ASSERT_EQ(mote_model_describe(model, &info), MOTE_OK);
  EXPECT_GT(info.heap_bytes, 0u);
  EXPECT_LE(info.heap_bytes, counts.outstanding);
  const size_t for_model = counts.outstanding;
  mote_session* session = nullptr;
  const SessionOptions sizes(64, 16, 1);
  ASSERT_EQ(mote_session_create(model, &sizes, nullptr, 0, &session), MOTE_OK);
  EXPECT_GT(counts.outstanding, for_model);
  const size_t calls = counts.calls;
  use_everything(session, 64);
  EXPECT_EQ(counts.calls, calls) << "a call allocated";
  mote_session_destroy(session);
  EXPECT_EQ(counts.outstanding, for_model);
  counts.limit = counts.outstanding + 1000;
  EXPECT_EQ(mote_session_create(model, &sizes, nullptr, 0, &session), MOTE_ERROR_MEMORY);
  mote_model_close(model);
  EXPECT_EQ(counts.outstanding, 0u);

  // Whichever allocation of opening fails, it is an error and all is given back.
  size_t needed_calls = 0;
  for (size_t limit = 0; limit < for_model; limit += for_model / 40 + 1) {
    counts = Counts{};
    counts.limit = limit;
    model = nullptr;
    EXPECT_EQ(mote_model_open_memory(bytes_.data(), bytes_.size(), &options, &model),
              MOTE_ERROR_MEMORY)
        << limit;
    EXPECT_EQ(model, nullptr);
    EXPECT_EQ(counts.outstanding, 0u) << limit;
    ++needed_calls;
  }
  EXPECT_GT(needed_calls, 30u);
}

TEST_F(SessionMemory, ModelFromMemoryMustBeAligned) {
  const Bytes file = TinyModel().bytes();
  for (size_t offset : {1, 2, 4, 8, 16, 31, 33}) {
    const AlignedBytes moved(file, offset);
    mote_model* model = nullptr;
    const mote_model_options options = model_options();
    EXPECT_EQ(mote_model_open_memory(moved.data(), moved.size(), &options, &model),
              MOTE_ERROR_ARGUMENT)
        << offset;
    EXPECT_EQ(model, nullptr);
    EXPECT_NE(std::string(mote_last_error()).find("32"), std::string::npos) << mote_last_error();
  }
}

TEST_F(SessionMemory, ModelFromMemoryGivesTheBitsOfTheFile) {
  const Bytes file = TinyModel().bytes();
  const std::string path = testing::TempDir() + "mote_session_memory_test.gguf";
  FILE* out = std::fopen(path.c_str(), "wb");
  ASSERT_NE(out, nullptr);
  ASSERT_EQ(std::fwrite(file.data(), 1, file.size(), out), file.size());
  std::fclose(out);
  std::vector<int32_t> ids;
  for (int i = 0; i < 90; ++i) ids.push_back(i * 3 % 300);
  Session expected_session(model_, SessionOptions(128, 32, 2));
  const auto expected = forward_rows(model_, expected_session, ids.data(), ids.size()).hashes;
  for (uint32_t flags : {0u, uint32_t{MOTE_MODEL_READ}, uint32_t{MOTE_MODEL_PREFETCH}}) {
    mote_model_options options = model_options();
    options.flags = flags;
    mote_model* opened = nullptr;
    ASSERT_EQ(mote_model_open(path.c_str(), &options, &opened), MOTE_OK) << mote_last_error();
    mote_model_info info{};
    info.size = sizeof info;
    EXPECT_EQ(mote_model_describe(opened, &info), MOTE_OK);
    EXPECT_EQ(info.file_bytes, file.size());
    const SessionOptions sizes(128, 32, 2);
    mote_session* session = nullptr;
    ASSERT_EQ(mote_session_create(opened, &sizes, nullptr, 0, &session), MOTE_OK);
    const float* logits = nullptr;
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(mote_session_append(session, &ids[i], 1, 0, &logits), MOTE_OK);
      EXPECT_EQ(hash_floats(logits, 300), expected[i]) << i;
    }
    mote_session_destroy(session);
    mote_model_close(opened);
  }
  std::remove(path.c_str());
  // At 32 beyond a multiple of 64 too, and against a guard page: nothing is read behind the end.
  GuardedBytes guarded(file.size(), (32 - file.size() % 32) % 32);
  std::memcpy(guarded.data(), file.data(), file.size());
  const mote_model_options options = model_options();
  mote_model* model = nullptr;
  if (reinterpret_cast<uintptr_t>(guarded.data()) % 32 == 0) {
    ASSERT_EQ(mote_model_open_memory(guarded.data(), guarded.size(), &options, &model), MOTE_OK)
        << mote_last_error();
    const SessionOptions sizes(128, 32, 1);
    mote_session* session = nullptr;
    ASSERT_EQ(mote_session_create(model, &sizes, nullptr, 0, &session), MOTE_OK);
    const float* logits = nullptr;
    ASSERT_EQ(mote_session_append(session, ids.data(), ids.size(), 0, &logits), MOTE_OK);
    EXPECT_EQ(hash_floats(logits, 300), expected.back());
    mote_session_destroy(session);
    mote_model_close(model);
  }
}

}  // namespace
}  // namespace mote::test
