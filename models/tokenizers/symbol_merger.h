// Merges neighbouring symbols, lowest rank first, leftmost first among equal ranks: the heart of
// every BPE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arena.h"

namespace mote {

// n symbols take O(n log n). A word of slots_[i] is one of:
// - the id of the symbol that starts at i;
// - behind the start and at the end of a symbol that was merged from several: kLength | how many;
// - what merges left between those.
// ranks_[0][i] is the rank of the pair whose left symbol starts at i; every level above holds the
// least of each kFan words below, one cache line.
class SymbolMerger {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;    // no merge; ranks are less
  static constexpr uint32_t kUnknown = INT32_MAX;  // a symbol that is no token; ids are less
  static constexpr size_t kMaxSymbols = INT32_MAX;

  // Takes room for this many symbols: 4 (2 + 1/16 + 1/256 + ...) bytes each.
  void plan(Arena& arena, size_t symbols) {
    slots_ = arena.take<uint32_t>(symbols);
    size_t width = symbols;
    for (size_t level = 0; level < kLevels; ++level) {
      width = blocks(width);
      ranks_[level] = arena.take<uint32_t>(width * kFan);
    }
  }

  void set(size_t at, uint32_t id) { slots_[at] = id; }
  uint32_t id(size_t at) const { return slots_[at]; }
  // Of the symbol that starts at `at`, of `count` in all.
  size_t length(size_t at, size_t count) const {
    return at + 1 < count && slots_[at + 1] & kLength ? slots_[at + 1] & ~kLength : 1;
  }

  // The ids of the first `count` symbols are set. rank(left, right): of the pair of symbols that
  // start there, or kNone; merged(left, right, rank): the id of the two together.
  template <class Rank, class Merged>
  void run(size_t count, Rank rank, Merged merged) {
    if (count < 2) return;
    for (size_t i = 0; i + 1 < count; ++i) ranks_[0][i] = rank(i, i + 1);
    ranks_[0][count - 1] = kNone;
    const size_t top = build(count);
    while (true) {
      const size_t left = lowest(top);
      const uint32_t found = ranks_[0][left];
      if (found == kNone) return;
      const size_t left_length = length(left, count), right = left + left_length;
      const size_t both = left_length + length(right, count), next = left + both;
      slots_[left] = merged(left, right, found);
      slots_[left + 1] = slots_[next - 1] = kLength | static_cast<uint32_t>(both);
      change(right, kNone, top);
      change(left, next < count ? rank(left, next) : kNone, top);
      if (left > 0) {
        const uint32_t before = slots_[left - 1];
        const size_t previous = left - (before & kLength ? before & ~kLength : 1);
        change(previous, rank(previous, left), top);
      }
    }
  }

 private:
  static constexpr size_t kFan = 16, kLevels = 8;  // 16^8 > kMaxSymbols
  static constexpr uint32_t kLength = 1u << 31;

  static size_t blocks(size_t width) { return (width + kFan - 1) / kFan; }
  static uint32_t least(const uint32_t* block) {
    uint32_t value = block[0];
    for (size_t i = 1; i < kFan; ++i) value = block[i] < value ? block[i] : value;
    return value;
  }

  // Fills the levels above ranks_[0]; returns the first that is one block.
  size_t build(size_t count) {
    size_t level = 0, width = count;
    while (true) {
      const size_t above = blocks(width);
      for (size_t i = width; i < above * kFan; ++i) ranks_[level][i] = kNone;
      if (above == 1) return level;
      for (size_t i = 0; i < above; ++i) ranks_[level + 1][i] = least(ranks_[level] + i * kFan);
      width = above;
      ++level;
    }
  }
  size_t lowest(size_t top) const {
    size_t at = 0;
    for (size_t level = top + 1; level-- > 0;) {
      const uint32_t* block = ranks_[level] + at * kFan;
      const uint32_t value = least(block);
      size_t i = 0;
      while (block[i] != value) ++i;
      at = at * kFan + i;
    }
    return at;
  }
  void change(size_t at, uint32_t rank, size_t top) {
    ranks_[0][at] = rank;
    for (size_t level = 0; level < top; ++level) {
      const size_t block = at / kFan;
      const uint32_t value = least(ranks_[level] + block * kFan);
      if (ranks_[level + 1][block] == value) return;
      ranks_[level + 1][block] = value;
      at = block;
    }
  }

  uint32_t* slots_ = nullptr;
  uint32_t* ranks_[kLevels] = {};
};

}  // namespace mote
