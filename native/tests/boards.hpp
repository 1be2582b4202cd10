// SPDX-License-Identifier: Apache-2.0
// Networks over boards keep to their memory; a tower is the plain convolutions it stands for, and
// gradients are what a step along them gains.
#pragma once

#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "../learn/moves.hpp"
#include "../learn/residual.hpp"
#include "check.hpp"
#include "noise.hpp"

namespace headrace::testing {

struct Aligned {
  explicit Aligned(size_t bytes) : at(std::aligned_alloc(64, (bytes + 63) / 64 * 64)) {}
  ~Aligned() { std::free(at); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  void* at;
};

inline double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double)a[i] * b[i];
  return sum;
}

// y = rectified(x * weight + bias + residual), square by square.
inline std::vector<float> plain_layer(const std::vector<float>& x, int in, int out, int64_t boards,
                                      const std::vector<float>& weight,
                                      const std::vector<float>& bias, const float* residual) {
  std::vector<float> y(boards * 64 * out);
  for (int64_t at = 0; at < boards * 64; ++at)
    for (int o = 0; o < out; ++o) {
      const int row = (int)(at % 64) / 8, column = (int)at % 8;
      double sum = bias[o] + (residual ? residual[at * out + o] : 0);
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          if (row + i < 1 || row + i > 8 || column + j < 1 || column + j > 8) continue;
          const int64_t from = at + 8 * (i - 1) + j - 1;
          for (int c = 0; c < in; ++c)
            sum += (double)x[from * in + c] * weight[((i * 3 + j) * in + c) * out + o];
        }
      y[at * out + o] = (float)(sum > 0 ? sum : 0);
    }
  return y;
}

inline void try_tower(int planes, int channels, int blocks, int64_t boards) {
  const int layers = 1 + 2 * blocks;
  const auto x = noises(boards * 64 * planes, 1, 1), slopes = noises(boards * 64 * channels, 1, 2);
  std::vector<std::vector<float>> weights, biases, outputs, weight_gradients, bias_gradients;
  for (int l = 0; l < layers; ++l) {
    weights.push_back(noises((size_t)9 * (l ? channels : planes) * channels, 0.1f, 10 + l));
    biases.push_back(noises(channels, 0.1f, 20 + l));
    outputs.emplace_back(boards * 64 * channels);
    weight_gradients.emplace_back(weights[l].size());
    bias_gradients.emplace_back(channels);
  }
  const auto data = [](std::vector<std::vector<float>>& all) {
    std::vector<float*> found;
    for (auto& one : all) found.push_back(one.data());
    return found;
  };
  const auto w = data(weights), b = data(biases), y = data(outputs);
  const auto dw = data(weight_gradients), db = data(bias_gradients);
  const Tower tower = {w.data(), b.data(), planes, channels, blocks};
  const Aligned scratch(find_towers()->scratch_bytes(tower, boards));
  const TowerForward ahead = {tower, boards, x.data(), y.data(), scratch.at};
  find_towers()->forward(ahead);

  std::vector<float> want =
      plain_layer(x, planes, channels, boards, weights[0], biases[0], nullptr);
  for (int l = 1; l < layers; l += 2) {
    const auto inner =
        plain_layer(want, channels, channels, boards, weights[l], biases[l], nullptr);
    want =
        plain_layer(inner, channels, channels, boards, weights[l + 1], biases[l + 1], want.data());
  }
  for (size_t i = 0; i < want.size(); ++i)
    HEADRACE_CHECK(std::fabs(outputs.back()[i] - want[i]) < 1e-4, "%g instead of %g at %d",
                   outputs.back()[i], want[i], (int)i);

  find_towers()->backward(
      {tower, boards, x.data(), y.data(), slopes.data(), dw.data(), db.data(), scratch.at});
  // A step along the gradient gains its square.
  const double before = dot(outputs.back(), slopes);
  double square = 0;
  for (int l = 0; l < layers; ++l)
    square +=
        dot(weight_gradients[l], weight_gradients[l]) + dot(bias_gradients[l], bias_gradients[l]);
  const float step = (float)(1 / square);
  for (int l = 0; l < layers; ++l) {
    for (size_t i = 0; i < weights[l].size(); ++i) weights[l][i] += step * weight_gradients[l][i];
    for (size_t i = 0; i < biases[l].size(); ++i) biases[l][i] += step * bias_gradients[l][i];
  }
  find_towers()->forward(ahead);
  const double gain = (dot(outputs.back(), slopes) - before) / (step * square);
  HEADRACE_CHECK(std::fabs(gain - 1) < 0.05, "a step gains %f of what its gradient says", gain);
}

inline void try_moves(int channels, int64_t boards) {
  const auto features = noises(boards * 64 * channels, 1, 3);
  auto weight = noises((size_t)channels * kMoveKinds, 0.3f, 4), bias = noises(kMoveKinds, 0.3f, 5);
  std::vector<uint8_t> mask(boards * kMoves / 8);
  std::vector<int32_t> action(boards), drawn(boards);
  uint32_t state = 6;
  for (auto& byte : mask)
    for (int bit = 0; bit < 8; ++bit) byte |= (noise(state) > 0.95f) << bit;
  const auto bits = [&](int64_t board) { return mask.data() + board * kMoves / 8; };
  std::fill_n(bits(boards - 1), kMoves / 8, (uint8_t)(boards > 1 ? 0 : 255));
  const std::vector<float> uniform(boards, 0.7f), slopes = noises(boards, 1, 7);
  std::vector<float> log_prob(boards), entropy(boards), of_features(features.size());
  std::vector<float> of_weight(weight.size()), of_bias(bias.size());
  const Aligned scratch(find_move_policy()->scratch_bytes(channels));
  const Moves job = {features.data(), weight.data(), bias.data(), mask.data(),
                     channels,        boards,        scratch.at};
  find_move_policy()->choose(job, nullptr, action.data());
  find_move_policy()->choose(job, uniform.data(), drawn.data());
  for (int64_t board = 0; board + 1 < boards; ++board)
    for (int move : {action[board], drawn[board]})
      HEADRACE_CHECK(bits(board)[move / 8] >> move % 8 & 1, "move %d is illegal", move);
  find_move_policy()->judge(job, action.data(), log_prob.data(), entropy.data());
  find_move_policy()->gradients(
      job, action.data(),
      {slopes.data(), slopes.data(), of_features.data(), of_weight.data(), of_bias.data()});
  const double before = dot(log_prob, slopes) + dot(entropy, slopes);
  const double square = dot(of_weight, of_weight) + dot(of_bias, of_bias);
  const float step = (float)(1e-3 / std::sqrt(square));
  for (size_t i = 0; i < weight.size(); ++i) weight[i] += step * of_weight[i];
  for (size_t i = 0; i < bias.size(); ++i) bias[i] += step * of_bias[i];
  find_move_policy()->judge(job, action.data(), log_prob.data(), entropy.data());
  const double gain = dot(log_prob, slopes) + dot(entropy, slopes) - before;
  HEADRACE_CHECK(std::fabs(gain / (step * square) - 1) < 0.05, "a step gains %f of %f", gain,
                 step * square);
}

inline void try_boards() {
  if (!find_towers() || !find_move_policy()) return;
  try_tower(20, 32, 2, 9);
  try_tower(3, 16, 1, 4);
  try_tower(17, 48, 0, 1);
  try_moves(32, 7);
  try_moves(16, 1);
}

}  // namespace headrace::testing
