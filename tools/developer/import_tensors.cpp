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
    case S::none:
      break;
  }
  return 0;
}

bool expected(Presence presence, const ImportSizes& sizes) {
  return presence == kAlways || (sizes.present & presence);
}

std::string with_layer(const char* pattern, uint32_t layer) {
  std::string name = pattern;
  const size_t at = name.find('#');
  return at == std::string::npos ? name : name.replace(at, 1, std::to_string(layer));
}

// Old checkpoints hold tables that are computed and not learned, and tied ones a copy of the
// embedding.
bool is_redundant(const std::string& name, const ImportSizes& sizes) {
  const auto ends_with = [&](const char* end) {
    const size_t length = std::strlen(end);
    return name.size() >= length && name.compare(name.size() - length, length, end) == 0;
  };
  return ends_with(".rotary_emb.inv_freq") ||
         (!(sizes.present & kUntied) && name == "lm_head.weight");
}

class Matcher {
 public:
  Matcher(const HuggingFaceFolder& folder, const ImportArchitecture& architecture,
          const ImportSizes& sizes)
      : folder_(folder), architecture_(architecture), sizes_(sizes) {}

  void take(const TensorRule& rule, uint32_t layer) {
    if (!expected(rule.presence, sizes_)) return;
    const std::string name = with_layer(rule.source, layer);
    const auto found = folder_.weights().find(name);
    if (found == folder_.weights().end()) return missing_.push_back(name);
    used_.push_back(name);
    ImportTensor tensor;
    tensor.target = with_layer(rule.target, layer);
    tensor.source = found->second;
    tensor.vector = rule.columns == S::none;
    tensor.table = rule.rows == S::vocabulary;
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
    tensors_.push_back(std::move(tensor));
  }

  std::vector<ImportTensor> finish() {
    if (!missing_.empty()) throw Failure(folder_.path() + ": missing tensors: " + list(missing_));
    std::sort(used_.begin(), used_.end());
    std::vector<std::string> extra;
    for (const auto& [name, weight] : folder_.weights())
      if (!std::binary_search(used_.begin(), used_.end(), name) && !is_redundant(name, sizes_))
        extra.push_back(name);
    if (!extra.empty())
      throw Failure(folder_.path() +
                    ": tensors that config.json does not account for: " + list(extra));
    return std::move(tensors_);
  }

 private:
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
  for (uint32_t layer = 0; layer < sizes.layers; ++layer) each(true, layer);
  return matcher.finish();
}

}  // namespace mote::tool
