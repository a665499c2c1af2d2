// Rows of a tensor on their way to a GGUF file, packed where its format is (quant/packed.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/gguf_writer.h"
#include "core/tensor.h"

namespace mote::tool {

class PackedWriter {
 public:
  // The writer's next tensor, of rows of `columns` values.
  PackedWriter(Format format, uint64_t columns, GgufWriter& writer);
  // Whole rows in the native form of the format, in order. Holds back what is no whole tile.
  void add(const uint8_t* rows, size_t bytes);
  // Behind the last row.
  void finish();

 private:
  Format format_;
  uint64_t columns_;
  GgufWriter& writer_;
  std::vector<uint8_t> rest_, packed_;
};

}  // namespace mote::tool
