// Finding keys and tensors by name, and reading a key's value as what the caller expects.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/gguf.h"

namespace mote {
namespace {

template <class T>
T load(const uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

template <class T>
const T* find_by_name(const HeapArray<T>& items, const HeapArray<uint32_t>& index,
                      std::string_view name) {
  const uint32_t* found =
      std::lower_bound(index.begin(), index.end(), name,
                       [&](uint32_t i, std::string_view wanted) { return items[i].name < wanted; });
  return found != index.end() && items[*found].name == name ? &items[*found] : nullptr;
}

}  // namespace

const char* type_name(GgufType type) {
  constexpr const char* kNames[] = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                    "bool", "text", "array", "u64", "i64", "f64"};
  const uint32_t id = static_cast<uint32_t>(type);
  return id < sizeof kNames / sizeof *kNames ? kNames[id] : "unknown";
}

size_t type_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::text:
    case GgufType::array:
      return 0;
  }
  return 0;
}

bool GgufTexts::next(std::string_view* text) {
  if (left_ == 0) return false;
  const uint64_t length = load<uint64_t>(next_);
  *text = {reinterpret_cast<const char*>(next_) + 8, static_cast<size_t>(length)};
  next_ += 8 + length;
  --left_;
  return true;
}

const GgufKey* GgufFile::find(std::string_view key) const {
  return find_by_name(keys_, key_index_, key);
}

const Tensor* GgufFile::find_tensor(std::string_view name) const {
  return find_by_name(tensors_, tensor_index_, name);
}

Status GgufFile::wrong_type(const GgufKey& key, const char* expected) const {
  const bool array = key.type == GgufType::array;
  return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %.*s: expected %s, found %s%s", MOTE_SHOW(name_),
              MOTE_SHOW(key.name), expected, array ? "array of " : "", type_name(key.element));
}

const GgufKey* GgufFile::need(std::string_view key, Status* status) const {
  const GgufKey* found = find(key);
  if (!found)
    *status =
        fail(MOTE_ERROR_BAD_FILE, "%.*s: key %.*s is missing", MOTE_SHOW(name_), MOTE_SHOW(key));
  return found;
}

namespace {

// Any integer type, as sign and magnitude so that u64 fits too.
bool load_integer(const GgufKey& key, bool* negative, uint64_t* magnitude) {
  int64_t value = 0;
  switch (key.type) {
    case GgufType::u8:
      value = load<uint8_t>(key.data);
      break;
    case GgufType::i8:
      value = load<int8_t>(key.data);
      break;
    case GgufType::u16:
      value = load<uint16_t>(key.data);
      break;
    case GgufType::i16:
      value = load<int16_t>(key.data);
      break;
    case GgufType::u32:
      value = load<uint32_t>(key.data);
      break;
    case GgufType::i32:
      value = load<int32_t>(key.data);
      break;
    case GgufType::i64:
      value = load<int64_t>(key.data);
      break;
    case GgufType::u64:
      *negative = false;
      *magnitude = load<uint64_t>(key.data);
      return true;
    default:
      return false;
  }
  *negative = value < 0;
  *magnitude = *negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  return true;
}

}  // namespace

Status GgufFile::get_u32(std::string_view key, uint32_t* value) const {
  Status status;
  const GgufKey* found = need(key, &status);
  if (!found) return status;
  bool negative = false;
  uint64_t magnitude = 0;
  if (!load_integer(*found, &negative, &magnitude)) return wrong_type(*found, "an integer");
  if (negative || magnitude > UINT32_MAX)
    return fail(MOTE_ERROR_BAD_FILE,
                "%.*s: key %.*s: expected an integer from 0 to 4294967295, found %s%llu",
                MOTE_SHOW(name_), MOTE_SHOW(key), negative ? "-" : "",
                static_cast<unsigned long long>(magnitude));
  *value = static_cast<uint32_t>(magnitude);
  return kOk;
}

Status GgufFile::get_f32(std::string_view key, float* value) const {
  Status status;
  const GgufKey* found = need(key, &status);
  if (!found) return status;
  double number = 0;
  bool negative = false;
  uint64_t magnitude = 0;
  if (found->type == GgufType::f32)
    number = load<float>(found->data);
  else if (found->type == GgufType::f64)
    number = load<double>(found->data);
  else if (load_integer(*found, &negative, &magnitude))
    number = negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
  else
    return wrong_type(*found, "a number");
  if (!(std::fabs(number) <= 3.4028234663852886e38))  // not NaN either
    return fail(MOTE_ERROR_BAD_FILE,
                "%.*s: key %.*s: expected a finite number of f32's range, found %g",
                MOTE_SHOW(name_), MOTE_SHOW(key), number);
  *value = static_cast<float>(number);
  return kOk;
}

Status GgufFile::get_text(std::string_view key, std::string_view* value) const {
  Status status;
  const GgufKey* found = need(key, &status);
  if (!found) return status;
  if (found->type != GgufType::text) return wrong_type(*found, "text");
  *value = {reinterpret_cast<const char*>(found->data), static_cast<size_t>(found->bytes)};
  return kOk;
}

Status GgufFile::get_bool(std::string_view key, bool fallback, bool* value) const {
  const GgufKey* found = find(key);
  if (found && found->type != GgufType::boolean) return wrong_type(*found, "bool");
  *value = found ? *found->data != 0 : fallback;
  return kOk;
}

Status GgufFile::get_u32(std::string_view key, uint32_t fallback, uint32_t* value) const {
  if (find(key)) return get_u32(key, value);
  *value = fallback;
  return kOk;
}

Status GgufFile::get_f32(std::string_view key, float fallback, float* value) const {
  if (find(key)) return get_f32(key, value);
  *value = fallback;
  return kOk;
}

Status GgufFile::get_text(std::string_view key, std::string_view fallback,
                          std::string_view* value) const {
  if (find(key)) return get_text(key, value);
  *value = fallback;
  return kOk;
}

Status GgufFile::get_array(std::string_view key, GgufType element, uint64_t count,
                           const GgufKey** value) const {
  Status status;
  const GgufKey* found = need(key, &status);
  if (!found) return status;
  if (found->type != GgufType::array || found->element != element) {
    char expected[32] = "array of ";
    std::strncat(expected, type_name(element), sizeof expected - 10);
    return wrong_type(*found, expected);
  }
  if (count != 0 && found->count != count)
    return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %.*s: expected %llu elements, found %llu",
                MOTE_SHOW(name_), MOTE_SHOW(key), static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(found->count));
  *value = found;
  return kOk;
}

}  // namespace mote
