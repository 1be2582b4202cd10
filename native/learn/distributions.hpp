// SPDX-License-Identifier: Apache-2.0
// Distributions of actions, as headrace.learn.distributions has them.
#pragma once

#include <math.h>

#include <cstdint>

namespace headrace::HEADRACE_ISA {

static inline bool legal(const uint8_t* mask, int choice) {
  return mask[choice / 8] >> choice % 8 & 1;
}

// A sample's log-probability and entropy; `out` are logits, `probs` is set.
struct Chance {
  float log_prob, entropy;
};
static inline Chance categorical(const float* out, int count, const uint8_t* mask, int choice,
                                 float* probs) {
  constexpr float impossible = -1e9f;
  const auto logit = [&](int j) { return !mask || legal(mask, j) ? out[j] : impossible; };
  float most = logit(0), total = 0;
  for (int j = 1; j < count; ++j) most = logit(j) > most ? logit(j) : most;
  for (int j = 0; j < count; ++j) total += probs[j] = expf(logit(j) - most);
  const float log_total = logf(total);
  float entropy = 0;
  for (int j = 0; j < count; ++j) {
    probs[j] /= total;
    entropy -= probs[j] * (logit(j) - most - log_total);
  }
  return {logit(choice) - most - log_total, entropy};
}
static inline Chance gaussian(const float* mean, int count, const float* log_std,
                              const float* drawn) {
  constexpr float half_log_2pi = 0.918938533204672742f;
  Chance found = {0, 0};
  for (int j = 0; j < count; ++j) {
    const float away = (drawn[j] - mean[j]) * expf(-log_std[j]);
    found.log_prob += -0.5f * away * away - log_std[j] - half_log_2pi;
    found.entropy += log_std[j] + 0.5f + half_log_2pi;
  }
  return found;
}

}  // namespace headrace::HEADRACE_ISA
