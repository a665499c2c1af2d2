#include "core/log.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/status.h"

namespace mote {

void Log::write(int32_t level, const char* format, ...) const {
  if (!callback) return;
  char text[1024], printable[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const size_t length = make_printable(text, std::strlen(text), printable, sizeof printable);
  callback(user, level, printable, length);
}

}  // namespace mote
