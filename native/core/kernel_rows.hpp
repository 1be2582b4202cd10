// SPDX-License-Identifier: Apache-2.0
// The batched, fused loop for row environments.
//
// The state of n environments is uint8[n, bytes]: the bookkeeping words, then the environment's own
// bytes. For each block of environments, as many as fit a cache, all steps are done before the
// next.
#pragma once

#include <type_traits>

#include "action_draws.hpp"
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
  static constexpr int64_t kObsBytes = describe.observation_bytes();
  static constexpr int64_t kMaskBytes = describe.mask_bytes();
  static constexpr int64_t kCacheBytes = 32 << 10;
  static constexpr int kChunk = 64;  // environments whose random numbers are made together
  using Action = std::conditional_t<describe.action_bytes() == 1, uint8_t, uint16_t>;
  using Observation =
      std::conditional_t<describe.observation_kind == ObservationKind::bytes, uint8_t, float>;
  using Ended = EndList<Env::describe>;

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
      if (job.where == nullptr || job.where[i]) reset_row(row);
      show(row, shown_at(job.observation, job.mask, job.to_play, i));
    }
  }

  int64_t run(const Rollout& job) const override {
    Rollout plan = job;
    const int64_t bytes = (int64_t)state_bytes();
    // Not worth a second thread: what it would touch tells how long it would work.
    const int64_t shown = (job.observation ? kObsBytes : 0) + (job.mask ? kMaskBytes : 0);
    if (job.n * job.steps * (bytes + shown) < (256 << 10)) plan.threads = 1;
    int64_t block = job.steps > 1 ? kCacheBytes / bytes : job.n;
    const int64_t share = (job.n + plan.threads - 1) / plan.threads;
    if (block > share) block = share;
    if (block > kChunk && job.steps > 1) block = kChunk;
    if (block < 1) block = 1;
    return for_each_block<Env::describe>(
        plan, block,
        [&](int64_t first, int64_t count, Ended& ends, int32_t* counts, int64_t stride) {
          run_block(plan, first, count, ends, counts, stride);
        });
  }

  int64_t refusal(const Rollout& job) const override {
    if constexpr (describe.masked) {
      if (env_.illegal_loses()) return -1;
      for (int64_t i = 0; i < job.n; ++i) {
        const Row row = row_at(job.state, i);
        const bool waits = job.autoreset == Autoreset::next_step && row.book[kPending];
        if (!waits && !env_.legal(row.state, ((const Action*)job.actions)[i])) return i;
      }
    }
    return -1;
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

  static Shown shown_at(void* observation, uint8_t* mask, uint8_t* to_play, int64_t at) {
    return {observation ? (std::byte*)observation + at * kObsBytes : nullptr,
            mask ? mask + at * kMaskBytes : nullptr, to_play ? to_play + at : nullptr};
  }

  void show(const Row& row, const Shown& to) const {
    if (to.observation) env_.observe(row.state, (Observation*)to.observation);
    if constexpr (describe.masked) {
      if (to.mask) env_.mask(row.state, to.mask);
    }
    if constexpr (describe.players > 1) {
      if (to.to_play) *to.to_play = env_.to_play(row.state);
    }
  }

  // Blocks of several steps are no larger than a chunk.
  void run_block(const Rollout& job, int64_t first, int64_t count, Ended& ends, int32_t* counts,
                 int64_t counts_stride) const {
    const int64_t before = ends.position();
    for (int64_t done = 0; done < count; done += kChunk) {
      const int64_t size = count - done < kChunk ? count - done : kChunk;
      run_chunk(job, first + done, size, ends, counts, counts_stride);
    }
    if (counts != nullptr && job.steps == 1) *counts = (int32_t)(ends.position() - before);
  }

  void run_chunk(const Rollout& job, int64_t first, int64_t count, Ended& ends, int32_t* counts,
                 int64_t counts_stride) const {
    ActionDraws<Env, Lanes<kWidth>, kChunk> draws;
    alignas(64) uint32_t who[3 * kChunk];
    if (!job.actions) copy_identities(job, first, count, who);
    for (int64_t step = 0; step < job.steps; ++step) {
      const int64_t before = ends.position();
      const auto given = (const Action*)job.actions + step * job.n + first;
      if (job.actions) {
        for (int64_t i = 0; i < count; ++i) step_row(job, step, first + i, given[i], ends);
      } else if constexpr (describe.masked) {
        const auto* words = draws.draw_words(StateView<kChunk>{who}, 0, count, job.clock + step);
        for (int64_t i = 0; i < count; ++i) {
          const Row row = row_at(job.state, first + i);
          const int32_t legal = env_.legal_count(row.state);
          const int32_t action = legal ? env_.nth_legal(row.state, choice(words[i], legal)) : 0;
          step_row(job, step, first + i, (Action)action, ends);
        }
      } else {
        const auto* drawn = draws.draw(StateView<kChunk>{who}, 0, count, job.clock + step);
        for (int64_t i = 0; i < count; ++i) step_row(job, step, first + i, drawn[i], ends);
      }
      if (counts != nullptr) counts[step * counts_stride] = (int32_t)(ends.position() - before);
    }
  }

  void copy_identities(const Rollout& job, int64_t first, int64_t count, uint32_t* who) const {
    __builtin_memset(who, 0, 3 * kChunk * sizeof(uint32_t));
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t* book = row_at(job.state, first + i).book;
      for (int word = 0; word < 3; ++word) who[word * kChunk + i] = book[kIndex + word];
    }
  }

  void step_row(const Rollout& job, int64_t step, int64_t i, Action action, Ended& ends) const {
    const Row row = row_at(job.state, i);
    const int64_t at = step * job.row_length() + i;
    if (!job.actions && job.drawn) ((Action*)job.drawn)[at] = action;

    const Shown shown = shown_at(job.observation, job.mask, job.to_play, at);
    const Shown next = shown_at(job.next_observation, job.next_mask, job.next_to_play, at);
    if (job.autoreset == Autoreset::next_step && row.book[kPending]) {  // not a step
      reset_row(row);
      row.book[kPending] = 0;
      show(row, shown);
      show(row, next);
      write(job, at, {0.0f, false}, false, 0.0f, 0);
      return;
    }

    const RowOutcome outcome = act(job, step * job.n + i, row, action);
    const bool truncated = ++row.book[kElapsed] >= (uint64_t)(job.max_steps ? job.max_steps : ~0u);
    float total;
    __builtin_memcpy(&total, &row.book[kReturn], sizeof(total));
    total += outcome.reward;
    __builtin_memcpy(&row.book[kReturn], &total, sizeof(total));
    const bool ended = outcome.terminated || truncated;
    const auto length = (int32_t)row.book[kElapsed];
    write(job, at, outcome, truncated, ended ? total : 0.0f, ended ? length : 0);
    show(row, next);
    if (ended && ends.wanted()) show(row, ends.append(step, i, total, length));
    if (ended && job.autoreset == Autoreset::same_step) reset_row(row);
    if (job.autoreset == Autoreset::next_step) row.book[kPending] = ended;
    show(row, shown);
  }

  RowOutcome act(const Rollout& job, int64_t at, const Row& row, Action action) const {
    if constexpr (describe.masked) {
      if (!env_.legal(row.state, action)) {
        if (env_.illegal_loses()) return {-1.0f, true};
        refuse(job, at);
        return {0.0f, false};
      }
    }
    if constexpr (requires(StepDraws& draws) { env_.step(row.state, action, draws); }) {
      StepDraws draws(
          {L::u32{row.book[kIndex]}, L::u32{row.book[kSeedLow]}, L::u32{row.book[kSeedHigh]}},
          row.book[kEpisode], row.book[kElapsed]);
      return env_.step(row.state, action, draws);
    } else {
      return env_.step(row.state, action);
    }
  }

  // Threads may be at it together: the least stays.
  static void refuse(const Rollout& job, int64_t at) {
    if (job.refused == nullptr) return;
    int64_t least = __atomic_load_n(job.refused, __ATOMIC_RELAXED);
    while ((least < 0 || at < least) &&
           !__atomic_compare_exchange_n(job.refused, &least, at, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
  }

  static void write(const Rollout& job, int64_t at, RowOutcome outcome, bool truncated,
                    float episode_return, int32_t length) {
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
