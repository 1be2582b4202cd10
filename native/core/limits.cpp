// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most, for one instruction set: this file is compiled once for each.
#include <omp.h>

#include "dispatch.hpp"
#include "lanes.hpp"

namespace headrace::HEADRACE_ISA {

namespace {

void store(void* buffer, int64_t bytes, int value, int threads) {
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
    const int64_t first = bytes / 64 * part / parts, last = bytes / 64 * (part + 1) / parts;
    Lanes<kWidth>::i32 line[16 / kWidth];
    for (auto& part : line) part = Lanes<kWidth>::i32{} + value;
    for (int64_t at = first; at < last; ++at) __builtin_memcpy((char*)buffer + at * 64, line, 64);
  }
}

void update(void* buffer, int64_t bytes) {
  auto* data = (uint32_t*)buffer;
  for (int64_t j = 0; j < bytes / 4; ++j) data[j] += 1;
}

float multiply_add(int64_t rounds, int threads) {
  float total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total) if (threads > 1)
  {
    Lanes<kWidth>::f32 chain[kArithmeticChains];
    for (int c = 0; c < kArithmeticChains; ++c) chain[c] = Lanes<kWidth>::f32{} + (float)c;
    for (int64_t round = 0; round < rounds * (16 / kWidth); ++round) {
      for (auto& c : chain) c = c * 0.999f + 0.001f;
    }
    for (auto& c : chain) total += c[0];
  }
  return total;
}

}  // namespace

Limits limits() { return {&store, &update, &multiply_add}; }

}  // namespace headrace::HEADRACE_ISA
