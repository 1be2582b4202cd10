// SPDX-License-Identifier: Apache-2.0
// Positions as text (Forsyth-Edwards notation): complete checks on the way in.
#pragma once

#include <cstdarg>
#include <cstdio>

#include "position.hpp"
#include "session.hpp"

namespace headrace::HEADRACE_ISA::chess {

inline constexpr const char* kPieceLetters = " BRQPNK";  // by Piece

// Reads one FEN. What is wrong is said in `error`: the first fault, and where.
class FenReader {
  struct Field {
    const char* begin;
    int length;
  };

 public:
  FenReader(const char* text, char (&error)[kErrorRoom]) : at_(text), error_(error) {}

  bool read(Position& out) {
    if (!read_fields() || !read_pieces() || !read_turn() || !check_pieces()) return false;
    Board board = black_ ? seen_.turned() : seen_;
    if (!read_castling(board) || !read_en_passant(board) || !read_counters()) return false;
    if (!check_threats(board)) return false;
    out = set_up(board, black_, clock_, number_);
    return true;
  }

 private:
  [[gnu::format(printf, 2, 3)]] bool wrong(const char* format, ...) {
    va_list values;
    va_start(values, format);
    std::vsnprintf(error_, kErrorRoom, format, values);
    va_end(values);
    return false;
  }

  // Cuts the text into its four or six fields.
  bool read_fields() {
    for (const char* next = at_; *next;) {
      if (*next == ' ') {
        ++next;
        continue;
      }
      if (fields_ == 6) return wrong("a FEN has six fields; there is more behind them");
      Field& field = field_[fields_++];
      field.begin = next;
      while (*next && *next != ' ') ++next;
      field.length = (int)(next - field.begin);
    }
    if (fields_ == 4 || fields_ == 6) return true;
    return wrong("a FEN has six fields, or four without the counters; there are %d", fields_);
  }

  bool read_pieces() {
    int rank = 7, file = 0;
    bool digit = false;
    for (int i = 0; i < field_[0].length; ++i) {
      const char c = field_[0].begin[i];
      if (c == '/') {
        if (file != 8) return wrong("rank %d has %d squares; it must have 8", rank + 1, file);
        if (rank == 0) return wrong("there are more than 8 ranks");
        --rank;
        file = 0;
        digit = false;
      } else if (c >= '1' && c <= '8') {
        if (digit) return wrong("rank %d has two numbers in a row", rank + 1);
        digit = true;
        file += c - '0';
      } else {
        digit = false;
        if (!put(c, file++, rank)) return false;
      }
      if (file > 8) return wrong("rank %d has more than 8 squares", rank + 1);
    }
    if (rank != 0) return wrong("there are %d ranks; there must be 8", 8 - rank);
    if (file != 8) return wrong("rank 1 has %d squares; it must have 8", file);
    return true;
  }

  bool put(char letter, int file, int rank) {
    const char upper = letter >= 'a' ? (char)(letter - 32) : letter;
    for (int piece = kBishop; piece <= kKing; ++piece) {
      if (kPieceLetters[piece] != upper) continue;
      if (file < 8) seen_.squares.put(square(file, rank), piece, letter == upper);
      return true;
    }
    return wrong("'%c' on rank %d is no piece", shown(letter), rank + 1);
  }

  bool read_turn() {
    const Field& field = field_[1];
    black_ = field.length == 1 && *field.begin == 'b';
    if (black_ || (field.length == 1 && *field.begin == 'w')) return true;
    return wrong("the side to move is '%.*s'; it must be w or b", shown_length(field), field.begin);
  }

  bool check_pieces() {
    const Squares& squares = seen_.squares;
    for (int side = 0; side < 2; ++side) {
      const char* name = side ? "black" : "white";
      const Bits own = side ? squares.theirs() : squares.mine;
      const int kings = count(own & squares.kings());
      if (kings != 1) return wrong("%s has %d kings; there must be one", name, kings);
      if (count(own) > 16) return wrong("%s has %d pieces; 16 are possible", name, count(own));
      const int pawns = count(own & squares.pawns());
      if (pawns > 8) return wrong("%s has %d pawns; 8 are possible", name, pawns);
    }
    const Bits misplaced = squares.pawns() & (kRank1 | kRank8);
    if (!misplaced) return true;
    const int at = lowest(misplaced);
    return wrong("there is a pawn on %c%d", 'a' + file_of(at), rank_of(at) + 1);
  }

  bool read_castling(Board& board) {
    const Field& field = field_[2];
    if (field.length == 1 && *field.begin == '-') return true;
    for (int i = 0; i < field.length; ++i) {
      constexpr char letters[] = "KQkq";
      int which = 0;
      while (which < 4 && letters[which] != field.begin[i]) ++which;
      if (which == 4) {
        return wrong("castling is '%.*s'; it must be - or some of KQkq", shown_length(field),
                     field.begin);
      }
      const bool black = which >= 2, queenside = which % 2;
      const int right = (black == black_ ? kMyShort : kTheirShort) << queenside;
      if (board.castling & right) return wrong("castling '%c' is there twice", letters[which]);
      const int rank = black == black_ ? 0 : 7;
      const Bits own = black == black_ ? board.squares.mine : board.squares.theirs();
      const Bits king = board.squares.kings() & own & bit(square(4, rank));
      const Bits rook = board.squares.rooks() & own & bit(square(queenside ? 0 : 7, rank));
      if (!king || !rook) {
        return wrong("castling '%c' is impossible: the king or the rook is not at home",
                     letters[which]);
      }
      board.castling |= (uint8_t)right;
    }
    return true;
  }

  bool read_en_passant(Board& board) {
    const Field& field = field_[3];
    if (field.length == 1 && *field.begin == '-') return true;
    const int file = *field.begin - 'a', rank = field.length == 2 ? field.begin[1] - '1' : -1;
    if (field.length != 2 || file < 0 || file > 7 || rank != (black_ ? 2 : 5)) {
      return wrong("the en-passant square is '%.*s'; it must be - or on rank %d",
                   shown_length(field), field.begin, black_ ? 3 : 6);
    }
    const Squares& squares = board.squares;
    const int target = square(file, 5);
    const Bits passed = bit(target) | bit(target + 8);
    const Bits pawn = bit(target - 8) & squares.pawns() & ~squares.mine;
    if (!pawn || (squares.occupied() & passed)) {
      return wrong("en passant on %.2s is impossible: no pawn has just come two squares",
                   field.begin);
    }
    if (en_passant_captors(squares, target)) board.en_passant = (uint8_t)target;
    return true;
  }

  bool read_counters() {
    if (fields_ == 4) return true;
    return read_counter(field_[4], "half-move clock", 0, clock_) &&
           read_counter(field_[5], "move number", 1, number_);
  }

  bool read_counter(const Field& field, const char* name, int least, int& out) {
    constexpr int most = 9999;
    int value = 0;
    bool good = field.length <= 4;
    for (int i = 0; good && i < field.length; ++i) {
      good = field.begin[i] >= '0' && field.begin[i] <= '9';
      value = 10 * value + field.begin[i] - '0';
    }
    if (!good || value < least) {
      return wrong("the %s is '%.*s'; it must be from %d to %d", name, shown_length(field),
                   field.begin, least, most);
    }
    out = value;
    return true;
  }

  bool check_threats(const Board& board) {
    const Squares& mine = board.squares;
    const Squares theirs = mine.turned();
    const int their_king = lowest(theirs.kings() & theirs.mine);
    if (attackers(theirs, their_king, theirs.occupied())) {
      return wrong("%s is in check, but it is %s's turn", black_ ? "white" : "black",
                   black_ ? "black" : "white");
    }
    const int my_king = lowest(mine.kings() & mine.mine);
    const int checks = count(attackers(mine, my_king, mine.occupied()));
    if (checks > 2) return wrong("the king is attacked by %d pieces; 2 are possible", checks);
    return true;
  }

  // What is quoted in a message.
  static char shown(char c) { return c >= ' ' && c <= '~' ? c : '?'; }
  static int shown_length(const Field& field) { return field.length < 16 ? field.length : 16; }

  const char* at_;
  char (&error_)[kErrorRoom];
  Field field_[6];
  int fields_ = 0;
  Board seen_ = {};  // by white
  bool black_ = false;
  int clock_ = 0, number_ = 1;
};

// The position as FEN; en passant is shown where there is a legal capture.
inline void write_fen(const Position& position, char (&out)[kFenRoom]) {
  const Board board = position.black ? position.board.turned() : position.board;
  int length = 0;
  for (int rank = 7; rank >= 0; --rank) {
    int empty = 0;
    for (int file = 0; file < 8; ++file) {
      const int at = square(file, rank), piece = board.squares.piece_on(at);
      if (piece == kEmpty) {
        ++empty;
        continue;
      }
      if (empty) out[length++] = (char)('0' + empty);
      empty = 0;
      const bool white = board.squares.mine >> at & 1;
      out[length++] = (char)(kPieceLetters[piece] + (white ? 0 : 32));
    }
    if (empty) out[length++] = (char)('0' + empty);
    out[length++] = rank ? '/' : ' ';
  }
  out[length++] = position.black ? 'b' : 'w';
  out[length++] = ' ';
  for (int which = 0; which < 4; ++which) {
    if (board.castling >> which & 1) out[length++] = "KQkq"[which];
  }
  if (!board.castling) out[length++] = '-';
  out[length++] = ' ';
  if (board.en_passant) {
    out[length++] = (char)('a' + file_of(board.en_passant));
    out[length++] = (char)('1' + rank_of(board.en_passant));
  } else {
    out[length++] = '-';
  }
  std::snprintf(out + length, kFenRoom - length, " %d %d", position.clock, position.move_number);
}

}  // namespace headrace::HEADRACE_ISA::chess
