// SPDX-License-Identifier: Apache-2.0
// The kernels of chess, for one instruction set: this file is compiled once for each.
#include "kernels.hpp"

#include "game.hpp"

namespace headrace::HEADRACE_ISA::chess {

const Description kSelfPlay = SelfPlay::describe;
const Description kAgainstRandom = AgainstRandom::describe;
Kernel* make_self_play(const int64_t* options) { return SelfPlay::make(options); }
Kernel* make_against_random(const int64_t* options) { return AgainstRandom::make(options); }

}  // namespace headrace::HEADRACE_ISA::chess
