// A cache of one key/value head and attention computed the plain way, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/kernels.h"
#include "quant/quant.h"
#include "tests/support/guard_page.h"

namespace mote::test {

// Keys and values against guard pages; what was never stored is NaN.
class HeadCache {
 public:
  HeadCache(const Kernels& kernels, KvType type, size_t head_dim, size_t blocks)
      : kernels_(kernels),
        type_(type),
        head_dim_(head_dim),
        blocks_(blocks),
        keys_(blocks * kKeyBlock * kv_position_bytes(type, head_dim)),
        values_(keys_.size()) {
    std::memset(keys_.data(), 0xff, keys_.size());
    std::memset(values_.data(), 0xff, values_.size());
  }
  void store(size_t position, size_t tokens, const float* k, const float* v, size_t stride) {
    KvRows rows{k, stride, tokens, head_dim_, position, keys_.data(), blocks_, type_};
    kernels_.store_key(&rows);
    rows.x = v;
    rows.cache = values_.data();
    kernels_.store_value(&rows);
  }
  // The caller fills in q, tokens, group, position, last_key, masks and out.
  AttentionTask task(float scale) const {
    AttentionTask task{};
    task.head_dim = head_dim_;
    task.keys = keys_.data();
    task.values = values_.data();
    task.blocks = blocks_;
    task.type = type_;
    task.causal = true;
    task.scale = scale;
    return task;
  }
  uint8_t* keys() { return keys_.data(); }
  uint8_t* values() { return values_.data(); }

 private:
  const Kernels& kernels_;
  KvType type_;
  size_t head_dim_, blocks_;
  GuardedBytes keys_, values_;
};

// One group of a q8_0 cache: the scale as it is stored, and what the cache reads back.
inline float quantize_group(const float* x, size_t n, float* read_back) {
  float largest = 0;
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float scale = quant::f16_to_f32(quant::f32_to_f16(largest / 127.0f));
  for (size_t i = 0; i < n; ++i) {
    const float level = scale > 0 ? std::nearbyint(x[i] * (1.0f / scale)) : 0.0f;
    read_back[i] = scale * std::min(127.0f, std::max(-127.0f, level));
  }
  return scale;
}
// What the cache reads back of finite rows [head_dim].
inline std::vector<float> as_stored(std::vector<float> x, size_t head_dim, KvType type) {
  if (type == KvType::f16)
    for (float& value : x) value = quant::f16_to_f32(quant::f32_to_f16(value));
  if (type == KvType::q8_0)
    for (size_t row = 0; row < x.size(); row += head_dim)
      for (size_t i = 0; i < head_dim; i += 32)
        quantize_group(&x[row + i], std::min<size_t>(32, head_dim - i), &x[row + i]);
  return x;
}

inline const char* name_of(KvType type) {
  return type == KvType::f32 ? "f32" : type == KvType::q8_0 ? "q8_0" : "f16";
}

inline bool sees(size_t p, size_t k, bool causal, size_t window) {
  if (causal && k > p) return false;
  const size_t distance = p > k ? p - k : k - p;
  return window == 0 || distance < window;
}

// One query at position p over keys [0, last), as the cache reads them: k[j * head_dim + i]. bias:
// of those keys, or null.
inline std::vector<double> plain_attention(const float* q, const float* k, const float* v,
                                           size_t head_dim, size_t last, size_t p, bool causal,
                                           size_t window, double scale, double cap,
                                           const float* bias = nullptr) {
  std::vector<double> scores, out(head_dim, 0.0);
  std::vector<size_t> seen;
  double top = -HUGE_VAL, total = 0;
  for (size_t j = 0; j < last; ++j) {
    if (!sees(p, j, causal, window)) continue;
    double s = 0;
    for (size_t i = 0; i < head_dim; ++i) s += double(q[i]) * k[j * head_dim + i];
    s *= scale;
    if (bias) s += bias[j];
    if (cap > 0) s = cap * std::tanh(s / cap);
    seen.push_back(j);
    scores.push_back(s);
    top = std::max(top, s);
  }
  for (double& s : scores) total += s = std::exp(s - top);
  for (size_t n = 0; n < seen.size(); ++n)
    for (size_t i = 0; i < head_dim; ++i) out[i] += scores[n] / total * v[seen[n] * head_dim + i];
  return out;
}

}  // namespace mote::test
