// SPDX-License-Identifier: Apache-2.0
// PPO's steps stay inside the memory they are given, whatever the network's form, and learn.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../learn/ppo.hpp"
#include "check.hpp"

using namespace headrace;

namespace {

float noise(uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / (1 << 23) - 1;
}

std::vector<float> noises(size_t count, float scale, uint32_t seed) {
  std::vector<float> out(count);
  for (float& value : out) value = scale * noise(seed);
  return out;
}

// Some steps towards constant targets: the values' loss must fall.
void try_form(const PpoNetwork& form, int64_t samples, int64_t blocks, int64_t block, bool masked) {
  const int64_t size = ppo_parameters(form);
  auto params = noises(size, 0.1f, 1), obs = noises(samples * form.inputs, 1, 2);
  auto drawn = noises(samples * form.outputs, 1, 3), advantage = noises(samples, 1, 4);
  std::vector<float> mean(size), square(size), log_prob(samples, -1), target(samples, 2);
  std::vector<int32_t> choice(samples);
  const int bytes = (form.outputs + 7) / 8;
  std::vector<uint8_t> mask(samples * bytes, 0xff);
  for (int64_t i = 0; i < samples; ++i) choice[i] = (int32_t)(i % form.outputs);
  std::vector<int64_t> dealt(3 * blocks);
  for (size_t i = 0; i < dealt.size(); ++i) dealt[i] = (int64_t)(i * 7 % (samples / block));

  PpoUpdate job = {};
  job.network = form;
  job.samples = {obs.data(),
                 form.continuous ? nullptr : choice.data(),
                 form.continuous ? drawn.data() : nullptr,
                 log_prob.data(),
                 advantage.data(),
                 target.data(),
                 masked ? mask.data() : nullptr,
                 bytes};
  job.settings = {1e-2f, 0.2f, 0.5f, 0.01f, 0.5f, 0.9f, 0.999f, 1e-8f, true};
  job.dealt = dealt.data();
  job.minibatches = 3;
  job.blocks = blocks;
  job.block = block;
  job.params = params.data();
  job.mean = mean.data();
  job.square = square.data();
  const size_t room = (find_ppo()->scratch_bytes(job) + 63) / 64 * 64;
  job.scratch = std::aligned_alloc(64, room);
  double first = 0;
  for (int times = 0; times < 20; ++times, job.count += 3) {
    find_ppo()->update(job);
    if (times == 0) first = job.metrics[1];
  }
  HEADRACE_CHECK(std::isfinite(job.metrics[0]), "the loss is %f", job.metrics[0]);
  HEADRACE_CHECK(job.metrics[1] < 0.5 * first, "the loss was %f and is %f", first, job.metrics[1]);
  std::free(job.scratch);
}

}  // namespace

int main() {
  if (!find_ppo()) {
    std::puts("this processor does not run them");
    return 0;
  }
  for (bool separate : {false, true})
    for (bool tanh : {false, true}) {
      try_form({4, 2, 2, {64, 64}, separate, false, tanh}, 256, 64, 1, false);
      try_form({17, 11, 1, {32}, separate, false, tanh}, 240, 5, 16, true);
      try_form({3, 6, 3, {32, 96, 64}, separate, true, tanh}, 70, 67, 1, false);
      try_form({1, 1, 7, {32, 32, 32, 32, 32, 32, 32}, separate, true, tanh}, 9, 1, 1, false);
    }
  std::puts("PPO's steps keep to their memory");
  return 0;
}
