// Ctrl-C: ends the run that goes on in a session, cleanly; where nothing runs it ends the program.
#pragma once

#include "mote.h"

namespace mote::tool {

// While one lives, SIGINT, SIGTERM and SIGHUP cancel the session. One at a time.
class InterruptScope {
 public:
  explicit InterruptScope(mote_session* session);
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope();

  // Whether a signal has come in this scope.
  static bool interrupted();
};

}  // namespace mote::tool
