// SPDX-License-Identifier: Apache-2.0
// What an environment must provide, and what the outside sees of it.
//
// A lane environment (arithmetic, no branches) is a template over its lane arithmetic:
//
//   template <class L> struct MyEnv {
//     static constexpr Description describe = {...};
//     struct State { typename L::f32 a, b; };                    // 32-bit lanes only
//     State reset(ResetDraws<L>& draws) const;
//     Outcome<L> step(State& state, const Action& action) const; // Action: see below
//     void observe(const State& state, typename L::f32 (&out)[observation_size]) const;
//   };
//
// A row environment (branches, or a state of many words) is a plain struct working on one state of
// `state_bytes()` bytes, 8-aligned:
//
//   struct MyEnv {
//     static constexpr Description describe = {...};
//     explicit MyEnv(const int64_t* options);
//     size_t state_bytes() const;
//     void reset(std::byte* state, ResetDraws<Lanes<1>>& draws) const;
//     RowOutcome step(std::byte* state, int32_t action) const;
//     void observe(const std::byte* state, float* out) const;   // or uint8_t*, as described
//   };
//
// and, where not every action is legal everywhere (`masked`), or there is more than one player:
//
//     bool legal(const std::byte* state, int32_t action) const;
//     int32_t legal_count(const std::byte* state) const;
//     int32_t nth_legal(const std::byte* state, int32_t n) const;  // n < legal_count
//     void mask(const std::byte* state, uint8_t* out) const;       // bit a % 8 of byte a / 8
//     bool illegal_loses() const;  // an illegal action: reward -1 and the end, or an error?
//     uint8_t to_play(const std::byte* state) const;
//
// Neither allocates, renders, seeds, counts steps, resets itself or knows of threads: kernel.hpp
// does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

enum class Layout { lanes, rows };
enum class ActionKind { discrete, box };
enum class ObservationKind { float32, bytes };

inline constexpr int kMaxFields = 16;
inline constexpr int kMaxOptions = 4;
inline constexpr int kMaxWords = 4;
inline constexpr int kMaxRank = 3;

// A whole number within limits; or, where it has words, one of them, as its number.
struct Option {
  const char* name = nullptr;
  int64_t fallback = 0, low = 0, high = 0, multiple_of = 1;
  const char* words[kMaxWords] = {};
};

// A published fact sheet: spaces, limits, options. `version` changes whenever the meaning of the
// state's bytes does.
struct Description {
  const char* name = nullptr;
  int version = 1;
  Layout layout = Layout::lanes;
  ObservationKind observation_kind = ObservationKind::float32;
  int observation_size = 0;
  int observation_shape[kMaxRank] = {};    // where it has more than one axis
  float observation_low[kMaxFields] = {};  // of float32; bytes are 0 to 255
  float observation_high[kMaxFields] = {};
  ActionKind action_kind = ActionKind::discrete;
  int action_size = 1;  // discrete: number of choices; box: number of components
  float action_low = 0.0f, action_high = 0.0f;
  bool masked = false;  // some actions may be illegal: there is a mask of `action_size` bits
  int players = 1;
  int max_episode_steps = 0;
  Option options[kMaxOptions] = {};

  constexpr int action_components() const {
    return action_kind == ActionKind::discrete ? 1 : action_size;
  }
  // The smallest integer that holds every choice, or a float.
  constexpr int action_bytes() const {
    if (action_kind == ActionKind::box) return 4;
    return action_size <= 256 ? 1 : 2;
  }
  constexpr int64_t observation_bytes() const {
    return observation_size * (observation_kind == ObservationKind::bytes ? 1 : 4);
  }
  constexpr int64_t mask_bytes() const { return masked ? (action_size + 7) / 8 : 0; }
};

// What the kernels keep about each environment, behind its own state words (lanes) or in front of
// its bytes (rows). All 32-bit.
enum Bookkeeping : int {
  kElapsed,  // steps of the running episode
  kEpisode,  // episodes begun
  kReturn,   // float32: sum of rewards of the running episode
  kPending,  // 1: ended, and the next step is to reset it (NEXT_STEP)
  kIndex,    // global index of the environment
  kSeedLow,  // 64-bit seed
  kSeedHigh,
  kUnused,
  kBookkeepingWords,
};

}  // namespace headrace
