#include "tools/developer/import_values.h"

#include <algorithm>
#include <cstring>

#include "quant/quant.h"

namespace mote::tool {
namespace {

// Row i of a head's first half and row i of its second become neighbours.
void interleave(const float* head, uint64_t rows, uint64_t columns, float* out) {
  const uint64_t half = rows / 2;
  for (uint64_t i = 0; i < half; ++i) {
    std::memcpy(out + 2 * i * columns, head + i * columns, columns * sizeof(float));
    std::memcpy(out + (2 * i + 1) * columns, head + (half + i) * columns, columns * sizeof(float));
  }
}

}  // namespace

void import_values(const ImportTensor& tensor, Format format, RowEncoder& encoder,
                   const Sink& sink) {
  const SafetensorsEntry& entry = *tensor.source.entry;
  const uint64_t unit = std::max<uint64_t>(tensor.interleaved_head, 1);  // rows that stay together
  const uint64_t units = rows_per_chunk(unit * tensor.columns);
  const uint64_t chunk_rows = std::min(units * unit, tensor.rows);
  const uint64_t value_bytes = safetensors_type_bytes(entry.dtype);
  std::vector<uint8_t> raw(chunk_rows * tensor.columns * value_bytes);
  std::vector<float> values(chunk_rows * tensor.columns), arranged;
  std::vector<uint8_t> encoded(row_bytes(format, values.size()));
  if (tensor.interleaved_head) arranged.resize(values.size());
  const std::string what = tensor.source.file->path() + ": tensor for " + tensor.target;
  for (uint64_t row = 0; row < tensor.rows; row += chunk_rows) {
    const size_t count = std::min(chunk_rows, tensor.rows - row) * tensor.columns;
    tensor.source.file->read(entry, (tensor.first_row + row) * tensor.columns * value_bytes,
                             count * value_bytes, raw.data());
    values_to_f32(entry.dtype, raw.data(), count, values.data());
    if (tensor.offset != 0.0f)
      for (size_t i = 0; i < count; ++i) values[i] += tensor.offset;
    const float* source = values.data();
    if (tensor.interleaved_head) {
      const size_t head = size_t{tensor.interleaved_head} * tensor.columns;
      for (size_t at = 0; at < count; at += head)
        interleave(values.data() + at, tensor.interleaved_head, tensor.columns,
                   arranged.data() + at);
      source = arranged.data();
    }
    const uint64_t columns = tensor.vector ? count : tensor.columns;
    encoder.encode(what, Format::f32, reinterpret_cast<const uint8_t*>(source), format,
                   count / columns, columns, nullptr, encoded.data());
    sink(encoded.data(), row_bytes(format, count));
  }
}

std::vector<uint8_t> encode_values(const std::vector<float>& values, Format format) {
  std::vector<uint8_t> bytes(row_bytes(format, values.size()));
  quant::encode(format, values.data(), values.size(), bytes.data());
  return bytes;
}

}  // namespace mote::tool
