// SPDX-License-Identifier: Apache-2.0
// Which instruction sets the kernels were compiled for, and which of them this processor runs.
#pragma once

#include "../envs/chess/session.hpp"
#include "limits.hpp"
#include "narrow.hpp"
#include "rollout.hpp"

// What is compiled once for each instruction set.
#define HEADRACE_DECLARE(isa)    \
  namespace headrace::isa {      \
  KernelTable kernels();         \
  Limits limits();               \
  Narrow narrow();               \
  ChessSession* chess_session(); \
  }

#if defined(__x86_64__)
HEADRACE_DECLARE(v2)
HEADRACE_DECLARE(v3)
HEADRACE_DECLARE(v4)
#else
HEADRACE_DECLARE(baseline)
#endif

namespace headrace {

struct InstructionSet {
  const char* name;
  KernelTable (*kernels)();
  Limits (*limits)();
  Narrow (*narrow)();
  ChessSession* (*chess_session)();
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
