// SPDX-License-Identifier: Apache-2.0
// Every environment's kernel, for one instruction set: this file is compiled once for each.
#include "../envs/chess/kernels.hpp"

#include "../envs/cartpole.hpp"
#include "../envs/memory.hpp"
#include "../envs/pendulum.hpp"
#include "dispatch.hpp"

namespace headrace::HEADRACE_ISA {

namespace {
constexpr KernelEntry kEntries[] = {
    {&CartPole<Lanes<kWidth>>::describe, &LaneKernel<CartPole>::make},
    {&Pendulum<Lanes<kWidth>>::describe, &LaneKernel<Pendulum>::make},
    {&chess::kSelfPlay, &chess::make_self_play},
    {&chess::kAgainstRandom, &chess::make_against_random},
    {&Memory::describe, &RowKernel<Memory>::make},
};
}  // namespace

KernelTable kernels() { return {kEntries, (int)(sizeof(kEntries) / sizeof(kEntries[0]))}; }

}  // namespace headrace::HEADRACE_ISA
