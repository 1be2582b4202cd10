// SPDX-License-Identifier: Apache-2.0
// Chess-v0, where an agent plays both sides by turns, and ChessVsRandom-v0, where one plays the
// colour it draws against an opponent who makes random legal moves.
//
// A state is the position with its history, and where its pieces may go. Everything is seen from
// the side to move. The reward belongs to whoever acted: 1 for checkmate; -1 where the opponent's
// reply mates; otherwise 0. Draws end the game without being claimed.
#pragma once

#include "../../core/kernel_rows.hpp"
#include "destinations.hpp"
#include "endings.hpp"
#include "planes.hpp"
#include "rules.hpp"

namespace headrace::HEADRACE_ISA::chess {

inline constexpr Board kStart = [] {
  constexpr int back[8] = {kRook, kKnight, kBishop, kQueen, kKing, kBishop, kKnight, kRook};
  Board board = {};
  for (int file = 0; file < 8; ++file) {
    board.squares.put(square(file, 0), back[file], true);
    board.squares.put(square(file, 1), kPawn, true);
    board.squares.put(square(file, 6), kPawn, false);
    board.squares.put(square(file, 7), back[file], false);
  }
  board.castling = kMyShort | kMyLong | kTheirShort | kTheirLong;
  return board;
}();

struct Game {
  Position position;
  Destinations moves;
  int32_t legal;  // how many actions are
  Outcome outcome;
  uint8_t padding[3];
};

static_assert(sizeof(Game) % 8 == 0 && __is_trivially_copyable(Game));

// What follows from the position.
inline void settle(Game& game) {
  const Board board = game.position.board;  // a copy, which no store can change
  MoveDestinations moves(game.moves, board.squares.mine);
  const bool check = generate(board, moves);
  game.legal = moves.size;
  game.outcome = outcome(game.position, moves.size, check);
}

inline void play_action(Game& game, int action) {
  play(game.position, move_of(game.position.board, action));
  settle(game);
}

inline void play_random(Game& game, uint32_t word) {
  play_action(game, nth_legal(game.position.board, game.moves, choice(word, game.legal)));
}

enum class Opponent { self, random };
enum class Observed { planes, compact };

template <Opponent opponent, Observed observed>
class ChessEnv {
  static constexpr int kObservedPlanes = observed == Observed::planes ? kPlanes : kSmallPlanes;

 public:
  static constexpr Description describe = {
      .name = opponent == Opponent::self ? "Chess-v0" : "ChessVsRandom-v0",
      .version = 2,
      .layout = Layout::rows,
      .observation_kind = ObservationKind::bytes,
      .observation_size = 64 * kObservedPlanes,
      .observation_shape = {8, 8, kObservedPlanes},
      .action_size = kActions,
      .masked = true,
      .players = opponent == Opponent::self ? 2 : 1,
      .max_episode_steps = opponent == Opponent::self ? 512 : 256,
      .options = {{.name = "observation", .high = 1, .words = {"planes", "compact"}},
                  {.name = "illegal", .high = 1, .words = {"error", "lose"}},
                  {.name = "start", .high = 1, .words = {"game", "mixed"}}},
  };

  explicit ChessEnv(const int64_t* options)
      : illegal_loses_(options[1] != 0), mixed_(options[2] != 0) {
    start_.position = set_up(kStart, false, 0, 1);
    settle(start_);
  }

  static Kernel* make(const int64_t* options) {
    if (options[0] == (int64_t)Observed::planes) {
      return RowKernel<ChessEnv<opponent, Observed::planes>>::make(options);
    }
    return RowKernel<ChessEnv<opponent, Observed::compact>>::make(options);
  }

  size_t state_bytes() const { return sizeof(Game); }

  void reset(std::byte* state, ResetDraws<Lanes<1>>& draws) const {
    game(state) = start_;
    if (mixed_ && draws.word()[0] >> 31 && begin_ending(game(state), draws)) return;
    if constexpr (opponent == Opponent::random) {
      const bool black = draws.word()[0] >> 31;
      if (black) play_random(game(state), draws.word()[0]);
    }
  }

  RowOutcome step(std::byte* state, int32_t action) const
    requires(opponent == Opponent::self)
  {
    play_action(game(state), action);
    return {won(game(state)), over(game(state))};
  }

  RowOutcome step(std::byte* state, int32_t action, StepDraws& draws) const
    requires(opponent == Opponent::random)
  {
    play_action(game(state), action);
    if (over(game(state))) return {won(game(state)), true};
    play_random(game(state), draws.word());
    return {-won(game(state)), over(game(state))};
  }

  void observe(const std::byte* state, uint8_t* out) const {
    const View view = view_of(game(state).position);
    if constexpr (observed == Observed::planes) {
      write_bytes(view, out);
    } else {
      write_small_bytes(view, out);
    }
  }

  bool legal(const std::byte* state, int32_t action) const {
    return action >= 0 && action < kActions &&
           is_legal(game(state).position.board, game(state).moves, action);
  }
  int32_t legal_count(const std::byte* state) const { return game(state).legal; }
  int32_t nth_legal(const std::byte* state, int32_t n) const {
    return chess::nth_legal(game(state).position.board, game(state).moves, n);
  }
  void mask(const std::byte* state, uint8_t* out) const {
    write_mask(game(state).position.board, game(state).moves, out);
  }
  bool illegal_loses() const { return illegal_loses_; }
  uint8_t to_play(const std::byte* state) const { return game(state).position.black; }

 private:
  static Game& game(std::byte* state) { return *(Game*)state; }
  static const Game& game(const std::byte* state) { return *(const Game*)state; }
  static bool over(const Game& game) { return game.outcome != Outcome::none; }
  static float won(const Game& game) { return game.outcome == Outcome::checkmate ? 1.0f : 0.0f; }

  // False, with nothing changed, where there is none that goes on.
  bool begin_ending(Game& game, ResetDraws<Lanes<1>>& draws) const {
    constexpr Army army = opponent == Opponent::random ? Army::mine : Army::drawn;
    if (!draw_ending(game.position, army, draws)) return false;
    settle(game);
    if (!over(game)) return true;
    game = start_;
    return false;
  }

  Game start_ = {};
  bool illegal_loses_;
  bool mixed_;  // whether every other game, by chance, is an ending from its beginning
};

using SelfPlay = ChessEnv<Opponent::self, Observed::planes>;
using AgainstRandom = ChessEnv<Opponent::random, Observed::planes>;

}  // namespace headrace::HEADRACE_ISA::chess
