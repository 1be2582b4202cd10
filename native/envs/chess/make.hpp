// SPDX-License-Identifier: Apache-2.0
// What a move does to the board.
#pragma once

#include "moves.hpp"

namespace headrace::HEADRACE_ISA::chess {

struct CastlingTables {
  uint8_t kept[64];  // the rights that survive a move from or to a square
};

constexpr CastlingTables make_castling_tables() {
  CastlingTables tables = {};
  for (auto& rights : tables.kept) rights = kMyShort | kMyLong | kTheirShort | kTheirLong;
  tables.kept[square(0, 0)] &= (uint8_t)~kMyLong;
  tables.kept[square(4, 0)] &= (uint8_t)~(kMyShort | kMyLong);
  tables.kept[square(7, 0)] &= (uint8_t)~kMyShort;
  tables.kept[square(0, 7)] &= (uint8_t)~kTheirLong;
  tables.kept[square(7, 7)] &= (uint8_t)~kTheirShort;
  return tables;
}

inline constexpr CastlingTables kCastling = make_castling_tables();

// The board after a legal move, as the opponent sees it.
HEADRACE_INLINE Board after(const Board& board, Move move) {
  const int from = from_of(move), to = to_of(move), kind = kind_of(move);
  Squares squares = board.squares;
  const Bits left = ~(bit(from) | bit(to));
  const auto carry = [&](Bits word) { return (word & left) | (word >> from & 1) << to; };
  squares.mine = carry(squares.mine);
  for (Bits& code : squares.code) code = carry(code);

  int en_passant = 0;
  if (kind == kDoubleStep) {
    const Bits beside = (eastward(bit(to)) | westward(bit(to))) & squares.pawns() & ~squares.mine;
    if (beside) en_passant = (to - 8) ^ 56;
  } else if (kind == kEnPassant) {
    for (Bits& code : squares.code) code &= ~bit(to - 8);
  } else if (kind == kCastle) {
    const Bits rook = to == 6 ? bit(7) | bit(5) : bit(0) | bit(3);
    squares.mine ^= rook;
    squares.code[1] ^= rook;
  } else if (is_promotion(kind)) {
    for (Bits& code : squares.code) code &= ~bit(to);
    squares.put(to, promoted_piece(kind), true);
  }

  const int castling = board.castling & kCastling.kept[from] & kCastling.kept[to];
  Board next = Board{squares, (uint8_t)castling, 0, {}}.turned();
  if (en_passant && en_passant_captors(next.squares, en_passant)) {
    next.en_passant = (uint8_t)en_passant;
  }
  return next;
}

}  // namespace headrace::HEADRACE_ISA::chess
