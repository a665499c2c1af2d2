// Speculation changes nothing but the time: the same tokens, logits, texts and reasons to end as
// without, whatever is drafted, and the session goes on as it would have.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/hash.h"
#include "tests/support/scripted.h"

namespace mote::test {
namespace {

// All that a generation hands out, and the logits that follow it.
struct Trace {
  std::vector<int32_t> ids;
  std::vector<std::string> pieces;
  std::vector<uint64_t> logits;  // of each call
  int32_t finish = 0;
  uint32_t stop_index = 0, drafted = 0, accepted = 0;
  size_t position = 0;
  std::vector<float> next;  // behind one token more

  bool operator==(const Trace& other) const {
    return ids == other.ids && pieces == other.pieces && logits == other.logits &&
           finish == other.finish && stop_index == other.stop_index && position == other.position &&
           next == other.next;
  }
};

void PrintTo(const Trace& trace, std::ostream* out) {
  *out << trace.ids.size() << " tokens:";
  for (int32_t id : trace.ids) *out << ' ' << id;
  *out << "; " << trace.logits.size() << " logits, finish " << trace.finish << ", position "
       << trace.position << ", drafted " << trace.drafted << ", accepted " << trace.accepted;
}

GenerateOptions drafting(GenerateOptions options, uint32_t draft) {
  options.draft_tokens = draft;
  options.flags |= MOTE_GENERATE_ALWAYS_DRAFT;
  return options;
}

void add_next(const Model& model, mote_session* session, Trace* trace) {
  trace->position = mote_session_position(session);
  const int32_t id = 77;
  const float* logits = nullptr;
  if (mote_session_append(session, &id, 1, 0, &logits) != MOTE_OK) return;  // it is full
  mote_model_info info{};
  info.size = sizeof info;
  EXPECT_EQ(mote_model_describe(model, &info), MOTE_OK);
  trace->next.assign(logits, logits + info.vocabulary_size);
}

Trace run(const Model& model, mote_session* session, const mote_prompt& prompt,
          GenerateOptions options) {
  Trace trace;
  trace.ids.resize(1024);
  options.user = &trace;
  options.ids = trace.ids.data();
  options.ids_capacity = trace.ids.size();
  options.on_text = [](void* user, const char* text, size_t length) {
    static_cast<Trace*>(user)->pieces.emplace_back(text, length);
    return 0;
  };
  options.on_logits = [](void* user, float* logits, size_t count) {
    static_cast<Trace*>(user)->logits.push_back(hash_bytes(logits, count * sizeof *logits));
    logits[count / 2] += 0.5f;  // it may change them
    return 0;
  };
  mote_generate_result result{};
  result.size = sizeof result;
  EXPECT_EQ(mote_generate(session, &prompt, &options, &result), MOTE_OK) << mote_last_error();
  trace.ids.resize(result.generated_tokens);
  trace.finish = result.finish;
  trace.stop_index = result.stop_index;
  trace.drafted = result.drafted_tokens;
  trace.accepted = result.accepted_tokens;
  EXPECT_LE(trace.accepted, trace.drafted);
  EXPECT_LE(trace.accepted, trace.ids.size());
  add_next(model, session, &trace);
  return trace;
}

Trace run_fresh(const Model& model, const SessionOptions& sizes, const mote_prompt& prompt,
                const GenerateOptions& options) {
  Session session(model, sizes);
  return run(model, session, prompt, options);
}

class Speculate : public testing::Test {
 protected:
  Speculate() : bytes_(TinyModel().bytes()), model_(bytes_) {}

  // Says some of it again and again, and then not.
  static std::vector<int32_t> repeating_ids(size_t count) {
    std::vector<int32_t> ids(count);
    for (size_t i = 0; i < count; ++i)
      ids[i] = static_cast<int32_t>(20 + i % 7 * 13 + (i % 23 == 22 ? i % 41 : 0));
    return ids;
  }
  // Greedy, and every way of choosing with few tokens to choose from, so that some guesses are
  // right and others wrong.
  static std::vector<GenerateOptions> ways(uint32_t tokens) {
    GenerateOptions greedy(tokens);
    greedy.flags = MOTE_GENERATE_IGNORE_END;
    std::vector<GenerateOptions> all(4, greedy);
    all[1].temperature = 0.7f;
    all[1].top_k = 3;
    all[1].seed = 5;
    all[2].temperature = 0.4f;
    all[2].top_p = 0.8f;
    all[2].min_p = 0.05f;
    all[2].seed = 6;
    all[3].repeat_penalty = 1.3f;
    all[3].repeat_window = 6;
    return all;
  }

  AlignedBytes bytes_;
  Model model_;
};

TEST_F(Speculate, TheSameForEveryWayOfChoosing) {
  const std::vector<int32_t> ids = repeating_ids(40);
  uint32_t accepted = 0, refused = 0;
  for (const GenerateOptions& way : ways(60)) {
    const Trace expected = run_fresh(model_, SessionOptions(128, 16, 1), prompt_of(ids), way);
    EXPECT_EQ(expected.drafted, 0u);
    EXPECT_EQ(expected.ids.size(), 60u);
    for (uint32_t draft : {1, 3, 4, 7}) {
      const Trace got = run_fresh(model_, SessionOptions(128, 16, draft == 4 ? 2 : 1),
                                  prompt_of(ids), drafting(way, draft));
      EXPECT_EQ(got, expected) << "drafts of " << draft;
      EXPECT_GT(got.drafted, 0u);
      accepted += got.accepted;
      refused += got.drafted - got.accepted;
    }
    GenerateOptions adaptive = way;
    adaptive.draft_tokens = 7;
    EXPECT_EQ(run_fresh(model_, SessionOptions(128, 16, 1), prompt_of(ids), adaptive), expected);
  }
  EXPECT_GT(accepted, 50u);
  EXPECT_GT(refused, 50u);
}

TEST_F(Speculate, TheSameWithEveryCache) {
  const std::vector<int32_t> ids = repeating_ids(70);
  for (uint32_t kv : {MOTE_KV_Q8_0, MOTE_KV_F32})
    for (const GenerateOptions& way : {ways(40)[0], ways(40)[1]}) {
      const Trace expected = run_fresh(model_, SessionOptions(128, 16, 1, kv), prompt_of(ids), way);
      EXPECT_EQ(run_fresh(model_, SessionOptions(128, 16, 1, kv), prompt_of(ids), drafting(way, 7)),
                expected);
    }
}

// A ring without a position to spare: 57 that are seen and a chunk of 8, which a draft fills.
TEST_F(Speculate, RingsKeepWhatIsNeeded) {
  TinyModel tiny;
  tiny.window = 57;
  const AlignedBytes bytes(tiny.bytes());
  const Model model(bytes);
  const std::vector<int32_t> ids = repeating_ids(50);
  for (uint32_t kv : {MOTE_KV_F16, MOTE_KV_Q8_0})
    for (const GenerateOptions& way : {ways(110)[0], ways(110)[1]}) {
      const Trace expected = run_fresh(model, SessionOptions(192, 8, 1, kv), prompt_of(ids), way);
      Session session(model, SessionOptions(192, 8, 1, kv));
      const Trace got = run(model, session, prompt_of(ids), drafting(way, 7));
      EXPECT_EQ(got, expected);
      EXPECT_GT(got.drafted, got.accepted);
      // A turn more, whose beginning is in the cache or no longer is.
      for (size_t kept : {163u, 90u}) {
        std::vector<int32_t> longer = ids;
        longer.insert(longer.end(), got.ids.begin(), got.ids.end());
        longer.resize(kept, 33);
        GenerateOptions more = way;
        more.max_tokens = 12;
        EXPECT_EQ(run(model, session, prompt_of(longer), drafting(more, 7)),
                  run_fresh(model, SessionOptions(192, 8, 1, kv), prompt_of(longer), more));
      }
    }
}

TEST_F(Speculate, FewTokensInAPass) {
  const std::vector<int32_t> ids = repeating_ids(40);
  const GenerateOptions way = ways(40)[0];
  const Trace expected = run_fresh(model_, SessionOptions(128, 16, 1), prompt_of(ids), way);
  for (uint32_t batch : {1, 2, 4}) {
    const Trace got =
        run_fresh(model_, SessionOptions(128, batch, 1), prompt_of(ids), drafting(way, 7));
    EXPECT_EQ(got, expected);
    EXPECT_EQ(got.drafted == 0, batch == 1);
  }
}

TEST_F(Speculate, SavedAndRestored) {
  const std::vector<int32_t> ids = repeating_ids(40);
  const GenerateOptions way = drafting(ways(30)[1], 7);
  TinyModel tiny;
  tiny.window = 57;
  const AlignedBytes bytes(tiny.bytes());
  const Model model(bytes);
  Session session(model, SessionOptions(128, 8, 1)), other(model, SessionOptions(128, 8, 2));
  const Trace first = run(model, session, prompt_of(ids), way);
  size_t length = 0;
  ASSERT_EQ(mote_session_save(session, nullptr, 0, &length), MOTE_OK);
  std::vector<uint8_t> state(length);
  ASSERT_EQ(mote_session_save(session, state.data(), length, &length), MOTE_OK);
  ASSERT_EQ(mote_session_restore(other, state.data(), length), MOTE_OK) << mote_last_error();
  std::vector<int32_t> longer = ids;
  longer.insert(longer.end(), first.ids.begin(), first.ids.end());
  longer.push_back(77);
  EXPECT_EQ(run(model, other, prompt_of(longer), way), run(model, session, prompt_of(longer), way));
}

// Texts of the test's own making.
class SpeculateScripted : public Speculate {
 protected:
  static constexpr char kPhrase[] = "the quick brown fox jumps over it. ";

  // With drafts and without: the same in every respect, and the same logits follow.
  void expect_same(const Scripted& script, GenerateOptions options, uint32_t capacity = 256) {
    const std::string prompt = std::string(kPhrase) + kPhrase;
    std::vector<int32_t> expected_ids;
    Trace expected;
    for (uint32_t draft : {0, 2, 7}) {
      Scripted scripted = script;
      GenerateOptions with = options;
      if (draft) with = drafting(options, draft);
      Session session(model_, SessionOptions(capacity, 16, 1));
      const std::vector<int32_t> ids = byte_script(prompt);
      scripted.run(session, prompt_of(ids), with);
      EXPECT_EQ(scripted.status, MOTE_OK) << mote_last_error();
      Trace got;
      got.ids = scripted.ids;
      got.pieces = scripted.pieces;
      got.logits.push_back(scripted.at);  // how many calls there were
      got.finish = scripted.result.finish;
      got.stop_index = scripted.result.stop_index;
      got.drafted = scripted.result.drafted_tokens;
      got.accepted = scripted.result.accepted_tokens;
      add_next(model_, session, &got);
      if (draft == 0) {
        expected = got;
        continue;
      }
      EXPECT_EQ(got, expected) << "drafts of " << draft;
      EXPECT_GT(got.drafted, 0u);
      last_ = got;
    }
  }

  Trace last_;  // with the longest drafts
};

TEST_F(SpeculateScripted, RightGuessesAreMost) {
  Scripted scripted;
  scripted.script = byte_script(std::string(kPhrase) + kPhrase + "and " + kPhrase);
  expect_same(scripted, GenerateOptions(100));
  EXPECT_EQ(last_.finish, MOTE_FINISH_LENGTH);
  EXPECT_GT(last_.accepted, 75u);
}

TEST_F(SpeculateScripted, EveryLengthOfTheText) {
  Scripted scripted;
  scripted.script = byte_script(std::string(kPhrase) + kPhrase);
  for (uint32_t tokens = 30; tokens < 38; ++tokens) {
    expect_same(scripted, GenerateOptions(tokens));
    EXPECT_EQ(last_.finish, MOTE_FINISH_LENGTH);
  }
}

TEST_F(SpeculateScripted, TheContextEndsInADraft) {
  Scripted scripted;
  scripted.script = byte_script(std::string(kPhrase) + kPhrase + kPhrase);
  for (uint32_t capacity = 90; capacity < 98; ++capacity) {
    expect_same(scripted, GenerateOptions(), capacity);
    EXPECT_EQ(last_.finish, MOTE_FINISH_CAPACITY);
    EXPECT_EQ(last_.position, capacity);
  }
}

TEST_F(SpeculateScripted, AnEndTokenWhereOthersWereGuessed) {
  const std::string text = std::string(kPhrase) + kPhrase;
  for (size_t length = 30; length < 38; ++length) {
    Scripted scripted;
    scripted.script = byte_script(text.substr(0, length));
    expect_same(scripted, GenerateOptions());
    EXPECT_EQ(last_.finish, MOTE_FINISH_END);
    EXPECT_EQ(last_.ids.size(), length);
  }
}

// The end of a turn stands in the prompt, too: what follows it there is no guess.
TEST_F(SpeculateScripted, AnEndTokenThatIsGuessed) {
  const std::vector<int32_t> word = byte_script("one two. ");
  std::vector<int32_t> prompt;
  for (int i = 0; i < 3; ++i) {
    prompt.insert(prompt.end(), word.begin(), word.end());
    prompt.push_back(TinyModel::kEndOfTurn);
  }
  Scripted scripted;
  scripted.script = word;
  Session session(model_, SessionOptions(128, 16, 1));
  scripted.run(session, prompt_of(prompt), drafting(GenerateOptions(), 7));
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_END);
  EXPECT_EQ(scripted.ids, word);
  EXPECT_EQ(scripted.result.accepted_tokens, scripted.result.drafted_tokens);
  EXPECT_GT(scripted.result.accepted_tokens, 5u);
}

TEST_F(SpeculateScripted, StopStrings) {
  const mote_text stops[] = {text_of("never"), text_of("x jumps"), text_of("over it")};
  Scripted scripted;
  scripted.script = byte_script(std::string("the quick brown cat jumps. ") + kPhrase);
  GenerateOptions options;
  options.stop = stops;
  options.stop_count = 3;
  expect_same(scripted, options);
  EXPECT_EQ(last_.finish, MOTE_FINISH_STOP);
  EXPECT_EQ(last_.stop_index, 1u);
}

TEST_F(SpeculateScripted, CallbacksEndIt) {
  for (size_t calls : {12u, 25u}) {
    Scripted scripted;
    scripted.script = byte_script(std::string(kPhrase) + kPhrase);
    size_t texts = 0;
    scripted.on_logits = [&](size_t at) { return at == calls + 8 ? 1 : 0; };
    expect_same(scripted, GenerateOptions());
    EXPECT_EQ(last_.finish, MOTE_FINISH_CALLBACK);
    EXPECT_EQ(last_.ids.size(), calls + 8);
    scripted.on_logits = [&](size_t at) {
      if (at == 0) texts = 0;
      return 0;
    };
    scripted.on_text = [&](std::string_view) { return ++texts == calls + 8; };
    expect_same(scripted, GenerateOptions());
    EXPECT_EQ(last_.finish, MOTE_FINISH_CALLBACK);
  }
}

// Between any two tokens, with the rest of a draft at hand.
TEST_F(SpeculateScripted, Cancelled) {
  const std::vector<int32_t> prompt = byte_script(std::string(kPhrase) + kPhrase);
  const std::vector<int32_t> script = byte_script(std::string(kPhrase) + kPhrase);
  for (size_t at = 8; at < 16; ++at) {
    Session session(model_, SessionOptions(256, 16, 1)), clean(model_, SessionOptions(256, 16, 1));
    Scripted scripted;
    scripted.script = script;
    scripted.on_logits = [&](size_t call) {
      if (call == at) mote_session_cancel(session);
      return 0;
    };
    scripted.run(session, prompt_of(prompt), drafting(GenerateOptions(), 7));
    EXPECT_EQ(scripted.result.finish, MOTE_FINISH_CANCELLED);
    EXPECT_EQ(scripted.result.generated_tokens, at + 1);
    std::vector<int32_t> all = prompt;
    all.insert(all.end(), scripted.ids.begin(), scripted.ids.end());
    EXPECT_EQ(mote_session_position(session), all.size());
    const GenerateOptions more = ways(20)[0];
    EXPECT_EQ(run(model_, session, prompt_of(all), drafting(more, 5)),
              run(model_, clean, prompt_of(all), more));
  }
}

TEST_F(SpeculateScripted, TheDeadlinePasses) {
  const std::vector<int32_t> prompt = byte_script(std::string(kPhrase) + kPhrase);
  Session session(model_, SessionOptions(256, 16, 1)), clean(model_, SessionOptions(256, 16, 1));
  Scripted scripted;
  scripted.script = byte_script(std::string(kPhrase) + kPhrase);
  scripted.on_logits = [&](size_t call) {
    if (call == 11) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    return 0;
  };
  GenerateOptions options;
  options.deadline_ms = 60;
  scripted.run(session, prompt_of(prompt), drafting(options, 7));
  EXPECT_EQ(scripted.result.finish, MOTE_FINISH_DEADLINE);
  EXPECT_EQ(scripted.status, MOTE_OK);
  EXPECT_LE(scripted.result.generated_tokens, 12u);
  std::vector<int32_t> all = prompt;
  all.insert(all.end(), scripted.ids.begin(), scripted.ids.end());
  // On a slow machine it passes within the prompt.
  if (!scripted.ids.empty()) {
    EXPECT_EQ(mote_session_position(session), all.size());
  }
  const GenerateOptions more = ways(20)[0];
  EXPECT_EQ(run(model_, session, prompt_of(all), drafting(more, 5)),
            run(model_, clean, prompt_of(all), more));
}

}  // namespace
}  // namespace mote::test
