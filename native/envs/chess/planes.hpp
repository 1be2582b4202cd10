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
  Bits mine[kHistory];        // of the position t half-moves ago; rank 8 in the lowest byte
  Bits code[3][kHistory];     // likewise: the pieces, as in Squares
  uint8_t repeated;           // bit t: the position t half-moves ago has occurred more than once
  uint8_t numbers[kNumbers];  // planes 112-118
  Bits en_passant;

  HEADRACE_INLINE void set(int t, const Squares& squares) {
    mine[t] = squares.mine;
    for (int c = 0; c < 3; ++c) code[c][t] = squares.code[c];
  }
  HEADRACE_INLINE Squares step(int t) const {
    return {mine[t], {code[0][t], code[1][t], code[2][t]}};
  }
};

HEADRACE_INLINE View view_of(const Position& position) {
  View view;
  for (int t = 0; t < kHistory; ++t) {
    const Squares squares =
        t == 0 ? position.board.squares : position.past[(position.ply - t) % kHistory];
    const auto shown = [&](Bits bits) { return t % 2 ? bits : turned(bits); };
    // The opponent saw every other one: mirrored already.
    view.set(t, {shown(t % 2 ? squares.theirs() : squares.mine),
                 {shown(squares.code[0]), shown(squares.code[1]), shown(squares.code[2])}});
  }
  const uint32_t now = position.ply % kHistory;
  uint32_t repeated = 0;
  for (uint32_t t = 0; position.repeated && t < kHistory; ++t) {
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

// By piece, the opponent's from 8 on.
inline constexpr uint8_t kPlaneOf[16] = {0, 2, 3, 4, 0, 1, 5, 0, 0, 8, 9, 10, 6, 7, 11, 0};

// Calls write(square, plane) for the pieces on `where`; the plane is one of the first twelve.
template <class Write>
HEADRACE_INLINE void for_each_piece(Squares squares, Bits where, Write&& write) {
  for (Bits left = squares.occupied() & where; left; left = without_lowest(left)) {
    const int at = lowest(left);
    const int opponent = (int)(~squares.mine >> at & 1) << 3;
    write(at, kPlaneOf[squares.piece_on(at) | opponent]);
  }
}

typedef uint8_t Bytes64 __attribute__((vector_size(64), aligned(1), may_alias));

HEADRACE_INLINE Bytes64 line_at(const uint8_t* from) { return *(const Bytes64*)from; }
HEADRACE_INLINE void put_line(uint8_t* to, Bytes64 line) { *(Bytes64*)to = line; }

// What a square shows when it is empty in all positions, `bytes` long, again and again until any
// 64 bytes of the whole are somewhere among these.
template <int bytes>
struct EmptyRow {
  static constexpr int kWords = (bytes + 7) / 8;
  static constexpr int kRows = 1 + (64 + bytes - 2) / bytes;
  Bits words[kWords] = {};
  alignas(64) uint8_t rows[kRows * bytes + 8];

  HEADRACE_INLINE void set(int plane, Bits value) { words[plane / 8] |= value << 8 * (plane % 8); }

  // What is set in this plane is set in the next one instead.
  HEADRACE_INLINE void once_more(int plane) {
    words[plane / 8] ^= Bits{1} << 8 * (plane % 8);
    set(plane + 1, 1);
  }

  // Writes it for all squares.
  HEADRACE_INLINE void fill(uint8_t* out) {
    // A row's last word may be longer than the row: the next one puts that right.
    for (int row = 0; row < kRows; ++row) __builtin_memcpy(rows + row * bytes, words, 8 * kWords);
#pragma GCC unroll 128
    for (int line = 0; line < bytes; ++line) {
      put_line(out + 64 * line, line_at(rows + 64 * line % bytes));
    }
  }
};

// The rows of a piece that never moved, as two lines which overlap: bytes 0-63 and 55-118.
inline constexpr int kSecondLine = kPlanes - 64;
struct StandingTables {
  alignas(64) uint8_t lines[12][2][64];
};
constexpr StandingTables make_standing_tables() {
  StandingTables tables = {};
  for (int plane = 0; plane < 12; ++plane) {
    for (int t = 0; t < kHistory; ++t) {
      const int at = kStepPlanes * t + plane;
      if (at < 64) tables.lines[plane][0][at] = 1;
      if (at >= kSecondLine) tables.lines[plane][1][at - kSecondLine] = 1;
    }
  }
  return tables;
}
inline constexpr StandingTables kStanding = make_standing_tables();

// The planes of a step by piece, as kPlaneOf, but that an empty square sets a plane which is set
// anyway: the first 16 where the position occurred once, the others where more often.
inline constexpr uint8_t kPlaneOrSet[32] = {12, 2, 3, 4, 0, 1, 5, 12, 12, 8, 9, 10, 6, 7, 11, 12,
                                            13, 2, 3, 4, 0, 1, 5, 13, 13, 8, 9, 10, 6, 7, 11, 13};

inline void write_bytes(const View& view, uint8_t* out) {
  EmptyRow<kPlanes> empty;
#pragma GCC unroll 8
  for (int t = 0; t < kHistory; ++t) empty.set(kStepPlanes * t + 12, 1);
  for (Bits left = view.repeated; left; left = without_lowest(left)) {
    empty.once_more(kStepPlanes * lowest(left) + 12);
  }
  for (int i = 0; i < kNumbers; ++i) empty.set(kHistoryPlanes + i, view.numbers[i]);
  empty.fill(out);

  const auto eight = [](const Bits(&words)[kHistory]) {
    EightWords out;
    __builtin_memcpy(&out, words, sizeof(out));
    return out;
  };
  const EightWords mine = eight(view.mine);
  const EightWords codes[3] = {eight(view.code[0]), eight(view.code[1]), eight(view.code[2])};
  const auto changed = [](EightWords words) { return words ^ words[0]; };
  const EightWords changes =
      changed(mine) | changed(codes[0]) | changed(codes[1]) | changed(codes[2]);
  Bits moved = 0;  // squares that are not the same in all positions
  for (int t = 0; t < kHistory; ++t) moved |= changes[t];

  const Bytes64 first = line_at(empty.rows), second = line_at(empty.rows + kSecondLine);
  for_each_piece(view.step(0), ~moved, [&](int at, int plane) {
    uint8_t* row = out + kPlanes * at;
    put_line(row, first | line_at(kStanding.lines[plane][0]));
    put_line(row + kSecondLine, second | line_at(kStanding.lines[plane][1]));
  });
  EightWords again;
  for (int t = 0; t < kHistory; ++t) again[t] = (view.repeated >> t & 1) << 4;
  for (; moved; moved = without_lowest(moved)) {
    const int at = lowest(moved);
    const EightWords piece = (codes[0] >> at & 1) | (codes[1] >> at & 1) << 1 |
                             (codes[2] >> at & 1) << 2 | (~mine >> at & 1) << 3 | again;
    uint8_t* row = out + kPlanes * at;
    for (int t = 0; t < kHistory; ++t) row[kStepPlanes * t + kPlaneOrSet[piece[t]]] = 1;
  }
}

inline void write_small_bytes(const View& view, uint8_t* out) {
  EmptyRow<kSmallPlanes> empty;
  empty.set(12, view.repeated & 1);
  empty.set(13, view.numbers[0]);
  for (int i = 0; i < 4; ++i) empty.set(14 + i, view.numbers[2 + i]);
  empty.set(19, view.numbers[6]);
  empty.fill(out);
  for_each_piece(view.step(0), ~Bits{0},
                 [&](int at, int plane) { out[kSmallPlanes * at + plane] = 1; });
  if (view.en_passant) out[kSmallPlanes * lowest(view.en_passant) + 18] = 1;
}

}  // namespace headrace::HEADRACE_ISA::chess
