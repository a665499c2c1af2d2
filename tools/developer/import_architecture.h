// What convert knows of each Hugging Face architecture: data that says which tensor becomes which,
// and a function for the keys. Adding one: a table of tensors and a row in import_architecture.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/developer/gguf_keys.h"
#include "tools/developer/hugging_face.h"

namespace mote::tool {

struct ImportSizes {
  uint32_t layers = 0, hidden = 0, feed_forward = 0, vocabulary = 0;
  uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  bool tied_embeddings = false, attention_bias = false, mlp_bias = false;
};

// A size that a shape is made of.
enum class Size : uint8_t { none, hidden, queries, keys, feed_forward, vocabulary };
// When a tensor must be there; otherwise it must not.
enum class Presence : uint8_t { always, untied, attention_bias, mlp_bias };
// What happens to the rows on the way.
enum class Arrange : uint8_t {
  as_is,
  // Of each head, row i of the first half and row i of the second become rows 2i and 2i + 1: files
  // of GGUF's llama architecture turn neighbours, Hugging Face's turn halves.
  interleave_heads
};

struct TensorRule {
  const char* source;  // '#' stands for the layer's number
  const char* target;
  Size rows;
  Size columns;  // none: a vector, which stays f32
  Presence presence;
  Arrange arrange;
};

struct ImportArchitecture {
  const char* class_name;    // of config.json's "architectures"
  const char* architecture;  // of GGUF's general.architecture
  const TensorRule* tensors;
  size_t tensor_count;
  // Reads config.json. Throws Failure for what the architecture cannot express.
  void (*read)(const Config& config, ImportSizes* sizes, GgufKeys* keys);
};

// Throws Failure that lists what is known.
const ImportArchitecture& find_import_architecture(const Config& config);

// One tensor of the file to be written.
struct ImportTensor {
  std::string target;
  HuggingFaceFolder::Weight source;
  uint64_t rows = 0, columns = 0;  // a vector has rows of one value
  bool vector = false;
  bool table = false;             // an embedding or the output head
  uint32_t interleaved_head = 0;  // rows of a head, or 0
};

// Matches the folder's weights against the rules. Missing, extra and misshaped tensors are a
// Failure that names them.
std::vector<ImportTensor> match_tensors(const HuggingFaceFolder& folder,
                                        const ImportArchitecture& architecture,
                                        const ImportSizes& sizes);

// Rotary settings of both config styles (rope_theta and rope_scaling; rope_parameters).
struct RopeSettings {
  double base = 10000.0;
  std::string type = "default";
  Config parameters;  // factor, original_max_position_embeddings, ...
};
RopeSettings read_rope(const Config& config);
// Keys for them under "<architecture>.rope."; llama3 is not a key but the tensor rope_freqs.weight.
void set_rope_keys(const Config& config, const RopeSettings& rope, const std::string& architecture,
                   GgufKeys* keys);
// Values of rope_freqs.weight: what the frequency of each pair is divided by. Empty: there is none.
std::vector<float> rope_divisors(const RopeSettings& rope, uint32_t rotary_dimensions);

}  // namespace mote::tool
