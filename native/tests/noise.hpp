// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::testing {

inline float noise(uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / (1 << 23) - 1;
}

inline std::vector<float> noises(size_t count, float scale, uint32_t seed) {
  std::vector<float> out(count);
  for (float& value : out) value = scale * noise(seed);
  return out;
}

}  // namespace headrace::testing
