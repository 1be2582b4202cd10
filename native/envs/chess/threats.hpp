// SPDX-License-Identifier: Apache-2.0
// What the opponent's pieces forbid: attacked squares, checks and pins, found without a branch.
#pragma once

#include "attacks.hpp"

namespace headrace::HEADRACE_ISA::chess {

struct Threats {
  Bits attacked;         // by the opponent, through the king: where the king may not go
  Bits evasions;         // where another piece may go: everywhere, or where it ends the check
  Bits pinned_diagonal;  // pieces pinned on a diagonal, on a rank or file
  Bits pinned_straight;
  Bits diagonal_rays;  // where those may go
  Bits straight_rays;
  int king;
  bool check;
};

HEADRACE_INLINE Threats find_threats(const Squares& squares) {
  const Bits occupied = squares.occupied();
  const Bits theirs = occupied & ~squares.mine;
  const Bits king_bit = squares.kings() & squares.mine;
  const int king = lowest(king_bit);
  const Bits straight = squares.straight_sliders() & theirs;
  const Bits diagonal = squares.diagonal_sliders() & theirs;

  const Rays seen = cast(FourLines{straight, straight, diagonal, diagonal}, ~occupied | king_bit);
  const Rays sight = cast(all_lines(king_bit), ~occupied);

  // A slider above that looks down and the king that looks up meet: in a pinned piece of the king's
  // own, or, where the slider sees the king, on every square between them.
  const FourLines pinned_above = seen.down & sight.up & all_lines(squares.mine);
  const FourLines pinned_below = seen.up & sight.down & all_lines(squares.mine);
  const FourLines checked_above = where_any(seen.down & all_lines(king_bit));
  const FourLines checked_below = where_any(seen.up & all_lines(king_bit));
  const FourLines pinned = pinned_above | pinned_below;
  const FourLines rays = (as_lines(kAttacks.up[king]) & where_any(pinned_above)) |
                         (as_lines(kAttacks.down[king]) & where_any(pinned_below));

  // Two checks have no square in common.
  Bits evasions = all_of((sight.up | ~checked_above) & (sight.down | ~checked_below));
  const Bits jumpers = ((knight_attacks(king) & squares.knights()) |
                        ((up_west(king_bit) | up_east(king_bit)) & squares.pawns())) &
                       theirs;
  if (jumpers) evasions &= without_lowest(jumpers) ? 0 : jumpers;

  const Bits their_pawns = squares.pawns() & theirs;
  Bits attacked = any_of(seen.up | seen.down) | down_west(their_pawns) | down_east(their_pawns) |
                  king_attacks(lowest(squares.kings() & theirs));
  for (Bits knights = squares.knights() & theirs; knights; knights = without_lowest(knights)) {
    attacked |= knight_attacks(lowest(knights));
  }
  return {attacked,
          evasions,
          pinned[kRising] | pinned[kFalling],
          pinned[kFile] | pinned[kRank],
          rays[kRising] | rays[kFalling],
          rays[kFile] | rays[kRank],
          king,
          (attacked & king_bit) != 0};
}

// The opponent's pieces that attack a square, were the board occupied so.
HEADRACE_INLINE Bits attackers(const Squares& squares, int square, Bits occupied) {
  const Bits pawns = up_west(bit(square)) | up_east(bit(square));
  return ((bishop_attacks(square, occupied) & squares.diagonal_sliders()) |
          (rook_attacks(square, occupied) & squares.straight_sliders()) |
          (knight_attacks(square) & squares.knights()) | (pawns & squares.pawns()) |
          (king_attacks(square) & squares.kings())) &
         squares.theirs();
}

// The player's pawns that may capture en passant on `target` without leaving their king in check.
// Two pawns leave one line at once, so pins do not tell: it is tried out.
inline Bits en_passant_captors(const Squares& squares, int target) {
  const Bits to = bit(target), captured = to >> 8;
  const int king = lowest(squares.kings() & squares.mine);
  Bits captors = 0;
  for (Bits pawns = (down_west(to) | down_east(to)) & squares.pawns() & squares.mine; pawns;
       pawns = without_lowest(pawns)) {
    const Bits from = pawns & -pawns;
    const Bits occupied = (squares.occupied() ^ from ^ captured) | to;
    if (!(attackers(squares, king, occupied) & ~captured)) captors |= from;
  }
  return captors;
}

}  // namespace headrace::HEADRACE_ISA::chess
