// SPDX-License-Identifier: Apache-2.0
// The batched, fused loop for lane environments.
//
// The state of n environments is uint32[words, n]: the environment's own words, then the bookkeeping.
// For each block of environments all steps are done before the next block, with the block's state in
// L1. A step is two passes over the block: every lane steps (SIMD, no branch on values); then those
// that ended, a list that is short, are reset sixteen at a time.
#pragma once

#include "blocks.hpp"
#include "lanes.hpp"
#include "rng.hpp"

namespace headrace::HEADRACE_ISA {

template <class L>
struct Outcome {
  typename L::f32 reward;
  typename L::i32 terminated;  // a mask
};

// A window on uint32[words, stride]: lanes i .. i + count of one word.
struct StateView {
  uint32_t* base;
  int64_t stride;

  template <class V>
  HEADRACE_INLINE V get(int word, int64_t i, int count) const {
    return load<V>(base + word * stride + i, count);
  }
  template <class V>
  HEADRACE_INLINE void set(int word, int64_t i, const V& value, int count) const {
    store(base + word * stride + i, value, count);
  }
  HEADRACE_INLINE uint32_t& at(int word, int64_t i) const { return base[word * stride + i]; }
};

// Uniform random actions, as rng.hpp maps them, for one block of environments: Philox is called once
// in as many steps as a block of 128 bits serves.
template <class Env, class L, int kBlock>
class ActionDraws {
  static constexpr const Description& describe = Env::describe;
  static constexpr int kBits = choice_bits(describe);
  static constexpr uint64_t kDrawsPerBlock = draws_per_block(describe);

 public:
  // The actions of step `clock` for `count` environments of the block.
  void fill(const StateView& state, const int* identity, int64_t count, uint64_t clock, void* out) {
    constexpr int components = describe.action_components();
    for (int c = 0; c < components; ++c) {
      const uint64_t draw = clock * components + c;
      refill(state, identity, count, draw / kDrawsPerBlock);
      const int place = (int)(draw % kDrawsPerBlock);
      for (int64_t i = 0; i < count; i += L::width) {
        const int lanes = count - i < L::width ? (int)(count - i) : L::width;
        if constexpr (kBits > 0) {
          const int bit = place * kBits;
          const auto word = load<typename L::u32>(words_[bit / 32] + i, lanes);
          const auto choice = (word >> (bit % 32)) & ((1u << kBits) - 1);
          store((uint8_t*)out + i, convert<typename L::u8>(choice), lanes);
        } else if constexpr (describe.action_kind == ActionKind::discrete) {
          const auto word = load<typename L::u32>(words_[place] + i, lanes);
          const auto choice = multiply_wide<L::width>(word, describe.action_size).high;
          store((uint8_t*)out + i, convert<typename L::u8>(choice), lanes);
        } else {
          const auto word = load<typename L::u32>(words_[place] + i, lanes);
          const auto value = describe.action_low + (describe.action_high - describe.action_low) *
                                                       unit_interval<L>(word);
          for (int l = 0; l < lanes; ++l) ((float*)out)[(i + l) * components + c] = value[l];
        }
      }
    }
  }

 private:
  void refill(const StateView& state, const int* identity, int64_t count, uint64_t block) {
    if (block == block_) return;
    block_ = block;
    using u32 = typename L::u32;
    for (int64_t i = 0; i < count; i += L::width) {
      const int lanes = count - i < L::width ? (int)(count - i) : L::width;
      u32 zero = {};
      const auto out = philox<L>(
          {state.get<u32>(identity[0], i, lanes), zero + (uint32_t)block,
           zero + (uint32_t)(block >> 32), zero + (uint32_t)kActionStream},
          state.get<u32>(identity[1], i, lanes), state.get<u32>(identity[2], i, lanes));
      for (int w = 0; w < 4; ++w) store(words_[w] + i, out.word[w], lanes);
    }
  }

  uint64_t block_ = ~0ull;
  alignas(64) uint32_t words_[4][kBlock];
};

template <template <class> class EnvTemplate>
class LaneKernel final : public Kernel {
  using L = Lanes<16>;
  using f32 = L::f32;
  using i32 = L::i32;
  using u32 = L::u32;
  using Env = EnvTemplate<L>;
  using State = typename Env::State;

  static constexpr const Description& describe = Env::describe;
  static constexpr int kEnvWords = sizeof(State) / sizeof(f32);
  static constexpr int kWords = kEnvWords + kBookkeepingWords;
  static constexpr int kMovingWords = kEnvWords + kIndex;  // the words that a step changes
  static constexpr int kObs = describe.observation_size;
  static constexpr int kBlock = 512;
  static constexpr int kIdentity[3] = {kEnvWords + kIndex, kEnvWords + kSeedLow,
                                       kEnvWords + kSeedHigh};

 public:
  static Kernel* make(const int64_t*) { return new LaneKernel; }

  const Description& description() const override { return describe; }
  size_t state_bytes() const override { return kWords * sizeof(uint32_t); }

  void reset(const Reset& job) const override {
    const StateView state{(uint32_t*)job.state, job.n};
    uint16_t list[kBlock];
    for (int64_t first = 0; first < job.n; first += kBlock) {
      const int64_t count = job.n - first < kBlock ? job.n - first : kBlock;
      int chosen = 0;
      for (int64_t i = 0; i < count; ++i) {
        if (job.mask == nullptr || job.mask[first + i]) list[chosen++] = (uint16_t)i;
      }
      const StateView here{state.base + first, state.stride};
      reset_listed(here, here, list, chosen, nullptr);
      if (job.observation == nullptr) continue;
      for (int64_t i = 0; i < count; i += L::width) {
        const int lanes = count - i < L::width ? (int)(count - i) : L::width;
        f32 fields[kObs];
        env_.observe(load_state(here, i, lanes), fields);
        store_rows<L>(job.observation + (first + i) * kObs, fields, lanes);
      }
    }
  }

  int64_t run(const Rollout& job) const override {
    Rollout plan = job;
    // A fork costs about as much as 2,000 steps.
    if (job.n * job.steps < 2048 || job.n < 2 * L::width) plan.threads = 1;
    int64_t block = (plan.n + plan.threads - 1) / plan.threads;
    block = (block + L::width - 1) / L::width * L::width;
    if (block > kBlock) block = kBlock;
    return for_each_block(plan, block, kObs,
                          [&](int64_t first, int64_t count, EndList& ends, int32_t* counts,
                              int64_t stride) { run_block(plan, first, count, ends, counts, stride); });
  }

 private:
  HEADRACE_INLINE static State load_state(const StateView& view, int64_t i, int lanes) {
    f32 words[kEnvWords];
    for (int w = 0; w < kEnvWords; ++w) words[w] = view.get<f32>(w, i, lanes);
    State state;
    __builtin_memcpy(&state, words, sizeof(state));
    return state;
  }

  HEADRACE_INLINE static void store_state(const StateView& view, int64_t i, const State& state,
                                          int lanes) {
    f32 words[kEnvWords];
    __builtin_memcpy(words, &state, sizeof(state));
    for (int w = 0; w < kEnvWords; ++w) view.set(w, i, words[w], lanes);
  }

  HEADRACE_INLINE static auto load_action(const void* actions, int64_t i, int lanes) {
    if constexpr (describe.action_kind == ActionKind::discrete) {
      return convert<i32>(load<L::u8>((const uint8_t*)actions + i, lanes));
    } else if constexpr (describe.action_size == 1) {
      return load<f32>((const float*)actions + i, lanes);
    } else {
      constexpr int size = describe.action_size;
      struct Components {
        f32 at[size];
      } action = {};
      for (int l = 0; l < lanes; ++l) {
        for (int c = 0; c < size; ++c) action.at[c][l] = ((const float*)actions)[(i + l) * size + c];
      }
      return action;
    }
  }

  // One step of one block: what is written where.
  struct StepOutputs {
    float* observation;
    float* reward;
    uint8_t* terminated;
    uint8_t* truncated;
    float* next_observation;
    float* episode_return;
    int32_t* episode_length;
  };

  static StepOutputs outputs_at(const Rollout& job, int64_t row) {
    const auto at = [row](auto* base, int64_t width) { return base ? base + row * width : base; };
    return {at(job.observation, kObs), at(job.reward, 1),
            at(job.terminated, 1),     at(job.truncated, 1),
            at(job.next_observation, kObs), at(job.episode_return, 1),
            at(job.episode_length, 1)};
  }

  void run_block(const Rollout& job, int64_t first, int64_t count, EndList& ends, int32_t* counts,
                 int64_t counts_stride) const {
    const StateView home{(uint32_t*)job.state + first, job.n};
    alignas(64) uint32_t near[kMovingWords][kBlock + L::width];
    StateView state = home;
    const bool fused = job.steps > 1;
    if (fused) {  // a power-of-two stride would make all words fight for the same cache sets
      state = {&near[0][0], kBlock + L::width};
      copy_moving(state, home, count);
    }
    ActionDraws<Env, L, kBlock> draws;
    alignas(64) uint8_t drawn[kBlock * describe.action_components() * describe.action_bytes()];

    for (int64_t step = 0; step < job.steps; ++step) {
      const int64_t row = step * job.n + first;
      constexpr int64_t action_bytes = describe.action_components() * describe.action_bytes();
      const void* actions = drawn;
      if (job.actions != nullptr) {
        actions = (const uint8_t*)job.actions + row * action_bytes;
      } else {
        void* to = job.drawn ? (uint8_t*)job.drawn + row * action_bytes : drawn;
        draws.fill(home, kIdentity, count, job.clock + step, to);
        actions = to;
      }
      const int64_t before = ends.position();
      step_block(job, state, home, actions, count, outputs_at(job, row), step, first, ends);
      if (counts != nullptr) counts[step * counts_stride] = (int32_t)(ends.position() - before);
    }
    if (fused) copy_moving(home, state, count);
  }

  static void copy_moving(const StateView& to, const StateView& from, int64_t count) {
    for (int w = 0; w < kMovingWords; ++w) {
      __builtin_memcpy(&to.at(w, 0), &from.at(w, 0), count * sizeof(uint32_t));
    }
  }

  void step_block(const Rollout& job, const StateView& state, const StateView& home,
                  const void* actions, int64_t count, const StepOutputs& out, int64_t step,
                  int64_t first, EndList& ends) const {
    uint64_t ended_bits[kBlock / 64] = {};
    uint64_t reset_bits[kBlock / 64] = {};
    for (int64_t i = 0; i < count; i += L::width) {
      const int lanes = count - i < L::width ? (int)(count - i) : L::width;
      const i32 ended = step_lanes(job, state, actions, i, lanes, out);
      i32 to_reset = ended;
      if (job.autoreset == Autoreset::next_step) {
        to_reset = state.get<i32>(kEnvWords + kPending, i, lanes) != 0;
        state.set(kEnvWords + kPending, i, -ended, lanes);
      }
      const uint64_t used = lanes == L::width ? 0xffffull : (1ull << lanes) - 1;
      ended_bits[i / 64] |= (movemask<L::width>(ended) & used) << (i % 64);
      reset_bits[i / 64] |= (movemask<L::width>(to_reset) & used) << (i % 64);
    }
    uint16_t list[kBlock];
    if (ends.wanted()) {
      const int ended = expand(ended_bits, count, list);
      for (int j = 0; j < ended; ++j) append_end(state, list[j], out, step, first, ends);
    }
    if (job.autoreset == Autoreset::disabled) return;
    const int chosen = expand(reset_bits, count, list);
    reset_listed(state, home, list, chosen, out.observation);
  }

  // Steps one vector of environments, writes its outputs, and returns which of them ended.
  HEADRACE_INLINE i32 step_lanes(const Rollout& job, const StateView& state, const void* actions,
                                 int64_t i, int lanes, const StepOutputs& out) const {
    State env_state = load_state(state, i, lanes);
    Outcome<L> outcome = env_.step(env_state, load_action(actions, i, lanes));
    store_state(state, i, env_state, lanes);

    const i32 elapsed = state.get<i32>(kEnvWords + kElapsed, i, lanes) + 1;
    const i32 limit = i32{} + (int32_t)(job.max_steps ? job.max_steps : 0x7fffffff);
    i32 truncated = elapsed >= limit;
    if (job.autoreset == Autoreset::next_step) {  // a pending reset is not a step
      const i32 live = state.get<i32>(kEnvWords + kPending, i, lanes) == 0;
      outcome.reward = bits<f32>(bits<i32>(outcome.reward) & live);
      outcome.terminated &= live;
      truncated &= live;
    }
    const f32 total = state.get<f32>(kEnvWords + kReturn, i, lanes) + outcome.reward;
    state.set(kEnvWords + kElapsed, i, elapsed, lanes);
    state.set(kEnvWords + kReturn, i, total, lanes);
    const i32 ended = outcome.terminated | truncated;

    if (out.observation || out.next_observation) {
      f32 fields[kObs];
      env_.observe(env_state, fields);
      if (out.observation) store_rows<L>(out.observation + i * kObs, fields, lanes);
      if (out.next_observation) store_rows<L>(out.next_observation + i * kObs, fields, lanes);
    }
    if (out.reward) store(out.reward + i, outcome.reward, lanes);
    if (out.terminated) store(out.terminated + i, convert<L::u8>(-outcome.terminated), lanes);
    if (out.truncated) store(out.truncated + i, convert<L::u8>(-truncated), lanes);
    if (out.episode_return) {
      store(out.episode_return + i, bits<f32>(bits<i32>(total) & ended), lanes);
      store(out.episode_length + i, elapsed & ended, lanes);
    }
    return ended;
  }

  // The positions of the set bits.
  static int expand(const uint64_t* bitmap, int64_t count, uint16_t* list) {
    int size = 0;
    for (int64_t word = 0; word * 64 < count; ++word) {
      for (uint64_t rest = bitmap[word]; rest != 0; rest &= rest - 1) {
        list[size++] = (uint16_t)(word * 64 + __builtin_ctzll(rest));
      }
    }
    return size;
  }

  void append_end(const StateView& state, int64_t i, const StepOutputs& out, int64_t step,
                  int64_t first, EndList& ends) const {
    float total;
    __builtin_memcpy(&total, &state.at(kEnvWords + kReturn, i), sizeof(total));
    ends.append(step, first + i, total, (int32_t)state.at(kEnvWords + kElapsed, i),
                out.observation + i * kObs);
  }

  // Begins new episodes for the listed environments; writes their observations if there is where to.
  void reset_listed(const StateView& state, const StateView& home, const uint16_t* list, int size,
                    float* observation) const {
    for (int j = 0; j < size; j += L::width) {
      const int lanes = size - j < L::width ? size - j : L::width;
      const auto gather = [&](const StateView& view, int word) {
        u32 value = {};
        for (int l = 0; l < lanes; ++l) value[l] = view.at(word, list[j + l]);
        return value;
      };
      const Identity<L> who{gather(home, kIdentity[0]), gather(home, kIdentity[1]),
                            gather(home, kIdentity[2])};
      const u32 episode = gather(state, kEnvWords + kEpisode);
      ResetDraws<L> draws(who, episode);
      const State fresh = env_.reset(draws);

      alignas(64) uint32_t words[kEnvWords][L::width];
      alignas(64) float rows[L::width * kObs];
      __builtin_memcpy(words, &fresh, sizeof(fresh));
      f32 fields[kObs];
      env_.observe(fresh, fields);
      store_rows<L>(rows, fields, L::width);
      for (int l = 0; l < lanes; ++l) {
        const int64_t i = list[j + l];
        for (int w = 0; w < kEnvWords; ++w) state.at(w, i) = words[w][l];
        state.at(kEnvWords + kElapsed, i) = 0;
        state.at(kEnvWords + kEpisode, i) = episode[l] + 1;
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
