// SPDX-License-Identifier: Apache-2.0
// The batched, fused loop for lane environments.
//
// The state of n environments is uint32[words, n]: the environment's own words, then the
// bookkeeping. For each block of environments all steps are done before the next block, with the
// block's state in L1. A step is three passes over the block: every lane steps (SIMD, no branch on
// values); every lane is observed; then those that ended, a list that is short, are reset a vector
// of them at a time.
//
// The passes see whole vectors only. A block that is stepped several times, or whose size is no
// multiple of the width, is copied to a padded place first, and what its last lanes give is written
// to a padded place and copied out.
#pragma once

#include "action_draws.hpp"
#include "blocks.hpp"
#include "lanes.hpp"
#include "rng.hpp"
#include "state_view.hpp"
#include "transpose.hpp"

namespace headrace::HEADRACE_ISA {

template <class L>
struct Outcome {
  typename L::f32 reward;
  typename L::i32 terminated;  // a mask
};

template <template <class> class EnvTemplate, class L = Lanes<kWidth>>
class LaneKernel final : public Kernel {
  using f32 = typename L::f32;
  using i32 = typename L::i32;
  using u32 = typename L::u32;
  using Env = EnvTemplate<L>;
  using State = typename Env::State;

  static constexpr const Description& describe = Env::describe;
  static_assert(!describe.masked && describe.players == 1 && describe.action_bytes() != 2 &&
                describe.observation_kind == ObservationKind::float32);
  static constexpr int W = L::width;
  static constexpr int kEnvWords = sizeof(State) / sizeof(f32);
  static constexpr int kWords = kEnvWords + kBookkeepingWords;
  static constexpr int kMovingWords = kEnvWords + kIndex;  // the words that a step changes
  static constexpr int kNearWords = kWords - 1;            // all but the unused one
  static constexpr int kObs = describe.observation_size;
  static constexpr int64_t kActionBytes = describe.action_components() * describe.action_bytes();
  static constexpr int kBlock = 512;
  static constexpr int64_t kForkSteps = 4096;  // 5 us of work: a second thread wins a third
  // A power of two would make all words fight for the same cache sets.
  static constexpr int64_t kNearStride = kBlock + 16;

  using Home = StateView<>;
  using Near = StateView<kNearStride>;

  // Where one step of one block is written.
  struct Outputs {
    float* observation;
    float* reward;
    uint8_t* terminated;
    uint8_t* truncated;
    float* next_observation;
    float* episode_return;
    int32_t* episode_length;
  };

  // Positions in a block, in order, with room for a whole vector more.
  struct List {
    int size = 0;
    alignas(64) int32_t at[kBlock + W];
  };
  struct Lists {
    List ended;
    List due;  // for a reset, in NEXT_STEP; otherwise those that ended are
  };

 public:
  static Kernel* make(const int64_t*) { return new LaneKernel; }

  const Description& description() const override { return describe; }
  size_t state_bytes() const override { return kWords * sizeof(uint32_t); }

  void reset(const Reset& job) const override {
    alignas(64) uint32_t near_words[kNearWords * kNearStride];
    alignas(64) float observation[kBlock * kObs];
    for (int64_t first = 0; first < job.n; first += kBlock) {
      const int64_t count = job.n - first < kBlock ? job.n - first : kBlock;
      const Home home{(uint32_t*)job.state + first, job.n};
      const Near near{near_words};
      copy_near(near, home, count);
      List chosen;
      for (int64_t i = 0; i < count; ++i) {
        if (job.where == nullptr || job.where[first + i]) chosen.at[chosen.size++] = (int32_t)i;
      }
      reset_listed(near, chosen, observation);
      copy_home(home, near, count);
      if (job.observation == nullptr) continue;
      for (int64_t i = 0; i < count; i += W) observe(load_state(near, i), observation + i * kObs);
      __builtin_memcpy((float*)job.observation + first * kObs, observation,
                       count * kObs * sizeof(float));
    }
  }

  int64_t run(const Rollout& job) const override {
    Rollout plan = job;
    if (job.n * job.steps < kForkSteps || job.n < 2 * W) plan.threads = 1;
    int64_t block = (plan.n + plan.threads - 1) / plan.threads;
    block = (block + W - 1) / W * W;
    if (block > kBlock) block = kBlock;
    return for_each_block<Env::describe>(
        plan, block,
        [&](int64_t first, int64_t count, EndList<Env::describe>& ends, int32_t* counts,
            int64_t stride) {
          switch (plan.autoreset) {
            case Autoreset::next_step:
              return run_block<Autoreset::next_step>(plan, first, count, ends, counts, stride);
            case Autoreset::same_step:
              return run_block<Autoreset::same_step>(plan, first, count, ends, counts, stride);
            case Autoreset::disabled:
              return run_block<Autoreset::disabled>(plan, first, count, ends, counts, stride);
          }
        });
  }

 private:
  template <class View>
  HEADRACE_INLINE static State load_state(const View& view, int64_t i) {
    f32 words[kEnvWords];
    for (int w = 0; w < kEnvWords; ++w) words[w] = view.template get<f32>(w, i);
    State state;
    __builtin_memcpy(&state, words, sizeof(state));
    return state;
  }

  template <class View>
  HEADRACE_INLINE static void store_state(const View& view, int64_t i, const State& state) {
    f32 words[kEnvWords];
    __builtin_memcpy(words, &state, sizeof(state));
    for (int w = 0; w < kEnvWords; ++w) view.set(w, i, words[w]);
  }

  HEADRACE_INLINE static auto load_action(const uint8_t* actions, int64_t i) {
    if constexpr (describe.action_kind == ActionKind::discrete) {
      return load_bytes<L>(actions + i);
    } else if constexpr (describe.action_size == 1) {
      return load<f32>((const float*)actions + i);
    } else {
      constexpr int size = describe.action_size;
      struct Components {
        f32 at[size];
      } action = {};
      for (int l = 0; l < W; ++l) {
        for (int c = 0; c < size; ++c)
          action.at[c][l] = ((const float*)actions)[(i + l) * size + c];
      }
      return action;
    }
  }

  HEADRACE_INLINE void observe(const State& state, float* rows) const {
    f32 fields[kObs];
    env_.observe(state, fields);
    store_rows<L>(rows, fields);
  }

  static void copy_near(const Near& near, const Home& home, int64_t count) {
    for (int w = 0; w < kNearWords; ++w) {
      near.set(w, (count - 1) / W * W, u32{});
      __builtin_memcpy(near.word(w), home.word(w), count * sizeof(uint32_t));
    }
  }

  static void copy_home(const Home& home, const Near& near, int64_t count) {
    for (int w = 0; w < kMovingWords; ++w) {
      __builtin_memcpy(home.word(w), near.word(w), count * sizeof(uint32_t));
    }
  }

  template <Autoreset kMode>
  void run_block(const Rollout& job, int64_t first, int64_t count, EndList<Env::describe>& ends,
                 int32_t* counts, int64_t counts_stride) const {
    const Home home{(uint32_t*)job.state + first, job.n};
    if (job.steps == 1 && count % W == 0) {
      run_steps<kMode>(job, home, first, count, ends, counts, counts_stride);
      return;
    }
    alignas(64) uint32_t near_words[kNearWords * kNearStride];
    const Near near{near_words};
    copy_near(near, home, count);
    run_steps<kMode>(job, near, first, count, ends, counts, counts_stride);
    copy_home(home, near, count);
  }

  template <Autoreset kMode, class View>
  void run_steps(const Rollout& job, const View& state, int64_t first, int64_t count,
                 EndList<Env::describe>& ends, int32_t* counts, int64_t counts_stride) const {
    ActionDraws<Env, L, kBlock> draws;
    const auto limit = (int32_t)(job.max_steps ? job.max_steps : 0x7fffffff);
    for (int64_t step = 0; step < job.steps; ++step) {
      const int64_t row = step * job.row_length() + first;
      const auto* actions = (const uint8_t*)job.actions + (step * job.n + first) * kActionBytes;
      if (job.actions == nullptr) {
        actions = draws.draw(state, kEnvWords + kIndex, count, job.clock + step);
        if (job.drawn) {
          __builtin_memcpy((uint8_t*)job.drawn + row * kActionBytes, actions, count * kActionBytes);
        }
      }
      const Outputs out = outputs_at(job, row);
      Lists lists;
      const int64_t whole = count / W * W;
      step_vectors<kMode>(state, actions, 0, whole, limit, out, lists);
      if (whole < count) {
        // Where this block is the whole batch, what follows the row is of a later step, and is
        // written again then.
        const bool room = count == job.row_length() && row + whole + W <= job.steps * job.n;
        step_tail<kMode>(state, actions, whole, count, limit, out, room, lists);
      }

      if (ends.wanted()) {
        const int64_t before = ends.position();
        append_ends(state, lists.ended, out.observation, step, first, ends);
        if (counts != nullptr) counts[step * counts_stride] = (int32_t)(ends.position() - before);
      }
      if constexpr (kMode != Autoreset::disabled) {
        reset_listed(state, kMode == Autoreset::next_step ? lists.due : lists.ended,
                     out.observation);
      }
    }
  }

  static Outputs outputs_at(const Rollout& job, int64_t row) {
    const Outputs all = {
        (float*)job.observation,      job.reward,         job.terminated,    job.truncated,
        (float*)job.next_observation, job.episode_return, job.episode_length};
    return from_column(all, row);
  }

  HEADRACE_INLINE static Outputs from_column(const Outputs& out, int64_t first) {
    const auto at = [first](auto* base, int64_t width) {
      return base ? base + first * width : base;
    };
    return {at(out.observation, kObs),      at(out.reward, 1),
            at(out.terminated, 1),          at(out.truncated, 1),
            at(out.next_observation, kObs), at(out.episode_return, 1),
            at(out.episode_length, 1)};
  }

  // Steps whole vectors of environments, writes their outputs, and lists which of them ended. What
  // they observe is a pass of its own: both have long chains of dependent operations, and the
  // processor overlaps more vectors of two short ones.
  //
  // (No function that is not inlined takes a vector: GCC would then leave the upper halves of the
  // registers dirty, which makes SSE code elsewhere in the process slow.)
  template <Autoreset kMode, class View>
  [[gnu::noinline]] void step_vectors(const View state, const uint8_t* actions, int64_t begin,
                                      int64_t end, int32_t limit, const Outputs out,
                                      Lists& lists) const {
    int ended_size = lists.ended.size, due_size = lists.due.size;
    for (int64_t i = begin; i < end; i += W) {
      const int64_t at = i - begin;  // in the actions and the outputs
      State env_state = load_state(state, i);
      Outcome<L> outcome = env_.step(env_state, load_action(actions, at));
      store_state(state, i, env_state);

      const i32 elapsed = state.template get<i32>(kEnvWords + kElapsed, i) + 1;
      i32 truncated = elapsed >= i32{} + limit;
      if constexpr (kMode == Autoreset::next_step) {  // a pending reset is not a step
        const i32 due = state.template get<i32>(kEnvWords + kPending, i) != 0;
        outcome.reward = bits<f32>(bits<i32>(outcome.reward) & ~due);
        outcome.terminated &= ~due;
        truncated &= ~due;
        due_size = append_set<L>(lists.due.at, due_size, due, i);
      }
      const f32 total = state.template get<f32>(kEnvWords + kReturn, i) + outcome.reward;
      const i32 ended = outcome.terminated | truncated;
      state.set(kEnvWords + kElapsed, i, elapsed);
      state.set(kEnvWords + kReturn, i, total);
      if constexpr (kMode == Autoreset::next_step) state.set(kEnvWords + kPending, i, -ended);
      ended_size = append_set<L>(lists.ended.at, ended_size, ended, i);

      if (out.reward) store(out.reward + at, outcome.reward);
      if (out.terminated) store_bytes<L>(out.terminated + at, -outcome.terminated);
      if (out.truncated) store_bytes<L>(out.truncated + at, -truncated);
      if (out.episode_return) {
        store(out.episode_return + at, bits<f32>(bits<i32>(total) & ended));
        store(out.episode_length + at, elapsed & ended);
      }
    }
    lists.ended.size = ended_size;
    lists.due.size = due_size;
    if (out.observation) observe_vectors(state, begin, end, out.observation);
    if (out.next_observation) observe_vectors(state, begin, end, out.next_observation);
  }

  template <class View>
  HEADRACE_INLINE void observe_vectors(const View& state, int64_t begin, int64_t end,
                                       float* rows) const {
    for (int64_t i = begin; i < end; i += W) {
      f32 fields[kObs];
      env_.observe(load_state(state, i), fields);
      store_rows<L>(rows + (i - begin) * kObs, fields);
    }
  }

  // The last environments of a block, fewer than a vector. `room`: behind their actions and outputs
  // there is memory for the other lanes.
  template <Autoreset kMode, class View>
  HEADRACE_INLINE void step_tail(const View& state, const uint8_t* actions, int64_t begin,
                                 int64_t end, int32_t limit, const Outputs& out, bool room,
                                 Lists& lists) const {
    if (room) {
      step_vectors<kMode>(state, actions + begin * kActionBytes, begin, begin + W, limit,
                          from_column(out, begin), lists);
    } else {
      step_padded<kMode>(state, actions, begin, end, limit, out, lists);
    }
    while (lists.ended.size > 0 && lists.ended.at[lists.ended.size - 1] >= end) --lists.ended.size;
    while (lists.due.size > 0 && lists.due.at[lists.due.size - 1] >= end) --lists.due.size;
  }

  // By way of a place that is large enough.
  template <Autoreset kMode, class View>
  [[gnu::noinline]] void step_padded(const View& state, const uint8_t* actions, int64_t begin,
                                     int64_t end, int32_t limit, const Outputs& out,
                                     Lists& lists) const {
    const int64_t lanes = end - begin;
    uint8_t padded_actions[W * kActionBytes] = {};
    float observation[W * kObs], next_observation[W * kObs], reward[W], episode_return[W];
    uint8_t terminated[W], truncated[W];
    int32_t episode_length[W];
    copy_some(padded_actions, actions + begin * kActionBytes, lanes * kActionBytes);
    step_vectors<kMode>(state, padded_actions, begin, begin + W, limit,
                        {observation, reward, terminated, truncated, next_observation,
                         episode_return, episode_length},
                        lists);
    const Outputs to = from_column(out, begin);
    if (to.observation) copy_some(to.observation, observation, lanes * kObs);
    if (to.reward) copy_some(to.reward, reward, lanes);
    if (to.terminated) copy_some(to.terminated, terminated, lanes);
    if (to.truncated) copy_some(to.truncated, truncated, lanes);
    if (to.next_observation) copy_some(to.next_observation, next_observation, lanes * kObs);
    if (to.episode_return) {
      copy_some(to.episode_return, episode_return, lanes);
      copy_some(to.episode_length, episode_length, lanes);
    }
  }

  template <class T>
  static void copy_some(T* to, const T* from, int64_t count) {
    __builtin_memcpy(to, from, count * sizeof(T));
  }

  template <class View>
  static void append_ends(const View& state, const List& ended, const float* observation,
                          int64_t step, int64_t first, EndList<Env::describe>& ends) {
    for (int j = 0; j < ended.size; ++j) {
      const int64_t i = ended.at[j];
      const Shown last =
          ends.append(step, first + i, load<float>(&state.at(kEnvWords + kReturn, i)),
                      (int32_t)state.at(kEnvWords + kElapsed, i));
      __builtin_memcpy(last.observation, observation + i * kObs, kObs * sizeof(float));
    }
  }

  // Begins new episodes for the listed environments; writes their observations if there is where
  // to.
  template <class View>
  void reset_listed(const View& state, List& list, float* observation) const {
    if (list.size == 0) return;
    for (int l = 0; l < W; ++l) list.at[list.size + l] = list.at[0];  // fill the last vector
    for (int j = 0; j < list.size; j += W) {
      const int32_t* at = list.at + j;
      const auto gather = [&](int word) {
        alignas(64) uint32_t values[W];
        for (int l = 0; l < W; ++l) values[l] = state.at(kEnvWords + word, at[l]);
        return load<u32>(values);
      };
      const u32 episode = gather(kEpisode);
      ResetDraws<L> draws({gather(kIndex), gather(kSeedLow), gather(kSeedHigh)}, episode);
      const State fresh = env_.reset(draws);

      alignas(64) uint32_t words[kEnvWords][W], next_episode[W];
      alignas(64) float rows[W * kObs];
      __builtin_memcpy(words, &fresh, sizeof(fresh));
      store(next_episode, episode + 1);
      observe(fresh, rows);
      const int lanes = list.size - j < W ? list.size - j : W;
      for (int l = 0; l < lanes; ++l) {
        const int64_t i = at[l];
        for (int w = 0; w < kEnvWords; ++w) state.at(w, i) = words[w][l];
        state.at(kEnvWords + kElapsed, i) = 0;
        state.at(kEnvWords + kEpisode, i) = next_episode[l];
        state.at(kEnvWords + kReturn, i) = 0;
        if (observation) {
          __builtin_memcpy(observation + i * kObs, rows + l * kObs, kObs * sizeof(float));
        }
      }
    }
  }

  Env env_{};
};

}  // namespace headrace::HEADRACE_ISA
