// A file key's value for people.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/gguf.h"
#include "core/status.h"

namespace mote {

// Numbers in decimal, texts as they are, arrays as [1, 2] or ["a", "b"]. Writes up to capacity
// bytes, *length gets the full length; MOTE_ERROR_BUFFER if it is more. An absent key is
// MOTE_ERROR_BAD_FILE.
Status key_as_text(const GgufFile& file, std::string_view key, char* buffer, size_t capacity,
                   size_t* length);

}  // namespace mote
