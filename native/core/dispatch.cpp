// SPDX-License-Identifier: Apache-2.0
#include "dispatch.hpp"

namespace headrace {

Kernel::~Kernel() = default;
ChessSession::~ChessSession() = default;
int64_t Kernel::refusal(const Rollout&) const { return -1; }

const InstructionSet* instruction_sets() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const InstructionSet sets[kInstructionSets] = {
      {"v2", &v2::kernels, &v2::limits, &v2::narrow, &v2::chess_session,
       __builtin_cpu_supports("x86-64-v2") != 0},
      {"v3", &v3::kernels, &v3::limits, &v3::narrow, &v3::chess_session,
       __builtin_cpu_supports("x86-64-v3") != 0},
      {"v4", &v4::kernels, &v4::limits, &v4::narrow, &v4::chess_session,
       __builtin_cpu_supports("x86-64-v4") != 0},
  };
#else
  static const InstructionSet sets[kInstructionSets] = {{"baseline", &baseline::kernels,
                                                         &baseline::limits, &baseline::narrow,
                                                         &baseline::chess_session, true}};
#endif
  return sets;
}

}  // namespace headrace
