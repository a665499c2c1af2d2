// Exact streaming attention over the cache. Rows are (token, head) pairs; a tile of rows meets a
// block of kKeyBlock keys: scores, their exponentials, and the weighted sum of the values. What is
// summed for a row, and in which order, depends on its position only: never on the other rows of a
// tile or call.
#include "kernels/declarations.h"
#include "kernels/simd.h"

namespace mote {
namespace MOTE_ISA {
namespace {

constexpr float kInfinity = __builtin_inff();
// Registers hold a tile of sums, a vector of each of its columns and one element of a row.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif
constexpr size_t kTileRows = kLanes == 16 ? 8 : kLanes == 8 ? 6 : 4;
// Vectors per row of a register tile of `rows` rows: a power of two, at most 8.
constexpr int tile_vectors(int rows) {
  int n = 8;
  while (n > 1 && (rows + (rows > 1)) * n + 1 > kRegisters) n /= 2;
  return n;
}

MOTE_INLINE F32 load_any(const float* p) { return load(p); }
MOTE_INLINE F32 load_any(const uint16_t* p) { return load_f16(p); }
constexpr size_t padded(size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// c[r][j] = c[r][j] * factor[r] + sum over first <= i < last, ascending, of a[r][i] * b[i *
// b_stride + j], for the lanes of kVectors vectors; without factor c starts from 0. ahead > 0:
// b[... + ahead] will be read soon.
template <int kRows, int kVectors, bool kAhead, class T>
MOTE_INLINE void multiply_tile(const float* const* a, size_t first, size_t last, const T* b,
                               size_t b_stride, float* c, size_t c_stride, const float* factor,
                               size_t ahead) {
  constexpr size_t kLine = 64 / sizeof(T);
  const float* row[kRows];
  F32 sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    row[r] = a[r];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = factor ? load(c + r * c_stride + v * kLanes) * broadcast(factor[r]) : zero();
  }
  for (size_t i = first; i < last; ++i) {
    const T* line = b + i * b_stride;
    if (kAhead)
      for (size_t at = 0; at < kVectors * kLanes; at += kLine) prefetch(line + ahead + at);
    F32 column[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) column[v] = load_any(line + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F32 x = broadcast(row[r][i]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = fma(x, column[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(c + r * c_stride + v * kLanes, sum[r][v]);
}

// multiply_tile over `vectors` vectors.
template <int kRows, bool kAhead, class T>
void multiply_rows(const float* const* a, size_t first, size_t last, const T* b, size_t b_stride,
                   size_t vectors, float* c, size_t c_stride, const float* factor, size_t ahead) {
  constexpr int kWide = tile_vectors(kRows);
  size_t v = 0;
#define MOTE_TILE(n)                                                                        \
  if constexpr (kWide >= n)                                                                 \
    for (; v + n <= vectors; v += n)                                                        \
  multiply_tile<kRows, n, kAhead>(a, first, last, b + v * kLanes, b_stride, c + v * kLanes, \
                                  c_stride, factor, ahead)
  MOTE_TILE(8);
  MOTE_TILE(4);
  MOTE_TILE(2);
  MOTE_TILE(1);
#undef MOTE_TILE
}

template <class T>
void multiply(size_t rows, const float* const* a, size_t first, size_t last, const T* b,
              size_t b_stride, size_t vectors, float* c, size_t c_stride, const float* factor,
              size_t ahead) {
  switch (rows) {
#define MOTE_ROWS(n)                                                                               \
  return ahead ? multiply_rows<n, true>(a, first, last, b, b_stride, vectors, c, c_stride, factor, \
                                        ahead)                                                     \
               : multiply_rows<n, false>(a, first, last, b, b_stride, vectors, c, c_stride,        \
                                         factor, 0)
    case 1:
      MOTE_ROWS(1);
    case 2:
      MOTE_ROWS(2);
    case 3:
      MOTE_ROWS(3);
    case 4:
      MOTE_ROWS(4);
    default:
      MOTE_ROWS(kTileRows);
#undef MOTE_ROWS
  }
}

// Running state of one row: maximum of the scores, and per lane the sum of exp(score - maximum).
struct RowState {
  float* top;
  float* sums;  // [kLanes]
};

// s[lo..hi), raw scores of one block, become exp(score - maximum); the state takes them in. Returns
// the factor for what was summed before. kWhole: the row sees the whole block.
template <bool kWhole>
MOTE_INLINE float softmax_block(float* s, size_t lo, size_t hi, float scale, float cap,
                                RowState state) {
  const F32 low = broadcast(-kInfinity), factor = broadcast(scale);
  const size_t begin = kWhole ? 0 : lo / kLanes;
  const size_t end = kWhole ? kKeyBlock / kLanes : (hi + kLanes - 1) / kLanes;
  F32 best = low;
#pragma GCC unroll 4
  for (size_t v = begin; v < end; ++v) {
    F32 x = load(s + v * kLanes) * factor;
    if (cap > 0.0f) x = broadcast(cap) * tanh(x * broadcast(1.0f / cap));
    if (!kWhole) {
      const F32 at = lane_numbers() + broadcast(static_cast<float>(v * kLanes));
      x = select(at < broadcast(static_cast<float>(lo)), low, x);
      x = select(at < broadcast(static_cast<float>(hi)), x, low);
    }
    store(s + v * kLanes, x);
    best = max(best, x);
  }
  const float before = *state.top, block = largest(best);
  const float top = block > before ? block : before;
  const F32 shift = broadcast(top == -kInfinity ? 0.0f : top);
  const F32 decay = exp_negative(broadcast(before) - shift);
  F32 sums = load(state.sums) * decay;
#pragma GCC unroll 4
  for (size_t v = begin; v < end; ++v) {
    const F32 e = exp_negative(load(s + v * kLanes) - shift);
    store(s + v * kLanes, e);
    sums = sums + e;
  }
  store(state.sums, sums);
  *state.top = top;
  return first_lane(decay);
}

MOTE_INLINE float exp_of_difference(float x, float top) {
  return first_lane(exp_negative(broadcast(x - top)));
}

// Folds the result of a segment (part, part_top, part_sum) into what came before (y, *top, *sum).
MOTE_INLINE void fold_segment(float* y, float* top, float* sum, const float* part, float part_top,
                              float part_sum, size_t n) {
  if (part_top == -kInfinity) return;  // the row saw none of its keys
  const bool first = *top == -kInfinity;
  const float joint = first || part_top > *top ? part_top : *top;
  const float a = first ? 0.0f : exp_of_difference(*top, joint);
  const float b = exp_of_difference(part_top, joint);
  *sum = first ? part_sum * b : *sum * a + part_sum * b;
  *top = joint;
  const F32 old = broadcast(a), fresh = broadcast(b);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F32 v = load(part + i) * fresh;
    store(y + i, first ? v : fma(load(y + i), old, v));
  }
  if (i < n) {
    const F32 v = load_partial(part + i, n - i) * fresh;
    store_partial(y + i, first ? v : fma(load_partial(y + i, n - i), old, v), n - i);
  }
}

// y = x / sum; zeros where there was no key.
MOTE_INLINE void normalise(float* y, const float* x, float sum, size_t n) {
  const bool empty = sum == 0.0f;
  const F32 factor = broadcast(1.0f / sum);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, empty ? zero() : load(x + i) * factor);
  if (i < n) store_partial(y + i, empty ? zero() : load_partial(x + i, n - i) * factor, n - i);
}

// Rows [row, row + rows) of a pass against one block: row i sees its keys lo[i] <= j < hi[i], or
// all of them.
struct Tile {
  size_t row, rows;
  bool whole;
  size_t lo[kTileRows], hi[kTileRows];  // where not whole
};

// Up to kAttentionRows rows of a task, walked over all of its blocks.
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

  MOTE_INLINE void add_block(size_t block, bool more) {
    const size_t base = block * kKeyBlock;
    const size_t at = block % t_.blocks * kKeyBlock * t_.head_dim;
    const T* keys = reinterpret_cast<const T*>(t_.keys) + at;
    const T* values = reinterpret_cast<const T*>(t_.values) + at;
    const size_t end = end_visible(position_[rows_ - 1]);
    const size_t last = end - base < kKeyBlock ? end - base : kKeyBlock;
    const size_t ahead = more && (block + 1) % t_.blocks != 0 ? kKeyBlock * t_.head_dim : 0;
    const bool expand_keys = sizeof(T) != sizeof(float) && rows_ > kTileRows;
    const bool expand_values = expand_keys || pitch_ != t_.head_dim;
    if (expand_keys)
      for (size_t i = 0; i < kKeyBlock * t_.head_dim; i += kLanes)
        store(keys_ + i, load_any(keys + i));
    if (expand_values) copy_values(values, last);
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
      if (expand_keys)
        score(tile, static_cast<const float*>(keys_), 0);
      else
        score(tile, keys, ahead);
      if (expand_values)
        weigh(tile, static_cast<const float*>(values_), pitch_, 0);
      else
        weigh(tile, values, t_.head_dim, ahead);
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
  // The first `last` rows as floats, padded to whole vectors.
  MOTE_INLINE void copy_values(const T* values, size_t last) {
    const size_t n = t_.head_dim;
    if (pitch_ == n) {
      for (size_t i = 0; i < last * n; i += kLanes) store(values_ + i, load_any(values + i));
      return;
    }
    for (size_t j = 0; j < last; ++j)
      for (size_t i = 0; i < pitch_; ++i)
        values_[j * pitch_ + i] = i < n ? to_single(values[j * n + i]) : 0.0f;
  }
  static MOTE_INLINE float to_single(float x) { return x; }
  static MOTE_INLINE float to_single(uint16_t x) { return f16_to_float(x); }

  // scores_[i][...] = exp(score - maximum) of the tile's row i; factor_[i] for its sums so far.
  template <class K>
  MOTE_INLINE void score(const Tile& tile, const K* keys, size_t ahead) {
    const float* q[kTileRows];
    size_t end = tile.whole ? kKeyBlock : 0;
    for (size_t i = 0; i < tile.rows; ++i) {
      const size_t row = tile.row + i, token = position_[row] - t_.position;
      q[i] = t_.q + token * t_.q_stride + (first_row_ + row - token * t_.group) * t_.head_dim;
      if (!tile.whole && tile.hi[i] > end) end = tile.hi[i];
    }
    multiply(tile.rows, q, 0, t_.head_dim, keys, kKeyBlock, (end + kLanes - 1) / kLanes, scores_,
             kKeyBlock, nullptr, ahead);
    const bool simple = tile.whole && !(t_.cap > 0.0f);
    for (size_t i = 0; i < tile.rows; ++i) {
      const RowState state{top_ + tile.row + i, sums_ + (tile.row + i) * kLanes};
      float* s = scores_ + i * kKeyBlock;
      factor_[i] = simple ? softmax_block<true>(s, 0, kKeyBlock, t_.scale, 0.0f, state)
                          : softmax_block<false>(s, tile.whole ? 0 : tile.lo[i],
                                                 tile.whole ? kKeyBlock : tile.hi[i], t_.scale,
                                                 t_.cap, state);
    }
  }
  // Adds the values, weighted.
  template <class V>
  MOTE_INLINE void weigh(const Tile& tile, const V* values, size_t stride, size_t ahead) {
    if (tile.whole)
      add_values(tile, 0, tile.rows, 0, kKeyBlock, values, stride, ahead);
    else
      weigh_ragged(tile, values, stride, ahead);
  }
  // Keys that all rows of the tile see go together; the ragged ends row by row, so that a key that
  // a row does not see cannot touch it, not even as 0 * infinity.
  template <class V>
  void weigh_ragged(const Tile& tile, const V* values, size_t stride, size_t ahead) {
    size_t first = 0, last = kKeyBlock;
    for (size_t i = 0; i < tile.rows; ++i) {
      if (tile.lo[i] > first) first = tile.lo[i];
      if (tile.hi[i] < last) last = tile.hi[i];
    }
    if (first > last) first = last;
    for (size_t i = 0; i < tile.rows; ++i)
      if (tile.lo[i] < first)
        add_values(tile, i, 1, tile.lo[i], first < tile.hi[i] ? first : tile.hi[i], values, stride,
                   ahead);
    if (first < last) add_values(tile, 0, tile.rows, first, last, values, stride, ahead);
    for (size_t i = 0; i < tile.rows; ++i) {
      const size_t from = last > tile.lo[i] ? last : tile.lo[i];
      if (from < tile.hi[i]) add_values(tile, i, 1, from, tile.hi[i], values, stride, ahead);
    }
  }
  // Rows [i, i + rows) of the tile, keys [from, to).
  template <class V>
  MOTE_INLINE void add_values(const Tile& tile, size_t i, size_t rows, size_t from, size_t to,
                              const V* values, size_t stride, size_t ahead) {
    const float* s[kTileRows];
    for (size_t j = 0; j < rows; ++j) s[j] = scores_ + (i + j) * kKeyBlock;
    multiply(rows, s, from, to, values, stride, pitch_ / kLanes, out_ + (tile.row + i) * pitch_,
             pitch_, factor_ + i, ahead);
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
  if (task->type == KvType::f16) attend<uint16_t>(*task);
  if (task->type == KvType::f32) attend<float>(*task);
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
