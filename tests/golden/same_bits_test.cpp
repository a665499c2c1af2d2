// The same logits, bit for bit, for any number of threads, any chunks, and whether a text is read
// at once, in pieces or after a rewind; under every instruction set.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <tuple>

#include "tests/support/forward_rows.h"
#include "tests/support/random.h"
#include "tests/support/tiny_model.h"

namespace mote::test {
namespace {

using Hashes = std::vector<uint64_t>;

std::vector<int32_t> random_ids(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(300));
  return ids;
}

// Several blocks of keys; the long text of the real model's test with MOTE_TEST_ALL.
size_t text_length() { return std::getenv("MOTE_TEST_ALL") ? 600 : 210; }

Hashes whole(const Model& model, mote_session* session, const std::vector<int32_t>& ids,
             size_t chunk) {
  EXPECT_EQ(mote_session_rewind(session, 0), MOTE_OK);
  return forward_rows(model, session, ids.data(), ids.size(), chunk, false, false).hashes;
}

// In three calls that end in the middle of blocks and chunks.
Hashes continued(const Model& model, mote_session* session, const std::vector<int32_t>& ids,
                 size_t chunk) {
  EXPECT_EQ(mote_session_rewind(session, 0), MOTE_OK);
  Hashes all;
  const size_t cuts[] = {0, ids.size() / 5 + 1, ids.size() / 2 + 3, ids.size()};
  for (int i = 0; i < 3; ++i) {
    const auto part = forward_rows(model, session, ids.data() + cuts[i], cuts[i + 1] - cuts[i],
                                   chunk, false, false)
                          .hashes;
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Reads another text behind the first third, and goes back.
Hashes rewound(const Model& model, mote_session* session, const std::vector<int32_t>& ids,
               size_t chunk) {
  EXPECT_EQ(mote_session_rewind(session, 0), MOTE_OK);
  const size_t kept = ids.size() / 3 + 1;
  Hashes all = forward_rows(model, session, ids.data(), kept, chunk, false, false).hashes;
  forward_rows(model, session, ids.data(), ids.size() - kept, chunk, false, false);
  EXPECT_EQ(mote_session_rewind(session, kept), MOTE_OK);
  EXPECT_EQ(mote_session_position(session), kept);
  const auto rest =
      forward_rows(model, session, ids.data() + kept, ids.size() - kept, chunk, false, false)
          .hashes;
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

size_t first_difference(const Hashes& a, const Hashes& b) {
  size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  return i;
}

#define EXPECT_SAME(expected, got, what)                        \
  EXPECT_EQ(first_difference(expected, got), (expected).size()) \
      << "first difference at this position: " << what

void check_model(const Model& model, const std::vector<int32_t>& ids,
                 const std::vector<uint32_t>& threads, const std::vector<uint32_t>& chunks,
                 uint32_t kv_type, bool all_modes) {
  ASSERT_NE(model.get(), nullptr);
  const auto capacity = static_cast<uint32_t>(ids.size() + 1);
  Hashes expected;
  {
    Session session(model, SessionOptions(capacity, 64, 1, kv_type));
    expected = whole(model, session, ids, 64);
    ASSERT_EQ(expected.size(), ids.size());
  }
  for (uint32_t t : threads)
    for (uint32_t chunk : chunks) {
      const std::string what = std::to_string(t) + " threads, chunks of " + std::to_string(chunk);
      Session session(model, SessionOptions(capacity, chunk, t, kv_type));
      EXPECT_SAME(expected, whole(model, session, ids, 0), what + ", whole");
      if (!all_modes) continue;
      EXPECT_SAME(expected, continued(model, session, ids, 0), what + ", continued");
      EXPECT_SAME(expected, rewound(model, session, ids, 0), what + ", rewound");
    }
}

class SameBits : public testing::TestWithParam<std::string> {};

TEST_P(SameBits, TinyModelInEveryFormat) {
  const auto ids = random_ids(text_length(), 1);
  for (Format format :
       {Format::q4_1, Format::q4_0, Format::q8_0, Format::f16, Format::bf16, Format::f32}) {
    SCOPED_TRACE(format_info(format).name);
    TinyModel tiny;
    tiny.matrices = format;
    tiny.embedding = format == Format::q4_1 ? Format::q8_0 : format;
    const AlignedBytes bytes(tiny.bytes());
    const Model model(bytes, GetParam().c_str());
    mote_model_info info{};
    info.size = sizeof info;
    ASSERT_EQ(mote_model_describe(model, &info), MOTE_OK);
    EXPECT_EQ(info.isa, GetParam());
    const bool main_format = format == Format::q4_1;
    check_model(
        model, ids, main_format ? std::vector<uint32_t>{1, 2, 3, 5} : std::vector<uint32_t>{1, 3},
        main_format ? std::vector<uint32_t>{1, 7, 64, 512} : std::vector<uint32_t>{1, 7, 512},
        MOTE_KV_F16, main_format);
  }
}

// The formats that have no encoder, in blocks of 256 where they have those.
TEST_P(SameBits, TinyModelInTheOtherFormats) {
  for (Format format :
       {Format::q5_0, Format::q5_1, Format::q2_k, Format::q3_k, Format::q4_k, Format::q5_k,
        Format::q6_k, Format::iq4_nl, Format::iq4_xs, Format::q8_row}) {
    SCOPED_TRACE(format_info(format).name);
    TinyModel tiny;
    tiny.layers = 2, tiny.hidden = 256, tiny.heads = 8, tiny.head_dim = 32, tiny.feed_forward = 512;
    tiny.matrices = tiny.embedding = format;
    const AlignedBytes bytes(tiny.bytes());
    const Model model(bytes, GetParam().c_str());
    check_model(model, random_ids(70, 5), {2, 3}, {1, 7, 64}, MOTE_KV_F16, false);
  }
}

// The cache is a ring that turns several times.
TEST_P(SameBits, TinyModelWithAWindow) {
  TinyModel tiny;
  tiny.window = 50;
  const AlignedBytes bytes(tiny.bytes());
  const Model model(bytes, GetParam().c_str());
  check_model(model, random_ids(600, 6), {1, 2, 3}, {1, 7, 64, 512}, MOTE_KV_F16, false);
}

TEST_P(SameBits, TinyModelWithOtherCaches) {
  const AlignedBytes bytes(TinyModel().bytes());
  const Model model(bytes, GetParam().c_str());
  for (uint32_t kv : {MOTE_KV_F32, MOTE_KV_Q8_0})
    check_model(model, random_ids(text_length(), 2), {1, 2, 5}, {1, 7, 64, 512}, kv, true);
}

// Nine heads over three, and four over one: what 2 threads can only share by splitting the keys.
TEST_P(SameBits, UnevenHeads) {
  for (const auto& [heads, kv_heads, head_dim] :
       {std::tuple<uint32_t, uint32_t, uint32_t>{9, 3, 32}, {4, 1, 24}, {12, 12, 8}}) {
    TinyModel tiny;
    tiny.layers = 2, tiny.hidden = 64, tiny.feed_forward = 96;
    tiny.heads = heads, tiny.kv_heads = kv_heads, tiny.head_dim = head_dim;
    const AlignedBytes bytes(tiny.bytes());
    const Model model(bytes, GetParam().c_str());
    check_model(model, random_ids(150, 3), {1, 2, 3}, {1, 64, 100}, MOTE_KV_F16, false);
    check_model(model, random_ids(150, 3), {1, 2, 3}, {1, 64, 100}, MOTE_KV_Q8_0, false);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, SameBits, testing::ValuesIn(isas_here()),
                         [](const auto& info) { return info.param; });

// Somebody else's threads change nothing either.
TEST(SameBitsExecutor, GivesTheBitsOfOwnThreads) {
  const AlignedBytes bytes(TinyModel().bytes());
  const Model model(bytes);
  const auto ids = random_ids(200, 4);
  Session own(model, SessionOptions(256, 32, 3));
  static int runs;
  runs = 0;
  mote_executor executor{};
  executor.run = [](void*, void (*task)(void*, uint32_t), void* argument, uint32_t threads) {
    ++runs;
    std::vector<std::thread> others;
    for (uint32_t i = 1; i < threads; ++i) others.emplace_back(task, argument, i);
    task(argument, 0);
    for (std::thread& thread : others) thread.join();
  };
  SessionOptions options(256, 32, 3);
  options.executor = &executor;
  Session theirs(model, options);
  const Hashes expected = whole(model, own, ids, 0);
  EXPECT_SAME(expected, whole(model, theirs, ids, 0), "executor");
  EXPECT_GT(runs, 0);
}

// A real model: 600 tokens of a real text. All combinations take minutes: with MOTE_TEST_ALL.
void check_real_model(const std::string& name, const std::string& isa, bool has_window) {
  const char* models = std::getenv("MOTE_MODELS_DIR");
  const std::string path = std::string(models ? models : "") + "/" + name;
  if (!models || !std::ifstream(path)) GTEST_SKIP() << "MOTE_MODELS_DIR does not hold " << name;
  const Model model(path, isa.c_str());
  ASSERT_NE(model.get(), nullptr);
  std::ifstream file(MOTE_SOURCE_DIR "/core/gguf.cpp");
  std::stringstream text;
  text << file.rdbuf();
  std::vector<int32_t> ids;
  {
    Session session(model, SessionOptions(2048, 64, 1));
    ids = tokenize(session, text.str().substr(0, 6000));
  }
  const bool all = std::getenv("MOTE_TEST_ALL") != nullptr;
  ASSERT_GE(ids.size(), 600u);
  ids.resize(all ? 600 : 150);
  if (all)
    check_model(model, ids, {1, 2, 3, 5}, {1, 7, 64, 512}, MOTE_KV_F16, !has_window);
  else
    check_model(model, ids, {2}, {7, 512}, MOTE_KV_F16, false);
}

TEST_P(SameBits, SmolLm2) {
  check_real_model("SmolLM2-135M-Instruct.Q4_1.gguf", GetParam(), false);
}
TEST_P(SameBits, Gemma3) { check_real_model("gemma-3-270m-q4_k_m.gguf", GetParam(), true); }

}  // namespace
}  // namespace mote::test
