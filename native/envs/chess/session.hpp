// SPDX-License-Identifier: Apache-2.0
// One game at a time, for whoever wants to look at it: positions in and out as text, moves by name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

inline constexpr int kFenRoom = 96;     // characters of a FEN, its end included
inline constexpr int kUciRoom = 6;      // of a move, likewise
inline constexpr int kErrorRoom = 160;  // of a message, likewise
inline constexpr int kMovesRoom = 420;

// Squares, moves and FENs are the board's, not those of the player to move; actions are those of
// the environments. Actions that are given must be legal.
class ChessSession {
 public:
  virtual ~ChessSession();

  // Sets the position up; or says in `error` what is wrong with it, and nothing has changed.
  virtual bool set_up(const char* fen, char (&error)[kErrorRoom]) = 0;
  virtual void write_fen(char (&out)[kFenRoom]) const = 0;

  virtual int legal_actions(uint16_t (&out)[kMovesRoom]) const = 0;  // returns how many
  virtual void write_uci(int action, char (&out)[kUciRoom]) const = 0;
  virtual void play(int action) = 0;

  virtual bool in_check() const = 0;
  virtual const char* outcome() const = 0;  // "none", or the reason why the game is over
  virtual int occurrences() const = 0;      // of this position in the game, this one included
  virtual bool black_to_move() const = 0;

  virtual void write_mask(uint8_t* out) const = 0;
  virtual void write_planes(uint8_t* out) const = 0;
  virtual void write_compact(uint8_t* out) const = 0;

  virtual uint64_t perft(int depth) const = 0;
  // Decodes and encodes an action, whatever piece is on the square; -1 where it leads off the
  // board.
  virtual int encoded_again(int action) const = 0;
  virtual ChessSession* copy() const = 0;
};

}  // namespace headrace
