#include "tools/interrupt.h"

#include <sys/select.h>

#include <atomic>
#include <cerrno>
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
  seen = false;
}

void InterruptScope::watch(mote_session* session) { running = session; }

bool InterruptScope::interrupted() { return seen; }

bool InterruptScope::wait_to_read(int file) {
  if (file >= FD_SETSIZE) return !seen;
  // Signals come within pselect only: one just before it would leave it waiting.
  sigset_t signals, before_us;
  sigemptyset(&signals);
  for (const int signal : kSignals) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &before_us);
  int ready = -1;
  while (!seen && ready < 0) {
    fd_set files;
    FD_ZERO(&files);
    FD_SET(file, &files);
    ready = pselect(file + 1, &files, nullptr, nullptr, nullptr, &before_us);
    if (ready < 0 && errno != EINTR) break;  // reading fails too, and says why
  }
  pthread_sigmask(SIG_SETMASK, &before_us, nullptr);
  return !seen;
}

}  // namespace mote::tool
