// Format: the GGUF specification of the ggml project, versions 2 and 3. All integers are
// little-endian.
#include "core/gguf.h"

#include "core/slice.h"

#include <algorithm>
#include <cstring>

namespace mote {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are read in place");

namespace {

constexpr uint64_t kMaximumNameBytes = 65535;  // the specification's limit for keys
constexpr uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr size_t kFirstCapacity = 256;

template <class T>
T load(const uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

// Formats that people try to open by mistake, by their first bytes.
struct Beginning {
  std::string_view bytes;
  const char* meaning;
};
constexpr Beginning kBeginnings[] = {
    {"FUGG", "a big-endian GGUF file"},
    {"lmgg", "a GGML file from before GGUF"},
    {"fmgg", "a GGML file from before GGUF"},
    {"tjgg", "a GGML file from before GGUF"},
    {"version https://git-lfs", "a Git LFS pointer: the model itself was not downloaded"},
    {"PK\x03\x04", "a zip archive (a PyTorch checkpoint?)"},
    {"<!DOCTYPE", "a web page"},
    {"<html", "a web page"},
};

// Doubles the room of an array up to `limit` elements; the first `used` stay.
template <class T>
Status grow(HeapArray<T>* array, size_t used, uint64_t limit, Allocator& allocator,
            const char* what) {
  if (used < array->size()) return kOk;
  const uint64_t wanted = array->empty() ? kFirstCapacity : uint64_t{array->size()} * 2;
  HeapArray<T> larger;
  MOTE_TRY(larger.allocate(allocator, static_cast<size_t>(std::min(wanted, limit)), what));
  if (used > 0) std::memcpy(static_cast<void*>(larger.data()), array->data(), used * sizeof(T));
  *array = std::move(larger);
  return kOk;
}

// Indices of `items` in the order of their names; *twice: one whose name occurs twice, or null.
template <class T>
Status sort_by_name(const HeapArray<T>& items, HeapArray<uint32_t>* index, Allocator& allocator,
                    const T** twice) {
  *twice = nullptr;
  MOTE_TRY(index->allocate(allocator, items.size(), "index of names"));
  for (size_t i = 0; i < items.size(); ++i) (*index)[i] = static_cast<uint32_t>(i);
  std::sort(index->begin(), index->end(), [&](uint32_t a, uint32_t b) {
    const int order = items[a].name.compare(items[b].name);
    return order != 0 ? order < 0 : a < b;
  });
  for (size_t i = 1; i < items.size(); ++i)
    if (items[(*index)[i]].name == items[(*index)[i - 1]].name) *twice = &items[(*index)[i]];
  return kOk;
}

}  // namespace

// One pass from front to back. `at_` never passes size_.
class GgufFile::Reader {
 public:
  Reader(GgufFile* file, const uint8_t* data, size_t bytes, Allocator& allocator)
      : file_(*file), data_(data), size_(bytes), allocator_(allocator) {}

  Status read() {
    uint64_t tensors = 0, keys = 0;
    MOTE_TRY(read_header(&tensors, &keys));
    MOTE_TRY(read_keys(keys));
    MOTE_TRY(find_alignment());
    MOTE_TRY(read_tensors(tensors));
    return place_tensors();
  }

 private:
  uint64_t left() const { return size_ - at_; }

  // Fails where fewer than `bytes` follow. what, item: for the message ("key", its name).
  Status need(uint64_t bytes, const char* what, std::string_view item = {}) const {
    if (bytes <= left()) return kOk;
    return fail(
        MOTE_ERROR_BAD_FILE,
        "%.*s: cut short or damaged: %s%s%.*s at byte %zu needs %llu bytes, the file has %llu more",
        MOTE_SHOW(file_.name_), what, item.empty() ? "" : " ", MOTE_SHOW(item), at_,
        static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(left()));
  }

  template <class T>
  Status take(T* value, const char* what, std::string_view item = {}) {
    MOTE_TRY(need(sizeof(T), what, item));
    *value = load<T>(data_ + at_);
    at_ += sizeof(T);
    return kOk;
  }

  Status take_text(std::string_view* text, const char* what, std::string_view item = {}) {
    uint64_t length = 0;
    MOTE_TRY(take(&length, what, item));
    MOTE_TRY(need(length, what, item));
    *text = {reinterpret_cast<const char*>(data_) + at_, static_cast<size_t>(length)};
    at_ += static_cast<size_t>(length);
    return kOk;
  }

  Status take_name(std::string_view* name, const char* what, uint64_t number) {
    const size_t start = at_;
    MOTE_TRY(take_text(name, what));
    if (name->empty() || name->size() > kMaximumNameBytes)
      return fail(MOTE_ERROR_BAD_FILE,
                  "%.*s: %s %llu at byte %zu: expected 1 to %llu bytes, found %zu",
                  MOTE_SHOW(file_.name_), what, static_cast<unsigned long long>(number), start,
                  static_cast<unsigned long long>(kMaximumNameBytes), name->size());
    return kOk;
  }

  // Before any memory is taken for `count` things: could the file hold so many?
  Status check_count(uint64_t count, uint64_t least_bytes, const char* what,
                     std::string_view item = {}) {
    if (count <= left() / least_bytes && count <= UINT32_MAX) return kOk;
    return fail(MOTE_ERROR_BAD_FILE,
                "%.*s: %s%s%.*s: %llu are more than the %llu bytes that follow can hold",
                MOTE_SHOW(file_.name_), what, item.empty() ? "" : " ", MOTE_SHOW(item),
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(left()));
  }

  Status read_header(uint64_t* tensors, uint64_t* keys) {
    const std::string_view start(reinterpret_cast<const char*>(data_), size_);
    for (const Beginning& beginning : kBeginnings)
      if (slice(start, 0, beginning.bytes.size()) == beginning.bytes)
        return fail(beginning.bytes == "FUGG" ? MOTE_ERROR_UNSUPPORTED : MOTE_ERROR_BAD_FILE,
                    "%.*s: expected a little-endian GGUF file, found %s", MOTE_SHOW(file_.name_),
                    beginning.meaning);
    MOTE_TRY(need(4, "magic"));
    if (slice(start, 0, 4) != "GGUF")
      return fail(MOTE_ERROR_BAD_FILE, "%.*s: not a GGUF file: it begins with %02x %02x %02x %02x",
                  MOTE_SHOW(file_.name_), data_[0], data_[1], data_[2], data_[3]);
    at_ = 4;
    MOTE_TRY(take(&file_.version_, "version"));
    const uint32_t swapped = __builtin_bswap32(file_.version_);
    if (swapped >= 1 && swapped <= 3)
      return fail(MOTE_ERROR_UNSUPPORTED,
                  "%.*s: a big-endian GGUF file (version %u); expected little-endian",
                  MOTE_SHOW(file_.name_), swapped);
    if (file_.version_ != 2 && file_.version_ != 3)
      return fail(file_.version_ == 0 ? MOTE_ERROR_BAD_FILE : MOTE_ERROR_UNSUPPORTED,
                  "%.*s: GGUF version: expected 2 or 3, found %u", MOTE_SHOW(file_.name_),
                  file_.version_);
    MOTE_TRY(take(tensors, "number of tensors"));
    MOTE_TRY(take(keys, "number of keys"));
    MOTE_TRY(check_count(*keys, kLeastKeyBytes, "number of keys"));
    return check_count(*tensors, kLeastTensorBytes, "number of tensors");
  }

  Status read_keys(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      MOTE_TRY(grow(&file_.keys_, static_cast<size_t>(i), count, allocator_, "table of keys"));
      GgufKey key{};
      MOTE_TRY(take_name(&key.name, "key name", i));
      uint32_t type = 0;
      MOTE_TRY(take(&type, "type of key", key.name));
      MOTE_TRY(check_type(type, key.name));
      key.type = key.element = static_cast<GgufType>(type);
      key.count = 1;
      MOTE_TRY(key.type == GgufType::array ? read_array(&key) : read_value(&key));
      file_.keys_[static_cast<size_t>(i)] = key;
    }
    const GgufKey* twice = nullptr;
    MOTE_TRY(sort_by_name(file_.keys_, &file_.key_index_, allocator_, &twice));
    if (twice)
      return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %.*s occurs twice", MOTE_SHOW(file_.name_),
                  MOTE_SHOW(twice->name));
    return kOk;
  }

  Status check_type(uint32_t type, std::string_view key) const {
    if (type <= static_cast<uint32_t>(GgufType::f64)) return kOk;
    return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %.*s: expected a value type 0 to 12, found %u",
                MOTE_SHOW(file_.name_), MOTE_SHOW(key), type);
  }

  Status read_value(GgufKey* key) {
    if (key->type == GgufType::text) {
      std::string_view text;
      MOTE_TRY(take_text(&text, "text of key", key->name));
      key->data = reinterpret_cast<const uint8_t*>(text.data());
      key->bytes = text.size();
      return kOk;
    }
    key->bytes = type_bytes(key->type);
    MOTE_TRY(need(key->bytes, "value of key", key->name));
    key->data = data_ + at_;
    at_ += static_cast<size_t>(key->bytes);
    return key->type == GgufType::boolean ? check_booleans(*key) : kOk;
  }

  Status read_array(GgufKey* key) {
    uint32_t element = 0;
    MOTE_TRY(take(&element, "element type of key", key->name));
    MOTE_TRY(check_type(element, key->name));
    key->element = static_cast<GgufType>(element);
    MOTE_TRY(take(&key->count, "length of key", key->name));
    if (key->element == GgufType::array)
      return fail(MOTE_ERROR_UNSUPPORTED, "%.*s: key %.*s: arrays of arrays are not supported",
                  MOTE_SHOW(file_.name_), MOTE_SHOW(key->name));
    key->data = data_ + at_;
    if (key->element == GgufType::text) {
      MOTE_TRY(check_count(key->count, 8, "array of key", key->name));
      for (uint64_t i = 0; i < key->count; ++i) {
        std::string_view text;
        MOTE_TRY(take_text(&text, "a text in key", key->name));
      }
      key->bytes = static_cast<uint64_t>(data_ + at_ - key->data);
      return kOk;
    }
    MOTE_TRY(check_count(key->count, type_bytes(key->element), "array of key", key->name));
    key->bytes = key->count * type_bytes(key->element);
    at_ += static_cast<size_t>(key->bytes);
    return key->element == GgufType::boolean ? check_booleans(*key) : kOk;
  }

  Status check_booleans(const GgufKey& key) const {
    for (uint64_t i = 0; i < key.bytes; ++i)
      if (key.data[i] > 1)
        return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %.*s: expected a bool of 0 or 1, found %u",
                    MOTE_SHOW(file_.name_), MOTE_SHOW(key.name), key.data[i]);
    return kOk;
  }

  Status find_alignment() {
    const GgufKey* key = file_.find("general.alignment");
    if (!key) return kOk;
    if (key->type != GgufType::u32) return file_.wrong_type(*key, "u32");
    const uint32_t alignment = load<uint32_t>(key->data);
    if (alignment < 8 || (alignment & (alignment - 1)) != 0)
      return fail(MOTE_ERROR_BAD_FILE,
                  "%.*s: key general.alignment: expected a power of two from 8 on, found %u",
                  MOTE_SHOW(file_.name_), alignment);
    file_.alignment_ = alignment;
    return kOk;
  }

  Status read_tensors(uint64_t count) {
    MOTE_TRY(check_count(count, kLeastTensorBytes, "number of tensors"));
    for (uint64_t i = 0; i < count; ++i) {
      MOTE_TRY(
          grow(&file_.tensors_, static_cast<size_t>(i), count, allocator_, "table of tensors"));
      MOTE_TRY(grow(&offsets_, static_cast<size_t>(i), count, allocator_, "table of tensors"));
      Tensor tensor;
      MOTE_TRY(take_name(&tensor.name, "tensor name", i));
      MOTE_TRY(read_shape(&tensor));
      Place& place = offsets_[static_cast<size_t>(i)];
      place.tensor = static_cast<uint32_t>(i);
      MOTE_TRY(take(&place.offset, "offset of tensor", tensor.name));
      if (place.offset % file_.alignment_ != 0)
        return fail(MOTE_ERROR_BAD_FILE,
                    "%.*s: tensor %.*s: expected an offset that is a multiple of %llu, "
                    "found %llu",
                    MOTE_SHOW(file_.name_), MOTE_SHOW(tensor.name),
                    static_cast<unsigned long long>(file_.alignment_),
                    static_cast<unsigned long long>(place.offset));
      file_.tensors_[static_cast<size_t>(i)] = tensor;
    }
    const Tensor* twice = nullptr;
    MOTE_TRY(sort_by_name(file_.tensors_, &file_.tensor_index_, allocator_, &twice));
    if (twice)
      return fail(MOTE_ERROR_BAD_FILE, "%.*s: tensor %.*s occurs twice", MOTE_SHOW(file_.name_),
                  MOTE_SHOW(twice->name));
    return kOk;
  }

  // Dimensions, format, and from them the size; values and bytes stay below 2^63.
  Status read_shape(Tensor* tensor) {
    MOTE_TRY(take(&tensor->dimensions, "number of dimensions of tensor", tensor->name));
    if (tensor->dimensions < 1 || tensor->dimensions > 4)
      return fail(MOTE_ERROR_BAD_FILE, "%.*s: tensor %.*s: expected 1 to 4 dimensions, found %u",
                  MOTE_SHOW(file_.name_), MOTE_SHOW(tensor->name), tensor->dimensions);
    uint64_t values = 1;
    for (uint32_t i = 0; i < tensor->dimensions; ++i) {
      MOTE_TRY(take(&tensor->shape[i], "shape of tensor", tensor->name));
      if (tensor->shape[i] == 0)
        return fail(MOTE_ERROR_BAD_FILE, "%.*s: tensor %.*s: dimension %u is 0",
                    MOTE_SHOW(file_.name_), MOTE_SHOW(tensor->name), i);
      if (__builtin_mul_overflow(values, tensor->shape[i], &values) || values > INT64_MAX)
        return fail(MOTE_ERROR_BAD_FILE,
                    "%.*s: tensor %.*s: dimension %u of %llu makes more than 2^63 values",
                    MOTE_SHOW(file_.name_), MOTE_SHOW(tensor->name), i,
                    static_cast<unsigned long long>(tensor->shape[i]));
    }
    uint32_t id = 0;
    MOTE_TRY(take(&id, "type of tensor", tensor->name));
    const FormatInfo* format = find_format(id);
    if (!format)
      return fail(MOTE_ERROR_UNSUPPORTED, "%.*s: tensor %.*s: unknown tensor type %u",
                  MOTE_SHOW(file_.name_), MOTE_SHOW(tensor->name), id);
    tensor->format = format->format;
    if (tensor->shape[0] % format->values != 0)
      return fail(
          MOTE_ERROR_BAD_FILE,
          "%.*s: tensor %.*s: expected rows of whole %s blocks of %u values, found rows of %llu",
          MOTE_SHOW(file_.name_), MOTE_SHOW(tensor->name), format->name, format->values,
          static_cast<unsigned long long>(tensor->shape[0]));
    if (__builtin_mul_overflow(values / format->values, uint64_t{format->bytes}, &tensor->bytes))
      return fail(MOTE_ERROR_BAD_FILE, "%.*s: tensor %.*s: %llu values make more than 2^64 bytes",
                  MOTE_SHOW(file_.name_), MOTE_SHOW(tensor->name),
                  static_cast<unsigned long long>(values));
    return kOk;
  }

  // The data section begins at the next multiple of the alignment. Every tensor inside, none over
  // another.
  Status place_tensors() {
    const uint64_t count = file_.tensors_.size();
    if (count == 0) return kOk;
    const uint64_t start =
        (uint64_t{at_} + file_.alignment_ - 1) / file_.alignment_ * file_.alignment_;
    if (start > size_)
      return fail(
          MOTE_ERROR_BAD_FILE,
          "%.*s: cut short: the tensor data should begin at byte %llu, the file has %zu bytes",
          MOTE_SHOW(file_.name_), static_cast<unsigned long long>(start), size_);
    const uint64_t room = size_ - start;
    for (uint64_t i = 0; i < count; ++i) {
      Tensor& tensor = file_.tensors_[static_cast<size_t>(i)];
      const uint64_t offset = offsets_[static_cast<size_t>(i)].offset;
      if (offset > room || tensor.bytes > room - offset)
        return fail(MOTE_ERROR_BAD_FILE,
                    "%.*s: cut short or damaged: tensor %.*s: %llu bytes at offset %llu of the "
                    "data, which has "
                    "%llu bytes",
                    MOTE_SHOW(file_.name_), MOTE_SHOW(tensor.name),
                    static_cast<unsigned long long>(tensor.bytes),
                    static_cast<unsigned long long>(offset), static_cast<unsigned long long>(room));
      tensor.data = data_ + start + offset;
    }
    std::sort(offsets_.begin(), offsets_.end(), [](const Place& a, const Place& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.tensor < b.tensor;
    });
    for (uint64_t i = 1; i < count; ++i) {
      const Tensor& first = file_.tensors_[offsets_[static_cast<size_t>(i - 1)].tensor];
      const Tensor& second = file_.tensors_[offsets_[static_cast<size_t>(i)].tensor];
      if (first.data + first.bytes > second.data)
        return fail(MOTE_ERROR_BAD_FILE, "%.*s: tensors %.*s and %.*s overlap",
                    MOTE_SHOW(file_.name_), MOTE_SHOW(first.name), MOTE_SHOW(second.name));
    }
    return kOk;
  }

  struct Place {
    uint64_t offset;  // in the data section
    uint32_t tensor;
  };

  GgufFile& file_;
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
  Allocator& allocator_;
  HeapArray<Place> offsets_;
};

Status GgufFile::open(const uint8_t* data, size_t bytes, std::string_view name,
                      Allocator& allocator) {
  *this = GgufFile();
  name_ = name;
  Status status = Reader(this, data, bytes, allocator).read();
  if (!status.ok()) *this = GgufFile();
  return status;
}

}  // namespace mote
