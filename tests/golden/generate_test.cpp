// mote_generate, append, rewind and score: reasons to end, budgets, prefix reuse, cancelling, and
// that a session goes on as if nothing had happened after anything that went wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>

#include "tests/support/forward_rows.h"
#include "tests/support/scripted.h"

namespace mote::test {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class Generate : public testing::Test {
 protected:
  Generate() : bytes_(TinyModel().bytes()), model_(bytes_) {}

  // What a fresh session answers to these ids.
  std::vector<int32_t> fresh(const std::vector<int32_t>& ids, uint32_t tokens) const {
    Session session(model_, SessionOptions(512, 64, 1));
    GenerateOptions options(tokens);
    options.flags = MOTE_GENERATE_IGNORE_END;
    return generate(session, prompt_of(ids), options).ids;
  }
  // Whether the session still answers as a fresh one does.
  void expect_usable(mote_session* session) const {
    const std::vector<int32_t> ids = {40, 41, 42, 43, 44, 45, 46};
    GenerateOptions options(9);
    options.flags = MOTE_GENERATE_IGNORE_END;
    const Generation got = generate(session, prompt_of(ids), options);
    EXPECT_EQ(got.status, MOTE_OK) << mote_last_error();
    EXPECT_EQ(got.ids, fresh(ids, 9));
    EXPECT_EQ(got.result.finish, MOTE_FINISH_LENGTH);
  }
  static std::vector<int32_t> some_ids(size_t count, int32_t start = 7) {
    std::vector<int32_t> ids(count);
    for (size_t i = 0; i < count; ++i)
      ids[i] = static_cast<int32_t>((static_cast<size_t>(start) + i * 31) % 299 + 1);
    return ids;
  }

  AlignedBytes bytes_;
  Model model_;
};

TEST_F(Generate, GreedyTakesTheLargestLogit) {
  Session session(model_, SessionOptions(128, 16, 2));
  const auto prompt = some_ids(20);
  GenerateOptions options(30);
  options.flags = MOTE_GENERATE_IGNORE_END;
  const Generation got = generate(session, prompt_of(prompt), options);
  ASSERT_EQ(got.ids.size(), 30u);
  std::vector<int32_t> all = prompt;
  for (int32_t id : got.ids) {
    Session check(model_, SessionOptions(128, 64, 1));
    const Rows rows = forward_rows(model_, check, all.data(), all.size(), 0, false, true, true);
    size_t best = SIZE_MAX;
    for (size_t v = 0; v < rows.logits.size(); ++v)
      if (v != TinyModel::kEndOfTurn && v != TinyModel::kEndOfText &&
          (best == SIZE_MAX || rows.logits[v] > rows.logits[best]))
        best = v;
    if (best != static_cast<size_t>(id)) {
      // Which tokens count as ends is the tokenizer's decision; the chosen one is the best of the
      // others.
      EXPECT_GE(rows.logits[static_cast<size_t>(id)], rows.logits[best]);
    }
    all.push_back(id);
  }
  EXPECT_EQ(got.result.prompt_tokens, 20u);
  EXPECT_EQ(got.result.generated_tokens, 30u);
  EXPECT_EQ(got.result.reused_tokens, 0u);
  EXPECT_GE(got.result.prefill_ms, 0.0);
  EXPECT_GT(got.result.decode_ms, 0.0);
  EXPECT_EQ(mote_session_position(session), 50u);
  EXPECT_EQ(got.text, detokenize(session, got.ids, MOTE_DETOKENIZE_SKIP_SPECIAL));
}

TEST_F(Generate, TextPromptIsItsTokens) {
  Session session(model_, SessionOptions(128, 16, 1));
  const std::string text = "the thing in the other hand";
  const auto ids = tokenize(session, text, MOTE_TOKENIZE_FRAME);
  EXPECT_LT(ids.size(), text.size());
  GenerateOptions options(8);
  options.flags = MOTE_GENERATE_IGNORE_END;
  EXPECT_EQ(generate(session, prompt_of(text), options).ids, fresh(ids, 8));
}

TEST_F(Generate, MessagesGoThroughTheTemplate) {
  Session session(model_, SessionOptions(256, 16, 1));
  // The names of special tokens in a user's text; whether they stay text there is the template
  // engine's promise.
  const mote_message messages[2] = {{{"user", MOTE_NUL_TERMINATED}, {"hello", MOTE_NUL_TERMINATED}},
                                    {text_of("assistant"), text_of("the")}};
  char text[256];
  size_t length = 0;
  ASSERT_EQ(mote_template_render(session, messages, 2, text, sizeof text, &length), MOTE_OK)
      << mote_last_error();
  const std::string rendered(text, length);
  EXPECT_EQ(rendered,
            "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\nthe<|im_end|>\n<|im_start|>"
            "assistant\n");
  const auto ids = tokenize(session, rendered, MOTE_TOKENIZE_SPECIAL);
  EXPECT_EQ(ids.front(), TinyModel::kStartOfTurn);
  mote_prompt prompt{};
  prompt.messages = messages;
  prompt.message_count = 2;
  GenerateOptions options(8);
  options.flags = MOTE_GENERATE_IGNORE_END;
  const Generation got = generate(session, prompt, options);
  EXPECT_EQ(got.status, MOTE_OK) << mote_last_error();
  EXPECT_EQ(got.result.prompt_tokens, ids.size());
  EXPECT_EQ(got.ids, fresh(ids, 8));
}

TEST_F(Generate, EveryReasonToEnd) {
  Session session(model_, SessionOptions(64, 16, 1));
  Scripted scripted;
  scripted.script = byte_script("hello world, this is a long text");

  scripted.run(session, prompt_of("x"), GenerateOptions(5));
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_LENGTH);
  EXPECT_EQ(scripted.result.generated_tokens, 5u);
  EXPECT_EQ(scripted.text, "hello");

  scripted.run(session, prompt_of("x"));
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_END);
  EXPECT_EQ(scripted.text, "hello world, this is a long text");
  EXPECT_EQ(scripted.ids, scripted.script) << "the end token is not given out";

  scripted.script = byte_script(std::string(100, 'a'));
  scripted.run(session, prompt_of("xyz"));
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_CAPACITY);
  EXPECT_EQ(scripted.result.prompt_tokens + scripted.result.generated_tokens, 64u);
  EXPECT_EQ(mote_session_position(session), 64u);
  EXPECT_EQ(scripted.status, MOTE_OK);

  scripted.on_text = [](std::string_view) { return 1; };
  scripted.run(session, prompt_of("x"));
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_CALLBACK);
  EXPECT_EQ(scripted.text, "a");
  EXPECT_EQ(scripted.result.generated_tokens, 1u);

  scripted.on_text = nullptr;
  scripted.on_logits = [](size_t at) { return at == 3 ? -7 : 0; };
  scripted.run(session, prompt_of("x"));
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_CALLBACK);
  EXPECT_EQ(scripted.result.generated_tokens, 3u);
  EXPECT_EQ(scripted.text, "aaa");

  scripted.on_logits = [&](size_t at) {
    if (at == 4) mote_session_cancel(session);
    return 0;
  };
  scripted.run(session, prompt_of("x"));
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_CANCELLED);
  EXPECT_EQ(scripted.status, MOTE_OK);
  EXPECT_LE(scripted.result.generated_tokens, 5u);
  EXPECT_GE(scripted.result.generated_tokens, 4u);
  EXPECT_EQ(scripted.text, std::string(scripted.result.generated_tokens, 'a'))
      << "what was generated was shown";

  scripted.on_logits = [](size_t at) {
    if (at == 2) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return 0;
  };
  GenerateOptions options;
  options.deadline_ms = 25;
  scripted.run(session, prompt_of("x"), options);
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_DEADLINE);
  EXPECT_EQ(scripted.status, MOTE_OK);
  EXPECT_LE(scripted.result.generated_tokens, 3u);
  expect_usable(session);
}

TEST_F(Generate, NoFiniteLogitFails) {
  Session session(model_, SessionOptions(64, 16, 1));
  for (float bad : {-HUGE_VALF, std::numeric_limits<float>::quiet_NaN()}) {
    static float value;
    value = bad;
    GenerateOptions options(4);
    options.on_logits = [](void*, float* logits, size_t count) {
      for (size_t i = 0; i < count; ++i) logits[i] = value;
      return 0;
    };
    mote_generate_result result{};
    result.size = sizeof result;
    const auto ids = some_ids(5);
    const mote_prompt prompt = prompt_of(ids);
    EXPECT_NE(mote_generate(session, &prompt, &options, &result), MOTE_OK);
    EXPECT_EQ(result.finish, MOTE_FINISH_FAILED);
    EXPECT_EQ(result.generated_tokens, 0u);
    EXPECT_STRNE(mote_last_error(), "");
  }
  expect_usable(session);
}

TEST_F(Generate, NanLogitsNeverWin) {
  Session session(model_, SessionOptions(64, 16, 1));
  GenerateOptions options(1);
  std::vector<int32_t> ids(1);
  options.ids = ids.data();
  options.ids_capacity = 1;
  options.on_logits = [](void*, float* logits, size_t count) {
    for (size_t i = 0; i < count; ++i)
      logits[i] = i % 3 ? std::numeric_limits<float>::quiet_NaN() : -HUGE_VALF;
    logits[123] = -1e30f;
    return 0;
  };
  const auto tokens = some_ids(5);
  const mote_prompt prompt = prompt_of(tokens);
  EXPECT_EQ(mote_generate(session, &prompt, &options, nullptr), MOTE_OK) << mote_last_error();
  EXPECT_EQ(ids[0], 123);
}

TEST_F(Generate, IgnoringTheEndRunsOn) {
  Session session(model_, SessionOptions(64, 16, 1));
  struct Seen {
    int calls = 0;
  } seen;
  GenerateOptions options(6);
  options.flags = MOTE_GENERATE_IGNORE_END;
  options.user = &seen;
  // The end token would win every time.
  options.on_logits = [](void* user, float* logits, size_t) {
    ++static_cast<Seen*>(user)->calls;
    logits[TinyModel::kEndOfTurn] = 1e30f;
    logits[77] = 1e29f;
    return 0;
  };
  std::vector<int32_t> ids(6);
  options.ids = ids.data();
  options.ids_capacity = 6;
  const auto tokens = some_ids(5);
  const mote_prompt prompt = prompt_of(tokens);
  mote_generate_result result{};
  result.size = sizeof result;
  EXPECT_EQ(mote_generate(session, &prompt, &options, &result), MOTE_OK);
  EXPECT_EQ(result.finish, MOTE_FINISH_LENGTH);
  EXPECT_EQ(ids, std::vector<int32_t>(6, 77));
  EXPECT_EQ(seen.calls, 6);
}

TEST_F(Generate, IdsBufferMayBeSmall) {
  Session session(model_, SessionOptions(64, 16, 1));
  std::vector<int32_t> ids(8, -5);
  GenerateOptions options(6);
  options.flags = MOTE_GENERATE_IGNORE_END;
  options.ids = ids.data();
  options.ids_capacity = 3;
  const auto tokens = some_ids(5);
  const mote_prompt prompt = prompt_of(tokens);
  EXPECT_EQ(mote_generate(session, &prompt, &options, nullptr), MOTE_OK);
  const auto expected = fresh(tokens, 6);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ids[i], expected[i]);
  EXPECT_EQ(ids[3], -5);
}

// The prompt stands for the whole context: what the cache holds of it is not computed again.
TEST_F(Generate, PrefixReuse) {
  Session session(model_, SessionOptions(256, 16, 1));
  GenerateOptions options(10);
  options.flags = MOTE_GENERATE_IGNORE_END;
  auto ids = some_ids(50);
  const Generation first = generate(session, prompt_of(ids), options);
  EXPECT_EQ(first.result.reused_tokens, 0u);

  const Generation again = generate(session, prompt_of(ids), options);
  EXPECT_EQ(again.result.reused_tokens, 49u) << "all but the last, whose logits are needed";
  EXPECT_EQ(again.ids, first.ids);

  // The conversation goes on: the answer is part of the next prompt. Its last token was chosen but
  // never computed.
  ids.insert(ids.end(), first.ids.begin(), first.ids.end());
  const auto more = some_ids(9, 100);
  ids.insert(ids.end(), more.begin(), more.end());
  const Generation next = generate(session, prompt_of(ids), options);
  EXPECT_GE(next.result.reused_tokens, 59u);
  EXPECT_LE(next.result.reused_tokens, 60u);
  EXPECT_EQ(next.ids, fresh(ids, 10));

  // Another ending: only what is the same at the beginning counts.
  ids.resize(40);
  ids.push_back(ids.back() == 5 ? 6 : 5);
  ids.push_back(9);
  const Generation other = generate(session, prompt_of(ids), options);
  EXPECT_EQ(other.result.reused_tokens, 40u);
  EXPECT_EQ(other.ids, fresh(ids, 10));

  ids[0] = ids[0] == 5 ? 6 : 5;
  const Generation nothing = generate(session, prompt_of(ids), options);
  EXPECT_EQ(nothing.result.reused_tokens, 0u);
  EXPECT_EQ(nothing.ids, fresh(ids, 10));

  // A shorter prompt that the cache holds whole.
  ids.resize(7);
  const Generation shorter = generate(session, prompt_of(ids), options);
  EXPECT_EQ(shorter.result.reused_tokens, 6u);
  EXPECT_EQ(shorter.ids, fresh(ids, 10));
}

TEST_F(Generate, AppendThenGenerateReuses) {
  Session session(model_, SessionOptions(256, 16, 1));
  const auto system = some_ids(33);
  ASSERT_EQ(mote_session_append(session, system.data(), system.size(), 0, nullptr), MOTE_OK)
      << mote_last_error();
  EXPECT_EQ(mote_session_position(session), 33u);
  auto ids = system;
  ids.push_back(17);
  GenerateOptions options(5);
  options.flags = MOTE_GENERATE_IGNORE_END;
  const Generation got = generate(session, prompt_of(ids), options);
  EXPECT_EQ(got.result.reused_tokens, 33u);
  EXPECT_EQ(got.ids, fresh(ids, 5));
}

// A sampler of the caller's own, with append alone, gives what generate gives.
TEST_F(Generate, AppendIsEnoughToGenerate) {
  Session session(model_, SessionOptions(256, 16, 1));
  const auto prompt = some_ids(21);
  const float* logits = nullptr;
  ASSERT_EQ(mote_session_append(session, prompt.data(), prompt.size(), 0, &logits), MOTE_OK);
  std::vector<int32_t> ids;
  const Kernels* kernels = select_kernels(chosen_isa());
  GenerateOptions options(12);
  Session second(model_, SessionOptions(256, 16, 1));
  const Generation expected = generate(second, prompt_of(prompt), options);
  for (size_t i = 0; i < expected.ids.size(); ++i) {
    const auto best = static_cast<int32_t>(kernels->argmax(logits, 300));
    ids.push_back(best);
    ASSERT_EQ(mote_session_append(session, &best, 1, 0, &logits), MOTE_OK) << mote_last_error();
  }
  EXPECT_EQ(ids, expected.ids);
}

TEST_F(Generate, RewindForgetsWhatFollows) {
  Session session(model_, SessionOptions(256, 16, 1));
  const auto ids = some_ids(100);
  ASSERT_EQ(mote_session_append(session, ids.data(), ids.size(), 0, nullptr), MOTE_OK);
  EXPECT_EQ(mote_session_rewind(session, 60), MOTE_OK);
  EXPECT_EQ(mote_session_position(session), 60u);
  const float* logits = nullptr;
  ASSERT_EQ(mote_session_append(session, ids.data() + 60, 40, 0, &logits), MOTE_OK);
  Session second(model_, SessionOptions(256, 64, 2));
  const Rows rows = forward_rows(model_, second, ids.data(), ids.size(), 0, false, true, true);
  EXPECT_EQ(hash_floats(logits, 300), rows.hashes[0]);
  EXPECT_NE(mote_session_rewind(session, 101), MOTE_OK);
  EXPECT_EQ(mote_session_position(session), 100u) << "a refused rewind changes nothing";
  EXPECT_EQ(mote_session_rewind(session, 100), MOTE_OK);
  EXPECT_EQ(mote_session_rewind(session, 0), MOTE_OK);
  EXPECT_EQ(mote_session_position(session), 0u);
  expect_usable(session);
}

// A generation that chose a last token without computing it, then goes on.
TEST_F(Generate, AppendAfterGenerateComputesTheWaitingToken) {
  Session session(model_, SessionOptions(256, 16, 1));
  auto ids = some_ids(30);
  GenerateOptions options(7);
  options.flags = MOTE_GENERATE_IGNORE_END;
  const Generation got = generate(session, prompt_of(ids), options);
  ids.insert(ids.end(), got.ids.begin(), got.ids.end());
  const auto more = some_ids(5, 3);
  const float* logits = nullptr;
  ASSERT_EQ(mote_session_append(session, more.data(), more.size(), 0, &logits), MOTE_OK);
  ids.insert(ids.end(), more.begin(), more.end());
  EXPECT_EQ(mote_session_position(session), ids.size());
  Session second(model_, SessionOptions(256, 64, 1));
  EXPECT_EQ(hash_floats(logits, 300),
            forward_rows(model_, second, ids.data(), ids.size(), 0, false, true, true).hashes[0]);
}

// Three limits, each with its own error.
TEST_F(Generate, CapacityContextAndBudget) {
  size_t bytes = 0;
  SessionOptions beyond(1025, 64, 1);
  EXPECT_EQ(mote_session_size(model_, &beyond, &bytes), MOTE_ERROR_CONTEXT);
  EXPECT_NE(std::string(mote_last_error()).find("1024"), std::string::npos) << mote_last_error();
  mote_session* none = nullptr;
  EXPECT_EQ(mote_session_create(model_, &beyond, nullptr, 0, &none), MOTE_ERROR_CONTEXT);
  EXPECT_EQ(none, nullptr);

  Session session(model_, SessionOptions(64, 16, 1));
  const auto ids = some_ids(65);
  const mote_prompt prompt = prompt_of(ids);
  mote_generate_result result{};
  result.size = sizeof result;
  EXPECT_EQ(mote_generate(session, &prompt, nullptr, &result), MOTE_ERROR_CAPACITY);
  const std::string message = mote_last_error();
  EXPECT_NE(message.find("65"), std::string::npos) << message;
  EXPECT_NE(message.find("64"), std::string::npos) << message;
  EXPECT_EQ(mote_session_append(session, ids.data(), 65, 0, nullptr), MOTE_ERROR_CAPACITY);
  EXPECT_EQ(mote_session_position(session), 0u);
  EXPECT_EQ(mote_session_append(session, ids.data(), 60, 0, nullptr), MOTE_OK);
  EXPECT_EQ(mote_session_append(session, ids.data(), 5, 0, nullptr), MOTE_ERROR_CAPACITY);
  EXPECT_EQ(mote_session_position(session), 60u);
  EXPECT_EQ(mote_session_append(session, ids.data(), 4, 0, nullptr), MOTE_OK);
  EXPECT_EQ(mote_session_position(session), 64u);

  std::vector<float> nll(65);
  EXPECT_EQ(mote_score(session, ids.data(), 65, nll.data()), MOTE_ERROR_CAPACITY);
  EXPECT_EQ(mote_score(session, ids.data(), 64, nll.data()), MOTE_OK);

  // A prompt that fills the session exactly: nothing can be generated, and that is no error.
  std::vector<int32_t> full(ids.begin(), ids.begin() + 64);
  const Generation filled = generate(session, prompt_of(full));
  EXPECT_EQ(filled.status, MOTE_OK);
  EXPECT_EQ(filled.result.finish, MOTE_FINISH_CAPACITY);
  EXPECT_EQ(filled.result.generated_tokens, 0u);

  // A text longer than text_bytes, and one whose tokens are too many.
  SessionOptions small(64, 16, 1);
  small.text_bytes = 100;
  Session short_texts(model_, small);
  const std::string long_text(101, 'a'), dense(100, '#');
  size_t count = 0;
  EXPECT_EQ(mote_tokenize(short_texts, text_of(long_text), 0, nullptr, 0, &count),
            MOTE_ERROR_CAPACITY);
  const mote_prompt text_prompt = prompt_of(long_text), dense_prompt = prompt_of(dense);
  EXPECT_EQ(mote_generate(short_texts, &text_prompt, nullptr, nullptr), MOTE_ERROR_CAPACITY);
  EXPECT_EQ(mote_generate(short_texts, &dense_prompt, nullptr, nullptr), MOTE_ERROR_CAPACITY);
  expect_usable(session);
  GenerateOptions options(3);
  EXPECT_EQ(generate(short_texts, prompt_of("abc"), options).status, MOTE_OK);
}

TEST_F(Generate, BadIdsAreRefusedAndNothingChanges) {
  Session session(model_, SessionOptions(64, 16, 1));
  const auto good = some_ids(10);
  ASSERT_EQ(mote_session_append(session, good.data(), 10, 0, nullptr), MOTE_OK);
  for (int32_t bad :
       {-1, 300, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
    const std::vector<int32_t> ids = {1, 2, bad, 4};
    const mote_prompt prompt = prompt_of(ids);
    float nll[4];
    size_t length = 0;
    EXPECT_EQ(mote_session_append(session, ids.data(), 4, 0, nullptr), MOTE_ERROR_ARGUMENT);
    EXPECT_NE(std::string(mote_last_error()).find(std::to_string(bad)), std::string::npos)
        << mote_last_error();
    EXPECT_EQ(mote_session_position(session), 10u);
    EXPECT_EQ(mote_generate(session, &prompt, nullptr, nullptr), MOTE_ERROR_ARGUMENT);
    EXPECT_EQ(mote_score(session, ids.data(), 4, nll), MOTE_ERROR_ARGUMENT);
    EXPECT_EQ(mote_detokenize(session, ids.data(), 4, 0, nullptr, 0, &length), MOTE_ERROR_ARGUMENT);
  }
  expect_usable(session);
}

TEST_F(Generate, ProgressCountsUp) {
  Session session(model_, SessionOptions(256, 16, 1));
  std::vector<std::pair<size_t, size_t>> calls;
  Scripted scripted;
  scripted.on_progress = [&](size_t done, size_t total) { calls.emplace_back(done, total); };
  const auto ids = some_ids(100);
  scripted.run(session, prompt_of(ids));
  ASSERT_FALSE(calls.empty());
  size_t last = 0;
  for (const auto& [done, total] : calls) {
    EXPECT_EQ(total, 100u);
    EXPECT_GT(done, last);
    EXPECT_LE(done - last, 16u);
    last = done;
  }
  EXPECT_EQ(last, 100u);
}

TEST_F(Generate, CancelDuringThePrompt) {
  Session session(model_, SessionOptions(512, 16, 2));
  Scripted scripted;
  size_t seen = 0;
  scripted.on_progress = [&](size_t done, size_t) {
    seen = done;
    if (done >= 48) mote_session_cancel(session);
  };
  const auto ids = some_ids(400);
  scripted.run(session, prompt_of(ids));
  EXPECT_EQ(scripted.status, MOTE_OK);
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_CANCELLED);
  EXPECT_EQ(scripted.result.generated_tokens, 0u);
  EXPECT_EQ(seen, 48u) << "no further chunk was finished";
  EXPECT_EQ(mote_session_position(session), 48u);
  // What is in the cache is still good.
  scripted.on_progress = nullptr;
  GenerateOptions options(6);
  options.flags = MOTE_GENERATE_IGNORE_END;
  const Generation got = generate(session, prompt_of(ids), options);
  EXPECT_EQ(got.result.reused_tokens, 48u);
  EXPECT_EQ(got.ids, fresh(ids, 6));
}

TEST_F(Generate, CancelOutsideACallHasNoEffect) {
  Session session(model_, SessionOptions(512, 16, 2));
  mote_session_cancel(session);
  expect_usable(session);
  mote_session_cancel(nullptr);
}

TEST_F(Generate, CancelFromAnotherThread) {
  TinyModel tiny;
  tiny.layers = 24;
  const AlignedBytes bytes(tiny.bytes());
  const Model model(bytes);
  Session session(model, SessionOptions(1024, 1000, 2));
  const auto ids = some_ids(1000);
  // How long the whole prompt takes in one chunk.
  const auto start = Clock::now();
  ASSERT_EQ(mote_session_append(session, ids.data(), ids.size(), 0, nullptr), MOTE_OK);
  const double whole = milliseconds_since(start);
  ASSERT_EQ(mote_session_rewind(session, 0), MOTE_OK);

  std::atomic<int> state{0};
  Clock::time_point asked;
  std::thread other([&] {
    while (state.load() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(whole / 8));
    asked = Clock::now();
    mote_session_cancel(session);
  });
  state = 1;
  const mote_prompt prompt = prompt_of(ids);
  mote_generate_result result{};
  result.size = sizeof result;
  EXPECT_EQ(mote_generate(session, &prompt, nullptr, &result), MOTE_OK);
  const auto ended = Clock::now();
  other.join();
  EXPECT_EQ(result.finish, MOTE_FINISH_CANCELLED);
  EXPECT_EQ(result.generated_tokens, 0u);
  EXPECT_EQ(mote_session_position(session), 0u) << "the only chunk was not finished";
  // A layer takes a 24th; the rest is room for a busy machine.
  EXPECT_LT(std::chrono::duration<double>(ended - asked).count() * 1000, whole / 2 + 50);
  EXPECT_EQ(mote_session_append(session, ids.data(), ids.size(), 0, nullptr), MOTE_OK);
}

TEST_F(Generate, DeadlineDuringThePrompt) {
  TinyModel tiny;
  tiny.layers = 40;
  tiny.hidden = 256, tiny.heads = 8, tiny.head_dim = 32, tiny.feed_forward = 512;
  const AlignedBytes bytes(tiny.bytes());
  const Model model(bytes);
  Session session(model, SessionOptions(1024, 1000, 1));
  const auto ids = some_ids(1000);
  const mote_prompt prompt = prompt_of(ids);
  mote_generate_result result{};
  result.size = sizeof result;
  GenerateOptions options;
  options.deadline_ms = 3;
  EXPECT_EQ(mote_generate(session, &prompt, &options, &result), MOTE_OK);
  EXPECT_EQ(result.finish, MOTE_FINISH_DEADLINE);
  EXPECT_EQ(mote_session_position(session), 0u);
  EXPECT_EQ(mote_session_append(session, ids.data(), ids.size(), 3, nullptr), MOTE_ERROR_DEADLINE);
  EXPECT_EQ(mote_session_position(session), 0u);
  EXPECT_EQ(mote_session_append(session, ids.data(), 10, 60000, nullptr), MOTE_OK);
}

TEST_F(Generate, BusyWhileAnotherCallRuns) {
  Session session(model_, SessionOptions(128, 16, 2));
  std::vector<mote_status> statuses;
  const auto probe = [&] {
    size_t count = 0;
    int32_t id = 3;
    float nll[2];
    char text[8];
    const mote_prompt prompt = prompt_of("x");
    statuses.push_back(mote_tokenize(session, text_of("x"), 0, nullptr, 0, &count));
    statuses.push_back(mote_detokenize(session, &id, 1, 0, text, 8, &count));
    statuses.push_back(mote_session_rewind(session, 0));
    statuses.push_back(mote_session_append(session, &id, 1, 0, nullptr));
    statuses.push_back(mote_score(session, &id, 1, nll));
    statuses.push_back(mote_generate(session, &prompt, nullptr, nullptr));
  };
  Scripted scripted;
  scripted.script = byte_script("abc");
  scripted.on_text = [&](std::string_view text) {
    if (text == "a") std::thread(probe).join();
    if (text == "b") probe();
    return 0;
  };
  scripted.run(session, prompt_of("x"));
  EXPECT_EQ(scripted.text, "abc") << "the running call is not disturbed";
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_END);
  ASSERT_EQ(statuses.size(), 12u);
  for (mote_status status : statuses) EXPECT_EQ(status, MOTE_ERROR_BUSY);
  expect_usable(session);
}

// A model is shared without locks.
TEST_F(Generate, SessionsOfManyThreadsShareAModel) {
  const auto expected = fresh(some_ids(40), 20);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      Session session(model_, SessionOptions(128, 8u << i, 1 + i % 2));
      const auto prompt = some_ids(40);
      for (int trial = 0; trial < 3; ++trial) {
        GenerateOptions options(20);
        options.flags = MOTE_GENERATE_IGNORE_END;
        right += generate(session, prompt_of(prompt), options).ids == expected;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 12);
}

TEST_F(Generate, ScoreStartsFromAnEmptyCache) {
  Session session(model_, SessionOptions(128, 16, 1));
  const auto ids = some_ids(50);
  std::vector<float> first(49), second(49);
  ASSERT_EQ(mote_score(session, ids.data(), 50, first.data()), MOTE_OK) << mote_last_error();
  ASSERT_EQ(mote_session_append(session, ids.data(), 20, 0, nullptr), MOTE_OK);
  ASSERT_EQ(mote_score(session, ids.data(), 50, second.data()), MOTE_OK);
  EXPECT_EQ(first, second);
  EXPECT_EQ(mote_score(session, ids.data(), 1, nullptr), MOTE_OK)
      << "one token: nothing to predict";
  EXPECT_EQ(mote_session_position(session), 1u);
}

}  // namespace
}  // namespace mote::test
