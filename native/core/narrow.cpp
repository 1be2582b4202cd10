// SPDX-License-Identifier: Apache-2.0
// Checking and narrowing actions, for one instruction set: this file is compiled once for each.
#include "dispatch.hpp"

namespace headrace::HEADRACE_ISA {

namespace {

// Two reductions that every instruction set has for every type: the bits above a byte, and the
// greatest byte.
template <class T>
bool narrow(const T* from, int64_t count, int choices, uint8_t* to) {
  uint64_t above = 0;
  uint8_t greatest = 0;
  for (int64_t i = 0; i < count; ++i) {
    above |= (uint64_t)(int64_t)from[i] >> 8;
    const auto byte = (uint8_t)from[i];
    greatest = byte > greatest ? byte : greatest;
    to[i] = byte;
  }
  return above == 0 && greatest < choices;
}

}  // namespace

Narrow narrow() {
  return {&narrow<int64_t>, &narrow<int32_t>, &narrow<uint32_t>,
          &narrow<int16_t>, &narrow<int8_t>,  &narrow<uint8_t>};
}

}  // namespace headrace::HEADRACE_ISA
