#include "models/spec.h"

#include <cstdarg>
#include <cstdio>

namespace mote {

Status file_error(const GgufFile& file, mote_status code, const char* format, ...) {
  char message[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return fail(code, "%.*s: %s", int(file.name().size()), file.name().data(), message);
}

#define ARCHITECTURE(identifier, name) \
  Status read_##identifier(const GgufFile& file, const Log& log, Spec* spec);
#include "models/architectures/list.inc"
#undef ARCHITECTURE

const Architecture* find_architecture(std::string_view name) {
  static constexpr Architecture kArchitectures[] = {
#define ARCHITECTURE(identifier, name) {name, read_##identifier},
#include "models/architectures/list.inc"
#undef ARCHITECTURE
  };
  for (const Architecture& architecture : kArchitectures)
    if (name == architecture.name) return &architecture;
  return nullptr;
}

const char* architecture_names() {
  // Each name has ", " in front; the first one's is skipped.
  static constexpr char kNames[] =
#define ARCHITECTURE(identifier, name) ", " name
#include "models/architectures/list.inc"
#undef ARCHITECTURE
      ;
  return kNames + 2;
}

}  // namespace mote
