#include "core/tensor.h"

namespace mote {
namespace {

constexpr FormatInfo kFormats[] = {
#define FORMAT(name, id, values, bytes) {#name, Format::name, values, bytes},
#include "core/format.inc"
#undef FORMAT
};

}  // namespace

const FormatInfo* find_format(uint32_t gguf_id) {
  for (const FormatInfo& info : kFormats)
    if (static_cast<uint32_t>(info.format) == gguf_id) return &info;
  return nullptr;
}

const FormatInfo* find_format(std::string_view name) {
  for (const FormatInfo& info : kFormats)
    if (name == info.name) return &info;
  return nullptr;
}

// The compiler makes a jump table of this; an id comes from format.inc or was checked by
// find_format.
const FormatInfo& format_info(Format format) {
  enum Index : size_t {
#define FORMAT(name, id, values, bytes) index_##name,
#include "core/format.inc"
#undef FORMAT
  };
  switch (format) {
#define FORMAT(name, id, values, bytes) \
  case Format::name:                    \
    return kFormats[index_##name];
#include "core/format.inc"
#undef FORMAT
  }
  return kFormats[0];
}

}  // namespace mote
