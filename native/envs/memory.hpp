// SPDX-License-Identifier: Apache-2.0
// Memory-v0: a synthetic simulator whose state is as large as one likes, and whose step reads and
// writes all of it with three integer operations a word.
//
//   word'[j]   = word[j] * 1664525 + 1013904223 + action      (mod 2^32)
//   sum        = sum of word'                                 (mod 2^32)
//   observation = the four bytes of sum, lowest first, / 256;  reward = its highest byte / 256
//   terminated  = the highest ten bits of sum are zero         (about 1 step in 1024)
//
// Integers make the sum exact in any order, so every definition agrees to the last bit.
#pragma once

#include "../core/env.hpp"
#include "../core/kernel_rows.hpp"

namespace headrace::HEADRACE_ISA {

class Memory {
 public:
  static constexpr Description describe = {
      .name = "Memory-v0",
      .layout = Layout::rows,
      .observation_size = 4,
      .observation_low = {0, 0, 0, 0},
      .observation_high = {1, 1, 1, 1},
      .action_size = 4,
      .max_episode_steps = 1000,
      .options = {{.name = "state_bytes",
                   .fallback = 1024,
                   .low = 64,
                   .high = 4 << 20,
                   .multiple_of = 16}},
  };

  explicit Memory(const int64_t* options) : words_(options[0] / 4) {}

  size_t state_bytes() const { return words_ * sizeof(uint32_t) + 2 * sizeof(uint32_t); }

  void reset(std::byte* state, ResetDraws<Lanes<1>>& draws) const {
    auto* words = (uint32_t*)state;
    uint32_t sum = 0;
    for (int64_t j = 0; j < words_; ++j) sum += words[j] = draws.word()[0];
    words[words_] = sum;
  }

  RowOutcome step(std::byte* state, int32_t action) const {
    auto* words = (uint32_t*)state;
    const uint32_t increment = 1013904223u + (uint32_t)action;
    uint32_t sum = 0;
    for (int64_t j = 0; j < words_; ++j) {
      words[j] = words[j] * 1664525u + increment;
      sum += words[j];
    }
    words[words_] = sum;
    return {(float)(sum >> 24) * (1.0f / 256), sum >> 22 == 0};
  }

  void observe(const std::byte* state, float* out) const {
    const uint32_t sum = ((const uint32_t*)state)[words_];
    for (int b = 0; b < 4; ++b) out[b] = (float)((sum >> (8 * b)) & 0xff) * (1.0f / 256);
  }

 private:
  int64_t words_;  // the sum, kept for observe, follows them
};

}  // namespace headrace::HEADRACE_ISA
