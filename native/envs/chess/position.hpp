// SPDX-License-Identifier: Apache-2.0
// A game so far, as far as the rules and the observation need to know it: plain bytes, no pointers.
#pragma once

#include "make.hpp"

namespace headrace::HEADRACE_ISA::chess {

inline constexpr int kHistory = 8;       // positions an observation shows, the present one included
inline constexpr int kFiftyMoves = 100;  // plies without capture or pawn move that end the game

struct Position {
  Board board;
  uint32_t ply;          // moves played since the position was set up
  uint16_t clock;        // plies since the last capture or pawn move
  uint16_t move_number;  // as in FEN: 1, and one more after each move of black
  uint8_t black;         // 1 when black is to move
  uint8_t reversible;    // plies played since the last position that cannot come again
  uint8_t earlier;       // how often this position has occurred before
  uint8_t repeated;      // bit (ply % 8): that position has occurred more than once so far
  uint8_t padding[4];
  Squares past[kHistory];             // slot (ply % 8): what the player to move saw then
  Bits keys[2][kFiftyMoves / 2 + 1];  // of the last `reversible` positions and of this one,
                                      // those with either player to move apart
};

static_assert(sizeof(Position) % 8 == 0 && __is_trivially_copyable(Position));

// Both halves of a product of 128 bits: every bit of either factor spreads over all of it.
HEADRACE_INLINE Bits fold(Bits a, Bits b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = (Wide)a * b;
  return (Bits)product ^ (Bits)(product >> 64);
}

// Two positions are the same for the rules when the same player has the same moves with the same
// pieces. (`en_passant` is only set when there is a legal capture, `castling` while there is a
// right.)
HEADRACE_INLINE Bits key_of(const Board& board, bool black) {
  const Squares& squares = board.squares;
  const Bits rest = (Bits)board.castling | (Bits)board.en_passant << 8 | (Bits)black << 16;
  const Bits first = fold(squares.mine ^ 0xa0761d6478bd642f, squares.code[0] ^ 0xe7037ed1a0b428db);
  const Bits second =
      fold(squares.code[1] ^ 0x8ebc6af09c88c6e3, squares.code[2] ^ 0x589965cc75374cc3);
  return fold(first ^ 0x1d8e4e27c47d124f ^ rest, second ^ 0xeb44accab455d165);
}

inline Position set_up(const Board& board, bool black, int clock, int move_number) {
  Position position = {};
  position.board = board;
  position.black = black;
  position.clock = (uint16_t)clock;
  position.move_number = (uint16_t)move_number;
  position.keys[0][0] = key_of(board, black);
  return position;
}

// Notes the present position's key, and which of those shown in an observation it repeats.
HEADRACE_INLINE void note_repetition(Position& position) {
  const Bits key = key_of(position.board, position.black);
  Bits* keys = position.keys[position.reversible & 1];
  const int last = position.reversible >> 1;
  keys[last] = key;
  int earlier = 0;
  for (int i = 0; i < last; ++i) earlier += keys[i] == key;
  position.earlier = (uint8_t)earlier;
  position.repeated &= (uint8_t)~(1u << position.ply % kHistory);
  if (!earlier) return;
  for (int back = 0; back < kHistory / 2 && back <= last; ++back) {
    const uint32_t slot = (position.ply - 2 * back) % kHistory;
    if (keys[last - back] == key) position.repeated |= (uint8_t)(1u << slot);
  }
}

// Plays a legal move.
HEADRACE_INLINE void play(Position& position, Move move) {
  const Squares& squares = position.board.squares;
  const Bits touched = bit(from_of(move)) | bit(to_of(move));
  const bool resets = ((squares.theirs() | squares.pawns()) & touched) != 0;
  position.past[position.ply % kHistory] = squares;
  position.board = after(position.board, move);
  position.ply += 1;
  position.move_number += position.black;
  position.black ^= 1;
  position.clock = resets ? 0 : (uint16_t)(position.clock + 1);
  position.reversible = resets || position.reversible == kFiftyMoves ? 0 : position.reversible + 1;
  note_repetition(position);
}

}  // namespace headrace::HEADRACE_ISA::chess
