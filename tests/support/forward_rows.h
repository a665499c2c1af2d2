// Logits and hidden states of a session's forward pass, and hashes of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "models/forward.h"
#include "tests/support/api.h"

namespace mote::test {

// FNV-1a over the bits.
inline uint64_t hash_floats(const float* values, size_t count) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, 4);
    hash = (hash ^ bits) * 1099511628211u;
  }
  return hash;
}

struct Rows {
  size_t vocabulary = 0, hidden_size = 0;
  size_t next = 0;                                // position that the next row of logits must have
  std::vector<float> logits;                      // row after row
  std::vector<uint64_t> hashes;                   // of the rows
  std::map<uint32_t, std::vector<float>> hidden;  // by index, row after row
  bool keep = true;                               // the logits, not just their hashes
};

// Appends ids and returns the logits of every position (of the last only, if so), with hidden
// states if wanted.
inline Rows forward_rows(const Model& model, mote_session* session, const int32_t* ids,
                         size_t count, size_t chunk = 0, bool with_hidden = false, bool keep = true,
                         bool last_only = false) {
  Rows rows;
  rows.vocabulary = model_spec(model).vocabulary;
  rows.hidden_size = model_spec(model).hidden;
  rows.next = mote_session_position(session) + (last_only ? count - 1 : 0);
  rows.keep = keep;
  ForwardSink sink;
  sink.user = &rows;
  sink.last_only = last_only;
  sink.logits = [](void* user, size_t position, size_t tokens, const float* logits) {
    Rows& out = *static_cast<Rows*>(user);
    EXPECT_EQ(position, out.next);
    out.next += tokens;
    if (out.keep) out.logits.insert(out.logits.end(), logits, logits + tokens * out.vocabulary);
    for (size_t t = 0; t < tokens; ++t)
      out.hashes.push_back(hash_floats(logits + t * out.vocabulary, out.vocabulary));
  };
  if (with_hidden)
    sink.hidden = [](void* user, uint32_t index, size_t, size_t tokens, const float* states) {
      Rows& out = *static_cast<Rows*>(user);
      std::vector<float>& all = out.hidden[index];
      all.insert(all.end(), states, states + tokens * out.hidden_size);
    };
  const Status status = forward(session, ids, count, chunk, sink);
  EXPECT_TRUE(status.ok()) << last_error();
  EXPECT_EQ(rows.hashes.size(), last_only ? 1 : count);
  return rows;
}

}  // namespace mote::test
