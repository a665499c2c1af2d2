// The memory of a forward pass, measured.
#include <gtest/gtest.h>

#include "models/transformer.h"

namespace mote::test {
namespace {

size_t measured(uint32_t hidden, uint32_t feed_forward, size_t batch_tokens, uint32_t threads) {
  TransformerModel model;
  model.spec.heads = model.spec.kv_heads = model.spec.head_dim = 1;
  model.spec.hidden = hidden;
  model.spec.feed_forward = feed_forward;
  model.spec.vocabulary = 1;
  Transformer transformer;
  Arena arena;
  transformer.plan(arena, model, KvType::f32, 64, batch_tokens, threads);
  EXPECT_EQ(arena.failed(), arena.used() == SIZE_MAX);
  return arena.used();
}

TEST(TransformerSize, GrowsWithTheBatch) {
  const size_t one = measured(64, 64, 1, 1), eight = measured(64, 64, 8, 1);
  EXPECT_LT(one, SIZE_MAX);
  EXPECT_GE(eight, one + 7 * (2 * 64 + 2 * 64) * sizeof(float));
}

// What is between the matrices of a feed-forward part is there for some tokens at a time.
TEST(TransformerSize, FeedForwardDoesNotGrowWithLongBatches) {
  const auto growth = [](uint32_t feed_forward) {
    return measured(64, feed_forward, 4096, 1) - measured(64, feed_forward, 1024, 1);
  };
  EXPECT_EQ(growth(4096), growth(64));
  EXPECT_GT(measured(64, 4096, 64, 1), measured(64, 4096, 8, 1) + 56 * 4096 * sizeof(float));
}

// Products of a file's widths with the caller's batch that are multiples of 2^32 and 2^64: 0, if
// they were not watched.
TEST(TransformerSize, OverflowFailsTheArena) {
  const size_t batch = SIZE_MAX / 1024 + 1;
  EXPECT_EQ(measured(1024, 32, batch, 1), SIZE_MAX);
  EXPECT_EQ(measured(1u << 20, 1, batch, 1), SIZE_MAX);
}

}  // namespace
}  // namespace mote::test
