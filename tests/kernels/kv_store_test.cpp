// Where the cache's layout puts keys and values.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/attention_support.h"
#include "tests/kernels/kernel_support.h"
#include "tests/support/random.h"

namespace mote::test {
namespace {

class KvStoreTest : public testing::TestWithParam<std::string> {};

TEST_P(KvStoreTest, StoresWhereTheLayoutSays) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(11);
  for (size_t head_dim : {1, 4, 5, 16, 24, 37, 64})
    for (KvType type : {KvType::f16, KvType::f32}) {
      const size_t blocks = 2, position = 100, tokens = 70;
      HeadCache cache(kernels, type, head_dim, blocks);
      std::vector<float> k = random.normals(tokens * head_dim),
                         v = random.normals(tokens * head_dim);
      k[0] = 1e6f;   // beyond f16
      v[0] = 3e-8f;  // its smallest numbers
      cache.store(position, tokens, k.data(), v.data(), head_dim);
      auto read = [&](const uint8_t* data, size_t i) {
        float x;
        uint16_t half;
        std::memcpy(&x, data + i * 4 * (type == KvType::f32), 4 * (type == KvType::f32));
        std::memcpy(&half, data + i * 2 * (type == KvType::f16), 2);
        return type == KvType::f32 ? x : quant::f16_to_f32(half);
      };
      const std::vector<float> keys = as_stored(k, head_dim, type),
                               values = as_stored(v, head_dim, type);
      for (size_t t = 0; t < tokens; ++t)
        for (size_t i = 0; i < head_dim; ++i) {
          const size_t p = position + t, block = p / kKeyBlock % blocks, slot = p % kKeyBlock;
          ASSERT_EQ(read(cache.keys(), (block * head_dim + i) * kKeyBlock + slot),
                    keys[t * head_dim + i]);
          ASSERT_EQ(read(cache.values(), (block * kKeyBlock + slot) * head_dim + i),
                    values[t * head_dim + i]);
        }
      // Slots of positions below 100 + 70 - 128 are older or never written.
      EXPECT_TRUE(std::isnan(read(cache.keys(), 42 % kKeyBlock)));
    }
}

// q8_0: elements, then scales, of keys by group and of values by position.
TEST_P(KvStoreTest, StoresBytesAndScalesWhereTheLayoutSays) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Random random(12);
  for (size_t head_dim : {1, 5, 31, 32, 33, 64, 80}) {
    const size_t blocks = 2, position = 100, tokens = 70, stride = head_dim + 3,
                 groups = (head_dim + 31) / 32, bytes = kKeyBlock * (head_dim + 2 * groups);
    HeadCache cache(kernels, KvType::q8_0, head_dim, blocks);
    const std::vector<float> k = random.normals(tokens * stride),
                             v = random.normals(tokens * stride);
    cache.store(position, tokens, k.data(), v.data(), stride);
    for (size_t t = 0; t < tokens; ++t)
      for (size_t i = 0; i < head_dim; ++i) {
        const size_t p = position + t, slot = p % kKeyBlock, group = i / 32, first = group * 32,
                     n = std::min<size_t>(32, head_dim - first);
        const uint8_t* keys = cache.keys() + p / kKeyBlock % blocks * bytes;
        const uint8_t* values = cache.values() + p / kKeyBlock % blocks * bytes;
        auto read = [&](const uint8_t* block, size_t element, size_t scale) {
          uint16_t half;
          std::memcpy(&half, block + kKeyBlock * head_dim + 2 * scale, 2);
          return quant::f16_to_f32(half) * static_cast<float>(static_cast<int8_t>(block[element]));
        };
        float expected[32];
        const float scale = quantize_group(&k[t * stride + first], n, expected);
        const float found = read(keys, i * kKeyBlock + slot, group * kKeyBlock + slot);
        ASSERT_EQ(found, expected[i % 32]) << "dimension " << i << " of " << head_dim;
        // Half a step, and what 127 steps lose by the rounding of the scale.
        ASSERT_LE(std::fabs(found - k[t * stride + i]), scale * 0.5626f + 4e-6f);
        quantize_group(&v[t * stride + first], n, expected);
        ASSERT_EQ(read(values, slot * head_dim + i, slot * groups + group), expected[i % 32]);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, KvStoreTest, testing::ValuesIn(isa_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mote::test
