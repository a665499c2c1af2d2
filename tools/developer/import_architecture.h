// What convert knows of each Hugging Face architecture: data that says which tensor becomes which,
// which setting becomes which key, and which settings it must have. Adding one: a row in
// import_architecture.cpp, and a group of tensors where it has some that no other has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/developer/gguf_keys.h"
#include "tools/developer/hugging_face.h"

namespace mote::tool {

// A constant array and its length.
template <class T>
struct List {
  const T* items = nullptr;
  size_t count = 0;

  constexpr List() = default;
  template <size_t N>
  constexpr List(const T (&array)[N]) : items(array), count(N) {}
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }
};

// A size that a shape is made of. heads: of queries and keys in one matrix with the values;
// gate_up: both matrices of the feed-forward in one. The last ones are of encoders; span: start and
// end of an answer.
enum class Size : uint8_t {
  none,
  hidden,
  queries,
  keys,
  query_key_value,
  head,
  feed_forward,
  gate_up,
  vocabulary,
  embedding,
  positions,
  token_types,
  buckets,
  heads,
  labels,
  span
};

// When a tensor must be there; otherwise it must not. Each has its bit in ImportSizes::present, but
// for the last two.
enum Presence : uint8_t {
  kAlways = 0,
  kUntied = 1,
  kQkvBias = 2,
  kOutputBias = 4,
  kMlpBias = 8,
  kFeedForwardNorm = 16,
  kOptional = 128,  // taken where it is
  kNotFirst = 129   // in all layers but the first
};

enum class Role : uint8_t {
  plain,
  head_rows,  // rows of query or key heads: see ImportArchitecture::interleaved
  norm        // see ImportArchitecture::norm_offset
};

struct TensorRule {
  // '#' stands for the layer's number, '@' for what the names of a model's body begin with in files
  // of models with a head.
  const char* source;
  const char* target;
  Size rows;
  Size columns = Size::none;  // none: a vector, which stays f32
  Role role = Role::plain;
  Presence presence = kAlways;
};

// A setting that decides about tensors. Without a key: always so.
struct SwitchRule {
  const char* key;
  bool fallback;
  uint8_t presence;       // the bits that it sets
  bool inverted = false;  // they are there where the setting is false
};

// A setting that becomes a key of its own.
struct KeyRule {
  enum class Kind : uint8_t {
    real,
    epsilon,       // real, in [0, 1)
    cap,           // null: none, which is 0
    inverse_root,  // 1 / sqrt(setting)
    boolean
  };
  const char* source;
  const char* target;  // behind "<architecture>."
  Kind kind;
  double fallback;  // where the setting is absent, as the architecture's class has it
};

// A setting that has no other value here. Absent or null is the same as expected.
struct Demand {
  const char* key;
  const char* expected;  // JSON
};

// Which layers see a window only.
struct WindowRule {
  enum class Kind : uint8_t { none, every_layer, some_layers };
  Kind kind = Kind::none;
  const char* switch_key = nullptr;  // a setting that must be true for windows to be
  const char* first_key = nullptr;   // the first layer that has one, where layer_types is absent
  uint32_t global_every = 0;         // the reader's pattern: layers whose number it divides see all
  uint32_t fallback = 0;             // the window where the setting is absent; null means none
  const char* size_key = "sliding_window";
  const char* period_key = nullptr;  // as sliding_window_pattern
  bool global_first = false;         // layers 0, period, 2 * period, ... see all
};

struct RopeRule {
  bool present = true;
  double base = 10000.0;        // where the setting is absent
  double partial = 1.0;         // share of a head that turns, where the setting is absent
  bool may_be_partial = false;  // whether the setting is one of this architecture
  bool local_base = false;      // layers with a window have a base of their own
  uint32_t unturned_every = 0;  // the reader's pattern, in the same way
  // Settings of another name in older configs.
  const char *base_key = "rope_theta", *local_base_key = "rope_local_base_freq";
};

// A setting that this architecture's configs have under another name.
struct Alias {
  const char *usual, *own;
};

// What an encoder's class adds behind the last layer.
struct HeadRule {
  const char* class_suffix;  // behind the family's name: "ForTokenClassification"
  const char* task;          // of mote.task
  List<TensorRule> tensors;
  // Of the dense matrix cls.weight, where the folder has one: as mote.head.activation, or as the
  // setting of that name, translated.
  const char* activation = "none";
  const char* activation_key = nullptr;
  const char* pooling_key = nullptr;  // setting: cls or mean
};

// What only encoders have. Null in ImportArchitecture: a generator.
struct EncoderRule {
  const char* prefix;    // for '@'
  List<HeadRule> heads;  // the body alone first
  const char* activation_key = "hidden_act";
  const char* activation = "gelu";  // where the setting is absent
  bool token_types = true;
  // Positions are counted from pad_token_id + 1, and the rows before are never read.
  bool padded_positions = false;
  bool embedding_size = false;  // the embedding may have a width of its own
  bool groups = false;          // layers may share tensors
  bool buckets = false;         // a bias by relative distance
  double epsilon = 0.0;         // not a setting but this; 0: a setting
};

struct ImportArchitecture {
  const char* class_name;    // of config.json's "architectures"
  const char* architecture;  // of GGUF's general.architecture
  List<List<TensorRule>> tensors;
  List<SwitchRule> switches;
  List<KeyRule> keys;
  List<Demand> demands;
  // Rows of q and k: row i of a head's first half and row i of its second become rows 2i and
  // 2i + 1, as files of some of GGUF's architectures turn neighbours, where Hugging Face's turn
  // halves.
  bool interleaved = false;
  float norm_offset = 0.0f;  // added to norms: Gemma's are stored as the difference to 1
  uint32_t head_dim = 0;     // where the setting is absent; 0: hidden_size / num_attention_heads
  WindowRule window = {};
  RopeRule rope = {};
  List<Alias> aliases = {};
  const EncoderRule* encoder = nullptr;
  const HeadRule* head = nullptr;

  // The name under which the config has a setting: the usual one, or this architecture's own.
  const char* setting(const Config& config, const char* usual) const;
};

struct ImportSizes {
  uint32_t layers = 0, hidden = 0, feed_forward = 0, vocabulary = 0;
  uint32_t heads = 0, kv_heads = 0, head_dim = 0, rotary = 0;
  uint32_t blocks = 0;  // layers with tensors of their own
  uint32_t embedding = 0, positions = 0, first_position = 0, token_types = 0, buckets = 0,
           labels = 0;
  uint8_t present = 0;  // bits of Presence
};

// Of config.json's class. Throws Failure that lists what is known.
ImportArchitecture find_import_architecture(const HuggingFaceFolder& folder);
// The encoder of that class; false: it is none. body: its family's class without a head instead.
bool find_import_encoder(const std::string& class_name, bool body,
                         ImportArchitecture* architecture);
// Whether sentence-transformers' files say how to pool. Such folders hold a body only, whatever
// class config.json names.
bool is_sentence_model(const HuggingFaceFolder& folder);
std::string import_encoder_names();

// Reads config.json. Throws Failure for what the architecture cannot express.
void read_architecture(const Config& config, const ImportArchitecture& architecture,
                       ImportSizes* sizes, GgufKeys* keys);
// What only encoders have: sizes and keys.
void read_encoder(const Config& config, const ImportArchitecture& architecture, ImportSizes* sizes,
                  GgufKeys* keys);
// The head's keys: task, activation, labels; pooled: the folder has a dense matrix for it.
void read_head(const Config& config, const ImportArchitecture& architecture,
               const ImportSizes& sizes, bool dense, GgufKeys* keys);
// What sentence-transformers' files beside the model say: pooling, normalisation, length limit.
void read_sentence_settings(const HuggingFaceFolder& folder, const ImportArchitecture& architecture,
                            GgufKeys* keys);
// Settings of config.json that nothing here knows, and that may change what the model computes.
std::vector<std::string> unknown_settings(const Config& config,
                                          const ImportArchitecture& architecture);

// Which layers see a window, and how long it is; which have no rotary positions.
void set_layer_keys(const Config& config, const ImportArchitecture& architecture, uint32_t layers,
                    GgufKeys* keys);

// One tensor of the file to be written.
struct ImportTensor {
  std::string target;
  HuggingFaceFolder::Weight source;
  uint64_t rows = 0, columns = 0;  // a vector has rows of one value
  bool vector = false;
  bool table = false;             // an embedding or the output head
  bool exact = false;             // small, and stays f32: positions, token types, labels
  uint64_t first_row = 0;         // rows before it are left out
  uint32_t interleaved_head = 0;  // rows of a head, or 0
  float offset = 0.0f;            // added to every value
};

// Matches the folder's weights against the rules. Missing, extra and misshaped tensors are a
// Failure that names them.
std::vector<ImportTensor> match_tensors(const HuggingFaceFolder& folder,
                                        const ImportArchitecture& architecture,
                                        const ImportSizes& sizes);

// Rotary settings of both config styles (rope_theta and rope_scaling; rope_parameters).
struct RopeSettings {
  double base = 0.0;
  double local_base = 0.0;  // of layers with a window; 0: the same
  double partial = 1.0;
  std::string type = "default";
  Config parameters;  // factor, original_max_position_embeddings, ...
};
RopeSettings read_rope(const Config& config, const RopeRule& rule);
// Keys for them under "<architecture>.rope."; llama3 is not a key but the tensor rope_freqs.weight.
void set_rope_keys(const Config& config, const RopeSettings& rope, const std::string& architecture,
                   GgufKeys* keys);
// Values of rope_freqs.weight: what the frequency of each pair is divided by. Empty: there is none.
std::vector<float> rope_divisors(const RopeSettings& rope, uint32_t rotary_dimensions);

}  // namespace mote::tool
