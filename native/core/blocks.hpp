// SPDX-License-Identifier: Apache-2.0
// How a rollout is cut into blocks of environments, given to threads, and its ended episodes put
// into one order that does not depend on either.
#pragma once

#include "rollout.hpp"

namespace headrace::HEADRACE_ISA {

// Collects the ended episodes of one block, in the order (step, environment).
template <int kObs>
class EndList {
 public:
  EndList(const Ends& ends, int64_t offset) : ends_(ends), next_(offset) {}

  bool wanted() const { return ends_.at != nullptr; }
  int64_t position() const { return next_; }

  void append(int64_t step, int64_t env, float episode_return, int32_t length,
              const float* observation) {
    ends_.at[2 * next_] = (int32_t)step;
    ends_.at[2 * next_ + 1] = (int32_t)env;
    ends_.returns[next_] = episode_return;
    ends_.lengths[next_] = length;
    __builtin_memcpy(ends_.final_observation + next_ * kObs, observation, kObs * sizeof(float));
    ++next_;
  }

 private:
  Ends ends_;
  int64_t next_;
};

template <int kObs>
void copy_ends(const Ends& to, int64_t to_row, const Ends& from, int64_t from_row, int64_t rows) {
  __builtin_memcpy(to.at + 2 * to_row, from.at + 2 * from_row, rows * 2 * sizeof(int32_t));
  __builtin_memcpy(to.returns + to_row, from.returns + from_row, rows * sizeof(float));
  __builtin_memcpy(to.lengths + to_row, from.lengths + from_row, rows * sizeof(int32_t));
  __builtin_memcpy(to.final_observation + to_row * kObs, from.final_observation + from_row * kObs,
                   rows * kObs * sizeof(float));
}

template <class Body>
void for_each(int64_t count, int threads, const Body& body) {
  if (threads == 1) {  // OpenMP's own `if` would still cost a tenth of a microsecond
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < count; ++i) body(i);
}

// Calls body(first, count, ends, ends_of_step, stride) for every block. Body appends to `ends` and,
// where it is not null, sets ends_of_step[step * stride] to the number of episodes that ended in
// each step.
//
// With one block the list is already in order. With several, each block fills its own region of the
// scratch list, and a second pass copies the pieces to where prefix sums over (step, block) say.
template <int kObs, class Body>
int64_t for_each_block(const Rollout& job, int64_t block_size, const Body& body) {
  const int64_t blocks = (job.n + block_size - 1) / block_size;
  if (blocks == 1) {
    EndList<kObs> list(job.ends, 0);
    body((int64_t)0, job.n, list, (int32_t*)nullptr, (int64_t)0);
    return list.position();
  }

  const bool wanted = job.ends.at != nullptr;
  int32_t* counts = wanted ? job.scratch_counts : nullptr;  // [steps, blocks]
  for_each(blocks, job.threads, [&](int64_t b) {
    const int64_t first = b * block_size;
    const int64_t count = job.n - first < block_size ? job.n - first : block_size;
    EndList<kObs> list(job.scratch_ends, first * job.steps);
    body(first, count, list, counts ? counts + b : nullptr, blocks);
  });
  if (!wanted) return 0;

  int64_t total = 0;
  for (int64_t cell = 0; cell < job.steps * blocks; ++cell) {
    const int32_t count = counts[cell];
    counts[cell] = (int32_t)total;  // from here on: where the cell's rows go
    total += count;
  }
  for_each(blocks, job.threads, [&](int64_t b) {
    int64_t from = b * block_size * job.steps;
    for (int64_t step = 0; step < job.steps; ++step) {
      const int64_t cell = step * blocks + b;
      const int64_t to = counts[cell];
      const int64_t end = cell + 1 < job.steps * blocks ? counts[cell + 1] : total;
      copy_ends<kObs>(job.ends, to, job.scratch_ends, from, end - to);
      from += end - to;
    }
  });
  return total;
}

}  // namespace headrace::HEADRACE_ISA
