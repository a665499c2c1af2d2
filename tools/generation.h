// One answer of a model: what generate and chat share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/session.h"

namespace mote::tool {

struct SamplingOptions {
  uint32_t max_tokens = 256, top_k = 0, deadline_ms = 0, speculate = 0;
  float temperature = 0, top_p = 0, min_p = 0, repeat_penalty = 0;
  uint64_t seed = 0;
  std::vector<std::string> stops;
  bool ignore_end = false;

  void add(CLI::App& app);
  void check() const;  // ranges
};

struct Generation {
  std::string text;  // empty without a tokenizer
  std::vector<int32_t> ids;
  const char* finish_reason = "failed";
  std::string error;  // of a failure
  mote_generate_result result{};
};

// Runs until the answer ends or Ctrl-C comes. Text goes to stdout as it comes if `stream`, and a
// prompt that takes longer shows on a terminal how far it is. A failure does not throw: it is in
// `error`, with what there was until then.
Generation run_generation(const Session& session, const mote_prompt& prompt,
                          const SamplingOptions& options, bool stream);

// "prompt 20 tokens (12 reused) in 9 ms (889 tok/s); 5 generated in 20 ms (250 tok/s)", and where
// there were drafts ", 3 of 4 drafted accepted".
std::string speed_of(const Generation& generation);
// Where a deadline or the capacity left room for no token at all, what to say; otherwise empty.
std::string why_nothing(const Generation& generation, const SamplingOptions& options);

}  // namespace mote::tool
