// Runs sequences through an encoder for dump and compare: everything that the model gives, under
// the names and in the packing that reference files have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/developer/forward_run.h"

namespace mote::tool {

struct NamedTensor {
  std::string name;
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

// Segment of each token (token_type_ids of a golden file), shaped as the sequences; empty: zeros.
using TokenTypes = std::vector<std::vector<uint8_t>>;
TokenTypes read_token_types(SafetensorsReader& golden, const std::vector<Sequence>& sequences);

bool is_encoder(const Model& model);
// Rows of all sequences behind each other. Passes of at most options.chunk tokens (0: as many as
// the session takes), but of one sequence at least. hidden_states_0 ... if wanted, and the outputs:
// logits and probabilities of a classifier, logits of tokens, start_logits and end_logits, or
// last_hidden_state, pooler_output, embedding_mean and embedding_cls.
std::vector<NamedTensor> run_encoder(const Model& model, const RunOptions& options,
                                     const std::vector<Sequence>& sequences,
                                     const TokenTypes& types, bool hidden_states);

}  // namespace mote::tool
