// Where a model's messages go: the caller's callback, or nowhere. One per model, no global.
#pragma once

#include "mote.h"

namespace mote {

struct Log {
  mote_log_callback callback = nullptr;
  void* user = nullptr;

  // level: MOTE_LOG_...; printf format, cut at 511 bytes, never allocates.
  void write(int32_t level, const char* format, ...) const __attribute__((format(printf, 3, 4)));
};

}  // namespace mote
