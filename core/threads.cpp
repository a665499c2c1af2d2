#include "core/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <new>

#include "core/cpu_count.h"
#include "core/wait.h"

namespace mote {
namespace {

// The word that workers watch: bit 0, a run is going on; bit 1, leave; above, the number of
// parallel regions begun so far (it may wrap: a worker is never more than one behind).
constexpr uint32_t kRunning = 1, kLeave = 2, kRegion = 4;

constexpr int64_t kSpinNanoseconds = 50'000;
constexpr uint32_t kPausesPerClock = 32;  // reading the clock costs about as much as one pause
constexpr size_t kStackBytes = size_t{1} << 20;

int64_t now_nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Waits, spinning, while going_on() holds, for at most kSpinNanoseconds. Where threads take turns
// on the CPUs the others need this one: it gives way at once.
template <class Condition>
void spin_while(Condition going_on, bool take_turns) {
  const int64_t end = now_nanoseconds() + kSpinNanoseconds;
  while (going_on()) {
    if (take_turns) {
      sched_yield();
    } else {
      for (uint32_t i = 0; i < kPausesPerClock; ++i) {
        pause_core();
        if (!going_on()) return;
      }
    }
    if (now_nanoseconds() > end) return;
  }
}

}  // namespace

struct Team::State {
  struct Worker {
    Team::State* state;
    uint32_t index;
    pthread_t thread;
  };

  // Written by the caller only, read by the workers.
  alignas(64) std::atomic<uint32_t> word{0};
  void (*part)(void*, uint32_t, uint32_t) = nullptr;
  void* argument = nullptr;
  uint32_t threads = 0;
  bool take_turns = false;

  alignas(64) std::atomic<uint32_t> unfinished{0};  // workers still in the region

  alignas(64) std::atomic<uint32_t> sleepers{0};  // workers asleep, or about to be
  std::atomic<uint32_t> caller_sleeps{0};

  alignas(64) Waiter waiter;
  mote_executor executor{};
  uint32_t first_word = 0;  // the word at the beginning of an executor's run
  void (*body)(void*) = nullptr;
  void* body_argument = nullptr;
  uint32_t created = 0;
  Worker* workers = nullptr;

  // Changes the word and wakes whoever sleeps on it. Sequentially consistent: either this sees the
  // sleeper, or the sleeper sees the new word.
  void set_word(uint32_t value) {
    word.store(value);
    if (sleepers.load() != 0) waiter.wake_all(word);
  }

  void work(uint32_t index, uint32_t seen);
  void finish_part();
  void run_region();
  void stop_workers();
};

// Takes part in every region after the one of `seen` until told to leave.
void Team::State::work(uint32_t index, uint32_t seen) {
  for (;;) {
    uint32_t value = word.load(std::memory_order_acquire);
    if (value / kRegion != seen / kRegion) {
      seen = value;
      part(argument, index, threads);
      finish_part();
      continue;
    }
    if (value & kLeave) return;
    if (value & kRunning) {
      spin_while([&] { return word.load(std::memory_order_acquire) == value; }, take_turns);
      if (word.load(std::memory_order_acquire) != value) continue;
    }
    sleepers.fetch_add(1);
    waiter.wait(word, value);
    sleepers.fetch_sub(1);
  }
}

void Team::State::finish_part() {
  if (unfinished.fetch_sub(1) == 1 && caller_sleeps.load() != 0) waiter.wake_all(unfinished);
}

void Team::State::run_region() {
  unfinished.store(threads - 1, std::memory_order_relaxed);
  set_word(word.load(std::memory_order_relaxed) + kRegion);
  part(argument, 0, threads);
  const auto waiting = [&] { return unfinished.load(std::memory_order_acquire) != 0; };
  if (!waiting()) return;
  spin_while(waiting, take_turns);
  if (!waiting()) return;
  caller_sleeps.store(1);
  for (uint32_t left; (left = unfinished.load()) != 0;) waiter.wait(unfinished, left);
  caller_sleeps.store(0, std::memory_order_relaxed);
}

void Team::State::stop_workers() {
  set_word(word.load(std::memory_order_relaxed) | kLeave);
  for (uint32_t i = 0; i < created; ++i) pthread_join(workers[i].thread, nullptr);
  created = 0;
}

Team::~Team() { stop(); }

void Team::plan(Arena& arena, uint32_t threads) {
  stop();
  threads_ = threads > 0 ? threads : 1;
  if (threads_ == 1) return;
  State* state = arena.take<State>(1);
  State::Worker* workers = arena.take<State::Worker>(threads_ - 1);
  given_ = arena.take<Given>(threads_);
  if (!state || !workers || !given_) return;
  state_ = new (state) State;
  state_->threads = threads_;
  state_->workers = workers;
}

Status Team::start(const mote_executor* executor) {
  if (threads_ == 1) return kOk;
  if (!state_)
    return fail(MOTE_ERROR_MEMORY, "threads: the session's memory has no room for %u threads",
                threads_);
  State& state = *state_;
  state.take_turns = threads_ > available_cpus("", affinity_mask());
  if (executor) {
    if (!executor->run)
      return fail(MOTE_ERROR_ARGUMENT, "executor: expected a run function, found null");
    state.executor = *executor;
    return kOk;
  }
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error != 0) return fail_system(error, "threads: cannot prepare threads");
  pthread_attr_setstacksize(&attributes, kStackBytes);
  // The program's signals are its own threads' business; faults still arrive where they happen.
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF, SIGSYS})
    sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  for (uint32_t i = 0; i + 1 < threads_ && error == 0; ++i) {
    State::Worker* worker = &state.workers[i];
    *worker = {&state, i + 1, {}};
    error = pthread_create(
        &worker->thread, &attributes,
        [](void* argument) -> void* {
          const State::Worker& self = *static_cast<State::Worker*>(argument);
          self.state->work(self.index, 0);
          return nullptr;
        },
        worker);
    if (error == 0) ++state.created;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == 0) return kOk;
  const uint32_t wanted = threads_ - 1, created = state.created;
  stop();
  return fail_system(error, "threads: expected to create %u, could create %u", wanted, created);
}

void Team::stop() {
  if (!state_) return;
  state_->stop_workers();
  state_->~State();
  state_ = nullptr;
  threads_ = 1;
}

void Team::run_body(void (*body)(void*), void* argument) {
  if (threads_ == 1) return body(argument);
  State& state = *state_;
  const uint32_t word = state.word.load(std::memory_order_relaxed);
  if (!state.executor.run) {
    state.set_word(word | kRunning);
    body(argument);
    state.word.store(state.word.load(std::memory_order_relaxed) & ~kRunning);
    return;
  }
  state.first_word = (word & ~kLeave) | kRunning;
  state.word.store(state.first_word);
  state.body = body;
  state.body_argument = argument;
  state.executor.run(
      state.executor.user,
      [](void* context, uint32_t index) {
        State& team = *static_cast<State*>(context);
        if (index != 0) return team.work(index, team.first_word);
        team.body(team.body_argument);
        team.set_word((team.word.load(std::memory_order_relaxed) & ~kRunning) | kLeave);
      },
      &state, threads_);
}

void Team::run_parts(void (*part)(void*, uint32_t, uint32_t), void* argument) {
  state_->part = part;
  state_->argument = argument;
  state_->run_region();
}

}  // namespace mote
