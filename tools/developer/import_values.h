// The values of one tensor on their way from a checkpoint to a GGUF file, a few rows at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/tensor.h"
#include "tools/developer/import_architecture.h"
#include "tools/developer/row_encoder.h"

namespace mote::tool {

using Sink = std::function<void(const uint8_t* data, size_t bytes)>;

// Reads, arranges and encodes all rows in order. A value that is not finite, or that the format
// cannot hold, is a Failure that names the tensor. Memory: a few megabytes, or one head's rows if
// that is more.
void import_values(const ImportTensor& tensor, Format format, RowEncoder& encoder,
                   const Sink& sink);

// The same bytes for values that do not come from a file.
std::vector<uint8_t> encode_values(const std::vector<float>& values, Format format);

}  // namespace mote::tool
