// From the library's Status to the tool's exceptions.
#pragma once

#include "core/status.h"
#include "tools/failure.h"

namespace mote::tool {

inline void check(Status status) {
  if (!status.ok()) throw Failure(last_error());
}

}  // namespace mote::tool
