// SPDX-License-Identifier: Apache-2.0
// Networks of dense layers, forward and backward, a block of rows at a time: what lies between two
// layers stays in the cache. Pure functions over the caller's memory, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

// y = x weight + bias, weight [in, out] by rows. All but the last of a network's two or more have
// an activation behind them, rectified or tanh, and widths that are multiples of 32.
struct DenseLayer {
  const float* weight;
  const float* bias;
  int in, out;
};

struct MlpForward {
  const DenseLayer* layers;
  int depth;
  int64_t rows;
  const float* x;  // [rows, in of the first]
  float* out;      // [rows, out of the last]
  bool tanh;
  void* const* hidden;  // depth - 1 arrays [rows, out] of `Mlp::hidden_bytes` a number; or null
  void* scratch;        // `Mlp::scratch_bytes`, 64-aligned
};

struct MlpBackward {
  const DenseLayer* layers;
  int depth;
  int64_t rows;
  const float* x;
  bool tanh;
  const void* const* hidden;  // as the forward pass left them
  const float* out_gradient;
  float* x_gradient;  // [rows, in - first_input]: of the inputs from that one on; or null
  int first_input;
  float* const* weight_gradient;  // depth each, which are overwritten; or null
  float* const* bias_gradient;
  void* scratch;
};

// One way of computing them.
struct Mlp {
  void (*forward)(const MlpForward&);
  void (*backward)(const MlpBackward&);
  size_t (*scratch_bytes)(const DenseLayer* layers, int depth);
  int hidden_bytes;  // 4: float32; 2: bfloat16
};

constexpr int kMlpBlock = 64;  // rows a block; who divides rows among threads keeps to these
constexpr int kMlpDepth = 8;   // layers at most

#if defined(__x86_64__)
namespace v4 {
Mlp mlp();
}
// Products between hidden layers are of bfloat16, summed in float32; the first and the last layer's
// are float32, and so are all gradients that are handed out.
namespace v4bf16 {
Mlp mlp();
}
#endif

// The one for this processor, or null where there is none.
const Mlp* find_mlp(bool bf16);

}  // namespace headrace
