// SPDX-License-Identifier: Apache-2.0
// Rollouts for the tests: every array is a heap block of exactly its size, so that AddressSanitizer
// sees a kernel that reads or writes one element too many.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "../core/dispatch.hpp"

namespace headrace::testing {

using Bytes = std::vector<uint8_t>;

template <class T>
std::unique_ptr<T[]> exactly(int64_t size) {
  return std::unique_ptr<T[]>(new T[size]());
}

template <class T>
void append(Bytes& to, const T* from, int64_t count) {
  const auto* bytes = (const uint8_t*)from;
  to.insert(to.end(), bytes, bytes + count * sizeof(T));
}

inline std::unique_ptr<Kernel> make_kernel(const KernelTable& table, const char* name,
                                           int64_t option) {
  const int64_t options[kMaxOptions] = {option};
  for (int i = 0; i < table.count; ++i) {
    if (std::strcmp(table.entries[i].description->name, name) == 0) {
      return std::unique_ptr<Kernel>(table.entries[i].make(options));
    }
  }
  return nullptr;
}

// The state of n environments, seeded and reset.
struct Environments {
  const Kernel& kernel;
  int64_t n;
  int64_t words;  // of one environment
  std::unique_ptr<uint64_t[]> storage;

  Environments(const Kernel& k, int64_t count, bool reset = true)
      : kernel(k),
        n(count),
        words((int64_t)k.state_bytes() / 4),
        storage(exactly<uint64_t>((words * n + 1) / 2)) {
    for (int64_t i = 0; i < n; ++i) {
      book(kIndex, i) = (uint32_t)(7 + i);
      book(kSeedLow, i) = 0x89abcdefu;
      book(kSeedHigh, i) = 0x01234567u;
    }
    if (reset) kernel.reset({.state = storage.get(), .n = n});
  }

  uint32_t* data() const { return (uint32_t*)storage.get(); }
  uint32_t& book(Bookkeeping word, int64_t i) const {
    if (kernel.description().layout == Layout::rows) return data()[i * words + word];
    return data()[(words - kBookkeepingWords + word) * n + i];
  }
};

// The outputs of one call.
struct Outputs {
  int64_t rows;
  int64_t width;  // bytes of an observation
  int64_t bits;   // bytes of a mask
  std::unique_ptr<uint8_t[]> observation, next_observation, final_observation, scratch_observation;
  std::unique_ptr<uint8_t[]> mask, next_mask, final_mask, scratch_mask;
  std::unique_ptr<uint8_t[]> to_play, next_to_play, final_to_play, scratch_to_play;
  std::unique_ptr<float[]> reward, episode_return, end_return, scratch;
  std::unique_ptr<uint8_t[]> terminated, truncated, drawn;
  std::unique_ptr<int32_t[]> episode_length, ended_at, end_length, scratch_at, scratch_counts;

  Outputs(const Description& describe, int64_t steps, int64_t n)
      : rows(steps * n),
        width(describe.observation_bytes()),
        bits(describe.mask_bytes()),
        reward(exactly<float>(rows)),
        episode_return(exactly<float>(rows)),
        end_return(exactly<float>(rows)),
        scratch(exactly<float>(rows)),
        terminated(exactly<uint8_t>(rows)),
        truncated(exactly<uint8_t>(rows)),
        drawn(exactly<uint8_t>(rows * describe.action_components() * describe.action_bytes())),
        episode_length(exactly<int32_t>(rows)),
        ended_at(exactly<int32_t>(rows * 2)),
        end_length(exactly<int32_t>(rows)),
        scratch_at(exactly<int32_t>(rows * 3)),
        scratch_counts(exactly<int32_t>(rows)) {
    for (auto* one : {&observation, &next_observation, &final_observation, &scratch_observation}) {
      *one = exactly<uint8_t>(rows * width);
    }
    for (auto* one : {&mask, &next_mask, &final_mask, &scratch_mask}) {
      *one = exactly<uint8_t>(rows * bits);
    }
    const int64_t turns = describe.players > 1 ? rows : 0;
    for (auto* one : {&to_play, &next_to_play, &final_to_play, &scratch_to_play}) {
      *one = exactly<uint8_t>(turns);
    }
  }

  void bind(Rollout& job) const {
    job.observation = observation.get();
    job.reward = reward.get();
    job.terminated = terminated.get();
    job.truncated = truncated.get();
    job.next_observation = next_observation.get();
    job.episode_return = episode_return.get();
    job.episode_length = episode_length.get();
    job.mask = mask.get();
    job.next_mask = next_mask.get();
    job.to_play = to_play.get();
    job.next_to_play = next_to_play.get();
    job.ends = {final_observation.get(), ended_at.get(),   end_return.get(),
                end_length.get(),        final_mask.get(), final_to_play.get()};
    job.scratch_ends = {scratch_observation.get(),   scratch_at.get(),   scratch.get(),
                        scratch_at.get() + rows * 2, scratch_mask.get(), scratch_to_play.get()};
    job.scratch_counts = scratch_counts.get();
    if (job.actions == nullptr) job.drawn = drawn.get();
  }
};

// What a rollout left, in bytes, however many calls it took.
struct Record {
  Bytes state, steps, observations, masks, turns, dense, actions, ends;
  bool operator==(const Record&) const = default;
};

struct Plan {
  Autoreset autoreset = Autoreset::same_step;
  int64_t steps = 64;  // in all
  int64_t fused = 64;  // in one call
  int threads = 1;
  int64_t max_steps = 13;
  const Bytes* actions = nullptr;  // null: random ones
};

inline Record roll(const Kernel& kernel, int64_t n, const Plan& plan) {
  const Description& describe = kernel.description();
  const int64_t action_bytes = n * describe.action_components() * describe.action_bytes();
  const Environments envs(kernel, n);
  Record record;
  for (int64_t step = 0; step < plan.steps; step += plan.fused) {
    Outputs out(describe, plan.fused, n);
    const auto given = exactly<uint8_t>(plan.actions ? action_bytes * plan.fused : 0);
    Rollout job{.state = envs.data(),
                .n = n,
                .steps = plan.fused,
                .autoreset = plan.autoreset,
                .max_steps = plan.max_steps,
                .clock = (uint64_t)step,
                .threads = plan.threads};
    if (plan.actions) {
      std::memcpy(given.get(), plan.actions->data() + step * action_bytes,
                  action_bytes * plan.fused);
      job.actions = given.get();
    }
    out.bind(job);
    const int64_t ends = kernel.run(job);

    const int64_t turns = describe.players > 1 ? 1 : 0;
    append(record.observations, out.observation.get(), out.rows * out.width);
    append(record.masks, out.mask.get(), out.rows * out.bits);
    append(record.turns, out.to_play.get(), out.rows * turns);
    for (int64_t row = 0; row < out.rows; ++row) {
      append(record.steps, &out.reward[row], 1);
      append(record.steps, &out.terminated[row], 1);
      append(record.steps, &out.truncated[row], 1);
      append(record.dense, out.next_observation.get() + row * out.width, out.width);
      append(record.dense, out.next_mask.get() + row * out.bits, out.bits);
      append(record.dense, out.next_to_play.get() + row * turns, turns);
      append(record.dense, &out.episode_return[row], 1);
      append(record.dense, &out.episode_length[row], 1);
    }
    append(record.actions, plan.actions ? given.get() : out.drawn.get(), action_bytes * plan.fused);
    for (int64_t e = 0; e < ends; ++e) {
      out.ended_at[2 * e] += (int32_t)step;
      append(record.ends, &out.ended_at[2 * e], 2);
      append(record.ends, &out.end_return[e], 1);
      append(record.ends, &out.end_length[e], 1);
      append(record.ends, out.final_observation.get() + e * out.width, out.width);
      append(record.ends, out.final_mask.get() + e * out.bits, out.bits);
      append(record.ends, out.final_to_play.get() + e * turns, turns);
    }
  }
  append(record.state, envs.data(), envs.words * n);
  return record;
}

}  // namespace headrace::testing
