// SPDX-License-Identifier: Apache-2.0
// Endings to learn from: one side has an army, the other little besides its king. Whole games
// seldom come that far, and then end with one lesson; here every game is one.
#pragma once

#include "../../core/rng.hpp"
#include "destinations.hpp"
#include "position.hpp"

namespace headrace::HEADRACE_ISA::chess {

enum class Army { mine, drawn };

namespace endings {

inline constexpr int kTries = 64;  // a dozen fail in a row about once in a thousand endings
inline constexpr int kMoveNumber = 60;
inline constexpr int kArmy[8] = {kQueen, kRook, kQueen, kRook, kBishop, kKnight, kPawn, kPawn};
inline constexpr int kOthers[4] = {kPawn, kPawn, kKnight, kBishop};

// On a square that is drawn; false where nothing may stand there.
inline bool put(Board& board, int piece, bool own, uint32_t word) {
  const int at = word & 63;
  const Bits taken = board.squares.occupied() | (piece == kPawn ? kRank1 | kRank8 : 0);
  if (taken >> at & 1) return false;
  board.squares.put(at, piece, own);
  return true;
}

// Kings; one to four men of the army, a queen or a rook among them; none to two others.
inline bool draw_men(Board& board, bool mine, ResetDraws<Lanes<1>>& draws) {
  const auto word = [&] { return (uint32_t)draws.word()[0]; };
  if (!put(board, kKing, true, word()) || !put(board, kKing, false, word())) return false;
  const uint32_t counts = word();
  const int army = 1 + (counts & 3), others = choice(counts, 3);
  for (int i = 0; i < army; ++i) {
    const uint32_t which = word();
    if (!put(board, kArmy[which >> 29 & (i == 0 ? 3 : 7)], mine, which)) return false;
  }
  for (int i = 0; i < others; ++i) {
    const uint32_t which = word();
    if (!put(board, kOthers[which >> 30], !mine, which)) return false;
  }
  return true;
}

}  // namespace endings

// One in which whoever moves could not have taken the other's king; false if none was found.
inline bool draw_ending(Position& position, Army army, ResetDraws<Lanes<1>>& draws) {
  for (int i = 0; i < endings::kTries; ++i) {
    const uint32_t word = (uint32_t)draws.word()[0];
    const bool mine = army == Army::mine || (word & 1);
    Board board = {};
    if (!endings::draw_men(board, mine, draws)) continue;
    const Board other = board.turned();
    Destinations unused;
    MoveDestinations moves(unused, other.squares.mine);
    if (generate(other, moves)) continue;
    position = set_up(board, word >> 31, 0, endings::kMoveNumber);
    return true;
  }
  return false;
}

}  // namespace headrace::HEADRACE_ISA::chess
