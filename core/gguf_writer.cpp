#include "core/gguf_writer.h"

#include <cstddef>
#include <cstring>

namespace mote {
namespace {

constexpr size_t kMaximumNameBytes = 65535;
constexpr uint32_t kVersion = 3;

uint64_t padded(uint64_t bytes) {
  return (bytes + GgufWriter::kAlignment - 1) / GgufWriter::kAlignment * GgufWriter::kAlignment;
}

Status append_text(ByteBuffer* buffer, std::string_view text) {
  MOTE_TRY(buffer->append_value(uint64_t{text.size()}));
  return buffer->append(text.data(), text.size());
}

}  // namespace

GgufWriter::GgufWriter(Allocator& allocator)
    : file_(allocator),
      memory_(allocator),
      keys_(allocator),
      table_(allocator),
      key_entries_(allocator),
      tensor_entries_(allocator) {}

Status GgufWriter::create(const char* path) {
  if (!path) return fail(MOTE_ERROR_ARGUMENT, "GGUF output: expected a file name, found null");
  discard();
  MOTE_TRY(file_.create(path));
  in_memory_ = false;
  stage_ = Stage::declaring;
  return kOk;
}

Status GgufWriter::create_in_memory() {
  discard();
  in_memory_ = true;
  stage_ = Stage::declaring;
  return kOk;
}

void GgufWriter::discard() {
  file_.discard();
  for (ByteBuffer* buffer : {&memory_, &keys_, &table_, &key_entries_, &tensor_entries_})
    buffer->clear();
  stage_ = Stage::closed;
  data_bytes_ = written_ = tensor_written_ = 0;
  tensor_ = 0;
  entry_open_ = false;
}

GgufWriter::Entry GgufWriter::entry(const ByteBuffer& entries, size_t i) const {
  Entry entry;
  std::memcpy(&entry, entries.data() + i * sizeof(Entry), sizeof entry);
  return entry;
}

std::string_view GgufWriter::entry_name(const ByteBuffer& section, const Entry& entry) const {
  return {reinterpret_cast<const char*>(section.data()) + entry.name, entry.name_bytes};
}

// Checks a name and writes it to its section.
Status GgufWriter::add_entry(const char* what, std::string_view name, ByteBuffer* section,
                             ByteBuffer* entries) {
  if (stage_ != Stage::declaring || entry_open_)
    return fail(MOTE_ERROR_ARGUMENT,
                "GGUF output: %s %.*s: too late, after an error, or create() is missing", what,
                MOTE_SHOW(name));
  if (name.empty() || name.size() > kMaximumNameBytes)
    return fail(MOTE_ERROR_ARGUMENT,
                "GGUF output: %s: expected a name of 1 to %zu bytes, found %zu", what,
                kMaximumNameBytes, name.size());
  for (size_t i = 0; i < entry_count(*entries); ++i)
    if (entry_name(*section, entry(*entries, i)) == name)
      return fail(MOTE_ERROR_ARGUMENT, "GGUF output: %s %.*s is there already", what,
                  MOTE_SHOW(name));
  MOTE_TRY(
      entries->append_value(Entry{section->size() + 8, static_cast<uint32_t>(name.size()), 0}));
  return append_text(section, name);
}

Status GgufWriter::end_entry(Status status) {
  if (status.ok()) entry_open_ = false;
  return status;
}

Status GgufWriter::begin_key(std::string_view key, GgufType type) {
  if (key == "general.alignment")
    return fail(MOTE_ERROR_ARGUMENT, "GGUF output: key general.alignment is set by the writer");
  MOTE_TRY(add_entry("key", key, &keys_, &key_entries_));
  return keys_.append_value(static_cast<uint32_t>(type));
}

Status GgufWriter::add_value(std::string_view key, GgufType type, const void* value) {
  const size_t bytes = type_bytes(type);
  if (bytes == 0)
    return fail(MOTE_ERROR_ARGUMENT, "GGUF output: key %.*s: %s is no type of a plain value",
                MOTE_SHOW(key), type_name(type));
  MOTE_TRY(begin_key(key, type));
  return end_entry(keys_.append(value, bytes));
}

Status GgufWriter::add_bool(std::string_view key, bool value) {
  const uint8_t byte = value ? 1 : 0;
  return add_value(key, GgufType::boolean, &byte);
}
Status GgufWriter::add_u32(std::string_view key, uint32_t value) {
  return add_value(key, GgufType::u32, &value);
}
Status GgufWriter::add_i32(std::string_view key, int32_t value) {
  return add_value(key, GgufType::i32, &value);
}
Status GgufWriter::add_u64(std::string_view key, uint64_t value) {
  return add_value(key, GgufType::u64, &value);
}
Status GgufWriter::add_f32(std::string_view key, float value) {
  return add_value(key, GgufType::f32, &value);
}

Status GgufWriter::add_text(std::string_view key, std::string_view value) {
  MOTE_TRY(begin_key(key, GgufType::text));
  return end_entry(append_text(&keys_, value));
}

Status GgufWriter::add_texts(std::string_view key, const std::string_view* values, size_t count) {
  MOTE_TRY(begin_key(key, GgufType::array));
  MOTE_TRY(keys_.append_value(static_cast<uint32_t>(GgufType::text)));
  MOTE_TRY(keys_.append_value(uint64_t{count}));
  for (size_t i = 0; i < count; ++i) MOTE_TRY(append_text(&keys_, values[i]));
  return end_entry(kOk);
}

Status GgufWriter::add_array(std::string_view key, GgufType element, const void* values,
                             uint64_t count) {
  const size_t bytes = type_bytes(element);
  if (bytes == 0)
    return fail(MOTE_ERROR_ARGUMENT,
                "GGUF output: key %.*s: %s is no element type of a plain array", MOTE_SHOW(key),
                type_name(element));
  if (count > SIZE_MAX / bytes)
    return fail(MOTE_ERROR_ARGUMENT, "GGUF output: key %.*s: %llu elements are too many",
                MOTE_SHOW(key), static_cast<unsigned long long>(count));
  MOTE_TRY(begin_key(key, GgufType::array));
  MOTE_TRY(keys_.append_value(static_cast<uint32_t>(element)));
  MOTE_TRY(keys_.append_value(count));
  return end_entry(keys_.append(values, static_cast<size_t>(count) * bytes));
}

Status GgufWriter::copy_key(const GgufKey& key) {
  if (key.name == "general.alignment") return kOk;
  MOTE_TRY(begin_key(key.name, key.type));
  if (key.type == GgufType::array) {
    MOTE_TRY(keys_.append_value(static_cast<uint32_t>(key.element)));
    MOTE_TRY(keys_.append_value(key.count));
  } else if (key.type == GgufType::text) {
    MOTE_TRY(keys_.append_value(key.bytes));
  }
  return end_entry(keys_.append(key.data, static_cast<size_t>(key.bytes)));
}

Status GgufWriter::add_tensor(std::string_view name, Format format,
                              std::initializer_list<uint64_t> shape) {
  return add_tensor(name, format, shape.begin(), static_cast<uint32_t>(shape.size()));
}

Status GgufWriter::add_tensor(std::string_view name, Format format, const uint64_t* shape,
                              uint32_t dimensions) {
  const FormatInfo& info = format_info(format);
  if (dimensions < 1 || dimensions > 4)
    return fail(MOTE_ERROR_ARGUMENT,
                "GGUF output: tensor %.*s: expected 1 to 4 dimensions, found %u", MOTE_SHOW(name),
                dimensions);
  uint64_t values = 1, bytes = 0;
  bool fits = true;
  for (uint32_t i = 0; i < dimensions; ++i)
    fits = fits && shape[i] > 0 && !__builtin_mul_overflow(values, shape[i], &values);
  fits = fits && values <= INT64_MAX &&
         !__builtin_mul_overflow(values / info.values, uint64_t{info.bytes}, &bytes) &&
         bytes <= INT64_MAX - data_bytes_ - kAlignment;
  if (!fits)
    return fail(MOTE_ERROR_ARGUMENT,
                "GGUF output: tensor %.*s: a dimension is 0, or the size is over 2^63",
                MOTE_SHOW(name));
  if (shape[0] % info.values != 0)
    return fail(MOTE_ERROR_ARGUMENT,
                "GGUF output: tensor %.*s: expected rows of whole %s blocks of %u values, found "
                "rows of %llu",
                MOTE_SHOW(name), info.name, info.values, static_cast<unsigned long long>(shape[0]));
  MOTE_TRY(add_entry("tensor", name, &table_, &tensor_entries_));
  MOTE_TRY(table_.append_value(dimensions));
  for (uint32_t i = 0; i < dimensions; ++i) MOTE_TRY(table_.append_value(shape[i]));
  MOTE_TRY(table_.append_value(static_cast<uint32_t>(format)));
  MOTE_TRY(table_.append_value(data_bytes_));
  std::memcpy(
      tensor_entries_.data() + tensor_entries_.size() - sizeof(Entry) + offsetof(Entry, bytes),
      &bytes, sizeof bytes);
  data_bytes_ += padded(bytes);
  return end_entry(kOk);
}

Status GgufWriter::write(const void* data, size_t bytes) {
  Status status = in_memory_ ? memory_.append(data, bytes) : file_.write(data, bytes);
  if (!status.ok()) stage_ = Stage::closed;  // half a piece may stand in the file
  written_ += bytes;
  return status;
}

Status GgufWriter::write_padding() {
  constexpr uint8_t kZeros[kAlignment] = {};
  return write(kZeros, static_cast<size_t>(padded(written_) - written_));
}

Status GgufWriter::begin_data() {
  if (stage_ == Stage::data) return kOk;
  if (stage_ != Stage::declaring || entry_open_)
    return fail(MOTE_ERROR_ARGUMENT, "GGUF output: not open, or after an error");
  const uint64_t counts[2] = {entry_count(tensor_entries_), entry_count(key_entries_)};
  MOTE_TRY(write("GGUF", 4));
  MOTE_TRY(write(&kVersion, sizeof kVersion));
  MOTE_TRY(write(counts, sizeof counts));
  MOTE_TRY(write(keys_.data(), keys_.size()));
  MOTE_TRY(write(table_.data(), table_.size()));
  MOTE_TRY(write_padding());
  stage_ = Stage::data;
  return kOk;
}

Status GgufWriter::append(const void* data, size_t bytes) {
  MOTE_TRY(begin_data());
  if (bytes == 0) return kOk;
  if (tensor_ == entry_count(tensor_entries_))
    return fail(MOTE_ERROR_ARGUMENT, "GGUF output: %zu bytes more than the tensors have", bytes);
  const Entry tensor = entry(tensor_entries_, tensor_);
  if (bytes > tensor.bytes - tensor_written_)
    return fail(MOTE_ERROR_ARGUMENT,
                "GGUF output: tensor %.*s: expected %llu bytes more, found %zu",
                MOTE_SHOW(entry_name(table_, tensor)),
                static_cast<unsigned long long>(tensor.bytes - tensor_written_), bytes);
  MOTE_TRY(write(data, bytes));
  tensor_written_ += bytes;
  if (tensor_written_ < tensor.bytes) return kOk;
  tensor_written_ = 0;
  ++tensor_;
  return write_padding();
}

Status GgufWriter::finish() {
  MOTE_TRY(begin_data());
  if (tensor_ < entry_count(tensor_entries_)) {
    const Entry tensor = entry(tensor_entries_, tensor_);
    return fail(MOTE_ERROR_ARGUMENT, "GGUF output: tensor %.*s: expected %llu bytes, found %llu",
                MOTE_SHOW(entry_name(table_, tensor)),
                static_cast<unsigned long long>(tensor.bytes),
                static_cast<unsigned long long>(tensor_written_));
  }
  if (!in_memory_) MOTE_TRY(file_.commit());
  stage_ = Stage::finished;
  return kOk;
}

}  // namespace mote
