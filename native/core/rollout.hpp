// SPDX-License-Identifier: Apache-2.0
// The kernels' interface: pure functions over memory that the caller owns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "env.hpp"

namespace headrace {

enum class Autoreset : int { next_step, same_step, disabled };

// Episodes that ended, in the order (step, environment).
struct Ends {
  float* final_observation = nullptr;  // [ends, observation_size]
  int32_t* at = nullptr;               // [ends, 2]: step, environment
  float* returns = nullptr;            // [ends]
  int32_t* lengths = nullptr;          // [ends]
};

// `steps` steps of `n` environments. Pointers marked (optional) may be null: then it is not
// written. Arrays are [steps, n, ...], and what they hold belongs to the moment after the step; the
// observation of an environment that was reset is that of its new episode. `actions` are dense; the
// rows of all that is written may be parts of longer ones, of `row_length()` environments.
struct Rollout {
  void* state = nullptr;  // lanes: uint32[words, n]; rows: uint8[n, bytes]
  int64_t n = 0;
  int64_t steps = 1;
  int64_t pitch = 0;  // environments from one row that is written to the next; 0: n
  Autoreset autoreset = Autoreset::same_step;
  int64_t max_steps = 0;          // time limit; 0: none
  const void* actions = nullptr;  // uint8 or float32; null: uniform random ones
  void* drawn = nullptr;          // (optional) the random actions
  uint64_t clock = 0;  // steps taken since the environments were seeded, for random actions
  float* observation = nullptr;       // (optional)
  float* reward = nullptr;            // (optional)
  uint8_t* terminated = nullptr;      // (optional)
  uint8_t* truncated = nullptr;       // (optional)
  float* next_observation = nullptr;  // (optional) before any reset
  float* episode_return = nullptr;    // (optional) 0 where no episode ended
  int32_t* episode_length = nullptr;  // (optional) 0 where no episode ended
  Ends ends = {};                     // (optional, all or none; wants `observation`) steps * n rows
  Ends scratch_ends = {};             // likewise: working room, wanted with `ends`
  int32_t* scratch_counts = nullptr;  // likewise
  int threads = 1;

  int64_t row_length() const { return pitch ? pitch : n; }
};

// Starts new episodes where `mask` is set (everywhere if it is null), and writes the observation of
// every environment, reset or not.
struct Reset {
  void* state = nullptr;
  int64_t n = 0;
  const uint8_t* mask = nullptr;
  float* observation = nullptr;
};

// One environment, compiled for one instruction set, with its options fixed.
class Kernel {
 public:
  virtual ~Kernel();  // in dispatch.cpp, so that what the compiler makes for this class is there
  virtual const Description& description() const = 0;
  virtual size_t state_bytes() const = 0;  // per environment, bookkeeping included
  virtual void reset(const Reset& job) const = 0;
  // Returns the number of episodes that ended if `ends` is given, else 0.
  virtual int64_t run(const Rollout& job) const = 0;
};

struct KernelEntry {
  const Description* description;
  Kernel* (*make)(const int64_t* options);
};

struct KernelTable {
  const KernelEntry* entries;
  int count;
};

}  // namespace headrace
