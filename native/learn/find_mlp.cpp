// SPDX-License-Identifier: Apache-2.0
#include "mlp.hpp"

namespace headrace {

const Mlp* find_mlp(bool bf16) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const Mlp plain = v4::mlp(), narrow = v4bf16::mlp();
  if (!__builtin_cpu_supports("x86-64-v4")) return nullptr;
  if (!bf16) return &plain;
  return __builtin_cpu_supports("avx512bf16") ? &narrow : nullptr;
#else
  (void)bf16;
  return nullptr;
#endif
}

}  // namespace headrace
