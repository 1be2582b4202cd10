// SPDX-License-Identifier: Apache-2.0
// What a policy on the host draws: as headrace.envs.philox does with arrays, in one call.
#include "../core/philox.hpp"
#include "checks.hpp"
#include "parts.hpp"

namespace headrace::bind {

namespace {

void policy_uniforms(const ConstArray& index, const ConstArray& seed_low,
                     const ConstArray& seed_high, uint32_t step, uint32_t stream,
                     const Array& out) {
  const int64_t n = index.ndim() == 1 ? (int64_t)index.shape(0) : -1;
  const int64_t count = out.ndim() == 2 ? (int64_t)out.shape(0) : -1;
  const auto* who = (const uint32_t*)checked<uint32_t>(index, "index", {n});
  const auto* low = (const uint32_t*)checked<uint32_t>(seed_low, "seed_low", {n});
  const auto* high = (const uint32_t*)checked<uint32_t>(seed_high, "seed_high", {n});
  auto* to = (float*)checked<float>(out, "out", {count, n});
  for (int64_t block = 0; block * 4 < count; ++block) {
    for (int64_t i = 0; i < n; ++i) {
      const PhiloxWords words =
          philox_words({who[i], (uint32_t)block, step, stream}, low[i], high[i]);
      for (int64_t j = 0; j < 4 && block * 4 + j < count; ++j) {
        to[(block * 4 + j) * n + i] = (float)(words[j] >> 8) * 5.9604644775390625e-8f;
      }
    }
  }
}

}  // namespace

void bind_draws(nb::module_& m) {
  m.def("policy_uniforms", &policy_uniforms, nb::arg("index"), nb::arg("seed_low"),
        nb::arg("seed_high"), nb::arg("step"), nb::arg("stream"), nb::arg("out"),
        "Fills out [count, n] with numbers in [0, 1): those of one step of n environments.");
}

}  // namespace headrace::bind
