// What a saved session holds of the cache.
#include <algorithm>
#include <cstring>

#include "models/kv_cache.h"

namespace mote {

bool KvCache::same_rings(size_t batch_tokens) const {
  for (size_t i = 0; i < layer_count_; ++i)
    if (blocks_of(layers_[i].window, batch_tokens) != layers_[i].blocks) return false;
  return true;
}

// Calls copy(memory, bytes) for every piece of the positions below `computed` that is in one place.
template <class Copy>
void KvCache::copy_positions(size_t computed, size_t reached, const Copy& copy) const {
  const size_t position_bytes = kv_position_bytes(type_, head_dim_), n = head_dim_;
  const size_t scales = type_ == KvType::q8_0 ? kv_groups(n) : 0;  // per position, of 2 bytes
  const size_t element = (position_bytes - 2 * scales) / n;
  // Positions of a block are the fastest axis of keys, the slowest of values.
  const auto copy_rows = [&](uint8_t* rows, size_t count, size_t bytes, size_t first, size_t last) {
    for (size_t i = 0; i < count; ++i)
      copy(rows + (i * kKeyBlock + first) * bytes, (last - first) * bytes);
  };
  for (size_t l = 0; causal_ && l < layer_count_; ++l) {
    const Layer& layer = layers_[l];
    const size_t begin = first_kept(layer, reached);
    for (size_t head = 0; head < kv_heads_; ++head)
      for (size_t p = begin, last = 0; p < computed; p = last) {
        last = std::min(computed, (p / kKeyBlock + 1) * kKeyBlock);
        const size_t from = p % kKeyBlock, to = from + (last - p);
        const size_t at =
            head * head_bytes(layer) + p / kKeyBlock % layer.blocks * kKeyBlock * position_bytes;
        const size_t behind = at + kKeyBlock * n * element;
        copy_rows(layer.keys + at, n, element, from, to);
        copy_rows(layer.keys + behind, scales, 2, from, to);
        copy_rows(layer.values + at, 1, n * element, from, to);
        copy_rows(layer.values + behind, 1, 2 * scales, from, to);
      }
  }
}

size_t KvCache::state_bytes(size_t computed, size_t reached) const {
  size_t bytes = 0;
  for (size_t l = 0; causal_ && l < layer_count_; ++l) {
    const size_t begin = first_kept(layers_[l], reached);
    if (begin < computed)
      bytes += 2 * kv_heads_ * (computed - begin) * kv_position_bytes(type_, head_dim_);
  }
  return bytes;
}

uint8_t* KvCache::save(size_t computed, uint8_t* out) const {
  copy_positions(computed, reached_, [&](const uint8_t* memory, size_t bytes) {
    std::memcpy(out, memory, bytes);
    out += bytes;
  });
  return out;
}

void KvCache::restore(size_t computed, size_t reached, const uint8_t* in) {
  reached_ = computed ? reached : 0;
  copy_positions(computed, reached, [&](uint8_t* memory, size_t bytes) {
    std::memcpy(memory, in, bytes);
    in += bytes;
  });
}

}  // namespace mote
