#include "models/tokenizers/vocabulary.h"

namespace mote {
namespace {

constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kTypes[] = "tokenizer.ggml.token_type";

int shown(size_t length) { return static_cast<int>(length < 64 ? length : 64); }

}  // namespace

Status Vocabulary::open(const GgufFile& file, Allocator& allocator) {
  const int name_length = static_cast<int>(file.name().size());
  const char* name = file.name().data();
  const GgufKey* key = nullptr;
  MOTE_TRY(file.get_array(kTokens, GgufType::text, 0, &key));
  if (key->count == 0 || key->count > INT32_MAX)
    return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %s: expected 1 to 2147483647 tokens, found %llu",
                name_length, name, kTokens, static_cast<unsigned long long>(key->count));
  if (key->bytes > UINT32_MAX)
    return fail(MOTE_ERROR_BAD_FILE,
                "%.*s: key %s: expected less than 4 GiB of texts, found %llu bytes", name_length,
                name, kTokens, static_cast<unsigned long long>(key->bytes));
  const size_t count = static_cast<size_t>(key->count);
  texts_ = key->data;
  MOTE_TRY(offsets_.allocate(allocator, count, "offsets of tokens"));
  MOTE_TRY(index_.allocate(allocator, count, "index of tokens"));
  GgufTexts texts(*key);
  for (size_t id = 0; id < count; ++id) {
    std::string_view text;
    if (!texts.next(&text))
      return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %s: ends after %zu of %zu tokens", name_length,
                  name, kTokens, id, count);
    offsets_[id] = static_cast<uint32_t>(reinterpret_cast<const uint8_t*>(text.data()) - texts_);
    if (text.size() > longest_) longest_ = text.size();
    if (text.empty()) continue;
    TextHash hash;
    hash.add(text);
    const int32_t other = index_.insert(hash.value(), static_cast<uint32_t>(id), [&](uint32_t i) {
      return this->text(static_cast<int32_t>(i)) == text;
    });
    if (other >= 0)
      return fail(MOTE_ERROR_BAD_FILE,
                  "%.*s: key %s: tokens %d and %zu have the same text \"%.*s\"", name_length, name,
                  kTokens, other, id, shown(text.size()), text.data());
  }
  return read_types(file, allocator);
}

Status Vocabulary::read_types(const GgufFile& file, Allocator& allocator) {
  MOTE_TRY(types_.allocate(allocator, offsets_.size(), "types of tokens"));
  const GgufKey* key = file.find(kTypes);
  has_types_ = key != nullptr;
  if (!key) {
    for (TokenType& type : types_) type = TokenType::normal;
    return kOk;
  }
  const bool is_u32 = key->type == GgufType::array && key->element == GgufType::u32;
  MOTE_TRY(file.get_array(kTypes, is_u32 ? GgufType::u32 : GgufType::i32, offsets_.size(), &key));
  for (size_t id = 0; id < types_.size(); ++id) {
    uint32_t value;
    std::memcpy(&value, key->data + id * sizeof(value), sizeof(value));
    if (value > 6)
      return fail(MOTE_ERROR_BAD_FILE,
                  "%.*s: key %s: token %zu: expected a type of 0 to 6, found %d",
                  static_cast<int>(file.name().size()), file.name().data(), kTypes, id,
                  static_cast<int32_t>(value));
    types_[id] = value == 0 ? TokenType::normal : static_cast<TokenType>(value);  // 0: undefined
  }
  return kOk;
}

}  // namespace mote
