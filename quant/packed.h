// Packed weights: the bytes of native blocks, 16 rows interleaved, so that kernels load what they
// would have to transpose, on every instruction set. Same size as native, and either way back gives
// the same bits.
//
// Rows are taken in tiles of kPackedRows. A tile lies where its rows would; block b of all of them
// comes before block b + 1. Within such a group of blocks, a field that is at byte o of a native
// block begins at kPackedRows * o: row r has its 4 bytes there at kPackedRows * o + 4 * r (fields
// of more than 4 bytes: 4 at a time), or its 2 bytes at kPackedRows * o + 2 * r where the field is
// a float16 scale. (The first two fields of iq4_xs are one of 4 bytes.) Rows behind the last whole
// tile stay native.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace mote::quant {

inline constexpr size_t kPackedRows = 16;

// How many of a matrix's rows are in tiles.
constexpr size_t packed_rows(size_t rows) { return rows / kPackedRows * kPackedRows; }

// [rows][columns] of the native form of `packed` to packed, and back. In and out are of the same
// size and must not overlap.
void pack(Format packed, const uint8_t* native, size_t rows, size_t columns, uint8_t* out);
void unpack(Format packed, const uint8_t* matrix, size_t rows, size_t columns, uint8_t* native);

// The native bytes of one block of a row. matrix: [rows][columns], packed.
void read_packed_block(Format packed, const uint8_t* matrix, size_t rows, size_t columns,
                       size_t row, size_t block, uint8_t* out);

}  // namespace mote::quant
