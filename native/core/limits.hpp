// SPDX-License-Identifier: Apache-2.0
// The yardsticks of `headrace ladder`: loops that do nothing but store, update memory, or compute.
#pragma once

#include <cstdint>

namespace headrace {

inline constexpr int kArithmeticChains = 12;  // enough to hide the latency of two operations

struct Limits {
  // Fills the buffer once, each thread its part.
  void (*store)(void* buffer, int64_t bytes, int value, int threads);
  // Reads every word and writes it back, changed.
  void (*update)(void* buffer, int64_t bytes);
  // rounds * kArithmeticChains * 16 products and as many sums on each thread, in registers,
  // uncontracted like the environments' arithmetic.
  float (*multiply_add)(int64_t rounds, int threads);
};

}  // namespace headrace
