// States that are cut short, damaged, of another model, option or version: refused with a message
// that says what, and nothing has changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hash.h"
#include "tests/support/random.h"
#include "tests/support/session_state.h"
#include "tests/support/tiny_model.h"

namespace mote::test {
namespace {

using testing::HasSubstr;

TinyModel smallest() {
  TinyModel tiny;
  tiny.layers = 1, tiny.hidden = 32, tiny.heads = 2, tiny.kv_heads = 1, tiny.head_dim = 16;
  tiny.feed_forward = 32;
  return tiny;
}

// Places of the header's fields.
constexpr size_t kVersionAt = 8, kTypeAt = 12, kBytesAt = 16, kHeldAt = 48, kComputedAt = 56,
                 kReachedAt = 64, kIdsAt = 88;

template <class T>
std::vector<uint8_t> with(std::vector<uint8_t> state, size_t at, T value) {
  std::memcpy(&state[at], &value, sizeof value);
  const uint64_t hash = hash_bytes(state.data(), state.size() - 8);
  std::memcpy(&state[state.size() - 8], &hash, 8);
  return state;
}

class SessionStateDamage : public testing::Test {
 protected:
  SessionStateDamage()
      : bytes_(smallest().bytes()),
        model_(bytes_),
        session_(model_, SessionOptions(100, 16, 1)),
        state_(state_of(model_, SessionOptions(100, 16, 1))) {
    const std::vector<int32_t> ids = {9, 8, 7};
    hashes(model_, session_, ids);
    before_ = saved(session_);
  }
  static std::vector<uint8_t> state_of(const Model& model, const SessionOptions& options) {
    Session session(model, options);
    const std::vector<int32_t> ids = {5, 6, 7, 8, 9, 10};
    hashes(model, session, ids);
    return saved(session);
  }
  void expect_refused(const std::vector<uint8_t>& state, const char* message = "state: ") {
    ASSERT_EQ(restore(session_, state), MOTE_ERROR_STATE);
    ASSERT_THAT(mote_last_error(), HasSubstr(message));
    ASSERT_THAT(mote_last_error(), HasSubstr("expected"));
    ASSERT_THAT(mote_last_error(), HasSubstr("found"));
    ASSERT_EQ(mote_session_position(session_), 3u);
  }
  void TearDown() override { EXPECT_EQ(saved(session_), before_) << "something changed"; }

  AlignedBytes bytes_;
  Model model_;
  Session session_;
  std::vector<uint8_t> state_, before_;
};

TEST_F(SessionStateDamage, EveryLengthButTheWhole) {
  for (size_t length = 0; length < state_.size(); ++length) {
    // At its own address, so that a sanitizer sees a read behind it.
    const std::vector<uint8_t> cut(state_.begin(), state_.begin() + static_cast<ptrdiff_t>(length));
    ASSERT_EQ(mote_session_restore(session_, length ? cut.data() : state_.data(), length),
              MOTE_ERROR_STATE)
        << length;
    ASSERT_THAT(mote_last_error(), HasSubstr("cut short")) << length;
  }
  std::vector<uint8_t> longer = state_;
  longer.push_back(0);
  expect_refused(longer, "bytes");
}

TEST_F(SessionStateDamage, EveryBitFlipped) {
  for (size_t i = 0; i < state_.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> damaged = state_;
      damaged[i] = static_cast<uint8_t>(damaged[i] ^ 1 << bit);
      ASSERT_NO_FATAL_FAILURE(expect_refused(damaged)) << "byte " << i << " bit " << bit;
    }
}

TEST_F(SessionStateDamage, BytesReplaced) {
  Random random(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> damaged = state_;
    const size_t count = 1 + random.below(20), at = random.below(state_.size());
    for (size_t i = at; i < at + count && i < damaged.size(); ++i)
      damaged[i] = static_cast<uint8_t>(random.below(256));
    if (damaged == state_) continue;
    ASSERT_NO_FATAL_FAILURE(expect_refused(damaged)) << "round " << round;
  }
}

TEST_F(SessionStateDamage, AnotherVersionOrNoState) {
  expect_refused(with<uint32_t>(state_, kVersionAt, 2), "version: expected 1, found 2");
  expect_refused(with<char>(state_, 0, 'M'), "expected a saved session");
  expect_refused(std::vector<uint8_t>(500, 0), "expected a saved session");
}

TEST_F(SessionStateDamage, OtherOptions) {
  expect_refused(state_of(model_, SessionOptions(101, 16, 1)), "capacity: expected 100, found 101");
  expect_refused(state_of(model_, SessionOptions(100, 16, 1, MOTE_KV_F32)),
                 "kv_type: expected f16, found f32");
  expect_refused(state_of(model_, SessionOptions(100, 16, 1, MOTE_KV_Q8_0)),
                 "kv_type: expected f16, found q8_0");
  expect_refused(with<uint32_t>(state_, kTypeAt, 77), "kv_type");
  // Neither threads nor, where no layer has a window, chunks matter.
  Session other(model_, SessionOptions(100, 50, 3));
  EXPECT_EQ(restore(other, state_), MOTE_OK) << mote_last_error();
}

TEST_F(SessionStateDamage, OtherRings) {
  GgufBuilder builder = smallest().builder();
  builder.u32("llama.attention.sliding_window", 40);
  const AlignedBytes bytes(builder.build());
  const Model model(bytes);
  const auto state = state_of(model, SessionOptions(200, 16, 1));
  Session same(model, SessionOptions(200, 25, 1)), other(model, SessionOptions(200, 26, 1));
  EXPECT_EQ(restore(same, state), MOTE_OK) << mote_last_error();  // 40 + 24: the same one block
  EXPECT_EQ(restore(other, state), MOTE_ERROR_STATE);
  EXPECT_THAT(mote_last_error(), HasSubstr("batch_tokens"));
  EXPECT_THAT(mote_last_error(), HasSubstr("expected 26, found 16"));
  EXPECT_EQ(mote_session_position(other), 0u);
}

TEST_F(SessionStateDamage, OtherModels) {
  TinyModel weights = smallest();
  weights.seed = 2;
  GgufBuilder renamed = smallest().builder(), one_bit = smallest().builder();
  renamed.text("general.name", "tinz");
  one_bit.find_tensor("output_norm.weight").data[0] ^= 1;
  for (const Bytes& file : {weights.bytes(), renamed.build(), one_bit.build()}) {
    const AlignedBytes bytes(file);
    const Model model(bytes);
    ASSERT_NO_FATAL_FAILURE(
        expect_refused(state_of(model, SessionOptions(100, 16, 1)), "another model"));
  }
  // The same file at another address is the same model.
  const AlignedBytes again(smallest().bytes(), 32);
  const Model model(again);
  Session session(model, SessionOptions(100, 16, 1));
  EXPECT_EQ(restore(session, state_), MOTE_OK) << mote_last_error();
}

// A checksum that fits, counts and ids that do not.
TEST_F(SessionStateDamage, ContentThatNoSessionHas) {
  expect_refused(with<uint64_t>(state_, kHeldAt, 101), "tokens: expected at most 100, found 101");
  expect_refused(with<uint64_t>(state_, kHeldAt, UINT64_MAX), "tokens");
  expect_refused(with<uint64_t>(state_, kHeldAt, 7), "bytes");
  expect_refused(with<uint64_t>(state_, kHeldAt, 5), "positions");
  expect_refused(with<uint64_t>(state_, kComputedAt, 7), "positions");
  expect_refused(with<uint64_t>(state_, kComputedAt, UINT64_MAX), "positions");
  expect_refused(with<uint64_t>(state_, kComputedAt, 5), "bytes");
  expect_refused(with<uint64_t>(state_, kReachedAt, 5), "positions");
  expect_refused(with<uint64_t>(state_, kReachedAt, 101), "positions");
  expect_refused(with<uint64_t>(state_, kBytesAt, state_.size() - 1), "bytes");
  expect_refused(with<uint64_t>(state_, kBytesAt, UINT64_MAX), "bytes");
  const auto vocabulary = static_cast<int32_t>(TinyModel::tokens().size());
  expect_refused(with<int32_t>(state_, kIdsAt + 4, -1), "token 1: expected an id");
  expect_refused(with<int32_t>(state_, kIdsAt + 20, vocabulary), "token 5: expected an id");
}

}  // namespace
}  // namespace mote::test
