#include "tools/developer/packed_writer.h"

#include "quant/packed.h"
#include "tools/developer/status.h"

namespace mote::tool {

PackedWriter::PackedWriter(Format format, uint64_t columns, GgufWriter& writer)
    : format_(format), columns_(columns), writer_(writer) {}

void PackedWriter::add(const uint8_t* rows, size_t bytes) {
  if (!is_packed(format_)) return check(writer_.append(rows, bytes));
  rest_.insert(rest_.end(), rows, rows + bytes);
  const size_t row_size = row_bytes(format_, columns_);
  const size_t tiled = quant::packed_rows(rest_.size() / row_size);
  packed_.resize(tiled * row_size);
  quant::pack(format_, rest_.data(), tiled, columns_, packed_.data());
  check(writer_.append(packed_.data(), packed_.size()));
  rest_.erase(rest_.begin(), rest_.begin() + std::ptrdiff_t(packed_.size()));
}

void PackedWriter::finish() { check(writer_.append(rest_.data(), rest_.size())); }

}  // namespace mote::tool
