// A hash table that maps keys to indices of entries kept elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/memory.h"
#include "core/status.h"

namespace mote {

// FNV-1a, 64 bits: the hash of a + b is the hash of a carried on over b.
class TextHash {
 public:
  void add(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }
  void add(std::string_view text) {
    for (char byte : text) add(static_cast<uint8_t>(byte));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

// Open addressing with linear probing. A slot of 32 bits holds index + 1 and, in the bits above, a
// part of the hash: most strangers are told apart without a look at their entry. At most 2/3 full.
class HashIndex {
 public:
  // For at most `entries` entries, less than 2^31. Empty afterwards.
  Status allocate(Allocator& allocator, size_t entries, const char* what) {
    uint32_t slot_bits = 4;
    while ((size_t{1} << slot_bits) < entries + entries / 2) ++slot_bits;
    MOTE_TRY(slots_.allocate(allocator, size_t{1} << slot_bits, what));
    std::memset(slots_.data(), 0, slots_.size() * sizeof(uint32_t));
    slot_shift_ = 64 - slot_bits;
    index_mask_ = 1;
    while (index_mask_ < entries) index_mask_ = index_mask_ * 2 + 1;
    return kOk;
  }

  // The entry with this hash for which same(index) holds; -1: none.
  template <class Same>
  int32_t find(uint64_t hash, Same same) const {
    if (slots_.empty()) return -1;
    return static_cast<int32_t>(slots_[probe(hash, same)] & index_mask_) - 1;
  }
  // Puts `index` in, or returns the entry that is the same already; -1: it was put in.
  template <class Same>
  int32_t insert(uint64_t hash, uint32_t index, Same same) {
    uint32_t& slot = slots_[probe(hash, same)];
    if (slot) return static_cast<int32_t>(slot & index_mask_) - 1;
    slot = (index + 1) | tag(mix(hash));
    return -1;
  }

 private:
  static uint64_t mix(uint64_t hash) { return (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u; }
  uint32_t tag(uint64_t mixed) const { return static_cast<uint32_t>(mixed) & ~index_mask_; }

  template <class Same>
  size_t probe(uint64_t hash, Same same) const {
    const uint64_t mixed = mix(hash);
    const uint32_t wanted = tag(mixed);
    size_t at = mixed >> slot_shift_;
    while (true) {
      const uint32_t slot = slots_[at];
      if (!slot) return at;
      if ((slot & ~index_mask_) == wanted && same((slot & index_mask_) - 1)) return at;
      at = (at + 1) & (slots_.size() - 1);
    }
  }

  HeapArray<uint32_t> slots_;
  uint32_t index_mask_ = 0, slot_shift_ = 0;
};

}  // namespace mote
