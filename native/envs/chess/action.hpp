// SPDX-License-Identifier: Apache-2.0
// Moves as numbers 0 ... 4671: AlphaZero's 8 x 8 x 73 planes, in Pgx's order.
//
//   action = 73 * (8 * file + rank) + plane
//
// of the square moved from, as the player to move sees it.
//   planes 0-8    promotions to rook, bishop, knight (0, 3, 6), plus 0 straight, 1 capturing
//                 towards the h-file, 2 towards the a-file
//   planes 9-64   as a queen moves (or promotes to one): seven each for south, north, west, east,
//                 south-west, north-east, north-west, south-east; of these the first, third, fifth
//                 and seventh count the farthest first, the others the nearest
//   planes 65-72  as a knight moves
#pragma once

#include "moves.hpp"

namespace headrace::HEADRACE_ISA::chess {

inline constexpr int kActionPlanes = 73;
inline constexpr int kActions = 64 * kActionPlanes;

struct Step {
  int8_t files, ranks;
};

struct ActionTables {
  Step step[kActionPlanes];
  uint8_t plane[256];  // at apart(from, to), for all but the first nine planes
};

// How far apart two squares are: a different number for each difference in files and ranks.
HEADRACE_INLINE constexpr int apart(int from, int to) {
  return 16 * (rank_of(to) - rank_of(from)) + file_of(to) - file_of(from) + 128;
}

constexpr ActionTables make_action_tables() {
  constexpr Step directions[8] = {{0, -1},  {0, 1}, {-1, 0}, {1, 0},
                                  {-1, -1}, {1, 1}, {-1, 1}, {1, -1}};
  constexpr Step jumps[8] = {{-2, -1}, {-2, 1}, {-1, -2}, {-1, 2},
                             {2, -1},  {2, 1},  {1, -2},  {1, 2}};
  ActionTables tables = {};
  int plane = 0;
  for (; plane < 9; ++plane) {
    constexpr int8_t files[3] = {0, 1, -1};
    tables.step[plane] = {files[plane % 3], 1};
  }
  for (int direction = 0; direction < 8; ++direction) {
    for (int place = 0; place < 7; ++place) {
      const int distance = direction % 2 ? place + 1 : 7 - place;
      tables.step[plane++] = {(int8_t)(distance * directions[direction].files),
                              (int8_t)(distance * directions[direction].ranks)};
    }
  }
  for (const Step& jump : jumps) tables.step[plane++] = jump;
  for (int p = 9; p < kActionPlanes; ++p) {
    tables.plane[16 * tables.step[p].ranks + tables.step[p].files + 128] = (uint8_t)p;
  }
  return tables;
}

inline constexpr ActionTables kActionTables = make_action_tables();

HEADRACE_INLINE int action_of(Move move) {
  const int from = from_of(move), to = to_of(move), kind = kind_of(move);
  int plane = kActionTables.plane[apart(from, to)];
  if (is_promotion(kind) && kind != kToQueen) {
    plane = 3 * (kToRook - kind) + (file_of(to) - file_of(from) + 3) % 3;
  }
  return kActionPlanes * (8 * file_of(from) + rank_of(from)) + plane;
}

// The move that an action means on this board; 0 where it leads off the board or from an empty
// square. It is legal only if it is in the list of legal moves.
inline Move move_of(const Board& board, int action) {
  const int plane = action % kActionPlanes, place = action / kActionPlanes;
  const int from = square(place / 8, place % 8);
  const Step step = kActionTables.step[plane];
  const int file = file_of(from) + step.files, rank = rank_of(from) + step.ranks;
  const int piece = board.squares.piece_on(from);
  if ((file | rank) & ~7 || piece == kEmpty) return 0;
  const int to = square(file, rank);
  if (plane < 9) return make_move(from, to, kToRook - plane / 3);
  int kind = kNormal;
  if (piece == kPawn) {
    if (rank == 7) kind = kToQueen;
    if (step.ranks == 2) kind = kDoubleStep;
    if (board.en_passant && to == board.en_passant) kind = kEnPassant;
  } else if (piece == kKing && (step.files == 2 || step.files == -2)) {
    kind = kCastle;
  }
  return make_move(from, to, kind);
}

}  // namespace headrace::HEADRACE_ISA::chess
