// SPDX-License-Identifier: Apache-2.0
// Checking and narrowing actions, for one instruction set: this file is compiled once for each.
#include "dispatch.hpp"

namespace headrace::HEADRACE_ISA {

namespace {

// Two reductions that every instruction set has for every type: the bits above what fits, and the
// greatest of what does.
template <class From, class To>
bool narrow(const From* from, int64_t count, int choices, To* to) {
  uint64_t above = 0;
  To greatest = 0;
  for (int64_t i = 0; i < count; ++i) {
    above |= (uint64_t)(int64_t)from[i] >> 8 * sizeof(To);
    const auto low = (To)from[i];
    greatest = low > greatest ? low : greatest;
    to[i] = low;
  }
  return above == 0 && greatest < choices;
}

template <class To>
NarrowTo<To> narrow_to() {
  return {&narrow<int64_t, To>,  &narrow<int32_t, To>, &narrow<uint32_t, To>, &narrow<int16_t, To>,
          &narrow<uint16_t, To>, &narrow<int8_t, To>,  &narrow<uint8_t, To>};
}

}  // namespace

Narrow narrow() { return {narrow_to<uint8_t>(), narrow_to<uint16_t>()}; }

}  // namespace headrace::HEADRACE_ISA
