// SPDX-License-Identifier: Apache-2.0
#include "arithmetic.hpp"

#include "../core/rng.hpp"

namespace headrace::HEADRACE_ISA {

namespace {

using L = Lanes<kWidth>;

void sincos_lanes(const float* x, float* sin, float* cos) {
  const auto both = sincos<L>(load<L::f32>(x));
  store(sin, both.sin);
  store(cos, both.cos);
}

void philox_lanes(const uint32_t (&counter)[4], const uint32_t (&key)[2], uint32_t* out) {
  Block<L::u32> block;
  for (int w = 0; w < 4; ++w) block.word[w] = L::u32{} + counter[w];
  block = philox<L>(block, L::u32{} + key[0], L::u32{} + key[1]);
  for (int w = 0; w < 4; ++w) store(out + w * kWidth, block.word[w]);
}

}  // namespace

Arithmetic arithmetic() { return {kWidth, &sincos_lanes, &philox_lanes}; }

}  // namespace headrace::HEADRACE_ISA
