// SPDX-License-Identifier: Apache-2.0
// The batched, fused loop for row environments.
//
// The state of n environments is uint8[n, bytes]: the bookkeeping words, then the environment's own
// bytes. For each block of environments, as many as fit a cache, all steps are done before the
// next.
#pragma once

#include "blocks.hpp"
#include "lanes.hpp"
#include "rng.hpp"

namespace headrace::HEADRACE_ISA {

struct RowOutcome {
  float reward;
  bool terminated;
};

template <class Env>
class RowKernel final : public Kernel {
  using L = Lanes<1>;

  static constexpr const Description& describe = Env::describe;
  static constexpr int kObs = describe.observation_size;
  static constexpr int64_t kCacheBytes = 32 << 10;

 public:
  static Kernel* make(const int64_t* options) { return new RowKernel(options); }
  explicit RowKernel(const int64_t* options) : env_(options) {}

  const Description& description() const override { return describe; }
  size_t state_bytes() const override {
    return kBookkeepingWords * sizeof(uint32_t) + env_.state_bytes();
  }

  void reset(const Reset& job) const override {
    for (int64_t i = 0; i < job.n; ++i) {
      const Row row = row_at(job.state, i);
      if (job.mask == nullptr || job.mask[i]) reset_row(row);
      if (job.observation) env_.observe(row.state, job.observation + i * kObs);
    }
  }

  int64_t run(const Rollout& job) const override {
    Rollout plan = job;
    const int64_t bytes = (int64_t)state_bytes();
    if (job.n * job.steps * bytes < (256 << 10)) plan.threads = 1;
    int64_t block = job.steps > 1 ? kCacheBytes / bytes : job.n;
    const int64_t share = (job.n + plan.threads - 1) / plan.threads;
    if (block > share) block = share;
    if (block < 1) block = 1;
    return for_each_block<kObs>(
        plan, block,
        [&](int64_t first, int64_t count, EndList<kObs>& ends, int32_t* counts, int64_t stride) {
          run_block(plan, first, count, ends, counts, stride);
        });
  }

 private:
  struct Row {
    uint32_t* book;
    std::byte* state;
  };

  Row row_at(void* state, int64_t i) const {
    auto* row = (std::byte*)state + i * (int64_t)state_bytes();
    return {(uint32_t*)row, row + kBookkeepingWords * sizeof(uint32_t)};
  }

  void reset_row(const Row& row) const {
    ResetDraws<L> draws(
        {L::u32{row.book[kIndex]}, L::u32{row.book[kSeedLow]}, L::u32{row.book[kSeedHigh]}},
        L::u32{row.book[kEpisode]});
    env_.reset(row.state, draws);
    row.book[kElapsed] = 0;
    row.book[kEpisode] += 1;
    row.book[kReturn] = 0;
  }

  // Draw `clock` of the environment's action stream; the map is that of rng.hpp.
  static uint8_t draw_action(const Row& row, uint64_t clock) {
    constexpr int width = choice_bits(describe);
    constexpr uint64_t per_block = draws_per_block(describe);
    const uint64_t block = clock / per_block;
    const int place = (int)(clock % per_block);
    const auto out = philox<L>({L::u32{row.book[kIndex]}, L::u32{(uint32_t)block},
                                L::u32{(uint32_t)(block >> 32)}, L::u32{kActionStream}},
                               L::u32{row.book[kSeedLow]}, L::u32{row.book[kSeedHigh]});
    if constexpr (width > 0) {
      const int bit = place * width;
      return (out.word[bit / 32][0] >> (bit % 32)) & ((1u << width) - 1);
    } else {
      return (uint8_t)(((uint64_t)out.word[place][0] * describe.action_size) >> 32);
    }
  }

  void run_block(const Rollout& job, int64_t first, int64_t count, EndList<kObs>& ends,
                 int32_t* counts, int64_t counts_stride) const {
    for (int64_t step = 0; step < job.steps; ++step) {
      const int64_t before = ends.position();
      for (int64_t i = first; i < first + count; ++i) step_row(job, step, i, ends);
      if (counts != nullptr) counts[step * counts_stride] = (int32_t)(ends.position() - before);
    }
  }

  void step_row(const Rollout& job, int64_t step, int64_t i, EndList<kObs>& ends) const {
    const Row row = row_at(job.state, i);
    const int64_t at = step * job.row_length() + i;
    const uint8_t action = job.actions ? ((const uint8_t*)job.actions)[step * job.n + i]
                                       : draw_action(row, job.clock + step);
    if (!job.actions && job.drawn) ((uint8_t*)job.drawn)[at] = action;

    float observation[kObs];
    if (job.autoreset == Autoreset::next_step && row.book[kPending]) {  // not a step
      reset_row(row);
      row.book[kPending] = 0;
      env_.observe(row.state, observation);
      write(job, at, observation, observation, {0.0f, false}, false, 0.0f, 0);
      return;
    }

    const RowOutcome outcome = env_.step(row.state, action);
    const bool truncated = ++row.book[kElapsed] >= (uint64_t)(job.max_steps ? job.max_steps : ~0u);
    float total;
    __builtin_memcpy(&total, &row.book[kReturn], sizeof(total));
    total += outcome.reward;
    __builtin_memcpy(&row.book[kReturn], &total, sizeof(total));
    const bool ended = outcome.terminated || truncated;
    const int32_t length = (int32_t)row.book[kElapsed];
    env_.observe(row.state, observation);
    if (ended && ends.wanted()) ends.append(step, i, total, length, observation);

    float next[kObs];
    __builtin_memcpy(next, observation, sizeof(next));
    if (ended && job.autoreset == Autoreset::same_step) {
      reset_row(row);
      env_.observe(row.state, observation);
    }
    if (job.autoreset == Autoreset::next_step) row.book[kPending] = ended;
    write(job, at, observation, next, outcome, truncated, ended ? total : 0.0f, ended ? length : 0);
  }

  static void write(const Rollout& job, int64_t at, const float* observation, const float* next,
                    RowOutcome outcome, bool truncated, float episode_return, int32_t length) {
    if (job.observation) {
      __builtin_memcpy(job.observation + at * kObs, observation, kObs * sizeof(float));
    }
    if (job.next_observation) {
      __builtin_memcpy(job.next_observation + at * kObs, next, kObs * sizeof(float));
    }
    if (job.reward) job.reward[at] = outcome.reward;
    if (job.terminated) job.terminated[at] = outcome.terminated;
    if (job.truncated) job.truncated[at] = truncated;
    if (job.episode_return) {
      job.episode_return[at] = episode_return;
      job.episode_length[at] = length;
    }
  }

  Env env_;
};

}  // namespace headrace::HEADRACE_ISA
