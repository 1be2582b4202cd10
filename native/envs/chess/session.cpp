// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include "fen.hpp"
#include "game.hpp"
#include "perft.hpp"

namespace headrace::HEADRACE_ISA::chess {

namespace {

class Session final : public ChessSession {
 public:
  Session() { begin(chess::set_up(kStart, false, 0, 1)); }

  bool set_up(const char* fen, char (&error)[kErrorRoom]) override {
    Position position;
    if (!FenReader(fen, error).read(position)) return false;
    begin(position);
    return true;
  }
  void write_fen(char (&out)[kFenRoom]) const override { chess::write_fen(game_.position, out); }

  int legal_actions(uint16_t (&out)[kMovesRoom]) const override {
    for (int n = 0; n < game_.legal; ++n) out[n] = (uint16_t)nth_legal(board(), game_.moves, n);
    return game_.legal;
  }

  void write_uci(int action, char (&out)[kUciRoom]) const override {
    const Move move = move_of(board(), action);
    const int turn = game_.position.black ? 56 : 0;
    const int from = from_of(move) ^ turn, to = to_of(move) ^ turn, kind = kind_of(move);
    int length = 0;
    const int squares[2] = {from, to};
    for (int at : squares) {
      out[length++] = (char)('a' + file_of(at));
      out[length++] = (char)('1' + rank_of(at));
    }
    if (is_promotion(kind)) out[length++] = (char)(kPieceLetters[promoted_piece(kind)] + 32);
    out[length] = '\0';
  }

  void play(int action) override { play_action(game_, action); }

  bool in_check() const override {
    MoveCount moves;
    return generate(board(), moves);
  }
  const char* outcome() const override { return name_of(game_.outcome); }
  int occurrences() const override { return game_.position.earlier + 1; }
  bool black_to_move() const override { return game_.position.black; }

  void write_mask(uint8_t* out) const override { chess::write_mask(board(), game_.moves, out); }
  void write_planes(uint8_t* out) const override { write_bytes(view_of(game_.position), out); }
  void write_compact(uint8_t* out) const override {
    write_small_bytes(view_of(game_.position), out);
  }

  uint64_t perft(int depth) const override { return chess::perft(board(), depth); }

  int encoded_again(int action) const override {
    Board with_piece = {};
    const int from_place = action / kActionPlanes, plane = action % kActionPlanes;
    const int from = square(from_place / 8, from_place % 8);
    with_piece.squares.put(from, plane < 9 ? kPawn : kQueen, true);
    const Move move = move_of(with_piece, action);
    return move ? action_of(move) : -1;
  }

  ChessSession* copy() const override { return new Session(*this); }

 private:
  const Board& board() const { return game_.position.board; }

  void begin(const Position& position) {
    game_ = {};
    game_.position = position;
    settle(game_);
  }

  Game game_;
};

}  // namespace

}  // namespace headrace::HEADRACE_ISA::chess

namespace headrace::HEADRACE_ISA {

ChessSession* chess_session() { return new chess::Session; }

}  // namespace headrace::HEADRACE_ISA
