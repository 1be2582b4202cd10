// SPDX-License-Identifier: Apache-2.0
// Chess has a file of its own to be compiled in: the compiler inlines less in large ones.
#pragma once

#include "../../core/rollout.hpp"

namespace headrace::HEADRACE_ISA::chess {

extern const Description kSelfPlay;
extern const Description kAgainstRandom;
Kernel* make_self_play(const int64_t* options);
Kernel* make_against_random(const int64_t* options);

}  // namespace headrace::HEADRACE_ISA::chess
