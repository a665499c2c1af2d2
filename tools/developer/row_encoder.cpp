#include "tools/developer/row_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "quant/quant.h"
#include "tools/developer/status.h"
#include "tools/interrupt.h"

namespace mote::tool {
namespace {

constexpr uint64_t kChunkValues = 1u << 20;
constexpr float kLargestHalf = 65504.0f;

// A value of the row that is not finite, if there is one.
const float* find_bad(const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!std::isfinite(values[i])) return values + i;
  return nullptr;
}

// The largest value, if it is large and did not come back: f16 cannot hold it, or the scale of its
// block.
const float* find_clipped(const float* values, const float* decoded, size_t count) {
  const float* const most = std::max_element(
      values, values + count, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  if (most == values + count || !(std::fabs(*most) > kLargestHalf)) return nullptr;
  const float error = std::fabs(decoded[most - values] - *most);
  return error < 0.5f * std::fabs(*most) ? nullptr : most;
}

std::string shown(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", static_cast<double>(value));
  return text;
}

}  // namespace

uint64_t rows_per_chunk(uint64_t columns) { return std::max<uint64_t>(kChunkValues / columns, 1); }

RowEncoder::RowEncoder(uint32_t threads) {
  if (threads == 0) threads = default_thread_count();
  Arena measure;
  Team().plan(measure, threads);
  bytes_ = measure.used();
  memory_ = allocator_.allocate(bytes_, Arena::kAlignment);
  if (!memory_) throw Failure("no memory for threads");
  Arena arena(memory_, bytes_);
  team_.plan(arena, threads);
  scratch_.resize(threads);
  check(team_.start(nullptr));
}

RowEncoder::~RowEncoder() {
  team_.stop();
  allocator_.release(memory_, bytes_);
}

double RowEncoder::encode(const std::string& what, Format from, const uint8_t* source, Format to,
                          size_t rows, size_t columns, const float* importance, uint8_t* out) {
  const size_t from_bytes = row_bytes(from, columns), to_bytes = row_bytes(to, columns);
  errors_.assign(rows, 0.0);
  for (std::vector<float>& scratch : scratch_) scratch.resize(2 * columns);
  size_t next = 0;
  bool bad = false;
  float bad_value = 0.0f;
  team_.run([&] {
    team_.parallel([&](uint32_t thread, uint32_t) {
      float *values = scratch_[thread].data(), *decoded = values + columns;
      for (;;) {
        const size_t row = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
        if (row >= rows || InterruptScope::interrupted()) return;
        uint8_t* target = out + row * to_bytes;
        quant::decode(from, source + row * from_bytes, columns, values);
        const float* found = find_bad(values, columns);
        if (!found) {
          quant::encode(to, values, columns, target, importance);
          quant::decode(to, target, columns, decoded);
          found = find_clipped(values, decoded, columns);
        }
        if (found) {
          if (!__atomic_test_and_set(&bad, __ATOMIC_RELAXED)) bad_value = *found;
          continue;
        }
        for (size_t i = 0; i < columns; ++i) {
          const double difference = double(decoded[i]) - double(values[i]);
          errors_[row] += difference * difference;
        }
      }
    });
  });
  if (InterruptScope::interrupted()) throw Failure("interrupted; nothing was written");
  if (bad && std::isfinite(bad_value))
    throw Failure(what + ": holds " + shown(bad_value) + ", which is too large for " +
                  format_info(to).name + "; use bf16 or f32");
  if (bad) throw Failure(what + ": holds a value that is not finite");
  double sum = 0.0;
  for (const double error : errors_) sum += error;
  return sum;
}

}  // namespace mote::tool
