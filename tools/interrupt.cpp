#include "tools/interrupt.h"

#include <atomic>
#include <csignal>
#include <iterator>

namespace mote::tool {
namespace {

std::atomic<mote_session*> running{nullptr};
std::atomic<bool> seen{false};
static_assert(std::atomic<mote_session*>::is_always_lock_free);

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
using Handler = void (*)(int);
Handler before[std::size(kSignals)];  // what is ignored (nohup) stays so

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
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    before[i] = std::signal(kSignals[i], on_signal);
    if (before[i] == SIG_IGN) std::signal(kSignals[i], SIG_IGN);
  }
}

InterruptScope::~InterruptScope() {
  for (size_t i = 0; i < std::size(kSignals); ++i)
    std::signal(kSignals[i], before[i] == SIG_IGN ? SIG_IGN : SIG_DFL);
  running = nullptr;
}

bool InterruptScope::interrupted() { return seen; }

}  // namespace mote::tool
