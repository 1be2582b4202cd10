// SPDX-License-Identifier: Apache-2.0
// Legal moves, straight: no move is made and taken back to find out.
#pragma once

#include "threats.hpp"

namespace headrace::HEADRACE_ISA::chess {

// from | to << 6 | kind << 12, squares as the player to move sees them. 0 is no move.
using Move = uint16_t;

enum Kind : int {
  kNormal,
  kDoubleStep,
  kEnPassant,
  kCastle,
  kToKnight,  // promotions; the next three are 4 + the piece
  kToBishop,
  kToRook,
  kToQueen,
};

HEADRACE_INLINE constexpr Move make_move(int from, int to, int kind) {
  return (Move)(from | to << 6 | kind << 12);
}
HEADRACE_INLINE constexpr int from_of(Move move) { return move & 63; }
HEADRACE_INLINE constexpr int to_of(Move move) { return move >> 6 & 63; }
HEADRACE_INLINE constexpr int kind_of(Move move) { return move >> 12; }
HEADRACE_INLINE constexpr bool is_promotion(int kind) { return kind >= kToKnight; }
HEADRACE_INLINE constexpr int promoted_piece(int kind) {
  return kind == kToKnight ? kKnight : kind - 4;
}

// Fifteen pieces with 27 moves each, and a king with ten.
inline constexpr int kMaxMoves = 15 * 27 + 10;

struct MoveList {
  int size = 0;
  Move move[kMaxMoves + 1];

  HEADRACE_INLINE void add(int from, int to, int kind) { move[size++] = make_move(from, to, kind); }

  HEADRACE_INLINE void piece(int from, Bits targets) {
    for (; targets; targets = without_lowest(targets)) add(from, lowest(targets), kNormal);
  }

  // The squares that pawns reach in each of their ways.
  HEADRACE_INLINE void pawns(Bits steps, Bits double_steps, Bits west, Bits east) {
    all(steps & ~kRank8, 8, kNormal);
    all(double_steps, 16, kDoubleStep);
    all(west & ~kRank8, 7, kNormal);
    all(east & ~kRank8, 9, kNormal);
    if ((steps | west | east) & kRank8) {
      promotions(steps & kRank8, 8);
      promotions(west & kRank8, 7);
      promotions(east & kRank8, 9);
    }
  }

 private:
  HEADRACE_INLINE void all(Bits targets, int step, int kind) {
    for (; targets; targets = without_lowest(targets)) {
      add(lowest(targets) - step, lowest(targets), kind);
    }
  }

  HEADRACE_INLINE void promotions(Bits targets, int step) {
    for (int kind = kToQueen; kind >= kToKnight; --kind) all(targets, step, kind);
  }
};

HEADRACE_INLINE int count_pawn_moves(Bits steps, Bits double_steps, Bits west, Bits east) {
  int moves = count(steps) + count(double_steps) + count(west) + count(east);
  if ((steps | west | east) & kRank8) {
    moves += 3 * (count(steps & kRank8) + count(west & kRank8) + count(east & kRank8));
  }
  return moves;
}

// The same interface, for those who only want to know how many.
struct MoveCount {
  int size = 0;

  HEADRACE_INLINE void add(int, int, int) { ++size; }
  HEADRACE_INLINE void piece(int, Bits targets) { size += count(targets); }
  HEADRACE_INLINE void pawns(Bits steps, Bits double_steps, Bits west, Bits east) {
    size += count_pawn_moves(steps, double_steps, west, east);
  }
};

template <class Moves>
HEADRACE_INLINE void generate_pawns(const Squares& squares, const Threats& threats, Moves& moves) {
  const Bits pawns = squares.pawns() & squares.mine;
  const Bits empty = ~squares.occupied();
  const Bits theirs = squares.theirs();

  const Bits walkers = pawns & ~threats.pinned_diagonal;
  const Bits held_walkers = walkers & threats.pinned_straight;
  const Bits steps =
      (((walkers & ~held_walkers) << 8) | ((held_walkers << 8) & threats.straight_rays)) & empty;
  const Bits double_steps = (steps & kRank3) << 8 & empty & threats.evasions;
  const Bits single_steps = steps & threats.evasions;

  const Bits captors = pawns & ~threats.pinned_straight;
  const Bits held_captors = captors & threats.pinned_diagonal;
  const Bits free = captors & ~held_captors;
  const Bits targets = theirs & threats.evasions;
  const Bits west = (up_west(free) | (up_west(held_captors) & threats.diagonal_rays)) & targets;
  const Bits east = (up_east(free) | (up_east(held_captors) & threats.diagonal_rays)) & targets;

  moves.pawns(single_steps, double_steps, west, east);
}

template <class Moves>
HEADRACE_INLINE void generate_pieces(const Squares& squares, const Threats& threats, Moves& moves) {
  const Bits occupied = squares.occupied();
  const Bits targets = threats.evasions & ~squares.mine;
  const Bits pinned = threats.pinned_diagonal | threats.pinned_straight;

  for (Bits from = squares.knights() & squares.mine & ~pinned; from; from = without_lowest(from)) {
    moves.piece(lowest(from), knight_attacks(lowest(from)) & targets);
  }
  for (Bits from = squares.diagonal_sliders() & squares.mine & ~threats.pinned_straight; from;
       from = without_lowest(from)) {
    const Bits held = from & -from & threats.pinned_diagonal;
    moves.piece(lowest(from), bishop_attacks(lowest(from), occupied) & targets &
                                  (held ? threats.diagonal_rays : ~Bits{0}));
  }
  for (Bits from = squares.straight_sliders() & squares.mine & ~threats.pinned_diagonal; from;
       from = without_lowest(from)) {
    const Bits held = from & -from & threats.pinned_straight;
    moves.piece(lowest(from), rook_attacks(lowest(from), occupied) & targets &
                                  (held ? threats.straight_rays : ~Bits{0}));
  }
}

template <class Moves>
HEADRACE_INLINE void generate_castling(const Board& board, const Threats& threats, Moves& moves) {
  constexpr Bits short_way = bit(5) | bit(6), long_way = bit(2) | bit(3), long_gap = bit(1);
  const Bits occupied = board.squares.occupied();
  if ((board.castling & kMyShort) && !((occupied | threats.attacked) & short_way)) {
    moves.add(4, 6, kCastle);
  }
  if ((board.castling & kMyLong) && !((occupied | threats.attacked) & long_way) &&
      !(occupied & long_gap)) {
    moves.add(4, 2, kCastle);
  }
}

// Adds every legal move; returns whether the player to move is in check.
template <class Moves>
HEADRACE_INLINE bool generate(const Board& board, Moves& moves) {
  const Squares& squares = board.squares;
  const Threats threats = find_threats(squares);
  moves.piece(threats.king, king_attacks(threats.king) & ~squares.mine & ~threats.attacked);
  if (threats.evasions) {
    generate_pawns(squares, threats, moves);
    generate_pieces(squares, threats, moves);
  }
  if (board.en_passant) {
    for (Bits from = en_passant_captors(squares, board.en_passant); from;
         from = without_lowest(from)) {
      moves.add(lowest(from), board.en_passant, kEnPassant);
    }
  }
  if ((board.castling & (kMyShort | kMyLong)) && !threats.check) {
    generate_castling(board, threats, moves);
  }
  return threats.check;
}

}  // namespace headrace::HEADRACE_ISA::chess
