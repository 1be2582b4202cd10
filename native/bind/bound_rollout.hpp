// SPDX-License-Identifier: Apache-2.0
// A rollout whose buffers were checked once and are written again and again.
#pragma once

#include <memory>
#include <optional>

#include "checks.hpp"
#include "parts.hpp"

namespace headrace::bind {

// One environment's kernel with its options, for one instruction set. `name` outlives everything.
struct NativeEnv {
  std::shared_ptr<const Kernel> kernel;
  std::vector<int64_t> options;
  const char* isa;

  const Description& description() const { return kernel->description(); }
  std::vector<int64_t> state_shape(int64_t n) const {
    const auto bytes = (int64_t)kernel->state_bytes();
    if (description().layout == Layout::lanes) return {bytes / 4, n};
    return {n, bytes};
  }
  void* checked_state(const Array& state, int64_t n) const {
    const auto shape = state_shape(n);
    if (description().layout == Layout::lanes) return checked<uint32_t>(state, "state", shape);
    void* data = checked<uint8_t>(state, "state", shape);
    if ((uintptr_t)data % 8 != 0) throw nb::value_error("state is not aligned to 8 bytes");
    return data;
  }
};

class BoundRollout {
  using Optional = std::optional<Array>;

 public:
  BoundRollout(const NativeEnv& env, Array state, Array observation, Array reward, Array terminated,
               Array truncated, Optional final_observation, Optional ended_at,
               Optional episode_return, Optional episode_length, Optional drawn, Optional mask,
               Optional final_mask, Optional to_play, Optional final_to_play, Autoreset autoreset,
               int64_t max_episode_steps, int threads)
      : kernel_(env.kernel),
        reader_(env.description(), find_isa(env.isa).narrow(), rows_of(reward),
                columns_of(reward)) {
    const Description& describe = env.description();
    const int64_t steps = rows_of(reward), n = columns_of(reward);
    job_.n = n;
    job_.steps = steps;
    job_.pitch = steps > 1 ? (int64_t)reward.stride(0) : n;
    if (job_.pitch < n) throw nb::value_error("reward's rows overlap");
    job_.autoreset = autoreset;
    job_.max_steps = max_episode_steps;
    job_.threads = threads;
    job_.state = env.checked_state(state, n);
    job_.observation =
        checked_observation(observation, "observation", describe, {steps, n}, job_.pitch);
    job_.reward = (float*)checked_rows<float>(reward, "reward", {steps, n}, job_.pitch);
    job_.terminated =
        (uint8_t*)checked_rows<uint8_t>(terminated, "terminated", {steps, n}, job_.pitch);
    job_.truncated =
        (uint8_t*)checked_rows<uint8_t>(truncated, "truncated", {steps, n}, job_.pitch);
    if (mask) {
      require(describe.masked, describe, "mask");
      job_.mask = (uint8_t*)checked_rows<uint8_t>(*mask, "mask", {steps, n, describe.mask_bytes()},
                                                  job_.pitch);
    }
    if (to_play) {
      require(describe.players > 1, describe, "to_play");
      job_.to_play = (uint8_t*)checked_rows<uint8_t>(*to_play, "to_play", {steps, n}, job_.pitch);
    }
    if (ended_at) {
      bind_ends(describe, final_observation, *ended_at, episode_return, episode_length, final_mask,
                final_to_play);
    }
    if (drawn) bind_drawn(describe, *drawn);
    for (auto& array : {state, observation, reward, terminated, truncated}) keep_.push_back(array);
    for (auto& array : {final_observation, ended_at, episode_return, episode_length, drawn, mask,
                        final_mask, to_play, final_to_play}) {
      if (array) keep_.push_back(*array);
    }
    cost_per_step_ = n * (int64_t)env.kernel->state_bytes();
  }

  // One step, of buffers that hold one: what a vector environment calls.
  int64_t step(const ConstArray& actions) {
    Rollout job = job_;
    job.steps = 1;
    job.actions = reader_.read(actions, 1);
    job.drawn = nullptr;
    return execute(job);
  }

  // Steps `first` to `first + count`, with given actions or, without, random ones from `clock` on.
  // Episodes that end are listed behind the `ends` that are there; returns how many there are now.
  int64_t run(int64_t first, int64_t count, int64_t ends, const std::optional<ConstArray>& actions,
              uint64_t clock) {
    if (first < 0 || count < 1 || first + count > job_.steps || ends < 0 || ends > first * job_.n) {
      throw nb::value_error("first, count or ends is outside the bound buffers");
    }
    Rollout job = job_;
    const Description& describe = kernel_->description();
    const int64_t rows = first * job_.pitch;
    job.steps = count;
    job.clock = clock;
    job.observation = (std::byte*)job.observation + rows * describe.observation_bytes();
    if (job.mask) job.mask += rows * describe.mask_bytes();
    if (job.to_play) job.to_play += rows;
    job.reward += rows;
    job.terminated += rows;
    job.truncated += rows;
    if (actions) {
      job.actions = reader_.read(*actions, count);
      job.drawn = nullptr;
    } else if (job.drawn) {
      job.drawn =
          (uint8_t*)job.drawn + rows * describe.action_components() * describe.action_bytes();
    }
    if (job.ends.at) {
      job.ends = {(std::byte*)job.ends.final_observation + ends * describe.observation_bytes(),
                  job.ends.at + 2 * ends,
                  job.ends.returns + ends,
                  job.ends.lengths + ends,
                  job.ends.final_mask + ends * describe.mask_bytes(),
                  job.ends.final_to_play + (describe.players > 1 ? ends : 0)};
    }
    const int64_t added = execute(job);
    for (int64_t e = 0; first > 0 && e < added; ++e) job.ends.at[2 * e] += (int32_t)first;
    return ends + added;
  }

 private:
  // Below this many bytes of state to step, giving up the interpreter's lock costs more.
  static constexpr int64_t kGilCost = 128 << 10;

  static int64_t rows_of(const Array& reward) {
    if (reward.ndim() != 2 || reward.shape(0) < 1 || reward.shape(1) < 1) {
      throw nb::value_error(("reward has shape " + shape_of(reward) +
                             "; it must be (steps, num_envs), both at least 1")
                                .c_str());
    }
    return (int64_t)reward.shape(0);
  }
  static int64_t columns_of(const Array& reward) { return (int64_t)reward.shape(1); }

  static void require(bool there, const Description& describe, const char* name) {
    if (there) return;
    throw nb::value_error((std::string(describe.name) + " has no " + name).c_str());
  }

  void bind_ends(const Description& describe, const Optional& final_observation,
                 const Array& ended_at, const Optional& episode_return,
                 const Optional& episode_length, const Optional& final_mask,
                 const Optional& final_to_play) {
    if (!final_observation || !episode_return || !episode_length) {
      throw nb::value_error(
          "ended_at goes with final_observation, episode_return and episode_length");
    }
    if (describe.masked && !final_mask) throw nb::value_error("ended_at goes with final_mask");
    if (describe.players > 1 && !final_to_play) {
      throw nb::value_error("ended_at goes with final_to_play");
    }
    const int64_t room = job_.steps * job_.n;
    Ends& ends = job_.ends;
    ends.final_observation =
        checked_observation(*final_observation, "final_observation", describe, {room});
    ends.at = (int32_t*)checked<int32_t>(ended_at, "ended_at", {room, 2});
    ends.returns = (float*)checked<float>(*episode_return, "episode_return", {room});
    ends.lengths = (int32_t*)checked<int32_t>(*episode_length, "episode_length", {room});
    if (describe.masked) {
      ends.final_mask =
          (uint8_t*)checked<uint8_t>(*final_mask, "final_mask", {room, describe.mask_bytes()});
    }
    if (describe.players > 1) {
      ends.final_to_play = (uint8_t*)checked<uint8_t>(*final_to_play, "final_to_play", {room});
    }
    make_scratch(describe, room);
  }

  // Never touched beyond what episodes end, so the pages mostly stay virtual.
  void make_scratch(const Description& describe, int64_t room) {
    scratch_.reset(new std::byte[room * describe.end_record_bytes()]);
    scratch_counts_.reset(new int32_t[room]);
    job_.scratch_ends = scratch_.get();
    job_.scratch_counts = scratch_counts_.get();
  }

  void bind_drawn(const Description& describe, const Array& drawn) {
    const std::vector<int64_t> rows{job_.steps, job_.n};
    if (describe.action_kind == ActionKind::box) {
      job_.drawn = checked_rows<float>(drawn, "drawn", {job_.steps, job_.n, describe.action_size},
                                       job_.pitch);
    } else if (describe.action_bytes() == 1) {
      job_.drawn = checked_rows<uint8_t>(drawn, "drawn", rows, job_.pitch);
    } else {
      job_.drawn = checked_rows<uint16_t>(drawn, "drawn", rows, job_.pitch);
    }
  }

  int64_t execute(const Rollout& job) {
    if (kernel_->description().masked && job.actions) return execute_if_legal(job);
    if (job.steps * cost_per_step_ < kGilCost) return kernel_->run(job);
    nb::gil_scoped_release release;
    return kernel_->run(job);
  }

  // An illegal action is an error after which the environments are where they were. One step is
  // looked at before; whether later ones are legal is only known when they are taken.
  int64_t execute_if_legal(Rollout job) {
    int64_t ends = 0, refused = -1;
    {
      nb::gil_scoped_release release;
      if (job.steps == 1) {
        refused = kernel_->refusal(job);
        if (refused < 0) ends = kernel_->run(job);
      } else {
        const size_t bytes = (size_t)job.n * kernel_->state_bytes();
        before_.resize(bytes);
        __builtin_memcpy(before_.data(), job.state, bytes);
        job.refused = &refused;
        ends = kernel_->run(job);
        if (refused >= 0) __builtin_memcpy(job.state, before_.data(), bytes);
      }
    }
    if (refused >= 0) throw reader_.illegal(job.actions, refused);
    return ends;
  }

  std::shared_ptr<const Kernel> kernel_;
  ActionReader reader_;
  Rollout job_;
  std::vector<Array> keep_;
  std::vector<std::byte> before_;  // the state, while steps are tried
  std::unique_ptr<std::byte[]> scratch_;
  std::unique_ptr<int32_t[]> scratch_counts_;
  int64_t cost_per_step_ = 0;  // bytes of state
};

}  // namespace headrace::bind
