// SPDX-License-Identifier: Apache-2.0
// Four words at once, one for each line through a square: in one register where the processor can
// shift each word by its own count, in four where it cannot.
#pragma once

#include "board.hpp"

namespace headrace::HEADRACE_ISA::chess {

enum Line : int { kFile, kRank, kRising, kFalling, kLines };

#if defined(__AVX2__)

typedef Bits FourLines __attribute__((vector_size(32)));

HEADRACE_INLINE FourLines all_lines(Bits bits) { return FourLines{} + bits; }
HEADRACE_INLINE FourLines where_any(FourLines a) { return (FourLines)(a != 0); }

#else

struct FourLines {
  Bits word[kLines];
  HEADRACE_INLINE constexpr Bits operator[](int line) const { return word[line]; }
};

template <class Operation>
HEADRACE_INLINE constexpr FourLines each_line(Operation&& operation) {
  return {{operation(0), operation(1), operation(2), operation(3)}};
}

HEADRACE_INLINE constexpr FourLines all_lines(Bits bits) { return {{bits, bits, bits, bits}}; }
HEADRACE_INLINE FourLines operator~(FourLines a) {
  return each_line([&](int line) { return ~a[line]; });
}
HEADRACE_INLINE FourLines operator&(FourLines a, FourLines b) {
  return each_line([&](int line) { return a[line] & b[line]; });
}
HEADRACE_INLINE FourLines operator|(FourLines a, FourLines b) {
  return each_line([&](int line) { return a[line] | b[line]; });
}
HEADRACE_INLINE constexpr FourLines operator<<(FourLines a, FourLines b) {
  return each_line([&](int line) { return a[line] << b[line]; });
}
HEADRACE_INLINE FourLines operator>>(FourLines a, FourLines b) {
  return each_line([&](int line) { return a[line] >> b[line]; });
}
HEADRACE_INLINE FourLines where_any(FourLines a) {
  return each_line([&](int line) { return -(Bits)(a[line] != 0); });
}

#endif

HEADRACE_INLINE FourLines as_lines(const Bits (&words)[kLines]) {
  return FourLines{words[0], words[1], words[2], words[3]};
}
HEADRACE_INLINE Bits any_of(FourLines a) { return a[0] | a[1] | a[2] | a[3]; }
HEADRACE_INLINE Bits all_of(FourLines a) { return a[0] & a[1] & a[2] & a[3]; }

}  // namespace headrace::HEADRACE_ISA::chess
