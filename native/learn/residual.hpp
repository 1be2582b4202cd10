// SPDX-License-Identifier: Apache-2.0
// Residual towers over boards of 8 x 8 squares, forward and backward. Pure functions over the
// caller's memory, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

// A first kernel, then two for each block: 3 x 3, zeros around the board, rectified; a block's
// input is added to what comes of its second kernel, before that is rectified.
struct Tower {
  const float* const* weights;  // 1 + 2 * blocks: [3, 3, in, out]
  const float* const* biases;   // [out]
  int planes;                   // in of the first
  int channels;                 // out of all: a multiple of 16
  int blocks;
  int layers() const { return 1 + 2 * blocks; }
};

struct TowerForward {
  Tower tower;
  int64_t boards;
  const float* x;  // [boards, 8, 8, planes]
  float* const*
      outputs;    // of every layer [boards, 8, 8, channels]; a block's second may be its input
  void* scratch;  // `Towers::scratch_bytes`, 64-aligned
};

struct TowerBackward {
  Tower tower;
  int64_t boards;
  const float* x;
  const float* const* outputs;    // as the forward pass left them, each in a place of its own
  const float* out_gradient;      // of the last layer's
  float* const* weight_gradient;  // of every layer, which are overwritten
  float* const* bias_gradient;
  void* scratch;
};

// One way of computing them.
struct Towers {
  void (*forward)(const TowerForward&);
  void (*backward)(const TowerBackward&);
  size_t (*scratch_bytes)(const Tower& tower, int64_t boards);
};

#if defined(__x86_64__)
namespace v4 {
Towers towers();
}
#endif

// The one for this processor, or null where there is none.
const Towers* find_towers();

}  // namespace headrace
