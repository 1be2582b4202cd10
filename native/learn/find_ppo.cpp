// SPDX-License-Identifier: Apache-2.0
#include "ppo.hpp"

namespace headrace {

int64_t ppo_parameters(const PpoNetwork& form) {
  int64_t body = 0;
  for (int l = 0, in = form.inputs; l < form.depth; in = form.hidden[l++])
    body += (int64_t)(in + 1) * form.hidden[l];
  const int64_t heads = (int64_t)(form.hidden[form.depth - 1] + 1) * (form.outputs + 1);
  return (form.separate ? 2 : 1) * body + heads + (form.continuous ? form.outputs : 0);
}

const Ppo* find_ppo() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const Ppo found = v4::ppo();
  return __builtin_cpu_supports("x86-64-v4") ? &found : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace headrace
