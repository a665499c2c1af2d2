// Sleeping until an atomic word changes: a futex on Linux, a condition variable elsewhere.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__linux__) && !defined(MOTE_PORTABLE_WAIT)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#else
#include <pthread.h>
#endif

namespace mote {

#if defined(__linux__) && !defined(MOTE_PORTABLE_WAIT)

class Waiter {
 public:
  // Returns when woken, or at once where word is not `expected`; may also return for no reason.
  void wait(std::atomic<uint32_t>& word, uint32_t expected) {
    call(&word, FUTEX_WAIT_PRIVATE, expected);
  }
  // After changing the word.
  void wake_all(std::atomic<uint32_t>& word) { call(&word, FUTEX_WAKE_PRIVATE, INT_MAX); }

 private:
  static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);
  static void call(std::atomic<uint32_t>* word, int operation, uint32_t value) {
#ifdef SYS_futex
    syscall(SYS_futex, word, operation, value, nullptr, nullptr, 0);
#else  // 32-bit systems with 64-bit time only
    syscall(SYS_futex_time64, word, operation, value, nullptr, nullptr, 0);
#endif
  }
};

#else

class Waiter {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() {
    pthread_cond_destroy(&changed_);
    pthread_mutex_destroy(&mutex_);
  }
  void wait(std::atomic<uint32_t>& word, uint32_t expected) {
    pthread_mutex_lock(&mutex_);
    if (word.load() == expected) pthread_cond_wait(&changed_, &mutex_);
    pthread_mutex_unlock(&mutex_);
  }
  void wake_all(std::atomic<uint32_t>&) {
    pthread_mutex_lock(&mutex_);  // so that nobody stands between looking and waiting
    pthread_cond_broadcast(&changed_);
    pthread_mutex_unlock(&mutex_);
  }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
};

#endif

// Tells the core that this is a spin loop.
inline void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__arm__) && __ARM_ARCH >= 7)
  __asm__ volatile("yield");
#endif
}

}  // namespace mote
