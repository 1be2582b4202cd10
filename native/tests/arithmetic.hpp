// SPDX-License-Identifier: Apache-2.0
// The building blocks of the kernels, at the width of one instruction set, for the tests to call.
#pragma once

#include <cstdint>

#include "../core/dispatch.hpp"

namespace headrace {

struct Arithmetic {
  int width;
  // Arrays of `width` numbers.
  void (*sincos)(const float* x, float* sin, float* cos);
  // The same counter and key in every lane; out[word * width + lane].
  void (*philox)(const uint32_t (&counter)[4], const uint32_t (&key)[2], uint32_t* out);
};

}  // namespace headrace

#define HEADRACE_DECLARE_ARITHMETIC(isa) \
  namespace headrace::isa {              \
  Arithmetic arithmetic();               \
  }

// One lane at a time: the plain text of the environments, that all widths must agree with.
HEADRACE_DECLARE(scalar)
HEADRACE_DECLARE_ARITHMETIC(scalar)
#if defined(__x86_64__)
HEADRACE_DECLARE_ARITHMETIC(v2)
HEADRACE_DECLARE_ARITHMETIC(v3)
HEADRACE_DECLARE_ARITHMETIC(v4)
#else
HEADRACE_DECLARE_ARITHMETIC(baseline)
#endif
