#include "tools/interrupt.h"

#include <atomic>
#include <csignal>

namespace mote::tool {
namespace {

std::atomic<mote_session*> running{nullptr};
std::atomic<bool> seen{false};
static_assert(std::atomic<mote_session*>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  // A second one does what it does without us: the user means it.
  if (seen.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  if (mote_session* session = running.load()) mote_session_cancel(session);
}

}  // namespace

InterruptScope::InterruptScope(mote_session* session) {
  seen = false;
  running = session;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

InterruptScope::~InterruptScope() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  running = nullptr;
}

bool InterruptScope::interrupted() { return seen; }

}  // namespace mote::tool
