// SPDX-License-Identifier: Apache-2.0
// How a rollout is cut into blocks of environments, given to threads, and its ended episodes put
// into one order that does not depend on either.
#pragma once

#include "lanes.hpp"
#include "rollout.hpp"

namespace headrace::HEADRACE_ISA {

// Where what there is to see of one environment goes.
struct Shown {
  void* observation;
  uint8_t* mask;
  uint8_t* to_play;
};

// Collects the ended episodes of one block, in the order (step, environment).
template <const Description& describe>
class EndList {
 public:
  EndList(const Ends& ends, int64_t offset) : ends_(ends), next_(offset) {}

  bool wanted() const { return ends_.at != nullptr; }
  int64_t position() const { return next_; }

  // Returns where the last moment of the episode is to be shown.
  HEADRACE_INLINE Shown append(int64_t step, int64_t env, float episode_return, int32_t length) {
    const int64_t row = next_++;
    ends_.at[2 * row] = (int32_t)step;
    ends_.at[2 * row + 1] = (int32_t)env;
    ends_.returns[row] = episode_return;
    ends_.lengths[row] = length;
    return {(std::byte*)ends_.final_observation + row * describe.observation_bytes(),
            ends_.final_mask + row * describe.mask_bytes(),
            ends_.final_to_play + (describe.players > 1 ? row : 0)};
  }

 private:
  Ends ends_;
  int64_t next_;
};

template <const Description& describe>
void copy_ends(const Ends& to, int64_t to_row, const Ends& from, int64_t from_row, int64_t rows) {
  const auto copy = [&](auto* to_base, const auto* from_base, int64_t bytes) {
    __builtin_memcpy((std::byte*)to_base + to_row * bytes,
                     (const std::byte*)from_base + from_row * bytes, rows * bytes);
  };
  copy(to.at, from.at, 2 * sizeof(int32_t));
  copy(to.returns, from.returns, sizeof(float));
  copy(to.lengths, from.lengths, sizeof(int32_t));
  copy(to.final_observation, from.final_observation, describe.observation_bytes());
  if constexpr (describe.masked) copy(to.final_mask, from.final_mask, describe.mask_bytes());
  if constexpr (describe.players > 1) copy(to.final_to_play, from.final_to_play, 1);
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
template <const Description& describe, class Body>
int64_t for_each_block(const Rollout& job, int64_t block_size, const Body& body) {
  const int64_t blocks = (job.n + block_size - 1) / block_size;
  if (blocks == 1) {
    EndList<describe> list(job.ends, 0);
    body((int64_t)0, job.n, list, (int32_t*)nullptr, (int64_t)0);
    return list.position();
  }

  const bool wanted = job.ends.at != nullptr;
  int32_t* counts = wanted ? job.scratch_counts : nullptr;  // [steps, blocks]
  for_each(blocks, job.threads, [&](int64_t b) {
    const int64_t first = b * block_size;
    const int64_t count = job.n - first < block_size ? job.n - first : block_size;
    EndList<describe> list(job.scratch_ends, first * job.steps);
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
      copy_ends<describe>(job.ends, to, job.scratch_ends, from, end - to);
      from += end - to;
    }
  });
  return total;
}

}  // namespace headrace::HEADRACE_ISA
