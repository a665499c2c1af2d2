// How the tool's own code reports what went wrong: main() turns these into a line on stderr and an
// exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace mote::tool {

// The work failed: exit status 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Wrong usage: exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace mote::tool
