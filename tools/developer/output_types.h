// The names of --type: which format each tensor of a file gets, as the GGUF ecosystem uses these
// names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace mote::tool {

struct OutputType {
  const char* name;
  Format format;       // of most matrices
  uint32_t file_type;  // general.file_type
  bool packed = false;
};

// Throws UsageError that lists the names. q3_k, q4_k and q5_k are the mixtures with _m. With
// -packed behind a name, tensors are packed where that is of use.
OutputType output_type(const std::string& name);
std::string output_type_names();

// What mixtures depend on beside a tensor's name.
struct ModelShape {
  uint32_t layers = 0;
  uint32_t heads = 1, kv_heads = 1;
  bool tied = false;       // the embedding is the output head
  bool looked_up = false;  // an encoder's embedding, which is no head either
};

// The number of layers that a name such as blk.7.ffn_up.weight implies, 0 for others.
uint32_t layers_by_name(std::string_view tensor);

struct TensorFormat {
  Format format;
  Format wanted;  // another: rows are no whole blocks of it, or too long
};

// For tensor `name` with rows of `columns` values, a vector if `vector`. Blocks are for a layer's
// products, the embedding and its head; other matrices change for plain numbers only, and vectors
// and small tables not at all. pure: no mixture, every matrix gets the type's format.
TensorFormat tensor_format(const OutputType& type, bool pure, const ModelShape& shape,
                           std::string_view name, bool vector, uint64_t columns, Format source);

// Why a matrix does not get the packed form of its format; null: it gets it. What is packed are
// matrices that are multiplied with; a row of a packed one takes longer to look up.
const char* why_not_packed(Format format, const ModelShape& shape, std::string_view name,
                           uint64_t rows);

}  // namespace mote::tool
