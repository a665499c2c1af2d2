// Ctrl-C: ends the run that goes on in a session, cleanly; where nothing runs it ends the program.
#pragma once

#include "mote.h"

namespace mote::tool {

// While one lives, SIGINT, SIGTERM and SIGHUP cancel the session that it watches. One at a time.
class InterruptScope {
 public:
  explicit InterruptScope(mote_session* session);  // null: none yet
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope();

  // The session from now on; null: none.
  void watch(mote_session* session);

  // Whether a signal has come in this scope.
  static bool interrupted();
  // Until there is something to read, or the file's end. False: a signal has come in this scope.
  static bool wait_to_read(int file);
};

}  // namespace mote::tool
