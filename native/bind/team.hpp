// SPDX-License-Identifier: Apache-2.0
// A few jobs on XLA's threads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace headrace::bind {

// Runs jobs 0 .. count - 1 and returns when all are done. The caller works too and takes whatever
// no other thread has begun: it never waits for one that sleeps. A job is taken by exactly one
// thread (`next`); what it wrote is seen by the caller (`done`, release and acquire). A thread that
// comes late finds nothing left, and touches only the counters, which it owns a share of.
inline void run_jobs(xla::ffi::ThreadPool& pool, int count, std::function<void(int)> job) {
  struct Jobs {
    std::function<void(int)> job;
    int count;
    std::atomic<int> next{0}, done{0};
    void work() {
      for (int i = next++; i < count; i = next++) {
        job(i);
        done.fetch_add(1, std::memory_order_release);
      }
    }
  };
  auto jobs = std::make_shared<Jobs>();
  jobs->job = std::move(job);
  jobs->count = count;
  for (int helper = 1; helper < count && helper < (int)pool.num_threads(); ++helper)
    pool.Schedule([jobs] { jobs->work(); });
  jobs->work();
  for (int spins = 0; jobs->done.load(std::memory_order_acquire) < count; ++spins) {
#if defined(__x86_64__)
    if (spins < 1 << 14) {
      __builtin_ia32_pause();
      continue;
    }
#endif
    std::this_thread::yield();
  }
}

}  // namespace headrace::bind
