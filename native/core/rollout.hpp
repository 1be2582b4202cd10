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
  void* final_observation = nullptr;  // [ends, observation_size]
  int32_t* at = nullptr;              // [ends, 2]: step, environment
  float* returns = nullptr;           // [ends]
  int32_t* lengths = nullptr;         // [ends]
  uint8_t* final_mask = nullptr;      // [ends, mask_bytes], where the environment is masked
  uint8_t* final_to_play = nullptr;   // [ends], where it has players
};

// `steps` steps of `n` environments. Pointers marked (optional) may be null: then it is not
// written. Arrays are [steps, n, ...], and what they hold belongs to the moment after the step; the
// observation of an environment that was reset is that of its new episode. `actions` are dense; the
// rows of all that is written may be parts of longer ones, of `row_length()` environments.
// Observations are float or uint8_t; masks are bits, action a being bit a % 8 of byte a / 8.
struct Rollout {
  void* state = nullptr;  // lanes: uint32[words, n]; rows: uint8[n, bytes]
  int64_t n = 0;
  int64_t steps = 1;
  int64_t pitch = 0;  // environments from one row that is written to the next; 0: n
  Autoreset autoreset = Autoreset::same_step;
  int64_t max_steps = 0;          // time limit; 0: none
  const void* actions = nullptr;  // uint8, uint16 or float32; null: uniform random legal ones
  void* drawn = nullptr;          // (optional) the random actions
  uint64_t clock = 0;  // steps taken since the environments were seeded, for random actions
  void* observation = nullptr;        // (optional)
  uint8_t* mask = nullptr;            // (optional) only where the environment is masked
  uint8_t* to_play = nullptr;         // (optional) only where it has players
  float* reward = nullptr;            // (optional)
  uint8_t* terminated = nullptr;      // (optional)
  uint8_t* truncated = nullptr;       // (optional)
  void* next_observation = nullptr;   // (optional) before any reset
  uint8_t* next_mask = nullptr;       // (optional) likewise
  uint8_t* next_to_play = nullptr;    // (optional) likewise
  float* episode_return = nullptr;    // (optional) 0 where no episode ended
  int32_t* episode_length = nullptr;  // (optional) 0 where no episode ended
  Ends ends = {};                     // (optional, all or none; wants `observation`) steps * n rows
  std::byte* scratch_ends = nullptr;  // wanted with `ends`: room for steps * n end records
  int32_t* scratch_counts = nullptr;  // likewise: room for steps * n numbers
  // (optional) Set to the least step * n + environment whose action was illegal where that is an
  // error. What the call has written is then worth nothing, the state included.
  int64_t* refused = nullptr;
  int threads = 1;

  int64_t row_length() const { return pitch ? pitch : n; }
};

// Starts new episodes where `where` is set (everywhere if it is null), and writes what there is to
// see of every environment, reset or not. All but the state may be null.
struct Reset {
  void* state = nullptr;
  int64_t n = 0;
  const uint8_t* where = nullptr;
  void* observation = nullptr;
  uint8_t* mask = nullptr;
  uint8_t* to_play = nullptr;
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
  // The first environment that refuses its action in the job's first step; -1: none does.
  virtual int64_t refusal(const Rollout& job) const;
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
