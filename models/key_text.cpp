#include "models/key_text.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "models/spec.h"

namespace mote {
namespace {

class Writer {
 public:
  Writer(char* buffer, size_t capacity) : buffer_(buffer), capacity_(capacity) {}
  void write(std::string_view text) {
    const size_t room = length_ < capacity_ ? std::min(text.size(), capacity_ - length_) : 0;
    if (room) std::memcpy(buffer_ + length_, text.data(), room);
    length_ += text.size();
  }
  size_t length() const { return length_; }

 private:
  char* buffer_;
  size_t capacity_, length_ = 0;
};

template <class T>
T load(const uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

void write_number(Writer& writer, GgufType type, const uint8_t* data) {
  char text[40] = "";
  const auto integer = [&](long long value) { std::snprintf(text, sizeof text, "%lld", value); };
  switch (type) {
    case GgufType::u8:
      integer(load<uint8_t>(data));
      break;
    case GgufType::i8:
      integer(load<int8_t>(data));
      break;
    case GgufType::u16:
      integer(load<uint16_t>(data));
      break;
    case GgufType::i16:
      integer(load<int16_t>(data));
      break;
    case GgufType::u32:
      integer(load<uint32_t>(data));
      break;
    case GgufType::i32:
      integer(load<int32_t>(data));
      break;
    case GgufType::i64:
      integer(load<int64_t>(data));
      break;
    case GgufType::u64:
      std::snprintf(text, sizeof text, "%llu",
                    static_cast<unsigned long long>(load<uint64_t>(data)));
      break;
    case GgufType::f32:
      std::snprintf(text, sizeof text, "%.9g", double(load<float>(data)));
      break;
    case GgufType::f64:
      std::snprintf(text, sizeof text, "%.17g", load<double>(data));
      break;
    case GgufType::boolean:
      std::snprintf(text, sizeof text, "%s", *data ? "true" : "false");
      break;
    case GgufType::text:
    case GgufType::array:
      break;
  }
  writer.write(text);
}

void write_array(Writer& writer, const GgufKey& key) {
  writer.write("[");
  GgufTexts texts(key);
  const size_t size =
      key.element == GgufType::text || !key.count ? 0 : size_t(key.bytes / key.count);
  for (uint64_t i = 0; i < key.count; ++i) {
    if (i) writer.write(", ");
    std::string_view text;
    if (key.element != GgufType::text) {
      write_number(writer, key.element, key.data + i * size);
    } else if (texts.next(&text)) {
      writer.write("\"");
      writer.write(text);
      writer.write("\"");
    }
  }
  writer.write("]");
}

}  // namespace

Status key_as_text(const GgufFile& file, std::string_view name, char* buffer, size_t capacity,
                   size_t* length) {
  *length = 0;
  const GgufKey* key = file.find(name);
  if (!key)
    return file_error(file, MOTE_ERROR_BAD_FILE, "key %.*s is missing", int(name.size()),
                      name.data());
  Writer writer(buffer, capacity);
  if (key->type == GgufType::array)
    write_array(writer, *key);
  else if (key->type == GgufType::text)
    writer.write({reinterpret_cast<const char*>(key->data), size_t(key->bytes)});
  else
    write_number(writer, key->type, key->data);
  *length = writer.length();
  if (writer.length() > capacity)
    return fail(MOTE_ERROR_BUFFER, "key %.*s: expected room for %zu bytes, found %zu",
                int(name.size()), name.data(), writer.length(), capacity);
  return kOk;
}

}  // namespace mote
