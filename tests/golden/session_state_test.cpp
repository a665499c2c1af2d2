// Saved at any token, restored elsewhere, continued: the same bits.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/random.h"
#include "tests/support/session_state.h"
#include "tests/support/tiny_model.h"

namespace mote::test {
namespace {

std::vector<int32_t> random_ids(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(300));
  return ids;
}
std::vector<int32_t> part(const std::vector<int32_t>& ids, size_t first, size_t last) {
  return {ids.begin() + static_cast<ptrdiff_t>(first), ids.begin() + static_cast<ptrdiff_t>(last)};
}

GgufBuilder windowed(uint32_t window) {
  GgufBuilder builder = TinyModel().builder();
  if (window) builder.u32("llama.attention.sliding_window", window);
  return builder;
}

// A state of ids[0, cut) in a fresh session of a freshly opened model gives what one session gives.
void check_cut(const AlignedBytes& bytes, const std::vector<int32_t>& ids, size_t cut,
               uint32_t batch, uint32_t kv) {
  SCOPED_TRACE("cut at " + std::to_string(cut) + ", cache " + std::to_string(kv));
  const auto before = part(ids, 0, cut), behind = part(ids, cut, ids.size());
  std::vector<uint8_t> state;
  std::vector<uint64_t> expected;
  {
    const Model model(bytes);
    Session session(model, SessionOptions(400, batch, 1, kv));
    hashes(model, session, before);
    state = saved(session);
    expected = hashes(model, session, behind);
  }
  const Model model(bytes);
  Session session(model, SessionOptions(400, batch, 3, kv));
  hashes(model, session, random_ids(91, cut));  // something else is there
  ASSERT_EQ(restore(session, state), MOTE_OK) << mote_last_error();
  EXPECT_EQ(mote_session_position(session), cut);
  EXPECT_EQ(saved(session), state);
  EXPECT_EQ(hashes(model, session, behind), expected);
}

TEST(SessionState, ContinuesWithTheSameBits) {
  const AlignedBytes bytes(windowed(0).build());
  const auto ids = random_ids(150, 1);
  for (uint32_t kv : {MOTE_KV_F16, MOTE_KV_Q8_0, MOTE_KV_F32})
    for (size_t cut : {1, 5, 63, 64, 65, 128, 149}) check_cut(bytes, ids, cut, 32, kv);
}

// A ring of 40 + 15 positions is one block: it wraps at every 64.
TEST(SessionState, ContinuesAfterRingsWrapped) {
  const AlignedBytes bytes(windowed(40).build());
  const auto ids = random_ids(300, 2);
  for (uint32_t kv : {MOTE_KV_F16, MOTE_KV_Q8_0})
    for (size_t cut : {30, 64, 100, 128, 250, 299}) check_cut(bytes, ids, cut, 16, kv);
}

TEST(SessionState, ContinuesAfterRewinds) {
  for (uint32_t window : {0u, 40u}) {
    SCOPED_TRACE("window " + std::to_string(window));
    const AlignedBytes bytes(windowed(window).build());
    const Model model(bytes);
    const auto ids = random_ids(220, 3), others = random_ids(12, 4);
    const SessionOptions options(400, 16, 2);
    Session one(model, options), other(model, options);
    hashes(model, one, part(ids, 0, 200));
    hashes(model, one, others);
    ASSERT_EQ(mote_session_rewind(one, 200), MOTE_OK) << mote_last_error();
    const auto state = saved(one);
    ASSERT_EQ(restore(other, state), MOTE_OK) << mote_last_error();
    // The same positions can be gone back to.
    for (size_t position : {199, 190, 188, 187, 186, 100})
      for (mote_session* session : {one.get(), other.get()}) {
        ASSERT_EQ(restore(session, state), MOTE_OK);
        const bool there = !window || position >= 187;  // 212 - 64 ... are there, 39 more are seen
        EXPECT_EQ(mote_session_rewind(session, position), there ? MOTE_OK : MOTE_ERROR_STATE)
            << position;
      }
    for (mote_session* session : {one.get(), other.get()}) {
      ASSERT_EQ(restore(session, state), MOTE_OK);
      ASSERT_EQ(mote_session_rewind(session, 195), MOTE_OK);
    }
    EXPECT_EQ(hashes(model, one, part(ids, 195, 220)), hashes(model, other, part(ids, 195, 220)));
  }
}

// Ids are in the state: a prompt is reused, the last token of a generation too, which no cache
// holds yet.
TEST(SessionState, PromptsAreReusedAfterwards) {
  const AlignedBytes bytes(windowed(0).build());
  const Model model(bytes);
  const SessionOptions options(400, 32, 2);
  Session one(model, options), other(model, options);
  std::vector<int32_t> ids = random_ids(90, 5);
  GenerateOptions generation(8);
  generation.flags = MOTE_GENERATE_IGNORE_END;
  const Generation first = generate(one, prompt_of(ids), generation);
  ASSERT_EQ(first.ids.size(), 8u);
  ASSERT_EQ(restore(other, saved(one)), MOTE_OK) << mote_last_error();
  EXPECT_EQ(mote_session_position(other), 98u);
  ids.insert(ids.end(), first.ids.begin(), first.ids.end());
  const auto more = random_ids(20, 6);
  ids.insert(ids.end(), more.begin(), more.end());
  const Generation here = generate(one, prompt_of(ids), generation);
  const Generation there = generate(other, prompt_of(ids), generation);
  EXPECT_EQ(there.result.reused_tokens, 97u);
  EXPECT_EQ(here.result.reused_tokens, 97u);
  EXPECT_EQ(there.ids, here.ids);
}

TEST(SessionState, EmptySession) {
  const AlignedBytes bytes(windowed(40).build());
  const Model model(bytes);
  Session one(model, SessionOptions(100, 16, 1)), other(model, SessionOptions(100, 16, 1));
  const auto ids = random_ids(80, 7);
  const auto expected = hashes(model, other, ids);
  ASSERT_EQ(restore(other, saved(one)), MOTE_OK) << mote_last_error();
  EXPECT_EQ(mote_session_position(other), 0u);
  EXPECT_EQ(hashes(model, other, ids), expected);
  // Wrapped, then started anew.
  ASSERT_EQ(mote_session_rewind(other, 0), MOTE_OK);
  ASSERT_EQ(restore(one, saved(other)), MOTE_OK) << mote_last_error();
  EXPECT_EQ(hashes(model, one, ids), expected);
}

// What was in the session's memory before, and behind the held positions, is not in the state.
TEST(SessionState, HoldsNoOtherMemory) {
  const AlignedBytes bytes(windowed(40).build());
  const Model model(bytes);
  const auto ids = random_ids(70, 8), others = random_ids(9, 9);
  std::vector<uint8_t> states[2];
  for (uint32_t kv : {MOTE_KV_F16, MOTE_KV_Q8_0}) {
    const SessionOptions options(300, 16, 1, kv);
    size_t size = 0;
    ASSERT_EQ(mote_session_size(model, &options, &size), MOTE_OK);
    for (int i = 0; i < 2; ++i) {
      std::vector<uint8_t> memory(size, i ? 0xff : 0x11);
      mote_session* session = nullptr;
      ASSERT_EQ(mote_session_create(model, &options, memory.data(), size, &session), MOTE_OK);
      hashes(model, session, part(ids, 0, 20));
      if (i) {
        hashes(model, session, others);
        EXPECT_EQ(mote_session_rewind(session, 20), MOTE_OK);
      }
      hashes(model, session, part(ids, 20, 70));
      states[i] = saved(session);
      mote_session_destroy(session);
    }
    EXPECT_EQ(states[0], states[1]);
  }
}

TEST(SessionState, BuffersThatAreTooSmall) {
  const AlignedBytes bytes(windowed(0).build());
  const Model model(bytes);
  Session session(model, SessionOptions(100, 16, 1));
  hashes(model, session, random_ids(20, 10));
  const auto state = saved(session);
  std::vector<uint8_t> buffer(state.size() + 1, 0xcd);
  for (size_t capacity : {size_t(0), size_t(1), state.size() - 1}) {
    size_t needed = 0;
    EXPECT_EQ(mote_session_save(session, buffer.data(), capacity, &needed), MOTE_ERROR_BUFFER);
    EXPECT_EQ(needed, state.size());
    for (uint8_t byte : buffer) ASSERT_EQ(byte, 0xcd);
  }
  // At an odd address, too.
  size_t written = 0;
  ASSERT_EQ(mote_session_save(session, buffer.data() + 1, state.size(), &written), MOTE_OK);
  EXPECT_TRUE(std::equal(state.begin(), state.end(), buffer.begin() + 1));
  EXPECT_EQ(mote_session_restore(session, buffer.data() + 1, state.size()), MOTE_OK);
  size_t count = 0;
  EXPECT_EQ(mote_session_save(session, nullptr, 0, nullptr), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(mote_session_restore(session, nullptr, 0), MOTE_ERROR_ARGUMENT);

  TinyModel vocabulary;
  vocabulary.weights = false;
  const AlignedBytes words(vocabulary.bytes());
  const Model tokenizer(words);
  Session empty(tokenizer);
  EXPECT_EQ(mote_session_save(empty, nullptr, 0, &count), MOTE_ERROR_TASK);
  EXPECT_EQ(restore(empty, state), MOTE_ERROR_TASK);
}

// Restored by another process, which opens the model's file itself.
TEST(SessionState, InANewProcess) {
  namespace fs = std::filesystem;
  const auto ids = random_ids(200, 11);
  const SessionOptions options(400, 16, 2, MOTE_KV_Q8_0);
  const auto bytes_of = [](const std::vector<uint64_t>& rows) {
    std::vector<uint8_t> bytes(rows.size() * sizeof(uint64_t));
    std::memcpy(bytes.data(), rows.data(), bytes.size());
    return bytes;
  };
  if (const char* folder = child_argument()) {
    const Model model(std::string(folder) + "/model.gguf");
    Session session(model, options);
    ASSERT_EQ(restore(session, read_bytes(std::string(folder) + "/state")), MOTE_OK)
        << mote_last_error();
    write_bytes(std::string(folder) + "/rows",
                bytes_of(hashes(model, session, part(ids, 130, 200))));
    return;
  }
  const std::string folder =
      (fs::temp_directory_path() / ("mote_state_" + std::to_string(::getpid()))).string();
  fs::create_directory(folder);
  write_bytes(folder + "/model.gguf", windowed(40).build());
  std::vector<uint64_t> expected;
  {
    const Model model(folder + "/model.gguf");
    Session session(model, options);
    hashes(model, session, part(ids, 0, 130));
    write_bytes(folder + "/state", saved(session));
    expected = hashes(model, session, part(ids, 130, 200));
  }
  EXPECT_TRUE(run_test_again("SessionState.InANewProcess", folder));
  EXPECT_EQ(read_bytes(folder + "/rows"), bytes_of(expected));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace mote::test
