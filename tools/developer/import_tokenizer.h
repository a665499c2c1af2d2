// tokenizer.json and its companions to tokenizer.ggml.* keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tools/developer/gguf_keys.h"
#include "tools/developer/hugging_face.h"

namespace mote::tool {

using Warn = std::function<void(const std::string&)>;

// Sets tokenizer.* and mote.* keys for a vocabulary of vocab_size tokens. A folder without
// tokenizer files is a warning; a tokenizer that cannot be expressed is a Failure that shows what
// is not known. Read are tokenizer.json (WordPiece, Unigram, byte-level BPE); without it vocab.txt,
// vocab.json with merges.txt, or a SentencePiece model, which BPE with byte_fallback needs in any
// case. What tokenizer.json says of truncation and padding does not count.
void import_tokenizer(const HuggingFaceFolder& folder, uint32_t vocab_size, GgufKeys* keys,
                      const Warn& warn);

// Name of a pre-tokenizer by its exact text: tokenizer.json's "pre_tokenizer". Empty: not known.
std::string pre_tokenizer_name(const nlohmann::json& pre_tokenizer);

}  // namespace mote::tool
