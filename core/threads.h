// A team of threads for one session. Between run() calls no thread runs; inside run() workers spin
// briefly for the next parallel() and then sleep on a futex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/arena.h"
#include "core/status.h"
#include "mote.h"

namespace mote {

class Team {
 public:
  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  // Takes what it needs from the arena (the same for a measuring one). threads >= 1.
  void plan(Arena& arena, uint32_t threads);
  // Creates threads - 1 sleeping threads, or none with an executor (copied; null: own threads).
  // Their signals are blocked. An error leaves no thread behind.
  Status start(const mote_executor* executor);
  // Joins the threads; the team is then of one thread until planned again. Called by the destructor
  // too.
  void stop();

  uint32_t threads() const { return threads_; }

  // Calls body() once, with the workers awake meanwhile. Not reentrant.
  template <class Body>
  void run(Body&& body) {
    run_body([](void* b) { (*static_cast<std::remove_reference_t<Body>*>(b))(); }, &body);
  }
  // Inside body only: calls part(thread, threads) on every thread of the team at the same time and
  // returns when all have returned. All their writes are then visible to the caller.
  template <class Part>
  void parallel(Part&& part) {
    if (threads_ == 1) return part(0u, 1u);
    run_parts(
        [](void* p, uint32_t thread, uint32_t threads) {
          (*static_cast<std::remove_reference_t<Part>*>(p))(thread, threads);
        },
        &part);
  }
  // Inside body only: part p of as many as there are threads has units [0, size(p)); calls
  // work(p, first, last, thread) for all of them, at most `grain` at a time. Each thread begins
  // with the part of its own number, as what it last wrote there is still in its cache, and then
  // helps with the others: cores are seldom equally fast.
  template <class Size, class Work>
  void share(size_t grain, const Size& size, const Work& work) {
    if (threads_ == 1) return work(0u, size_t{0}, size(0u), 0u);
    for (uint32_t p = 0; p < threads_; ++p) given_[p].units = 0;
    parallel([&](uint32_t thread, uint32_t threads) {
      for (uint32_t i = 0; i < threads; ++i) {
        const uint32_t p = (thread + i) % threads;
        const size_t units = size(p);
        // Reading leaves the counter where it is, adding would take it from its owner.
        if (i > 0 && __atomic_load_n(&given_[p].units, __ATOMIC_RELAXED) >= units) continue;
        for (size_t last = 0; last < units;) {
          const size_t first = __atomic_fetch_add(&given_[p].units, grain, __ATOMIC_RELAXED);
          if (first >= units) break;
          last = units - first < grain ? units : first + grain;
          work(p, first, last, thread);
        }
      }
    });
  }

 private:
  struct State;
  struct alignas(64) Given {
    size_t units;  // of a part, handed out so far
  };
  void run_body(void (*body)(void*), void* argument);
  void run_parts(void (*part)(void*, uint32_t, uint32_t), void* argument);

  uint32_t threads_ = 1;
  State* state_ = nullptr;  // in the arena
  Given* given_ = nullptr;  // [threads], in the arena
};

// Bounds of part `index` of `parts` of [0, count) in units of `grain`: [first, last), contiguous,
// in order.
struct Range {
  size_t first, last;
  size_t size() const { return last - first; }
};
inline Range split(size_t count, size_t grain, size_t index, size_t parts) {
  const size_t units = (count + grain - 1) / grain;
  const size_t first = units * index / parts * grain, last = units * (index + 1) / parts * grain;
  return {first < count ? first : count, last < count ? last : count};
}

// Fast cores that this process may use: affinity, cgroup quota and core capacities considered;
// >= 1.
uint32_t default_thread_count();

}  // namespace mote
