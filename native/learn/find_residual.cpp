// SPDX-License-Identifier: Apache-2.0
#include "moves.hpp"
#include "residual.hpp"

namespace headrace {

namespace {

[[maybe_unused]] bool supported() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("x86-64-v4");
#else
  return false;
#endif
}

}  // namespace

const Towers* find_towers() {
#if defined(__x86_64__)
  static const Towers found = v4::towers();
  if (supported()) return &found;
#endif
  return nullptr;
}

const MovePolicy* find_move_policy() {
#if defined(__x86_64__)
  static const MovePolicy found = v4::move_policy();
  if (supported()) return &found;
#endif
  return nullptr;
}

}  // namespace headrace
