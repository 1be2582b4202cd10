// SPDX-License-Identifier: Apache-2.0
// The parts of the module, and what they share.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "../core/dispatch.hpp"

namespace headrace::bind {

// An error that lists the available ones, if this processor does not run it.
const InstructionSet& find_isa(const std::string& name);

void bind_channels(nanobind::module_& m);
void bind_chess(nanobind::module_& m);
void bind_draws(nanobind::module_& m);
void bind_limits(nanobind::module_& m);
void bind_mlp(nanobind::module_& m);
void bind_moves(nanobind::module_& m);
void bind_ppo(nanobind::module_& m);
void bind_residual(nanobind::module_& m);
void bind_xla(nanobind::module_& m);

}  // namespace headrace::bind
