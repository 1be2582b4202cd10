// SPDX-License-Identifier: Apache-2.0
// What a player sees: AlphaZero's 119 planes of 8 x 8, in Pgx's order, or the present position
// alone, as uint8[8][8][119] or [8][8][20]. Both are made from a View, which is cheap to make.
//
// Row 0 is the player's eighth rank, column 0 the a-file; bit 8 * row + column of a View's words.
// All boards are seen by the player who is to move now. Planes:
//   14 * t + 0-5   t half-moves ago: his pawns, knights, bishops, rooks, queens, king
//   14 * t + 6-11  the opponent's
//   14 * t + 12    1 if that position has occurred once in the game so far (or lies before it)
//   14 * t + 13    1 if it has occurred more often
//   112            1 if he plays black
//   113            moves of both sides since the beginning, min(half-moves / 2, 255)
//   114-117        may castle: he long, he short, the opponent long, short
//   118            half-moves since the last capture or pawn move, at most 255
// The small form is 0-11 as above, 12 = plane 13, 13 = plane 112, 14-17 = planes 114-117,
// 18 = the square where a pawn may be captured en passant, 19 = plane 118.
#pragma once

#include "position.hpp"

namespace headrace::HEADRACE_ISA::chess {

inline constexpr int kStepPlanes = 14;
inline constexpr int kHistoryPlanes = kHistory * kStepPlanes;
inline constexpr int kNumbers = 7;
inline constexpr int kPlanes = kHistoryPlanes + kNumbers;
inline constexpr int kSmallPlanes = 20;

struct View {
  Squares steps[kHistory];    // rank 8 in the lowest byte
  uint8_t repeated;           // bit t: the position t half-moves ago has occurred more than once
  uint8_t numbers[kNumbers];  // planes 112-118
  Bits en_passant;
};

// The squares where two boards differ.
HEADRACE_INLINE Bits difference(const Squares& a, const Squares& b) {
  return (a.mine ^ b.mine) | (a.code[0] ^ b.code[0]) | (a.code[1] ^ b.code[1]) |
         (a.code[2] ^ b.code[2]);
}

HEADRACE_INLINE View view_of(const Position& position) {
  View view;
  view.steps[0] = position.board.squares;
  for (int t = 1; t < kHistory; ++t) view.steps[t] = position.past[(position.ply - t) % kHistory];
  for (int t = 0; t < kHistory; ++t) {
    Squares& squares = view.steps[t];
    if (t % 2) {  // the opponent saw it: mirrored already
      squares.mine = squares.theirs();
    } else {
      squares.mine = turned(squares.mine);
      for (Bits& code : squares.code) code = turned(code);
    }
  }
  const uint32_t now = position.ply % kHistory;
  uint32_t repeated = 0;
  for (uint32_t t = 0; t < kHistory; ++t) {
    repeated |= (position.repeated >> (now - t) % kHistory & 1u) << t;
  }
  view.repeated = (uint8_t)repeated;
  const auto byte = [](uint32_t number) { return (uint8_t)(number < 255 ? number : 255); };
  const int castling = position.board.castling;
  view.numbers[0] = position.black;
  view.numbers[1] = byte(position.ply / 2);
  view.numbers[2] = (castling & kMyLong) != 0;
  view.numbers[3] = (castling & kMyShort) != 0;
  view.numbers[4] = (castling & kTheirLong) != 0;
  view.numbers[5] = (castling & kTheirShort) != 0;
  view.numbers[6] = byte(position.clock);
  view.en_passant = position.board.en_passant ? turned(bit(position.board.en_passant)) : 0;
  return view;
}

// Calls write(square, plane) for the pieces on `where`; the plane is one of the first twelve.
template <class Write>
HEADRACE_INLINE void for_each_piece(Squares squares, Bits where, Write&& write) {
  // By piece, the opponent's from 8 on.
  static constexpr uint8_t plane[16] = {0, 2, 3, 4, 0, 1, 5, 0, 0, 8, 9, 10, 6, 7, 11, 0};
  for (Bits left = squares.occupied() & where; left; left = without_lowest(left)) {
    const int at = lowest(left);
    const int opponent = (int)(~squares.mine >> at & 1) << 3;
    write(at, plane[squares.piece_on(at) | opponent]);
  }
}

// What a square shows when it is empty in all positions, `bytes` long, kept in registers.
template <int bytes>
struct EmptyRow {
  static constexpr int kWords = (bytes + 7) / 8;
  Bits words[kWords] = {};

  HEADRACE_INLINE void set(int plane, Bits value) { words[plane / 8] |= value << 8 * (plane % 8); }

  // Writes it for all squares: once, and then what is there again, six times.
  HEADRACE_INLINE void fill(uint8_t* out) const {
    __builtin_memcpy(out, words, bytes);
#pragma GCC unroll 6
    for (int done = bytes; done < 64 * bytes; done *= 2) __builtin_memcpy(out + done, out, done);
  }
};

inline void write_bytes(const View& view, uint8_t* out) {
  EmptyRow<kPlanes> empty;
  Bits moved = 0;  // squares that are not the same in all positions
#pragma GCC unroll 8
  for (int t = 0; t < kHistory; ++t) {
    const Bits again = view.repeated >> t & 1;
    empty.set(kStepPlanes * t + 12, again ^ 1);
    empty.set(kStepPlanes * t + 13, again);
    moved |= difference(view.steps[t], view.steps[0]);
  }
  for (int i = 0; i < kNumbers; ++i) empty.set(kHistoryPlanes + i, view.numbers[i]);
  empty.fill(out);

  for_each_piece(view.steps[0], ~moved, [&](int at, int plane) {
    for (int t = 0; t < kHistory; ++t) out[kPlanes * at + kStepPlanes * t + plane] = 1;
  });
  for (int t = 0; t < kHistory; ++t) {
    for_each_piece(view.steps[t], moved,
                   [&](int at, int plane) { out[kPlanes * at + kStepPlanes * t + plane] = 1; });
  }
}

inline void write_small_bytes(const View& view, uint8_t* out) {
  EmptyRow<kSmallPlanes> empty;
  empty.set(12, view.repeated & 1);
  empty.set(13, view.numbers[0]);
  for (int i = 0; i < 4; ++i) empty.set(14 + i, view.numbers[2 + i]);
  empty.set(19, view.numbers[6]);
  empty.fill(out);
  for_each_piece(view.steps[0], ~Bits{0},
                 [&](int at, int plane) { out[kSmallPlanes * at + plane] = 1; });
  if (view.en_passant) out[kSmallPlanes * lowest(view.en_passant) + 18] = 1;
}

}  // namespace headrace::HEADRACE_ISA::chess
