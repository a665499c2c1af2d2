// Exact streaming attention over the cache. Rows are (token, head) pairs; a tile of rows meets a
// block of kKeyBlock keys: scores, their exponentials, and the weighted sum of the values. What is
// summed for a row, and in which order, depends on its position only: never on the other rows of a
// tile or call.
#include "kernels/attention_softmax.h"
#include "kernels/attention_tile.h"
#include "kernels/declarations.h"
#include "kernels/simd.h"

namespace mote {
namespace MOTE_ISA {
namespace {

constexpr size_t padded(size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Rows [row, row + rows) of a pass against one block: row i sees its keys lo[i] <= j < hi[i], or
// all of them.
struct Tile {
  size_t row, rows;
  bool whole;
  size_t lo[kTileRows], hi[kTileRows];  // where not whole
};

// Up to kAttentionRows rows of a task, walked over all of its blocks. T: element of a cache; or
// KeyValueRows.
struct KeyValueRows {};
template <class T>
constexpr bool kIsRows = false;
template <>
constexpr bool kIsRows<KeyValueRows> = true;

template <class T>
class Pass {
 public:
  Pass(const AttentionTask& task, size_t first_row, size_t rows)
      : t_(task), first_row_(first_row), rows_(rows), pitch_(padded(task.head_dim)) {
    float* at = reinterpret_cast<float*>(task.scratch);
    const size_t wide = (task.head_dim + 15) / 16 * 16;
    auto take = [&at](size_t n) MOTE_LAMBDA {
      float* piece = at;
      at += n;
      return piece;
    };
    scores_ = take(8 * kKeyBlock);
    sums_ = take(kAttentionRows * 16);
    top_ = take(kAttentionRows);
    total_top_ = take(kAttentionRows);
    total_sum_ = take(kAttentionRows);
    values_ = take(kKeyBlock * wide);
    out_ = take(kAttentionRows * wide);
    total_ = take(kAttentionRows * wide);
    keys_ = take(kKeyBlock * task.head_dim);
    position_ = reinterpret_cast<size_t*>(take(2 * kAttentionRows));
    size_t token = first_row / task.group, head = first_row % task.group;
    for (size_t r = 0; r < rows; ++r) {
      position_[r] = task.position + token;
      if (++head == task.group) head = 0, ++token;
    }
  }

  MOTE_INLINE void run() {
    const size_t begin = first_visible(position_[0]);
    const size_t end = end_visible(position_[rows_ - 1]);
    const size_t first_segment = begin / kKeySegment;
    const bool fold = end > begin && (end - 1) / kKeySegment != first_segment;
    start_segment();
    if (fold) {
      for (size_t r = 0; r < rows_; ++r) {
        total_top_[r] = -kInfinity;
        total_sum_[r] = 0.0f;
      }
    }
    for (size_t block = begin / kKeyBlock; block * kKeyBlock < end; ++block) {
      if (block * kKeyBlock % kKeySegment == 0 && block * kKeyBlock > begin) {
        fold_all();
        start_segment();
      }
      add_block(block, (block + 1) * kKeyBlock < end);
    }
    if (fold) fold_all();
    finish(fold);
  }

 private:
  // Keys [first_visible, end_visible) are those that a query at position p sees.
  MOTE_INLINE size_t first_visible(size_t p) const {
    const size_t first = t_.window && p + 1 > t_.window ? p + 1 - t_.window : 0;
    return first > t_.first_key ? first : t_.first_key;
  }
  MOTE_INLINE size_t end_visible(size_t p) const {
    size_t end = t_.last_key;
    if (t_.causal && p + 1 < end) end = p + 1;
    if (!t_.causal && t_.window && p + t_.window < end) end = p + t_.window;
    return end;
  }
  MOTE_INLINE void start_segment() {
    for (size_t r = 0; r < rows_; ++r) {
      top_[r] = -kInfinity;
      store(sums_ + r * kLanes, zero());
      for (size_t i = 0; i < pitch_; i += kLanes) store(out_ + r * pitch_ + i, zero());
    }
  }
  MOTE_INLINE void fold_all() {
    for (size_t r = 0; r < rows_; ++r)
      fold_segment(total_ + r * pitch_, total_top_ + r, total_sum_ + r, out_ + r * pitch_, top_[r],
                   sum(load(sums_ + r * kLanes)), pitch_);
  }
  MOTE_INLINE void finish(bool folded) {
    for (size_t r = 0; r < rows_; ++r) {
      const size_t token = position_[r] - t_.position, g = first_row_ + r - token * t_.group;
      float* y = t_.out + token * t_.out_stride + g * t_.out_head_stride;
      const float* x = (folded ? total_ : out_) + r * pitch_;
      const float all = folded ? total_sum_[r] : sum(load(sums_ + r * kLanes));
      if (!t_.partial) {
        normalise(y, x, all, t_.head_dim);
      } else {
        for (size_t i = 0; i < t_.head_dim; ++i) y[i] = x[i];
        y[t_.head_dim] = top_[r];
        y[t_.head_dim + 1] = all;
      }
    }
  }

  // Whether few rows are multiplied with a block as it lies.
  static constexpr bool kFromRows = kIsRows<T>;
  static constexpr bool kInPlace = sizeof(T) > 1 || kBytesInPlace;

  MOTE_INLINE void add_block(size_t block, bool more) {
    const size_t base = block * kKeyBlock, end = end_visible(position_[rows_ - 1]);
    const size_t last = end - base < kKeyBlock ? end - base : kKeyBlock;
    if constexpr (kFromRows)
      add_rows(base, last);
    else
      add_cached(block, last, more);
  }
  // Keys are transposed first, values multiplied where they lie.
  MOTE_INLINE void add_rows(size_t base, size_t last) {
    const float* keys = t_.key_rows + base * t_.rows_stride;
    const float* values = t_.value_rows + base * t_.rows_stride;
    const size_t n = t_.head_dim;
    for (size_t j = 0; j < last; ++j)
      for (size_t i = 0; i < n; ++i) keys_[i * kKeyBlock + j] = keys[j * t_.rows_stride + i];
    const bool padded_values = pitch_ != n;
    if (padded_values)
      for (size_t j = 0; j < last; ++j)
        for (size_t i = 0; i < pitch_; ++i)
          values_[j * pitch_ + i] = i < n ? values[j * t_.rows_stride + i] : 0.0f;
    const FloatRows<float> rows = {padded_values ? values_ : values,
                                   padded_values ? pitch_ : t_.rows_stride};
    each_tile(base, [&](const Tile& tile) MOTE_LAMBDA {
      score(tile, base, FloatRows<float>{keys_, kKeyBlock}, 0);
      weigh(tile, rows, 0);
    });
  }
  MOTE_INLINE void add_cached(size_t block, size_t last, bool more) {
    const size_t base = block * kKeyBlock;
    const size_t bytes = kv_position_bytes(t_.type, t_.head_dim) * kKeyBlock;
    const T* keys = reinterpret_cast<const T*>(t_.keys + block % t_.blocks * bytes);
    const T* values = reinterpret_cast<const T*>(t_.values + block % t_.blocks * bytes);
    const size_t ahead = more && (block + 1) % t_.blocks != 0 ? bytes : 0;
    const bool expand_keys =
        !kInPlace || (sizeof(T) != sizeof(float) && rows_ > decltype(key_rows(keys))::kMostRows);
    const bool expand_values = expand_keys || pitch_ != t_.head_dim;
    if (expand_keys)
      expand_all_keys(keys);
    else
      read_scales(keys, keys_, ahead);
    if (expand_values)
      copy_values(values, last);
    else
      read_scales(values, values_, ahead);
    each_tile(base, [&](const Tile& tile) MOTE_LAMBDA {
      if (expand_keys)
        score(tile, base, FloatRows<float>{keys_, kKeyBlock}, 0);
      else if constexpr (kInPlace)
        score(tile, base, key_rows(keys), ahead);
      if (expand_values)
        weigh(tile, FloatRows<float>{values_, pitch_}, 0);
      else if constexpr (kInPlace)
        weigh(tile, value_rows(values), ahead);
    });
  }
  // Calls work(tile) for all rows that see keys of the block.
  template <class Work>
  MOTE_INLINE void each_tile(size_t base, Work work) {
    for (size_t r = 0; r < rows_;) {
      Tile tile;
      tile.row = r;
      tile.rows = rows_ - r < kTileRows ? rows_ - r : kTileRows;
      if (tile.rows > 4 && tile.rows < kTileRows) tile.rows = 4;
      tile.whole = first_visible(position_[r + tile.rows - 1]) <= base &&
                   end_visible(position_[r]) >= base + kKeyBlock;
      if (!tile.whole && !find_ranges(base, &tile)) {
        ++r;
        continue;
      }
      work(tile);
      r += tile.rows;
    }
  }
  // Keys of the block that each row sees; cuts the tile off before a row that sees none, false if
  // that is the first.
  bool find_ranges(size_t base, Tile* tile) const {
    size_t n = 0;
    for (; n < tile->rows; ++n) {
      const size_t p = position_[tile->row + n], first = first_visible(p), stop = end_visible(p);
      tile->lo[n] = first > base ? first - base : 0;
      tile->hi[n] = stop <= base ? 0 : stop - base < kKeyBlock ? stop - base : kKeyBlock;
      if (tile->lo[n] >= tile->hi[n]) break;
    }
    if (n > 4 && n < kTileRows) n = 4;
    tile->rows = n;
    return n > 0;
  }
  // A block as it lies; of q8_0 with the scales that read_scales() left in keys_ and values_.
  template <class U>
  MOTE_INLINE FloatRows<U> key_rows(const U* keys) const {
    return {keys, kKeyBlock};
  }
  template <class U>
  MOTE_INLINE FloatRows<U> value_rows(const U* values) const {
    return {values, t_.head_dim};
  }
  MOTE_INLINE KeyRows key_rows(const int8_t* keys) const { return {keys, keys_}; }
  MOTE_INLINE ValueRows value_rows(const int8_t* values) const {
    return {values, t_.head_dim, values_, kv_groups(t_.head_dim), 0};
  }

  // Scales of a block, as they lie, as floats; those of the next block will be read soon.
  template <class U>
  MOTE_INLINE void read_scales(const U*, float*, size_t) const {}
  MOTE_INLINE void read_scales(const int8_t* block, float* to, size_t ahead) const {
    const uint16_t* scales = scales_of(block);
    for (size_t i = 0; i < kKeyBlock * kv_groups(t_.head_dim); i += kLanes) {
      if (i * sizeof *scales % 64 == 0) prefetch(block + kKeyBlock * t_.head_dim + 2 * i + ahead);
      store(to + i, load_f16(scales + i));
    }
  }
  MOTE_INLINE const uint16_t* scales_of(const int8_t* block) const {
    return reinterpret_cast<const uint16_t*>(block + kKeyBlock * t_.head_dim);
  }

  template <class U>
  MOTE_INLINE void expand_all_keys(const U* keys) {
    const FloatRows<U> rows{keys, kLanes};
    for (size_t i = 0; i < kKeyBlock * t_.head_dim; i += kLanes)
      store(keys_ + i, rows.load(i / kLanes, 0));
  }
  MOTE_INLINE void expand_all_keys(const int8_t* keys) {
    for (size_t v = 0; v < kKeyBlock; v += kLanes)
      for (size_t i = 0; i < t_.head_dim;) {
        const F32 scale = load_f16(scales_of(keys) + i / kKvGroup * kKeyBlock + v);
        const size_t stop = i + kKvGroup < t_.head_dim ? i + kKvGroup : t_.head_dim;
        for (; i < stop; ++i)
          store(keys_ + i * kKeyBlock + v, load_i8(keys + i * kKeyBlock + v) * scale);
      }
  }
  // The first `last` rows as floats, padded to whole vectors.
  template <class U>
  MOTE_INLINE void copy_values(const U* values, size_t last) {
    const size_t n = t_.head_dim;
    if (pitch_ == n) {
      const FloatRows<U> rows{values, kLanes};
      for (size_t i = 0; i < last * n; i += kLanes) store(values_ + i, rows.load(i / kLanes, 0));
      return;
    }
    for (size_t j = 0; j < last; ++j)
      for (size_t i = 0; i < pitch_; ++i)
        values_[j * pitch_ + i] = i < n ? to_single(values[j * n + i]) : 0.0f;
  }
  MOTE_INLINE void copy_values(const int8_t* values, size_t last) {
    const size_t n = t_.head_dim, groups = kv_groups(n);
    for (size_t j = 0; j < last; ++j) {
      const int8_t* from = values + j * n;
      float* to = values_ + j * pitch_;
      size_t i = 0;
      for (; i + kLanes <= n; i += kLanes)
        store(to + i, load_i8(from + i) *
                          broadcast(f16_to_float(scales_of(values)[j * groups + i / kKvGroup])));
      for (; i < pitch_; ++i)
        to[i] = i < n ? static_cast<float>(from[i]) *
                            f16_to_float(scales_of(values)[j * groups + i / kKvGroup])
                      : 0.0f;
    }
  }
  static MOTE_INLINE float to_single(float x) { return x; }
  static MOTE_INLINE float to_single(uint16_t x) { return f16_to_float(x); }

  // scores_[i][...] = exp(score - maximum) of the tile's row i; factor_[i] for its sums so far.
  template <class Rows>
  MOTE_INLINE void score(const Tile& tile, size_t base, Rows keys, size_t ahead) {
    const float *q[kTileRows], *bias[kTileRows];
    size_t end = tile.whole ? kKeyBlock : 0;
    for (size_t i = 0; i < tile.rows; ++i) {
      const size_t row = tile.row + i, token = position_[row] - t_.position;
      const size_t g = first_row_ + row - token * t_.group;
      q[i] = t_.q + token * t_.q_stride + g * t_.head_dim;
      bias[i] = t_.bias ? t_.bias + static_cast<ptrdiff_t>(g * t_.bias_stride + base) -
                              static_cast<ptrdiff_t>(position_[row])
                        : nullptr;
      if (!tile.whole && tile.hi[i] > end) end = tile.hi[i];
    }
    multiply(tile.rows, q, 0, t_.head_dim, keys, (end + kLanes - 1) / kLanes, scores_, kKeyBlock,
             nullptr, ahead);
    const bool simple = tile.whole && !(t_.cap > 0.0f) && !t_.bias;
    for (size_t i = 0; i < tile.rows; ++i) {
      const RowState state{top_ + tile.row + i, sums_ + (tile.row + i) * kLanes};
      float* s = scores_ + i * kKeyBlock;
      factor_[i] = simple ? softmax_block<true>(s, 0, kKeyBlock, t_.scale, 0.0f, nullptr, state)
                          : softmax_block<false>(s, tile.whole ? 0 : tile.lo[i],
                                                 tile.whole ? kKeyBlock : tile.hi[i], t_.scale,
                                                 t_.cap, bias[i], state);
    }
  }
  // Adds the values, weighted.
  template <class Rows>
  MOTE_INLINE void weigh(const Tile& tile, Rows values, size_t ahead) {
    if (tile.whole)
      add_values(tile, 0, tile.rows, 0, kKeyBlock, values, ahead);
    else
      weigh_ragged(tile, values, ahead);
  }
  // Keys that all rows of the tile see go together; the ragged ends row by row, so that a key that
  // a row does not see cannot touch it, not even as 0 * infinity.
  template <class Rows>
  void weigh_ragged(const Tile& tile, Rows values, size_t ahead) {
    size_t first = 0, last = kKeyBlock;
    for (size_t i = 0; i < tile.rows; ++i) {
      if (tile.lo[i] > first) first = tile.lo[i];
      if (tile.hi[i] < last) last = tile.hi[i];
    }
    if (first > last) first = last;
    for (size_t i = 0; i < tile.rows; ++i)
      if (tile.lo[i] < first)
        add_values(tile, i, 1, tile.lo[i], first < tile.hi[i] ? first : tile.hi[i], values, ahead);
    if (first < last) add_values(tile, 0, tile.rows, first, last, values, ahead);
    for (size_t i = 0; i < tile.rows; ++i) {
      const size_t from = last > tile.lo[i] ? last : tile.lo[i];
      if (from < tile.hi[i]) add_values(tile, i, 1, from, tile.hi[i], values, ahead);
    }
  }
  // Rows [i, i + rows) of the tile, keys [from, to).
  template <class Rows>
  MOTE_INLINE void add_values(const Tile& tile, size_t i, size_t rows, size_t from, size_t to,
                              Rows values, size_t ahead) {
    const float* s[kTileRows];
    for (size_t j = 0; j < rows; ++j) s[j] = scores_ + (i + j) * kKeyBlock;
    multiply(rows, s, from, to, values, pitch_ / kLanes, out_ + (tile.row + i) * pitch_, pitch_,
             factor_ + i, ahead);
    for (size_t j = i; j < i + rows; ++j) factor_[j] = 1.0f;
  }

  const AttentionTask& t_;
  size_t first_row_, rows_, pitch_;
  float* scores_;     // [8][kKeyBlock] of the tile at hand
  float* keys_;       // [head_dim][kKeyBlock] of the block at hand, as floats
  float* values_;     // [kKeyBlock][pitch_], likewise
  float* out_;        // [rows][pitch_] of the segment at hand
  float* top_;        // [rows]
  float* sums_;       // [rows][kLanes]
  float* total_;      // [rows][pitch_] of the segments before
  float* total_top_;  // [rows]
  float* total_sum_;  // [rows]
  size_t* position_;  // [rows]
  float factor_[kTileRows];
};

template <class T>
void attend(const AttentionTask& task) {
  const size_t rows = task.tokens * task.group;
  for (size_t r = 0; r < rows; r += kAttentionRows)
    Pass<T>(task, r, rows - r < kAttentionRows ? rows - r : kAttentionRows).run();
}

}  // namespace

void attention(const AttentionTask* task) {
  if (task->key_rows) return attend<KeyValueRows>(*task);
  if (task->type == KvType::f16) attend<uint16_t>(*task);
  if (task->type == KvType::f32) attend<float>(*task);
  if (task->type == KvType::q8_0) attend<int8_t>(*task);
}

void attention_merge(const AttentionMerge* task) {
  const size_t n = task->head_dim;
  float top = -kInfinity, total = 0.0f;
  for (size_t s = 0; s < task->segments; ++s) {
    const float* part = task->parts + s * task->part_stride;
    fold_segment(task->out, &top, &total, part, part[n], part[n + 1], n);
  }
  normalise(task->out, task->out, total, n);
}

}  // namespace MOTE_ISA
}  // namespace mote
