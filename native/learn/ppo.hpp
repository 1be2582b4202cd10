// SPDX-License-Identifier: Apache-2.0
// The steps of PPO's update, from samples to parameters: what headrace.learn.ppo_host does with
// arrays. Pure functions over the caller's memory, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mlp.hpp"

namespace headrace {

// The actor's body and then, where it is separate, the critic's; the policy's layer, the value's,
// and the logarithms of continuous actions' deviations: as they follow each other in a vector of
// parameters, a weight [in, out] and a bias for each layer.
struct PpoNetwork {
  int inputs, outputs, depth;  // depth: hidden layers, 1 .. kMlpDepth - 1
  int hidden[kMlpDepth];       // their widths, multiples of 32
  bool separate, continuous, tanh;
};

// By rows, one a sample.
struct PpoSamples {
  const float* obs;       // [S, inputs]
  const int32_t* choice;  // [S], 0 .. outputs - 1; or null
  const float* drawn;     // [S, outputs], of continuous actions; or null
  const float* log_prob;
  const float* advantage;
  const float* value_target;
  const uint8_t* mask;  // [S, mask_bytes] bits of the legal choices; or null
  int mask_bytes;
};

struct PpoSettings {
  float learning_rate, clip, value_weight, entropy_weight, max_grad_norm;
  float mean_decay, square_decay, epsilon;  // Adam's
  bool normalise_advantages;
};

constexpr int kPpoMetrics = 5;  // policy loss, value loss, entropy, divergence, share clipped

struct PpoUpdate {
  PpoNetwork network;
  PpoSamples samples;
  PpoSettings settings;
  const int64_t* dealt;  // [minibatches, blocks]: which blocks of samples are in each
  int64_t minibatches, blocks, block;
  float *params, *mean, *square;  // stepped; the gradient's moments are Adam's
  float count;                    // steps taken before
  double metrics[kPpoMetrics];    // set: their means
  void* scratch;                  // `Ppo::scratch_bytes`, 64-aligned
};

struct Ppo {
  void (*update)(PpoUpdate&);
  size_t (*scratch_bytes)(const PpoUpdate&);
};

int64_t ppo_parameters(const PpoNetwork& network);

#if defined(__x86_64__)
namespace v4 {
Mlp mlp();
Ppo ppo();
}  // namespace v4
#endif

// The one for this processor, or null where there is none.
const Ppo* find_ppo();

}  // namespace headrace
