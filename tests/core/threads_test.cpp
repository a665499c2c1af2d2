#include "core/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/sanitized.h"

namespace mote {
namespace {

// A team with its memory.
class TeamHolder {
 public:
  explicit TeamHolder(uint32_t threads, const mote_executor* executor = nullptr) {
    Arena measuring;
    team.plan(measuring, threads);
    const size_t bytes = measuring.used();
    memory_ = std::aligned_alloc(64, bytes + 64);
    Arena arena(memory_, bytes);
    team.plan(arena, threads);
    EXPECT_FALSE(arena.failed());
    EXPECT_EQ(arena.used(), bytes);
    const Status status = team.start(executor);
    EXPECT_TRUE(status.ok()) << last_error();
  }
  ~TeamHolder() {
    team.stop();
    std::free(memory_);
  }
  Team team;

 private:
  void* memory_ = nullptr;
};

// Threads of the test's own that serve as an executor, kept asleep by a condition variable.
class Pool {
 public:
  explicit Pool(uint32_t threads) {
    for (uint32_t i = 1; i < threads; ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  mote_executor executor() {
    return {this, [](void* user, void (*task)(void*, uint32_t), void* argument, uint32_t threads) {
              static_cast<Pool*>(user)->run(task, argument, threads);
            }};
  }
  int runs = 0;

 private:
  void run(void (*task)(void*, uint32_t), void* argument, uint32_t threads) {
    ++runs;
    ASSERT_EQ(threads, threads_.size() + 1);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      task_ = task;
      argument_ = argument;
      left_ = threads - 1;
      ++round_;
    }
    changed_.notify_all();
    task(argument, 0);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return left_ == 0; });
  }
  void serve(uint32_t index) {
    for (int seen = 0;;) {
      void (*task)(void*, uint32_t);
      void* argument;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return quit_ || round_ != seen; });
        if (quit_) return;
        seen = round_;
        task = task_;
        argument = argument_;
      }
      task(argument, index);
      {
        std::lock_guard<std::mutex> lock(mutex_);
        --left_;
      }
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  void (*task_)(void*, uint32_t) = nullptr;
  void* argument_ = nullptr;
  uint32_t left_ = 0;
  int round_ = 0;
  bool quit_ = false;
};

// Regions that each read what all threads wrote in the region before: wrong where a barrier leaks.
void expect_regions_in_order(Team& team, uint32_t threads, int runs, int regions) {
  std::vector<uint64_t> values(threads, 1), next(threads);
  uint64_t expected = 1;  // of every element; plain memory, so that TSan sees a missing edge
  for (int run = 0; run < runs; ++run) {
    team.run([&] {
      for (int region = 0; region < regions; ++region) {
        team.parallel([&](uint32_t thread, uint32_t count) {
          EXPECT_EQ(count, threads);
          next[thread] = std::accumulate(values.begin(), values.end(), uint64_t{1});
        });
        expected = expected * threads + 1;
        values.swap(next);
        for (const uint64_t value : values) ASSERT_EQ(value, expected) << run << " " << region;
      }
    });
  }
}

double process_cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void sleep_ms(long ms) {
  const timespec time = {ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

TEST(Team, ManyRegions) {
  for (const uint32_t threads : {1u, 2u, 3u, 5u}) {
    TeamHolder holder(threads);
    EXPECT_EQ(holder.team.threads(), threads);
    expect_regions_in_order(holder.team, threads, 40, 100);
  }
}

TEST(Team, ManyMoreThreadsThanCpus) {
  TeamHolder holder(33);
  expect_regions_in_order(holder.team, 33, 5, 20);
}

// Parts of any sizes, none too: each unit once, in calls of at most the grain, and a thread that
// has none of its own helps.
TEST(Team, ShareGivesEachUnitOnce) {
  for (const uint32_t threads : {1u, 2u, 3u, 5u}) {
    TeamHolder holder(threads);
    const std::vector<size_t> sizes = {0, 1, 100, 7, 64};
    for (const size_t grain : {1, 3, 64, 1000}) {
      std::vector<std::vector<int>> done;
      for (uint32_t part = 0; part < threads; ++part) done.emplace_back(sizes[part], 0);
      holder.team.run([&] {
        for (int region = 1; region <= 20; ++region) {
          holder.team.share(
              grain, [&](uint32_t part) { return sizes[part]; },
              [&](uint32_t part, size_t first, size_t last, uint32_t thread) {
                EXPECT_LT(thread, threads);
                EXPECT_LE(last - first, threads > 1 ? grain : sizes[part]);
                for (size_t unit = first; unit < last; ++unit) ++done[part][unit];
              });
          for (uint32_t part = 0; part < threads; ++part)
            ASSERT_EQ(done[part], std::vector<int>(sizes[part], region))
                << part << " of " << threads;
        }
      });
    }
  }
}

// A thread does its own part where nobody is late, and the part of one that is.
TEST(Team, ShareHelpsALateThread) {
  TeamHolder holder(2);
  std::atomic<int> helped{0}, begun{0};
  holder.team.run([&] {
    holder.team.share(
        1, [](uint32_t) { return size_t{8}; },
        [&](uint32_t part, size_t, size_t, uint32_t thread) {
          if (thread == 0)  // not before the other has begun
            while (begun.load() == 0) sched_yield();
          helped += part != thread;
          if (thread == 1 && begun++ == 0)  // until the other has done all else
            while (helped.load() < 7) sched_yield();
        });
  });
  EXPECT_EQ(helped.load(), 7);
  EXPECT_EQ(begun.load(), 1);
}

TEST(Team, EveryThreadTakesPartOnItsOwn) {
  TeamHolder holder(4);
  std::vector<pthread_t> seen(4);
  holder.team.run([&] {
    holder.team.parallel([&](uint32_t thread, uint32_t) { seen[thread] = pthread_self(); });
  });
  EXPECT_TRUE(pthread_equal(seen[0], pthread_self()));
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < i; ++j) EXPECT_FALSE(pthread_equal(seen[i], seen[j]));
}

TEST(Team, ThreadsAreThereAtTheSameTime) {
  TeamHolder holder(4);
  std::atomic<uint32_t> arrived{0};
  holder.team.run([&] {
    holder.team.parallel([&](uint32_t, uint32_t count) {
      arrived.fetch_add(1);
      while (arrived.load() < count) std::this_thread::yield();
    });
  });
  EXPECT_EQ(arrived.load(), 4u);
}

TEST(Team, RunsWithoutRegionsAndLongPausesBetween) {
  TeamHolder holder(3);
  int calls = 0;
  for (int i = 0; i < 100; ++i) holder.team.run([&] { ++calls; });
  EXPECT_EQ(calls, 100);
  expect_regions_in_order(holder.team, 3, 3, 3);
  std::atomic<int> parts{0};
  holder.team.run([&] {
    for (int i = 0; i < 5; ++i) {
      holder.team.parallel([&](uint32_t, uint32_t) { parts.fetch_add(1); });
      sleep_ms(2);  // the workers have gone to sleep within the run
    }
  });
  EXPECT_EQ(parts.load(), 15);
}

TEST(Team, CallerWaitsForASlowWorker) {
  TeamHolder holder(2);
  int written = 0;
  holder.team.run([&] {
    for (int i = 0; i < 5; ++i)
      holder.team.parallel([&](uint32_t thread, uint32_t) {
        if (thread == 0) return;
        sleep_ms(3);  // the caller has gone to sleep
        ++written;
      });
  });
  EXPECT_EQ(written, 5);
}

TEST(Team, IdleCostsNothing) {
  TeamHolder holder(4);
  expect_regions_in_order(holder.team, 4, 3, 10);
  sleep_ms(5);
  const double before = process_cpu_seconds();
  sleep_ms(200);
  EXPECT_LT(process_cpu_seconds() - before, 0.01);
}

TEST(Team, WorkersSleepWhileTheCallerWorksAlone) {
  TeamHolder holder(3);
  holder.team.run([&] {
    holder.team.parallel([](uint32_t, uint32_t) {});
    sleep_ms(2);
    const double before = process_cpu_seconds();
    sleep_ms(200);
    EXPECT_LT(process_cpu_seconds() - before, 0.01);
  });
}

TEST(Team, StopsAndStartsAgain) {
  TeamHolder holder(3);
  holder.team.stop();
  EXPECT_EQ(holder.team.threads(), 1u);
  int calls = 0;
  holder.team.run(
      [&] { holder.team.parallel([&](uint32_t, uint32_t count) { calls += count == 1; }); });
  EXPECT_EQ(calls, 1);
  holder.team.stop();
  for (int i = 0; i < 20; ++i) {
    TeamHolder next(2 + i % 4);
    if (i % 3) expect_regions_in_order(next.team, 2 + i % 4, 1, i);
  }
}

TEST(Team, ManyTeamsAtOnce) {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([] {
      TeamHolder holder(3);
      expect_regions_in_order(holder.team, 3, 10, 20);
    });
  for (std::thread& caller : callers) caller.join();
}

TEST(Team, RunsFromDifferentThreadsOneAfterAnother) {
  TeamHolder holder(3);
  for (int i = 0; i < 5; ++i)
    std::thread([&] { expect_regions_in_order(holder.team, 3, 2, 10); }).join();
}

TEST(Team, Executor) {
  for (const uint32_t threads : {2u, 3u, 6u}) {
    Pool pool(threads);
    const mote_executor executor = pool.executor();
    TeamHolder holder(threads, &executor);
    expect_regions_in_order(holder.team, threads, 20, 30);
    holder.team.run([] {});  // no region
    expect_regions_in_order(holder.team, threads, 2, 1);
    EXPECT_EQ(pool.runs, 23);
  }
}

TEST(Team, ExecutorOfOneThreadIsNotNeeded) {
  const mote_executor executor = {
      nullptr, [](void*, void (*)(void*, uint32_t), void*, uint32_t) { FAIL(); }};
  TeamHolder holder(1, &executor);
  expect_regions_in_order(holder.team, 1, 2, 2);
}

// Tasks that begin one after the other, the first last.
TEST(Team, ExecutorThatIsSlowToBegin) {
  const mote_executor executor = {
      nullptr, [](void*, void (*task)(void*, uint32_t), void* argument, uint32_t threads) {
        std::vector<std::thread> all;
        for (uint32_t i = threads; i-- > 0;) {
          all.emplace_back([=] { task(argument, i); });
          sleep_ms(2);
        }
        for (std::thread& thread : all) thread.join();
      }};
  TeamHolder holder(4, &executor);
  expect_regions_in_order(holder.team, 4, 3, 5);
  holder.team.run([] {});
}

TEST(Team, ErrorsAreStatus) {
  {
    Team team;
    Arena measuring;
    team.plan(measuring, 4);
    EXPECT_EQ(team.start(nullptr).code(), MOTE_ERROR_MEMORY);
  }
  {
    Team team;
    Arena measuring;
    team.plan(measuring, 4);
    void* base = std::aligned_alloc(64, measuring.used());
    Arena small(base, measuring.used() - 64);
    team.plan(small, 4);
    EXPECT_TRUE(small.failed());
    EXPECT_EQ(team.start(nullptr).code(), MOTE_ERROR_MEMORY);
    std::free(base);
  }
  const mote_executor broken = {nullptr, nullptr};
  Team team;
  Arena measuring;
  team.plan(measuring, 2);
  void* base = std::aligned_alloc(64, measuring.used());
  Arena arena(base, measuring.used());
  team.plan(arena, 2);
  EXPECT_EQ(team.start(&broken).code(), MOTE_ERROR_ARGUMENT);
  team.stop();
  std::free(base);
}

bool can_map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, bytes);
  return true;
}

TEST(Team, TooManyThreadsIsAnErrorThatLeavesNone) {
#ifdef MOTE_SANITIZED
  GTEST_SKIP() << "a sanitizer needs the address space that this test takes away";
#endif
  constexpr uint32_t kThreads = 2000;
  constexpr size_t kRoom = size_t{40}
                           << 20;  // for a few stacks: pthread_create fails, for root too
  Team team;
  Arena measuring;
  team.plan(measuring, kThreads);
  std::unique_ptr<void, decltype(&std::free)> base(std::aligned_alloc(64, measuring.used()),
                                                   std::free);
  Arena arena(base.get(), measuring.used());
  team.plan(arena, kThreads);
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  ASSERT_GT(pages, 0u);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + kRoom;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const bool limited = !can_map(2 * kRoom);
  const Status status = limited ? team.start(nullptr) : kOk;
  setrlimit(RLIMIT_AS, &before);
  if (!limited) {
    team.stop();
    GTEST_SKIP() << "the limit has no effect here (an emulator?)";
  }
  EXPECT_EQ(status.code(), MOTE_ERROR_IO);
  EXPECT_NE(std::string(last_error()).find("expected to create 1999"), std::string::npos)
      << last_error();
  EXPECT_EQ(team.threads(), 1u);
  team.stop();
}

TEST(Team, WorkersLeaveTheProgramsSignalsAlone) {
  TeamHolder holder(3);
  holder.team.run([&] {
    holder.team.parallel([](uint32_t thread, uint32_t) {
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      EXPECT_EQ(sigismember(&blocked, SIGINT), thread == 0 ? 0 : 1);
      EXPECT_EQ(sigismember(&blocked, SIGTERM), thread == 0 ? 0 : 1);
      EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
    });
  });
}

TEST(Split, CoversAllInOrderWithWholeGrains) {
  for (const size_t count : {0u, 1u, 5u, 31u, 32u, 33u, 1000u})
    for (const size_t grain : {1u, 4u, 32u})
      for (const size_t parts : {1u, 2u, 3u, 7u, 40u}) {
        size_t at = 0, least = SIZE_MAX, most = 0;
        for (size_t i = 0; i < parts; ++i) {
          const Range range = split(count, grain, i, parts);
          EXPECT_EQ(range.first, at);
          EXPECT_LE(range.first, range.last);
          EXPECT_TRUE(range.first % grain == 0 || range.first == count);
          least = std::min(least, range.last - range.first);
          most = std::max(most, range.last - range.first);
          at = range.last;
        }
        EXPECT_EQ(at, count);
        EXPECT_LE(most - least, 2 * grain - 1);
      }
}

}  // namespace
}  // namespace mote
