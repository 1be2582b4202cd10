// SPDX-License-Identifier: Apache-2.0
// How a rollout is cut into blocks of environments, given to threads, and its ended episodes put
// into one order that does not depend on either.
#pragma once

#include <omp.h>

#include "lanes.hpp"
#include "rollout.hpp"

namespace headrace::HEADRACE_ISA {

// Where what there is to see of one environment goes.
struct Shown {
  void* observation;
  uint8_t* mask;
  uint8_t* to_play;
};

// Collects the ended episodes of one block, in the order (step, environment): into the arrays of
// the result, or as records, one behind the other, for `move_ends`.
template <const Description& describe>
class EndList {
 public:
  explicit EndList(const Ends& ends)
      : step_((std::byte*)ends.at, 2 * sizeof(int32_t)),
        return_((std::byte*)ends.returns, sizeof(float)),
        length_((std::byte*)ends.lengths, sizeof(int32_t)),
        observation_((std::byte*)ends.final_observation, describe.observation_bytes()),
        mask_((std::byte*)ends.final_mask, describe.mask_bytes()),
        to_play_((std::byte*)ends.final_to_play, describe.players > 1) {}

  explicit EndList(std::byte* records)
      : step_(records, kBytes),
        return_(records + kReturn, kBytes),
        length_(records + kLength, kBytes),
        observation_(records + kObservation, kBytes),
        mask_(records + kMask, kBytes),
        to_play_(records + kToPlay, kBytes) {}

  bool wanted() const { return step_.base != nullptr; }
  int64_t position() const { return next_; }

  // Returns where the last moment of the episode is to be shown.
  HEADRACE_INLINE Shown append(int64_t step, int64_t env, float episode_return, int32_t length) {
    const int64_t row = next_++;
    const int32_t at[2] = {(int32_t)step, (int32_t)env};
    __builtin_memcpy(step_[row], at, sizeof(at));
    __builtin_memcpy(return_[row], &episode_return, sizeof(float));
    __builtin_memcpy(length_[row], &length, sizeof(int32_t));
    return {observation_[row], (uint8_t*)mask_[row], (uint8_t*)to_play_[row]};
  }

  // Puts `count` records into the result's arrays, from row `row` on.
  HEADRACE_INLINE static void move(const std::byte* record, int64_t count, const Ends& to,
                                   int64_t row) {
    for (const int64_t end = row + count; row < end; ++row, record += kBytes) {
      __builtin_memcpy(to.at + 2 * row, record, 2 * sizeof(int32_t));
      __builtin_memcpy(to.returns + row, record + kReturn, sizeof(float));
      __builtin_memcpy(to.lengths + row, record + kLength, sizeof(int32_t));
      __builtin_memcpy((std::byte*)to.final_observation + row * describe.observation_bytes(),
                       record + kObservation, describe.observation_bytes());
      if constexpr (describe.masked) {
        __builtin_memcpy(to.final_mask + row * describe.mask_bytes(), record + kMask,
                         describe.mask_bytes());
      }
      if constexpr (describe.players > 1) to.final_to_play[row] = (uint8_t)record[kToPlay];
    }
  }

  static constexpr int64_t kBytes = describe.end_record_bytes();

 private:
  static constexpr int64_t kReturn = 8, kLength = 12, kObservation = 16;
  static constexpr int64_t kMask = kObservation + describe.observation_bytes();
  static constexpr int64_t kToPlay = kMask + describe.mask_bytes();

  struct Column {
    Column(std::byte* base, int64_t stride) : base(base), stride(stride) {}
    std::byte* operator[](int64_t row) const { return base + row * stride; }
    std::byte* base;
    int64_t stride;
  };

  Column step_, return_, length_, observation_, mask_, to_play_;
  int64_t next_ = 0;
};

// One thread of a team, of which each does its own part of everything.
struct Member {
  int64_t number, team;

  // The part of `count` things that is this member's: a stretch, the same one every time, so that
  // memory stays in the cache of one processor.
  int64_t begin_of(int64_t count) const { return count * number / team; }
  int64_t end_of(int64_t count) const { return count * (number + 1) / team; }

  void wait_for_all() const {
    if (team == 1) return;
#pragma omp barrier
  }
};

template <class Body>
void as_team(int threads, const Body& body) {
  if (threads == 1) {  // OpenMP's own `if` would still cost a tenth of a microsecond
    body(Member{0, 1});
    return;
  }
#pragma omp parallel num_threads(threads)
  body(Member{omp_get_thread_num(), omp_get_num_threads()});
}

// Turns counts into the sums of those before them; returns the sum of all.
inline int64_t add_up(int32_t* counts, int64_t size) {
  int64_t total = 0;
  for (int64_t i = 0; i < size; ++i) {
    const int32_t count = counts[i];
    counts[i] = (int32_t)total;
    total += count;
  }
  return total;
}

// Calls body(first, count, ends, ends_of_step, stride) for every block. Body appends to `ends` and,
// where it is not null, sets ends_of_step[step * stride] to the number of episodes that ended in
// each step.
//
// With one block the list is already in order. With several, each block fills its own region of the
// scratch records, and a second pass moves the pieces to where prefix sums over (step, block) say.
template <const Description& describe, class Body>
int64_t for_each_block(const Rollout& job, int64_t block_size, const Body& body) {
  const int64_t blocks = (job.n + block_size - 1) / block_size;
  if (blocks == 1) {
    EndList<describe> list(job.ends);
    body((int64_t)0, job.n, list, (int32_t*)nullptr, (int64_t)0);
    return list.position();
  }

  const bool wanted = job.ends.at != nullptr;
  int32_t* counts = wanted ? job.scratch_counts : nullptr;  // [steps, blocks]
  constexpr int64_t record_bytes = EndList<describe>::kBytes;
  const auto records_of = [&](int64_t b) {
    return job.scratch_ends + b * block_size * job.steps * record_bytes;
  };
  int64_t total = 0;
  as_team(job.threads, [&](const Member& member) {
    for (int64_t b = member.begin_of(blocks); b < member.end_of(blocks); ++b) {
      const int64_t first = b * block_size;
      const int64_t count = job.n - first < block_size ? job.n - first : block_size;
      EndList<describe> list =
          wanted ? EndList<describe>(records_of(b)) : EndList<describe>(Ends{});
      body(first, count, list, counts ? counts + b : nullptr, blocks);
    }
    if (!wanted) return;
    member.wait_for_all();
    if (member.number == 0) total = add_up(counts, job.steps * blocks);
    member.wait_for_all();
    const int64_t begin = member.begin_of(job.steps), end = member.end_of(job.steps);
    for (int64_t b = 0; b < blocks; ++b) {
      const std::byte* from = records_of(b);
      for (int64_t step = 0; step < end; ++step) {
        const int64_t cell = step * blocks + b;
        const int64_t next = cell + 1 < job.steps * blocks ? counts[cell + 1] : total;
        const int64_t rows = next - counts[cell];
        if (step >= begin) EndList<describe>::move(from, rows, job.ends, counts[cell]);
        from += rows * record_bytes;
      }
    }
  });
  return total;
}

}  // namespace headrace::HEADRACE_ISA
