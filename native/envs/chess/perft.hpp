// SPDX-License-Identifier: Apache-2.0
// Counts the leaves of the game tree: the usual proof that a move generator is right.
#pragma once

#include "make.hpp"

namespace headrace::HEADRACE_ISA::chess {

inline uint64_t perft(const Board& board, int depth) {
  if (depth == 0) return 1;
  if (depth == 1) {
    MoveCount moves;
    generate(board, moves);
    return (uint64_t)moves.size;
  }
  MoveList moves;
  generate(board, moves);
  uint64_t leaves = 0;
  for (int i = 0; i < moves.size; ++i) leaves += perft(after(board, moves.move[i]), depth - 1);
  return leaves;
}

}  // namespace headrace::HEADRACE_ISA::chess
