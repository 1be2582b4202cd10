// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace headrace::HEADRACE_ISA {

// Memory that is given out piece by piece.
struct Scratch {
  char* at;
  template <class T>
  T* take(int64_t count) {
    char* piece = at;
    at += (count * (int64_t)sizeof(T) + 63) / 64 * 64;
    return (T*)piece;
  }
};

}  // namespace headrace::HEADRACE_ISA
