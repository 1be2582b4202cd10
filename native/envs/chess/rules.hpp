// SPDX-License-Identifier: Apache-2.0
// How a game ends.
#pragma once

#include "position.hpp"

namespace headrace::HEADRACE_ISA::chess {

enum class Outcome : uint8_t {
  none,
  checkmate,              // the player to move has lost
  insufficient_material,  // the others are draws
  stalemate,
  fifty_moves,
  threefold_repetition,
};

HEADRACE_INLINE const char* name_of(Outcome outcome) {
  constexpr const char* names[] = {"none",      "checkmate",   "insufficient material",
                                   "stalemate", "fifty moves", "threefold repetition"};
  return names[(int)outcome];
}

// Whether one player could not mate whatever happens, judged by material alone: with no pawn, rook
// or queen, a lone knight may still mate an opponent who has something besides queens, and bishops
// of one colour one who has anything that can stand on the other.
HEADRACE_INLINE bool cannot_mate(const Squares& squares, Bits own) {
  const Bits others = squares.occupied() & ~own;
  if (own & (squares.pawns() | squares.rooks() | squares.queens())) return false;
  if (own & squares.knights()) {
    return count(own) == 2 && !(others & ~squares.kings() & ~squares.queens());
  }
  const Bits bishops = squares.bishops();
  if (own & bishops) {
    const bool one_colour = !(bishops & kDarkSquares) || !(bishops & ~kDarkSquares);
    return one_colour && !squares.pawns() && !squares.knights();
  }
  return true;
}

HEADRACE_INLINE bool insufficient_material(const Squares& squares) {
  const bool mating = (squares.pawns() | squares.rooks() | squares.queens()) != 0;
  return !mating && cannot_mate(squares, squares.mine) && cannot_mate(squares, squares.theirs());
}

// Fifty moves and threefold repetition end the game without being claimed. `moves` is the number of
// legal moves, `check` what generate() returned.
HEADRACE_INLINE Outcome outcome(const Position& position, int moves, bool check) {
  if (moves == 0 && check) return Outcome::checkmate;
  if (insufficient_material(position.board.squares)) return Outcome::insufficient_material;
  if (moves == 0) return Outcome::stalemate;
  if (position.clock >= kFiftyMoves) return Outcome::fifty_moves;
  if (position.earlier >= 2) return Outcome::threefold_repetition;
  return Outcome::none;
}

}  // namespace headrace::HEADRACE_ISA::chess
