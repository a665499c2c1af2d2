// After mote_session_create no call allocates memory or creates a thread. This program puts its own
// functions in front of the C library's and counts the calls that any thread makes while the watch
// is on.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/support/api.h"
#include "tests/support/sanitized.h"
#include "tests/support/text_encoder.h"
#include "tests/support/tiny_model.h"

#if defined(MOTE_SANITIZED) || !defined(__GLIBC__)
#define MOTE_CANNOT_WATCH 1
#endif

namespace {

std::atomic<bool> watching{false};
std::atomic<int> calls{0};
std::atomic<const char*> first_call{nullptr};

[[maybe_unused]] void note(const char* name) {
  if (!watching.load(std::memory_order_relaxed)) return;
  const char* none = nullptr;
  first_call.compare_exchange_strong(none, name);
  ++calls;
}

}  // namespace

#ifndef MOTE_CANNOT_WATCH
// Exported, although the program is built with hidden symbols: the shared libraries must find them.
#pragma GCC visibility push(default)
extern "C" {

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t bytes) {
  note("malloc");
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note("calloc");
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  note("realloc");
  return __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  note("memalign");
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note("aligned_alloc");
  return __libc_memalign(alignment, bytes);
}
void* valloc(size_t bytes) {
  note("valloc");
  return __libc_memalign(static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  note("posix_memalign");
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
void free(void* memory) {
  if (memory) note("free");
  __libc_free(memory);
}
void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  note("mmap");
  using Map = void* (*)(void*, size_t, int, int, int, off_t);
  static const auto real = reinterpret_cast<Map>(dlsym(RTLD_NEXT, "mmap"));
  return real(address, bytes, protection, flags, file, offset);
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off64_t offset) {
  note("mmap64");
  using Map = void* (*)(void*, size_t, int, int, int, off64_t);
  static const auto real = reinterpret_cast<Map>(dlsym(RTLD_NEXT, "mmap64"));
  return real(address, bytes, protection, flags, file, offset);
}
int brk(void* address) {
  note("brk");
  static const auto real = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_NEXT, "brk"));
  return real(address);
}
void* sbrk(intptr_t bytes) {
  note("sbrk");
  static const auto real = reinterpret_cast<void* (*)(intptr_t)>(dlsym(RTLD_NEXT, "sbrk"));
  return real(bytes);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  note("pthread_create");
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, start, argument);
}

}  // extern "C"
#pragma GCC visibility pop
#endif

namespace mote::test {
namespace {

// Runs a call with the watch on and expects it to do without.
#define WATCH(call)                                                                             \
  do {                                                                                          \
    calls = 0;                                                                                  \
    first_call = nullptr;                                                                       \
    watching = true;                                                                            \
    const mote_status watched_status = (call);                                                  \
    watching = false;                                                                           \
    EXPECT_EQ(calls.load(), 0) << #call << " called " << (first_call ? first_call.load() : ""); \
    last_status = watched_status;                                                               \
  } while (0)

class NoAllocation : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
#ifdef MOTE_CANNOT_WATCH
    GTEST_SKIP() << "a sanitizer, or another C library than glibc: malloc cannot be watched";
#endif
  }
  mote_status last_status = MOTE_OK;
};

// The watch itself: it must see what it is for.
TEST_F(NoAllocation, TheWatchSeesEveryKind) {
  const auto seen = [](const char* name, auto&& action) {
    calls = 0;
    first_call = nullptr;
    watching = true;
    action();
    watching = false;
    EXPECT_GT(calls.load(), 0) << name;
    EXPECT_STREQ(first_call.load(), name);
  };
  static void* volatile memory;
  seen("malloc", [] { memory = std::malloc(10); });
  seen("realloc", [] { memory = std::realloc(memory, 1000); });
  seen("free", [] { std::free(memory); });
  seen("calloc", [] { memory = std::calloc(3, 5); });
  std::free(memory);
  seen("malloc", [] { memory = ::operator new(28); });
  ::operator delete(memory);
  seen("posix_memalign", [] {
    void* aligned = nullptr;
    if (posix_memalign(&aligned, 64, 64) == 0) memory = aligned;
  });
  std::free(memory);
  seen("aligned_alloc", [] { memory = std::aligned_alloc(64, 64); });
  std::free(memory);
  seen("mmap", [] { memory = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); });
  ASSERT_NE(static_cast<void*>(memory), MAP_FAILED);
  munmap(memory, 4096);
  seen("sbrk", [] { memory = sbrk(0); });
  static pthread_t thread;
  seen("pthread_create", [] {
    pthread_create(
        &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
  });
  pthread_join(thread, nullptr);
  // And not when it is off.
  calls = 0;
  std::free(std::malloc(10));
  EXPECT_EQ(calls.load(), 0);
}

struct Callbacks {
  mote_session* session = nullptr;
  size_t text_bytes = 0;
  int chosen = 0, cancel_after = -1, stop_after = -1;
};

mote_generate_options options_with(Callbacks* callbacks, uint32_t tokens) {
  mote_generate_options options{};
  options.size = sizeof options;
  options.max_tokens = tokens;
  options.flags = MOTE_GENERATE_IGNORE_END;
  options.user = callbacks;
  options.on_text = [](void* user, const char*, size_t length) {
    auto* self = static_cast<Callbacks*>(user);
    self->text_bytes += length;
    return self->stop_after >= 0 && self->chosen > self->stop_after ? 1 : 0;
  };
  options.on_logits = [](void* user, float*, size_t) {
    auto* self = static_cast<Callbacks*>(user);
    if (self->chosen++ == self->cancel_after) mote_session_cancel(self->session);
    return 0;
  };
  options.on_progress = [](void*, size_t, size_t) {};
  return options;
}

void check_model(const Model& model, uint32_t threads, mote_status* last, uint32_t capacity,
                 uint32_t tokens) {
  mote_status& last_status = *last;
  SessionOptions sizes(capacity, 32, threads);
  Session session(model, sizes);
  static const char kText[] =
      "The quick brown fox, and the other thing in caf\xc3\xa9s \xf0\x9f\x98\xb8 at 12345; "
      "\xff\xfe broken. ";
  static mote_token list[4096];
  static int32_t ids[4096];
  static char text[65536];
  static float nll[4096];
  size_t count = 0, length = 0;
  Callbacks callbacks;
  callbacks.session = session;

  WATCH(mote_tokenize(session, {kText, sizeof kText - 1}, 0, list, 4096, &count));
  EXPECT_EQ(last_status, MOTE_OK);
  for (size_t i = 0; i < count; ++i) ids[i] = list[i].id;
  WATCH(mote_detokenize(session, ids, count, 0, text, sizeof text, &length));
  EXPECT_EQ(last_status, MOTE_OK);
  const mote_message messages[2] = {{text_of("system"), text_of("Be brief.")},
                                    {text_of("user"), {kText, sizeof kText - 1}}};
  WATCH(mote_template_render(session, messages, 2, text, sizeof text, &length));
  EXPECT_EQ(last_status, MOTE_OK);
  WATCH(mote_template_render_json(
      session, text_of("{% for m in messages %}{{ m.content | trim | upper }}{% endfor %}"),
      text_of("{\"messages\": [{\"role\": \"user\", \"content\": \" hi \"}]}"), text, sizeof text,
      &length));
  EXPECT_EQ(last_status, MOTE_OK) << mote_last_error();

  mote_prompt prompt{};
  prompt.messages = messages;
  prompt.message_count = 2;
  const mote_text stops[] = {text_of("never said"), text_of("\n\n\n\n"), text_of("zzz")};
  mote_generate_options options = options_with(&callbacks, tokens);
  options.stop = stops;
  options.stop_count = 3;
  options.ids = ids;
  options.ids_capacity = 4096;
  mote_generate_result result{};
  result.size = sizeof result;
  WATCH(mote_generate(session, &prompt, &options, &result));
  EXPECT_EQ(last_status, MOTE_OK);
  EXPECT_GT(result.generated_tokens, 0u);

  // A second turn, and ends of every kind.
  WATCH(mote_generate(session, &prompt, &options, &result));
  EXPECT_GT(result.reused_tokens, 0u);
  options.draft_tokens = MOTE_MAX_DRAFT;
  options.flags |= MOTE_GENERATE_ALWAYS_DRAFT;
  WATCH(mote_generate(session, &prompt, &options, &result));
  EXPECT_GT(result.drafted_tokens, 0u);
  options.draft_tokens = 0;
  options.flags &= ~uint64_t{MOTE_GENERATE_ALWAYS_DRAFT};
  mote_prompt plain{};
  plain.text = {kText, sizeof kText - 1};
  callbacks.chosen = 0;
  callbacks.stop_after = 2;
  WATCH(mote_generate(session, &plain, &options, &result));
  EXPECT_EQ(result.finish, MOTE_FINISH_CALLBACK);
  callbacks.stop_after = -1;
  callbacks.chosen = 0;
  callbacks.cancel_after = 2;
  WATCH(mote_generate(session, &plain, &options, &result));
  EXPECT_EQ(result.finish, MOTE_FINISH_CANCELLED);
  callbacks.cancel_after = -1;

  // Until the capacity, which is then exceeded.
  options.max_tokens = 0;
  WATCH(mote_generate(session, &plain, &options, &result));
  EXPECT_EQ(result.finish, MOTE_FINISH_CAPACITY);
  WATCH(mote_session_append(session, ids, 1, 0, nullptr));
  EXPECT_EQ(last_status, MOTE_ERROR_CAPACITY);
  WATCH(mote_session_rewind(session, 10));
  EXPECT_EQ(last_status, MOTE_OK);
  const float* logits = nullptr;
  WATCH(mote_session_append(session, ids, 3, 0, &logits));
  EXPECT_EQ(last_status, MOTE_OK);
  for (uint32_t i = 0; i < capacity; ++i) ids[i] = static_cast<int32_t>(i * 7 % 300);
  WATCH(mote_score(session, ids, capacity, nll));
  EXPECT_EQ(last_status, MOTE_OK);

  static uint8_t saved[8 << 20];
  size_t saved_bytes = 0;
  WATCH(mote_session_save(session, saved, sizeof saved, &saved_bytes));
  EXPECT_EQ(last_status, MOTE_OK) << mote_last_error() << saved_bytes;
  WATCH(mote_session_restore(session, saved, saved_bytes));
  EXPECT_EQ(last_status, MOTE_OK) << mote_last_error();
  saved[saved_bytes / 2] ^= 1;
  WATCH(mote_session_restore(session, saved, saved_bytes));
  EXPECT_EQ(last_status, MOTE_ERROR_STATE);

  // A deadline, and a cancellation by another thread that was started before.
  options.deadline_ms = 1;
  WATCH(mote_generate(session, &plain, &options, &result));
  EXPECT_EQ(last_status, MOTE_OK);
  options.deadline_ms = 0;
  std::atomic<int> state{0};
  std::thread other([&] {
    while (state.load() != 1) std::this_thread::yield();
    while (state.load() == 1) {
      mote_session_cancel(session);
      std::this_thread::yield();
    }
  });
  state = 1;
  WATCH(mote_generate(session, &plain, &options, &result));
  EXPECT_EQ(result.finish, MOTE_FINISH_CANCELLED);
  WATCH(mote_score(session, ids, capacity, nll));
  EXPECT_TRUE(last_status == MOTE_ERROR_CANCELLED || last_status == MOTE_OK);
  state = 2;
  other.join();

  // Errors of every kind write a message without allocating.
  WATCH(mote_generate(session, nullptr, nullptr, nullptr));
  EXPECT_EQ(last_status, MOTE_ERROR_ARGUMENT);
  ids[0] = -1;
  WATCH(mote_score(session, ids, 5, nll));
  EXPECT_EQ(last_status, MOTE_ERROR_ARGUMENT);
  WATCH(mote_tokenize(session, {kText, sizeof kText - 1}, 0, list, 2, &count));
  EXPECT_EQ(last_status, MOTE_ERROR_BUFFER);
  WATCH(mote_template_render_json(session, text_of("{% if %}"), text_of("{}"), text, sizeof text,
                                  &length));
  EXPECT_NE(last_status, MOTE_OK);
}

TEST_P(NoAllocation, TinyModel) {
  TinyModel tiny;
  tiny.layers = 6;
  const AlignedBytes bytes(tiny.bytes());
  const Model model(bytes);
  check_model(model, GetParam(), &last_status, 512, 20);
}

// Every call that understands text, with windows, failures, a cancellation and a deadline.
TEST_P(NoAllocation, TextCalls) {
  static const char kLong[] =
      "switching the lamps on and off, caf\xc3\xa9 \xf0\x9f\x98\x80 \xff and on again until "
      "the [MASK] of it all is 1,234.5 and so on and so on in the kitchen";
  const mote_input inputs[] = {{text_of("the lamp is on"), {nullptr, 0}},
                               {{kLong, sizeof kLong - 1}, {nullptr, 0}},
                               {{nullptr, 3}, {nullptr, 0}},
                               {text_of(""), {nullptr, 0}}};
  const mote_input pairs[] = {{text_of("is it on?"), {kLong, sizeof kLong - 1}},
                              {text_of("is it off?"), text_of("off")},
                              {text_of("what?"), text_of("")}};
  const mote_text candidates[] = {text_of("lamp"), text_of("kitchen")};
  mote_label_score scores[64];
  mote_span spans[256];
  mote_report reports[4];
  size_t counts[4], masks = 0;
  float vectors[4 * 32], none[3];
  for (const TextHead head : {TextHead::classify, TextHead::entail, TextHead::tag, TextHead::answer,
                              TextHead::fill, TextHead::embed}) {
    const AlignedBytes bytes(text_encoder(head).build());
    const Model model(bytes);
    Session session(model, SessionOptions(24, 32, GetParam()));
    mote_text_options options{};
    options.size = sizeof options;
    options.too_long = MOTE_LONG_WINDOWS;
    options.window_stride = 4;
    options.on_progress = [](void*, size_t, size_t) {};
    if (head == TextHead::entail) {
      options.candidates = candidates;
      options.candidate_count = 2;
    }
    for (int round = 0; round < 3; ++round) {
      if (round == 1) options.too_long = MOTE_LONG_ERROR;
      if (round == 2) {
        options.too_long = MOTE_LONG_TRUNCATE;
        options.user = session.get();
        options.on_progress = [](void* user, size_t, size_t) {
          mote_session_cancel(static_cast<mote_session*>(user));
        };
      }
      if (head == TextHead::classify || head == TextHead::entail) {
        WATCH(mote_classify(session, inputs, 4, &options, scores, 64, reports));
        if (round < 2) {
          EXPECT_EQ(reports[2].status, MOTE_ERROR_ARGUMENT);
        }
      }
      if (head == TextHead::tag) {
        WATCH(mote_tag_batch(session, inputs, 4, &options, spans, 256, counts, reports));
        EXPECT_EQ(reports[0].status, MOTE_OK);
      }
      if (head == TextHead::answer) {
        WATCH(mote_answer_batch(session, pairs, 3, &options, spans, 256, counts, none, reports));
        if (round < 2) {
          EXPECT_EQ(reports[2].status, MOTE_ERROR_ARGUMENT);
        }
      }
      if (head == TextHead::fill && round > 0) {
        WATCH(mote_fill(session, text_of("the [MASK]"), &options, scores, 64, &masks, reports));
        EXPECT_EQ(masks, 1u);
      }
      WATCH(mote_embed(session, inputs, 4, &options, vectors, 4 * 32, reports));
      EXPECT_TRUE(last_status == MOTE_OK || last_status == MOTE_ERROR_CANCELLED);
    }
    WATCH(mote_embed(session, inputs, 4, nullptr, vectors, 4 * 32, nullptr));
    EXPECT_EQ(last_status, MOTE_ERROR_ARGUMENT);
    WATCH(mote_tag(session, inputs[0].text, nullptr, spans, 0, counts, nullptr));
    EXPECT_NE(last_status, MOTE_ERROR_ARGUMENT);
  }
}

// A generator that scores candidates.
TEST_P(NoAllocation, Candidates) {
  const AlignedBytes bytes(TinyModel().bytes());
  const Model model(bytes);
  Session session(model, SessionOptions(64, 8, GetParam()));
  const mote_input inputs[] = {{text_of("The thing in the other"), {nullptr, 0}},
                               {text_of("On"), {nullptr, 0}}};
  const mote_text candidates[] = {text_of(" one"), text_of(" of the others")};
  mote_text_options options{};
  options.size = sizeof options;
  options.candidates = candidates;
  options.candidate_count = 2;
  mote_label_score scores[4];
  mote_report reports[2];
  WATCH(mote_classify(session, inputs, 2, &options, scores, 4, reports));
  EXPECT_EQ(last_status, MOTE_OK) << mote_last_error();
}

TEST_P(NoAllocation, SmolLm2) {
  const char* models = std::getenv("MOTE_MODELS_DIR");
  if (!models) GTEST_SKIP() << "MOTE_MODELS_DIR is not set: it names a folder with SmolLM2";
  const Model model(std::string(models) + "/SmolLM2-135M-Instruct.Q4_1.gguf");
  ASSERT_NE(model.get(), nullptr);
  check_model(model, GetParam(), &last_status, 160, 6);
}

INSTANTIATE_TEST_SUITE_P(Threads, NoAllocation, testing::Values(1u, 2u, 3u));

}  // namespace
}  // namespace mote::test
