// The weights of a folder against an architecture's rules.
#include <algorithm>
#include <cstring>

#include "tools/developer/import_architecture.h"
#include "tools/failure.h"

namespace mote::tool {
namespace {

using S = Size;

uint64_t size_of(Size size, const ImportSizes& sizes) {
  switch (size) {
    case S::hidden:
      return sizes.hidden;
    case S::queries:
      return uint64_t{sizes.heads} * sizes.head_dim;
    case S::keys:
      return uint64_t{sizes.kv_heads} * sizes.head_dim;
    case S::query_key_value:
      return uint64_t{sizes.heads + 2 * sizes.kv_heads} * sizes.head_dim;
    case S::head:
      return sizes.head_dim;
    case S::feed_forward:
      return sizes.feed_forward;
    case S::gate_up:
      return 2 * uint64_t{sizes.feed_forward};
    case S::vocabulary:
      return sizes.vocabulary;
    case S::embedding:
      return sizes.embedding;
    case S::positions:
      return sizes.positions;
    case S::token_types:
      return sizes.token_types;
    case S::buckets:
      return sizes.buckets;
    case S::heads:
      return sizes.heads;
    case S::labels:
      return sizes.labels;
    case S::span:
      return 2;
    case S::none:
      break;
  }
  return 0;
}

bool expected(Presence presence, uint32_t layer, const ImportSizes& sizes) {
  if (presence == kNotFirst) return layer > 0;
  return presence == kAlways || presence == kOptional || (sizes.present & presence);
}

bool is_small(Size rows) {
  return rows == S::positions || rows == S::token_types || rows == S::buckets ||
         rows == S::labels || rows == S::span;
}

std::string with_layer(const char* pattern, uint32_t layer) {
  std::string name = pattern;
  const size_t at = name.find('#');
  return at == std::string::npos ? name : name.replace(at, 1, std::to_string(layer));
}

bool begins_with(const std::string& text, const std::string& begin) {
  return text.compare(0, begin.size(), begin) == 0;
}
bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Old checkpoints hold tables that are computed and not learned, tied ones a copy of the embedding,
// and those of encoders what pre-training had beside the class that config.json names.
bool is_redundant(const std::string& name, const ImportArchitecture& architecture,
                  const ImportSizes& sizes) {
  if (ends_with(name, ".rotary_emb.inv_freq")) return true;
  if (!architecture.encoder) return !(sizes.present & kUntied) && name == "lm_head.weight";
  static const char* const kOfPreTraining[] = {
      "pooler.",         "cls.",        "lm_head.",   "predictions.",
      "sop_classifier.", "vocab_",      "generator_", "discriminator_predictions.",
      "decoder.weight",  "decoder.bias"};
  if (ends_with(name, "embeddings.position_ids")) return true;
  const std::string prefix = architecture.encoder->prefix;
  const std::string rest = begins_with(name, prefix) ? name.substr(prefix.size()) : name;
  return std::any_of(std::begin(kOfPreTraining), std::end(kOfPreTraining),
                     [&](const char* begin) { return begins_with(rest, begin); });
}

class Matcher {
 public:
  Matcher(const HuggingFaceFolder& folder, const ImportArchitecture& architecture,
          const ImportSizes& sizes)
      : folder_(folder), architecture_(architecture), sizes_(sizes) {
    if (!architecture.encoder) return;
    const std::string prefix = architecture.encoder->prefix;
    for (const auto& [name, weight] : folder.weights())
      if (begins_with(name, prefix)) prefix_ = prefix;
  }

  void take(const TensorRule& rule, uint32_t layer) {
    if (!expected(rule.presence, layer, sizes_)) return;
    std::string name = with_layer(rule.source, layer);
    if (name[0] == '@') name = prefix_ + name.substr(1);
    auto found = folder_.weights().find(name);
    if (found == folder_.weights().end()) found = folder_.weights().find(old_name(name));
    if (found == folder_.weights().end()) {
      if (rule.presence != kOptional) missing_.push_back(name);
      return;
    }
    used_.push_back(found->first);
    ImportTensor tensor;
    tensor.target = with_layer(rule.target, layer);
    tensor.source = found->second;
    tensor.vector = rule.columns == S::none;
    tensor.table = rule.rows == S::vocabulary;
    tensor.exact = is_small(rule.rows);
    if (rule.role == Role::head_rows && architecture_.interleaved)
      tensor.interleaved_head = sizes_.head_dim;
    if (rule.role == Role::norm) tensor.offset = architecture_.norm_offset;
    std::vector<uint64_t> shape = {size_of(rule.rows, sizes_)};
    if (!tensor.vector) shape.push_back(size_of(rule.columns, sizes_));
    tensor.rows = shape[0];
    tensor.columns = tensor.vector ? 1 : shape[1];
    const SafetensorsEntry& entry = *tensor.source.entry;
    if (entry.shape != shape) {
      SafetensorsEntry wanted = entry;
      wanted.shape = shape;
      throw Failure(tensor.source.file->path() + ": tensor " + name + ": expected " +
                    wanted.describe() + " by config.json, found " + entry.describe());
    }
    if (entry.dtype != "F32" && entry.dtype != "F16" && entry.dtype != "BF16" &&
        entry.dtype != "F64")
      throw Failure(tensor.source.file->path() + ": tensor " + name +
                    ": expected F32, F16, BF16 or F64, found " + entry.describe());
    if (rule.rows == S::positions) {
      tensor.first_row = sizes_.first_position;
      tensor.rows -= tensor.first_row;
    }
    tensors_.push_back(std::move(tensor));
  }

  std::vector<ImportTensor> finish() {
    if (!missing_.empty()) throw Failure(folder_.path() + ": missing tensors: " + list(missing_));
    std::sort(used_.begin(), used_.end());
    std::vector<std::string> extra;
    for (const auto& [name, weight] : folder_.weights())
      if (!std::binary_search(used_.begin(), used_.end(), name) &&
          !is_redundant(name, architecture_, sizes_))
        extra.push_back(name);
    if (!extra.empty())
      throw Failure(folder_.path() +
                    ": tensors that config.json does not account for: " + list(extra));
    return std::move(tensors_);
  }

 private:
  // Norms of the first BERT checkpoints have other names.
  static std::string old_name(const std::string& name) {
    for (const auto& [now, then] : {std::pair("LayerNorm.weight", "LayerNorm.gamma"),
                                    std::pair("LayerNorm.bias", "LayerNorm.beta")})
      if (ends_with(name, now)) return name.substr(0, name.size() - std::strlen(now)) + then;
    return name;
  }
  static std::string list(const std::vector<std::string>& names) {
    constexpr size_t kShown = 5;
    std::string text;
    for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i ? ", " : "") + names[i];
    return names.size() <= kShown
               ? text
               : text + " and " + std::to_string(names.size() - kShown) + " more";
  }

  const HuggingFaceFolder& folder_;
  const ImportArchitecture& architecture_;
  const ImportSizes& sizes_;
  std::string prefix_;  // of the body's names in this folder
  std::vector<ImportTensor> tensors_;
  std::vector<std::string> used_, missing_;
};

}  // namespace

std::vector<ImportTensor> match_tensors(const HuggingFaceFolder& folder,
                                        const ImportArchitecture& architecture,
                                        const ImportSizes& sizes) {
  Matcher matcher(folder, architecture, sizes);
  const auto each = [&](bool layered, uint32_t layer) {
    for (const List<TensorRule>& group : architecture.tensors)
      for (const TensorRule& rule : group)
        if ((std::strchr(rule.source, '#') != nullptr) == layered) matcher.take(rule, layer);
  };
  each(false, 0);
  for (uint32_t layer = 0; layer < sizes.blocks; ++layer) each(true, layer);
  if (architecture.head)
    for (const TensorRule& rule : architecture.head->tensors) matcher.take(rule, 0);
  return matcher.finish();
}

}  // namespace mote::tool
