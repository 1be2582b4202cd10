// SPDX-License-Identifier: Apache-2.0
// All legal moves in 144 bytes: for each piece of the player to move, where it may go. Which
// actions these are is worked out for one piece, the chosen one, or for all where the mask is
// wanted.
#pragma once

#include "action.hpp"

namespace headrace::HEADRACE_ISA::chess {

inline constexpr int kOwnPieces = 16;

// Square 8 * rank + file to place 8 * file + rank, the order of actions, for all squares of a set.
HEADRACE_INLINE constexpr Bits by_files(Bits bits) {
  const auto swap = [&](Bits mask, int distance) {
    const Bits differs = (bits ^ bits >> distance) & mask;
    bits ^= differs ^ differs << distance;
  };
  swap(0x00aa00aa00aa00aa, 7);
  swap(0x0000cccc0000cccc, 14);
  swap(0x00000000f0f0f0f0, 28);
  return bits;
}

HEADRACE_INLINE constexpr int place_of(int square) { return 8 * file_of(square) + rank_of(square); }

// The player's pieces in the order of actions; those that cannot move have no squares.
struct Destinations {
  Bits squares[kOwnPieces];
  uint8_t from[kOwnPieces];

  HEADRACE_INLINE static int slot_of(Bits own_by_files, int from) {
    return count(own_by_files & (bit(place_of(from)) - 1));
  }
};

// The interface of a MoveList.
struct MoveDestinations {
  int size = 0;
  Destinations& out;
  Bits own_by_files;

  HEADRACE_INLINE MoveDestinations(Destinations& out, Bits own)
      : out(out), own_by_files(by_files(own)) {
    out = {};
  }

  HEADRACE_INLINE void put(int from, Bits targets) {
    const int slot = Destinations::slot_of(own_by_files, from);
    out.squares[slot] |= targets;
    out.from[slot] = (uint8_t)from;
  }

  HEADRACE_INLINE void add(int from, int to, int) {
    put(from, bit(to));
    ++size;
  }

  HEADRACE_INLINE void piece(int from, Bits targets) {
    put(from, targets);
    size += count(targets);
  }

  HEADRACE_INLINE void pawns(Bits steps, Bits double_steps, Bits west, Bits east) {
    size += count_pawn_moves(steps, double_steps, west, east);
    for (Bits left = steps >> 8 | double_steps >> 16 | west >> 7 | east >> 9; left;
         left = without_lowest(left)) {
      const Bits pawn = left & -left;  // no two pawns have a square in common in the same set
      put(lowest(left), (pawn << 8 & steps) | (pawn << 16 & double_steps) | (pawn << 7 & west) |
                            (pawn << 9 & east));
    }
  }
};

// The pawns whose next step is a promotion: each of their squares counts for four moves.
HEADRACE_INLINE Bits promoting(const Squares& squares) {
  return squares.pawns() & squares.mine & kRank8 >> 8;
}

// The 14 planes of a line through square number `at` of its eight: those below it, the farthest
// first, then those above it, the nearest first. `squares`: the eight as bits.
HEADRACE_INLINE Bits line_planes(Bits squares, int at) {
  const Bits aligned = squares << (7 - at);  // the piece itself, which is not set, at 7
  return (aligned & 0x7f) | (aligned >> 1 & ~Bits{0x7f});
}

// The 8 planes of a knight's jumps.
HEADRACE_INLINE Bits jump_planes(int from, Bits targets) {
  constexpr int order[8] = {-10, 6, -17, 15, -6, 10, -15, 17};
  const Bits centred = targets << ((27 - from) & 63) | targets >> ((from - 27) & 63);
  Bits planes = 0;
#pragma GCC unroll 8
  for (int jump = 0; jump < 8; ++jump) planes |= (centred >> (27 + order[jump]) & 1) << jump;
  return planes;
}

// Which of its square's 73 planes a piece may use.
struct PlaneSet {
  Bits low = 0, high = 0;  // planes 0-63 and 64-72

  HEADRACE_INLINE PlaneSet(int from, Bits targets, bool promotes) {
    const int file = file_of(from), rank = rank_of(from);
    const auto on = [&](Line line) {
      return targets & (kAttacks.up[from][line] | kAttacks.down[from][line]);
    };
    // A product gathers eight bits in the highest byte: of one file by ranks, or by files.
    const Bits by_rank = (targets >> file & kFileA) * 0x0102040810204080 >> 56;
    const Bits rising = on(kRising) * kFileA >> 56, falling = on(kFalling) * kFileA >> 56;
    const Bits last = line_planes(falling, file);
    low = line_planes(by_rank, rank) << 9 | line_planes(targets >> 8 * rank & 0xff, file) << 23 |
          line_planes(rising, file) << 37 | last << 51;
    high = last >> 13;
    if (const Bits jumps = targets & knight_attacks(from)) high |= jump_planes(from, jumps) << 1;
    if (promotes) {
      for (; targets; targets = without_lowest(targets)) {
        low |= Bits{0b1001001} << (file_of(lowest(targets)) - file + 3) % 3;
      }
    }
  }
};

// The n-th bit of a set, from the lowest; there are more than n.
HEADRACE_INLINE int nth(Bits bits, int n) {
#if defined(__BMI2__)
  return lowest(__builtin_ia32_pdep_di(bit(n), bits));
#else
  for (; n > 0; --n) bits = without_lowest(bits);
  return lowest(bits);
#endif
}

// The n-th legal action, from the smallest; n is less than the number of legal moves.
HEADRACE_INLINE int nth_legal(const Board& board, const Destinations& moves, int n) {
  const Bits fourfold = promoting(board.squares);
  const auto moves_of = [&](int slot) {
    const int squares = count(moves.squares[slot]);
    return fourfold >> moves.from[slot] & 1 ? 4 * squares : squares;
  };
  int slot = 0;
  for (int here; (here = moves_of(slot)) <= n; ++slot) n -= here;
  const int from = moves.from[slot];
  const PlaneSet planes(from, moves.squares[slot], fourfold >> from & 1);
  const int low = count(planes.low);
  const int plane = n < low ? nth(planes.low, n) : 64 + nth(planes.high, n - low);
  return kActionPlanes * place_of(from) + plane;
}

HEADRACE_INLINE bool is_legal(const Board& board, const Destinations& moves, int action) {
  const Move move = move_of(board, action);
  const int from = from_of(move), kind = kind_of(move);
  if (!move || !(board.squares.mine >> from & 1)) return false;
  if (is_promotion(kind) && !(promoting(board.squares) >> from & 1)) return false;
  const int slot = Destinations::slot_of(by_files(board.squares.mine), from);
  return moves.squares[slot] >> to_of(move) & 1;
}

// Which actions are legal: bit (action % 64) of word (action / 64).
HEADRACE_INLINE void write_mask(const Board& board, const Destinations& moves, uint8_t* out) {
  const Bits fourfold = promoting(board.squares);
  // Room for a word more, in whole lines: the compiler's own way to clear so many bytes is slow.
  union {
    EightWords lines[(kActions / 64 + 8) / 8];
    Bits words[kActions / 64 + 1];
  };
#pragma GCC unroll 10
  for (EightWords& line : lines) line = EightWords{};
  const int pieces = count(board.squares.mine);
  for (int slot = 0; slot < pieces; ++slot) {
    const Bits targets = moves.squares[slot];
    const int from = moves.from[slot];
    const PlaneSet planes(from, targets, fourfold >> from & 1);
    const int first = kActionPlanes * place_of(from), word = first / 64, shift = first % 64;
    words[word] |= planes.low << shift;
    // Two shifts where the count may be 64. The last square's planes end with the
    // last word but one.
    words[word + 1] |= (planes.low >> 1 >> (63 - shift)) | (planes.high << shift);
    const Bits third = planes.high >> 1 >> (63 - shift);
    if (third) words[word + 2] |= third;
  }
  __builtin_memcpy(out, words, kActions / 8);
}

}  // namespace headrace::HEADRACE_ISA::chess
