#include "tools/developer/import_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/quant.h"
#include "tools/failure.h"

namespace mote::tool {
namespace {

constexpr uint64_t kChunkValues = 1u << 20;
constexpr float kLargestHalf = 65504.0f;

// Row i of a head's first half and row i of its second become neighbours.
void interleave(const float* head, uint64_t rows, uint64_t columns, float* out) {
  const uint64_t half = rows / 2;
  for (uint64_t i = 0; i < half; ++i) {
    std::memcpy(out + 2 * i * columns, head + i * columns, columns * sizeof(float));
    std::memcpy(out + (2 * i + 1) * columns, head + (half + i) * columns, columns * sizeof(float));
  }
}

void check_values(const ImportTensor& tensor, Format format, const std::vector<float>& values,
                  size_t count) {
  const float limit = format == Format::f16 ? kLargestHalf : INFINITY;
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i]))
      throw Failure(tensor.source.file->path() + ": tensor for " + tensor.target +
                    ": holds a value that is not finite");
    if (std::fabs(values[i]) > limit)
      throw Failure(tensor.source.file->path() + ": tensor for " + tensor.target + ": holds " +
                    std::to_string(values[i]) + ", which is too large for f16; use bf16 or f32");
  }
}

}  // namespace

void import_values(const ImportTensor& tensor, Format format, const Sink& sink) {
  const SafetensorsEntry& entry = *tensor.source.entry;
  const uint64_t unit = std::max<uint64_t>(tensor.interleaved_head, 1);  // rows that stay together
  const uint64_t units = std::max<uint64_t>(kChunkValues / (unit * tensor.columns), 1);
  const uint64_t chunk_rows = std::min(units * unit, tensor.rows);
  const uint64_t value_bytes = safetensors_type_bytes(entry.dtype);
  std::vector<uint8_t> raw(chunk_rows * tensor.columns * value_bytes);
  std::vector<float> values(chunk_rows * tensor.columns), arranged;
  std::vector<uint8_t> encoded(row_bytes(format, values.size()));
  if (tensor.interleaved_head) arranged.resize(values.size());
  for (uint64_t row = 0; row < tensor.rows; row += chunk_rows) {
    const size_t count = std::min(chunk_rows, tensor.rows - row) * tensor.columns;
    tensor.source.file->read(entry, row * tensor.columns * value_bytes, count * value_bytes,
                             raw.data());
    values_to_f32(entry.dtype, raw.data(), count, values.data());
    if (tensor.offset != 0.0f)
      for (size_t i = 0; i < count; ++i) values[i] += tensor.offset;
    check_values(tensor, format, values, count);
    const float* source = values.data();
    if (tensor.interleaved_head) {
      const size_t head = size_t{tensor.interleaved_head} * tensor.columns;
      for (size_t at = 0; at < count; at += head)
        interleave(values.data() + at, tensor.interleaved_head, tensor.columns,
                   arranged.data() + at);
      source = arranged.data();
    }
    quant::encode(format, source, count, encoded.data());
    sink(encoded.data(), row_bytes(format, count));
  }
}

std::vector<uint8_t> encode_values(const std::vector<float>& values, Format format) {
  std::vector<uint8_t> bytes(row_bytes(format, values.size()));
  quant::encode(format, values.data(), values.size(), bytes.data());
  return bytes;
}

}  // namespace mote::tool
