// SPDX-License-Identifier: Apache-2.0
// The pieces on the board, as the player to move sees them.
//
// Square = 8 * rank + file, a1 = 0 ... h8 = 63, where ranks count from the side of the player to
// move: his pawns always go up, his king starts on e1, and black's h8 is `square(7, 0)` when it is
// his turn. Files never turn. One text thus serves both colours; `turned()` hands the board to the
// opponent.
//
// Four words hold everything: which squares are the player's own, and a three-bit code of the piece
// on each square, chosen so that each kind is one or two operations away.
#pragma once

#include "../../core/lanes.hpp"

namespace headrace::HEADRACE_ISA::chess {

using Bits = uint64_t;  // one bit a square
typedef Bits EightWords __attribute__((vector_size(64)));

enum Piece : int {
  kEmpty = 0,
  kBishop = 1,  // bit 0 alone: moves on diagonals
  kRook = 2,    // bit 1 alone: moves on ranks and files
  kQueen = 3,   // both
  kPawn = 4,
  kKnight = 5,
  kKing = 6,
};

enum Castling : int {
  kMyShort = 1,
  kMyLong = 2,
  kTheirShort = 4,
  kTheirLong = 8,
};

inline constexpr Bits kFileA = 0x0101010101010101;
inline constexpr Bits kFileH = kFileA << 7;
inline constexpr Bits kRank1 = 0xff;
inline constexpr Bits kRank3 = kRank1 << 16;
inline constexpr Bits kRank8 = kRank1 << 56;
inline constexpr Bits kDarkSquares = 0xaa55aa55aa55aa55;

HEADRACE_INLINE constexpr int square(int file, int rank) { return 8 * rank + file; }
HEADRACE_INLINE constexpr int file_of(int square) { return square & 7; }
HEADRACE_INLINE constexpr int rank_of(int square) { return square >> 3; }

HEADRACE_INLINE constexpr Bits bit(int square) { return Bits{1} << square; }
HEADRACE_INLINE constexpr int count(Bits bits) { return __builtin_popcountll(bits); }
HEADRACE_INLINE constexpr int lowest(Bits bits) {
  return __builtin_ctzll(bits);
}  // of a set that is not empty
HEADRACE_INLINE constexpr Bits without_lowest(Bits bits) { return bits & (bits - 1); }
HEADRACE_INLINE constexpr Bits turned(Bits bits) { return __builtin_bswap64(bits); }

HEADRACE_INLINE constexpr Bits eastward(Bits bits) { return (bits & ~kFileH) << 1; }
HEADRACE_INLINE constexpr Bits westward(Bits bits) { return (bits & ~kFileA) >> 1; }

struct Squares {
  Bits mine;
  Bits code[3];

  HEADRACE_INLINE constexpr Bits occupied() const { return code[0] | code[1] | code[2]; }
  HEADRACE_INLINE constexpr Bits theirs() const { return occupied() & ~mine; }
  // Of both players.
  HEADRACE_INLINE constexpr Bits diagonal_sliders() const { return code[0] & ~code[2]; }
  HEADRACE_INLINE constexpr Bits straight_sliders() const { return code[1] & ~code[2]; }
  HEADRACE_INLINE constexpr Bits bishops() const { return diagonal_sliders() & ~code[1]; }
  HEADRACE_INLINE constexpr Bits rooks() const { return straight_sliders() & ~code[0]; }
  HEADRACE_INLINE constexpr Bits queens() const { return diagonal_sliders() & code[1]; }
  HEADRACE_INLINE constexpr Bits pawns() const { return code[2] & ~(code[0] | code[1]); }
  HEADRACE_INLINE constexpr Bits knights() const { return code[2] & code[0]; }
  HEADRACE_INLINE constexpr Bits kings() const { return code[2] & code[1]; }

  HEADRACE_INLINE constexpr int piece_on(int square) const {
    return (int)((code[0] >> square & 1) | (code[1] >> square & 1) << 1 |
                 (code[2] >> square & 1) << 2);
  }

  HEADRACE_INLINE constexpr void put(int square, int piece, bool own) {
    for (int c = 0; c < 3; ++c) code[c] |= (Bits)(piece >> c & 1) << square;
    mine |= (Bits)own << square;
  }

  HEADRACE_INLINE constexpr Squares turned() const {
    return {chess::turned(theirs()),
            {chess::turned(code[0]), chess::turned(code[1]), chess::turned(code[2])}};
  }
};

// What decides which moves there are.
struct Board {
  Squares squares;
  uint8_t castling;    // of Castling
  uint8_t en_passant;  // the square behind a pawn that may now be captured legally; 0: none
  uint8_t padding[6];  // zero: equal boards are equal bytes

  HEADRACE_INLINE constexpr Board turned() const {
    return {squares.turned(),
            (uint8_t)(castling >> 2 | (castling & 3) << 2),
            (uint8_t)(en_passant ? en_passant ^ 56 : 0),
            {}};
  }
};

}  // namespace headrace::HEADRACE_ISA::chess
