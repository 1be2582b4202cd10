// SPDX-License-Identifier: Apache-2.0
// Which instruction sets the kernels were compiled for, and which of them this processor runs.
#pragma once

#include "limits.hpp"
#include "rollout.hpp"

namespace headrace {

#if defined(__x86_64__)
namespace v2 {
KernelTable kernels();
Limits limits();
}
namespace v3 {
KernelTable kernels();
Limits limits();
}
namespace v4 {
KernelTable kernels();
Limits limits();
}
#else
namespace baseline {
KernelTable kernels();
Limits limits();
}
#endif

struct InstructionSet {
  const char* name;
  KernelTable (*kernels)();
  Limits (*limits)();
  bool supported;
};

inline constexpr int kInstructionSets =
#if defined(__x86_64__)
    3;
#else
    1;
#endif

// From the plainest to the newest.
const InstructionSet* instruction_sets();

}  // namespace headrace
