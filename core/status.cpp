#include "core/status.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/utf8.h"

namespace mote {
namespace {

constexpr size_t kMessageBytes = 512;
thread_local char message[kMessageBytes] = "";

bool is_control(uint32_t value) { return value < 0x20 || (value >= 0x7f && value < 0xa0); }

// Characters that make a terminal show a text in another order than it has, or break its line.
bool changes_layout(uint32_t value) {
  return (value >= 0x200e && value <= 0x200f) || (value >= 0x2028 && value <= 0x202e) ||
         (value >= 0x2066 && value <= 0x2069) || value == 0xfeff;
}

void set_message(const char* text) {
  make_printable(text, std::strlen(text), message, kMessageBytes);
}

// strerror_r returns a pointer in glibc and an int elsewhere.
[[maybe_unused]] const char* error_text(const char* text, const char*) { return text; }
[[maybe_unused]] const char* error_text(int failed, const char* buffer) {
  return failed ? "unknown error" : buffer;
}

}  // namespace

size_t make_printable(const char* text, size_t length, char* out, size_t capacity) {
  const std::string_view view(text, length);
  size_t used = 0;
  for (size_t at = 0; at < length;) {
    const CodePoint point = read_utf8(view, at);
    char escaped[16];
    const char* piece = text + at;
    size_t bytes = point.length, step = point.length;
    if (!point.valid || is_control(point.value)) {
      step = point.valid ? point.length : 1;
      bytes = 0;
      for (size_t i = 0; i < step; ++i)
        bytes +=
            static_cast<size_t>(std::snprintf(escaped + bytes, sizeof escaped - bytes, "\\x%02x",
                                              static_cast<unsigned char>(text[at + i])));
      piece = escaped;
    } else if (changes_layout(point.value)) {
      bytes = static_cast<size_t>(
          std::snprintf(escaped, sizeof escaped, "\\u{%04x}", static_cast<unsigned>(point.value)));
      piece = escaped;
    }
    if (bytes >= capacity - used) break;
    std::memcpy(out + used, piece, bytes);
    used += bytes;
    at += step;
  }
  out[used] = 0;
  return used;
}

Status fail(mote_status code, const char* format, ...) {
  char text[2 * kMessageBytes];  // arguments may point into the old message
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  set_message(text);
  return Status(code);
}

Status fail_system(int error, const char* format, ...) {
  char text[2 * kMessageBytes], system_text[128] = "";
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const char* reason = error_text(strerror_r(error, system_text, sizeof system_text), system_text);
  return fail(MOTE_ERROR_IO, "%s: %s", text, reason);
}

Status with_context(Status status, const char* prefix) {
  if (status.ok()) return status;
  return fail(status.code(), "%s: %s", prefix, message);
}

const char* last_error() { return message; }
void clear_error() { message[0] = 0; }

}  // namespace mote
