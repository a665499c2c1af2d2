// Hugging Face folders for tests: a copy of a tiny model that a test changes before it is written.
#pragma once

#include <map>
#include <string>

#include "tests/support/safetensors.h"
#include "tests/tools/tool_support.h"

namespace mote::test {

// The folder of a case of goldens/tiny: in tests/data/tiny, or where MOTE_SHARED_DIR has them all.
// Empty where it is in neither.
std::string tiny_folder(const std::string& name);

struct Checkpoint {
  Json config;
  std::map<std::string, SafeTensor> tensors;
  std::map<std::string, std::string> files;  // others, by name

  // A case that tiny_folder() finds.
  static Checkpoint load(const std::string& name);
  // A byte-level tokenizer of 300 tokens in the style of SmolLM2, as tokenizer.json has it.
  static Json tokenizer_json();

  // Tensors in this many files with an index, or in one. Returns the folder.
  std::string write(const TemporaryFolder& folder, const std::string& name = "checkpoint",
                    size_t shards = 1) const;
};

std::string safetensors_bytes(const std::map<std::string, SafeTensor>& tensors);

}  // namespace mote::test
