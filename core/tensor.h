// Element formats and a non-owning view of a tensor in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mote {

enum class Format : uint32_t {
#define FORMAT(name, id, values, bytes) name = id,
#include "core/format.inc"
#undef FORMAT
};

struct FormatInfo {
  const char* name;
  Format format;
  uint32_t values, bytes;  // per block
};

// Null where no row of format.inc has the id.
const FormatInfo* find_format(uint32_t gguf_id);
const FormatInfo* find_format(std::string_view name);
const FormatInfo& format_info(Format format);

// Bytes of `values` consecutive values; values must be whole blocks.
inline size_t row_bytes(Format format, size_t values) {
  const FormatInfo& info = format_info(format);
  return values / info.values * info.bytes;
}

// Packed formats hold the blocks of a native one in another order (quant/packed.h).
inline constexpr uint32_t kPackedId = 0x6d6f0000;  // "mo", added to the native id
constexpr bool is_packed(Format format) {
  return (static_cast<uint32_t>(format) & 0xffff0000) == kPackedId;
}
constexpr Format native_format(Format format) {
  return is_packed(format) ? static_cast<Format>(static_cast<uint32_t>(format) - kPackedId)
                           : format;
}
// The packed form of a native format; the format itself where it has none.
inline Format packed_format(Format format) {
  const FormatInfo* packed = find_format(static_cast<uint32_t>(format) | kPackedId);
  return packed ? packed->format : format;
}

// Row-major; shape[0] is the fastest axis (GGUF order), so a matrix is [rows = shape[1]][columns =
// shape[0]].
struct Tensor {
  std::string_view name;
  Format format = Format::f32;
  uint32_t dimensions = 0;
  uint64_t shape[4] = {1, 1, 1, 1};
  const uint8_t* data = nullptr;
  uint64_t bytes = 0;

  uint64_t columns() const { return shape[0]; }
  uint64_t rows() const { return shape[1] * shape[2] * shape[3]; }
  uint64_t values() const { return columns() * rows(); }
};

}  // namespace mote
