#include "models/tokenizers/charsmap.h"

#include <cstring>

#include "core/utf8.h"
#include "models/tokenizers/text_part.h"

namespace mote {
namespace {

constexpr char kKey[] = "tokenizer.ggml.precompiled_charsmap";
constexpr size_t kMaxKey = 5;  // bytes that find() is asked for

// Darts-clone's unit: a label and where the children are, or a value.
bool has_leaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t value_of(uint32_t unit) { return unit & 0x7fffffffu; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000ffu; }
size_t offset_of(uint32_t unit) { return size_t{unit >> 10} << ((unit & 0x200u) >> 6); }

Status damaged(const GgufFile& file, const char* what) {
  return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %s: %s", static_cast<int>(file.name().size()),
              file.name().data(), kKey, what);
}

}  // namespace

uint32_t Charsmap::unit(size_t at) const {
  uint32_t value;
  std::memcpy(&value, trie_ + at * sizeof value, sizeof value);
  return value;
}

// From a node (its children begin there) to the child of this byte.
bool Charsmap::step(uint8_t byte, size_t* node) const {
  const size_t at = *node ^ byte;
  if (byte == 0 || at >= units_) return false;
  const uint32_t found = unit(at);
  if (label_of(found) != byte) return false;
  *node = at ^ offset_of(found);
  if (*node >= units_) return false;
  return true;
}

bool Charsmap::replacement_of(size_t node, std::string_view* replacement) const {
  const size_t start = value_of(unit(node));
  if (start > texts_.size()) return false;
  const size_t end = texts_.find('\0', start);
  *replacement = text_part(texts_, start, end == std::string_view::npos ? texts_.size() : end);
  return true;
}

Status Charsmap::open(const GgufFile& file) {
  const GgufKey* key = file.find(kKey);
  if (!key) return kOk;
  const bool is_i8 = key->type == GgufType::array && key->element == GgufType::i8;
  MOTE_TRY(file.get_array(kKey, is_i8 ? GgufType::i8 : GgufType::u8, 0, &key));
  if (key->count == 0) return kOk;
  uint32_t trie_bytes = 0;
  if (key->count < sizeof trie_bytes) return damaged(file, "expected a trie, found the end");
  std::memcpy(&trie_bytes, key->data, sizeof trie_bytes);
  if (trie_bytes < 4 || trie_bytes % 4 || trie_bytes > key->count - sizeof trie_bytes)
    return fail(MOTE_ERROR_BAD_FILE,
                "%.*s: key %s: expected a trie of at most %llu bytes, found %u bytes",
                static_cast<int>(file.name().size()), file.name().data(), kKey,
                static_cast<unsigned long long>(key->count - sizeof trie_bytes), trie_bytes);
  trie_ = key->data + sizeof trie_bytes;
  units_ = trie_bytes / 4;
  texts_ = {reinterpret_cast<const char*>(trie_) + trie_bytes,
            static_cast<size_t>(key->count) - sizeof trie_bytes - trie_bytes};
  return walk(file);
}

// Looks at every key of up to kMaxKey bytes. A trie has no more nodes than units.
Status Charsmap::walk(const GgufFile& file) {
  struct Level {
    size_t node;
    uint32_t next;  // byte to try
  };
  Level levels[kMaxKey + 1];
  const size_t root = offset_of(unit(0));
  if (root >= units_) return damaged(file, "the trie has no root");
  levels[0] = {root, 1};
  size_t depth = 0, visited = 0;
  while (true) {
    Level& level = levels[depth];
    if (level.next > 255 || depth == kMaxKey) {
      if (depth-- == 0) return kOk;
      continue;
    }
    const uint8_t byte = static_cast<uint8_t>(level.next++);
    const size_t at = level.node ^ byte;
    size_t child = level.node;
    if (!step(byte, &child)) continue;
    if (++visited > units_) return damaged(file, "the trie has more nodes than units");
    ++depth;
    levels[depth] = {child, 1};
    if (!has_leaf(unit(at))) continue;
    std::string_view text;
    if (!replacement_of(child, &text)) return damaged(file, "the trie names a text behind the end");
    size_t characters = 0;
    for (size_t i = 0; i < text.size(); ++characters) {
      const CodePoint point = read_utf8(text, i);
      if (!point.valid) return damaged(file, "expected UTF-8 texts");
      i += point.length;
    }
    const size_t growth = (characters + depth - 1) / depth;
    if (growth > growth_) growth_ = growth;
  }
}

bool Charsmap::find(std::string_view text, std::string_view* replacement) const {
  if (!units_) return false;
  size_t node = offset_of(unit(0));
  for (char c : text) {
    const size_t at = node ^ static_cast<uint8_t>(c);
    if (!step(static_cast<uint8_t>(c), &node)) return false;
    if (has_leaf(unit(at))) return replacement_of(node, replacement);
  }
  return false;
}

}  // namespace mote
