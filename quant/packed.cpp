#include "quant/packed.h"

#include <cassert>
#include <cstring>

namespace mote::quant {
namespace {

// Whether the field at byte `at` of a block is a float16 scale of its own.
bool is_half(Format native, size_t at) {
  switch (native) {
    case Format::q4_0:
    case Format::q5_0:
    case Format::q8_0:
    case Format::q8_row:
    case Format::iq4_nl:
      return at == 0;
    case Format::q4_1:
    case Format::q5_1:
    case Format::q4_k:
    case Format::q5_k:
      return at < 4;
    case Format::q2_k:
      return at >= 80;
    case Format::q3_k:
      return at == 108;
    case Format::q6_k:
      return at == 208;
    default:
      return false;
  }
}

// Calls copy(byte in a native block, byte in the tile's blocks, bytes) for every field of one row.
template <class Copy>
void each_field(Format packed, size_t row_in_tile, Copy copy) {
  const Format native = native_format(packed);
  const size_t bytes = format_info(packed).bytes;
  for (size_t at = 0; at < bytes;) {
    const size_t width = is_half(native, at) ? 2 : 4;
    copy(at, kPackedRows * at + width * row_in_tile, width);
    at += width;
  }
}

// Calls tile(native block, the tile's blocks, row in the tile) for every block in tiles.
template <class Tile>
void each_block(Format packed, size_t rows, size_t columns, Tile tile) {
  const size_t bytes = format_info(packed).bytes, row_size = row_bytes(packed, columns);
  for (size_t row = 0; row < packed_rows(rows); ++row) {
    const size_t tile_start = packed_rows(row) * row_size;
    for (size_t at = 0; at < row_size; at += bytes)
      tile(row * row_size + at, tile_start + at * kPackedRows, row % kPackedRows);
  }
}

void copy_rest(Format packed, const uint8_t* from, size_t rows, size_t columns, uint8_t* to) {
  const size_t row_size = row_bytes(packed, columns), done = packed_rows(rows) * row_size;
  if (rows * row_size > done) std::memcpy(to + done, from + done, rows * row_size - done);
}

}  // namespace

void pack(Format packed, const uint8_t* native, size_t rows, size_t columns, uint8_t* out) {
  assert(is_packed(packed));
  each_block(packed, rows, columns, [&](size_t block, size_t tile, size_t row) {
    each_field(packed, row, [&](size_t from, size_t to, size_t width) {
      std::memcpy(out + tile + to, native + block + from, width);
    });
  });
  copy_rest(packed, native, rows, columns, out);
}

void unpack(Format packed, const uint8_t* matrix, size_t rows, size_t columns, uint8_t* native) {
  assert(is_packed(packed));
  each_block(packed, rows, columns, [&](size_t block, size_t tile, size_t row) {
    each_field(packed, row, [&](size_t to, size_t from, size_t width) {
      std::memcpy(native + block + to, matrix + tile + from, width);
    });
  });
  copy_rest(packed, matrix, rows, columns, native);
}

void read_packed_block(Format packed, const uint8_t* matrix, size_t rows, size_t columns,
                       size_t row, size_t block, uint8_t* out) {
  assert(is_packed(packed) && row < rows);
  const size_t bytes = format_info(packed).bytes, row_size = row_bytes(packed, columns);
  if (row >= packed_rows(rows)) {
    std::memcpy(out, matrix + row * row_size + block * bytes, bytes);
    return;
  }
  const uint8_t* tile = matrix + packed_rows(row) * row_size + block * bytes * kPackedRows;
  each_field(packed, row % kPackedRows, [&](size_t to, size_t from, size_t width) {
    std::memcpy(out + to, tile + from, width);
  });
}

}  // namespace mote::quant
