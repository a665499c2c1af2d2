// The integer dot products are exact for every pair of a weight and an activation, where sums of
// products are largest too, and hand-computed blocks give hand-computed outputs.
#include "linear_support.h"

namespace mote::test {
namespace {

class LinearPairs : public testing::TestWithParam<std::string> {};

struct Task {
  std::vector<uint8_t> weights;  // [rows], a block each
  std::vector<int8_t> q;         // [tokens][32]
};

// Scales are 1, so that outputs are the integers themselves.
std::vector<float> run(const Kernels& kernels, Format format, const Task& given, size_t chunk) {
  const size_t rows = given.weights.size() / format_info(format).bytes,
               tokens = given.q.size() / 32;
  std::vector<float> scale(tokens, 1.0f), scaled_sum(tokens), y(tokens * rows);
  std::vector<int32_t> correction(2 * tokens);
  for (size_t t = 0; t < tokens; ++t) {
    int32_t sums[2] = {0, 0};
    for (size_t i = 0; i < 32; ++i) sums[i / 16] += given.q[t * 32 + i];
    scaled_sum[t] = static_cast<float>(sums[0] + sums[1]);
    correction[2 * t] = -128 * (sums[0] + sums[1]);
    correction[2 * t + 1] = -128 * sums[0];
  }
  Activations activations;
  activations.q = const_cast<int8_t*>(given.q.data());
  activations.scale = scale.data();
  activations.scaled_sum = scaled_sum.data();
  activations.correction = correction.data();
  GuardedBytes scratch(linear_scratch_bytes(32));
  LinearTask task;
  task.weights = given.weights.data();
  task.columns = 32;
  task.rows = task.last_row = rows;
  task.activations = &activations;
  task.y = y.data();
  task.y_stride = rows;
  task.scratch = scratch.data();
  for (; task.first_token < tokens; task.first_token += chunk) {
    task.tokens = std::min(chunk, tokens - task.first_token);
    linear_kernel(kernels, format)(&task);
  }
  return y;
}

void set_half(uint8_t* p, uint16_t half) { std::memcpy(p, &half, sizeof(half)); }
constexpr uint16_t kHalfOne = 0x3c00, kHalfMinusTwo = 0xc000;

// Every activation within ±127, in every column; `signs` bit i turns the sign of column i.
std::vector<int8_t> all_activations(uint32_t signs) {
  std::vector<int8_t> q(255 * 32);
  for (int value = -127; value <= 127; ++value)
    for (int i = 0; i < 32; ++i)
      q[(value + 127) * 32 + i] = static_cast<int8_t>(signs >> i & 1 ? -value : value);
  return q;
}

constexpr uint32_t kSigns[] = {0, 0x55555555, 0x33333333, 0x0f0f0f0f, 0x00ff00ff, 0x80000001};

// expected(row, activation) is one product of the block.
template <class Product>
void expect_products(const Kernels& kernels, Format format, Task* task, Product product) {
  const size_t rows = task->weights.size() / format_info(format).bytes;
  for (const uint32_t signs : kSigns) {
    task->q = all_activations(signs);
    const int count = 32 - 2 * __builtin_popcount(signs);
    for (const size_t chunk : {1, 3, 4, 255}) {
      const std::vector<float> y = run(kernels, format, *task, chunk);
      for (int value = -127; value <= 127; ++value)
        for (size_t r = 0; r < rows; ++r)
          ASSERT_EQ(y[(value + 127) * rows + r], static_cast<float>(count * product(r, value)))
              << "row " << r << ", activation " << value << ", " << chunk << " tokens at a time";
    }
  }
}

TEST_P(LinearPairs, Bytes) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Task task;
  task.weights.resize(256 * 34);
  for (int w = -128; w < 128; ++w) {
    uint8_t* block = &task.weights[(w + 128) * 34];
    set_half(block, kHalfOne);
    std::memset(block + 2, w, 32);
  }
  expect_products(kernels, Format::q8_0, &task,
                  [](size_t row, int value) { return (static_cast<int>(row) - 128) * value; });
}

TEST_P(LinearPairs, Nibbles) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Task task;
  task.weights.resize(16 * 18);
  for (int w = 0; w < 16; ++w) {
    uint8_t* block = &task.weights[w * 18];
    set_half(block, kHalfOne);
    std::memset(block + 2, w * 17, 16);
  }
  expect_products(kernels, Format::q4_0, &task,
                  [](size_t row, int value) { return (static_cast<int>(row) - 8) * value; });
}

TEST_P(LinearPairs, NibblesWithMinimum) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Task task;
  task.weights.resize(16 * 20);
  for (int w = 0; w < 16; ++w) {
    uint8_t* block = &task.weights[w * 20];
    set_half(block, kHalfOne);
    set_half(block + 2, kHalfMinusTwo);
    std::memset(block + 4, w * 17, 16);
  }
  expect_products(kernels, Format::q4_1, &task,
                  [](size_t row, int value) { return (static_cast<int>(row) - 2) * value; });
}

// Each column counts once and where it should: row r has a weight of 1 in column r only.
TEST_P(LinearPairs, EveryColumn) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  Task bytes, nibbles;
  bytes.weights.assign(32 * 34, 0);
  nibbles.weights.assign(32 * 20, 0);
  for (size_t r = 0; r < 32; ++r) {
    set_half(&bytes.weights[r * 34], kHalfOne);
    bytes.weights[r * 34 + 2 + r] = 1;
    set_half(&nibbles.weights[r * 20], kHalfOne);
    nibbles.weights[r * 20 + 4 + r % 16] = r < 16 ? 0x01 : 0x10;
  }
  for (size_t t = 0; t < 20; ++t)
    for (int i = 0; i < 32; ++i) bytes.q.push_back(static_cast<int8_t>(i * 7 - 100 + t));
  nibbles.q = bytes.q;
  for (const size_t chunk : {1, 2, 3, 4, 5, 20}) {
    const std::vector<float> y = run(kernels, Format::q8_0, bytes, chunk);
    const std::vector<float> z = run(kernels, Format::q4_1, nibbles, chunk);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], bytes.q[i]) << "row " << i % 32 << ", token " << i / 32;
      ASSERT_EQ(z[i], bytes.q[i]) << "row " << i % 32 << ", token " << i / 32;
    }
  }
}

// 3 columns of f32: 1 * 4 + 2 * 5 + 3 * 6 = 32, with a bias of 0.5 and 100 already there.
TEST_P(LinearPairs, Floats) {
  MOTE_KERNELS_OR_SKIP(GetParam());
  const float weights[] = {1, 2, 3}, x[] = {4, 5, 6}, bias[] = {0.5f};
  float y[] = {100};
  Activations activations;
  activations.x = x;
  activations.x_stride = 3;
  GuardedBytes scratch(linear_scratch_bytes(3) + 64);
  LinearTask task;
  task.weights = reinterpret_cast<const uint8_t*>(weights);
  task.columns = 3;
  task.rows = task.last_row = task.tokens = task.y_stride = 1;
  task.activations = &activations;
  task.y = y;
  task.bias = bias;
  task.accumulate = true;
  task.scratch = scratch.data();
  kernels.linear_f32(&task);
  EXPECT_EQ(y[0], 132.5f);
}

INSTANTIATE_TEST_SUITE_P(Kernels, LinearPairs, testing::ValuesIn(isa_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mote::test
