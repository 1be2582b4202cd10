// SPDX-License-Identifier: Apache-2.0
// NEXT_STEP, SAME_STEP and DISABLED against each other: one step a call, environment i always
// pushed the same way, so that the three take the same steps.
#pragma once

#include "check.hpp"
#include "rollouts.hpp"

namespace headrace::testing {

struct Trace {
  std::vector<float> observation, next_observation, reward;
  std::vector<bool> terminated, truncated;
};

inline constexpr int64_t kTraced = 5, kLimit = 8, kTraceSteps = 60, kObs = 4;

inline std::vector<Trace> trace(Autoreset mode, const Environments& envs) {
  std::vector<Trace> traces(kTraced);
  const auto actions = exactly<uint8_t>(kTraced);
  for (int64_t i = 0; i < kTraced; ++i) actions[i] = i % 2;
  for (int64_t step = 0; step < kTraceSteps; ++step) {
    const Outputs out(envs.kernel.description(), 1, kTraced);
    Rollout job{.state = envs.data(),
                .n = kTraced,
                .autoreset = mode,
                .max_steps = kLimit,
                .actions = actions.get()};
    out.bind(job);
    envs.kernel.run(job);
    for (int64_t i = 0; i < kTraced; ++i) {
      Trace& t = traces[i];
      const auto* observation = (const float*)out.observation.get() + i * kObs;
      const auto* next = (const float*)out.next_observation.get() + i * kObs;
      t.observation.insert(t.observation.end(), observation, observation + kObs);
      t.next_observation.insert(t.next_observation.end(), next, next + kObs);
      t.reward.push_back(out.reward[i]);
      t.terminated.push_back(out.terminated[i]);
      t.truncated.push_back(out.truncated[i]);
    }
  }
  return traces;
}

inline bool same_observation(const std::vector<float>& a, size_t at, const std::vector<float>& b,
                             size_t bt) {
  return std::memcmp(&a[at * kObs], &b[bt * kObs], kObs * sizeof(float)) == 0;
}

inline void resets_come_when_they_should(const KernelTable& kernels, const char* name) {
  const auto kernel = make_kernel(kernels, "CartPole-v1", 0);
  const Environments same_envs(*kernel, kTraced), next_envs(*kernel, kTraced),
      disabled_envs(*kernel, kTraced);
  const auto same = trace(Autoreset::same_step, same_envs);
  const auto next = trace(Autoreset::next_step, next_envs);
  const auto disabled = trace(Autoreset::disabled, disabled_envs);
  for (int64_t i = 0; i < kTraced; ++i) {
    size_t at = 0;  // SAME_STEP's step that NEXT_STEP is at
    bool pending = false;
    int64_t length = 0, episodes = 1;
    for (size_t t = 0; t < kTraceSteps; ++t) {
      const bool ended = next[i].terminated[t] || next[i].truncated[t];
      if (pending) {  // this call only resets: what SAME_STEP showed at the end already
        HEADRACE_CHECK(next[i].reward[t] == 0 && !ended, "%s", name);
        HEADRACE_CHECK(same_observation(next[i].observation, t, same[i].observation, at - 1), "%s",
                       name);
        HEADRACE_CHECK(!same_observation(next[i].observation, t, same[i].next_observation, at - 1),
                       "%s", name);
        pending = false;
        length = 0;
        ++episodes;
        continue;
      }
      ++length;
      HEADRACE_CHECK(same_observation(next[i].observation, t, same[i].next_observation, at), "%s",
                     name);
      HEADRACE_CHECK(next[i].reward[t] == 1 && same[i].reward[at] == 1, "%s", name);
      HEADRACE_CHECK(next[i].terminated[t] == same[i].terminated[at], "%s", name);
      HEADRACE_CHECK(next[i].truncated[t] == same[i].truncated[at], "%s", name);
      HEADRACE_CHECK(next[i].truncated[t] == (length >= kLimit), "%s", name);
      const bool stays = same_observation(same[i].observation, at, same[i].next_observation, at);
      HEADRACE_CHECK(stays == !ended, "%s", name);
      pending = ended;
      ++at;
      if (episodes == 1) {  // DISABLED takes the same steps until the first end
        HEADRACE_CHECK(same_observation(disabled[i].observation, t, next[i].observation, t), "%s",
                       name);
      }
    }
    HEADRACE_CHECK(episodes > 3 && next_envs.book(kEpisode, i) == episodes, "%s", name);
    HEADRACE_CHECK(next_envs.book(kPending, i) == pending, "%s", name);
    // DISABLED goes on, fallen and out of time.
    HEADRACE_CHECK(disabled_envs.book(kEpisode, i) == 1, "%s", name);
    HEADRACE_CHECK(disabled_envs.book(kElapsed, i) == kTraceSteps, "%s", name);
    HEADRACE_CHECK(disabled[i].truncated[kTraceSteps - 1], "%s", name);
  }
}

}  // namespace headrace::testing
