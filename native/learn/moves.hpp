// SPDX-License-Identifier: Apache-2.0
// A policy over the legal moves on boards of 8 x 8 squares, which is told from the features of the
// square a move begins on: only legal moves are computed, tens out of thousands. Pure functions
// over the caller's memory, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

constexpr int kMoveKinds = 73;  // from each square; a move is kind + 73 * (8 * file + rank)
constexpr int kMoves = 64 * kMoveKinds;

struct Moves {
  const float* features;  // [boards, 8, 8, channels]: the first row is that of the highest rank
  const float* weight;    // [channels, 73]
  const float* bias;      // [73]
  const uint8_t* mask;    // [boards, 584]: bits of legal moves; where none is legal, all are alike
  int channels;           // a multiple of 16
  int64_t boards;
  void* scratch;  // `MovePolicy::scratch_bytes`, 64-aligned
};

struct MoveGradients {
  const float* of_log_prob;  // [boards] each
  const float* of_entropy;
  float* features;  // which are overwritten
  float* weight;
  float* bias;
};

// One way of computing them.
struct MovePolicy {
  // By uniform numbers in [0, 1), as headrace.learn.distributions has it; or the likeliest.
  void (*choose)(const Moves&, const float* uniform, int32_t* action);
  // An illegal action has a log-probability of about -1e9.
  void (*judge)(const Moves&, const int32_t* action, float* log_prob, float* entropy);
  void (*gradients)(const Moves&, const int32_t* action, const MoveGradients&);
  size_t (*scratch_bytes)(int channels);
};

#if defined(__x86_64__)
namespace v4 {
MovePolicy move_policy();
}
#endif

// The one for this processor, or null where there is none.
const MovePolicy* find_move_policy();

}  // namespace headrace
