// SPDX-License-Identifier: Apache-2.0
// Where pieces reach: one piece at a time, or all sliders of one player at once.
//
// Nothing here needs more than 10 KB of tables, so that a batch of games keeps the cache to itself.
#pragma once

#include "lines.hpp"

namespace headrace::HEADRACE_ISA::chess {

struct AttackTables {
  Bits up[64][kLines];    // the two halves of each line: north, east, north-east, north-west
  Bits down[64][kLines];  // south, west, south-west, south-east
  Bits knight[64];
  Bits king[64];
};

constexpr Bits ray(int from, int files, int ranks, int steps = 7) {
  Bits squares = 0;
  int file = file_of(from) + files, rank = rank_of(from) + ranks;
  for (; steps > 0 && file >= 0 && file < 8 && rank >= 0 && rank < 8; --steps) {
    squares |= bit(square(file, rank));
    file += files;
    rank += ranks;
  }
  return squares;
}

constexpr AttackTables make_attack_tables() {
  constexpr int files[kLines] = {0, 1, 1, -1};
  constexpr int ranks[kLines] = {1, 0, 1, 1};
  AttackTables tables = {};
  for (int from = 0; from < 64; ++from) {
    for (int line = 0; line < kLines; ++line) {
      tables.up[from][line] = ray(from, files[line], ranks[line]);
      tables.down[from][line] = ray(from, -files[line], -ranks[line]);
      tables.king[from] |=
          ray(from, files[line], ranks[line], 1) | ray(from, -files[line], -ranks[line], 1);
    }
    for (int sign = -1; sign <= 1; sign += 2) {
      tables.knight[from] |= ray(from, sign, 2, 1) | ray(from, sign, -2, 1) |
                             ray(from, 2, sign, 1) | ray(from, -2, sign, 1);
    }
  }
  return tables;
}

inline constexpr AttackTables kAttacks = make_attack_tables();

HEADRACE_INLINE Bits knight_attacks(int from) { return kAttacks.knight[from]; }
HEADRACE_INLINE Bits king_attacks(int from) { return kAttacks.king[from]; }

// The obstruction difference (Michael Hoffmann): the nearest blocker above, doubled, less the
// nearest one below leaves the bits between the two, both included.
HEADRACE_INLINE Bits line_attacks(int from, Line line, Bits occupied) {
  const Bits above = kAttacks.up[from][line], below = kAttacks.down[from][line];
  const Bits upper = occupied & above;
  const Bits lower = (occupied & below) | 1;
  const Bits nearest_above = upper & -upper;
  const Bits nearest_below = (Bits{1} << 63) >> __builtin_clzll(lower);
  return (2 * nearest_above - nearest_below) & (above | below);
}

HEADRACE_INLINE Bits bishop_attacks(int from, Bits occupied) {
  return line_attacks(from, kRising, occupied) | line_attacks(from, kFalling, occupied);
}
HEADRACE_INLINE Bits rook_attacks(int from, Bits occupied) {
  return line_attacks(from, kFile, occupied) | line_attacks(from, kRank, occupied);
}

// ---- pawns: those of the player to move go up, his opponent's down ----

HEADRACE_INLINE Bits up_west(Bits bits) { return (bits & ~kFileA) << 7; }
HEADRACE_INLINE Bits up_east(Bits bits) { return (bits & ~kFileH) << 9; }
HEADRACE_INLINE Bits down_west(Bits bits) { return (bits & ~kFileA) >> 9; }
HEADRACE_INLINE Bits down_east(Bits bits) { return (bits & ~kFileH) >> 7; }

// ---- all sliders at once ----

// Everything that rays in the eight directions reach, up to and with the first square not empty.
struct Rays {
  FourLines up, down;
};

// Kogge-Stone: three doubling steps, in every direction at the same time.
HEADRACE_INLINE Rays cast(FourLines sources, Bits empty) {
  constexpr FourLines once = {8, 1, 9, 7};
  constexpr FourLines twice = {16, 2, 18, 14};
  constexpr FourLines fourfold = {32, 4, 36, 28};
  constexpr FourLines up_wrap = {~Bits{0}, ~kFileA, ~kFileA, ~kFileH};
  constexpr FourLines down_wrap = {~Bits{0}, ~kFileH, ~kFileH, ~kFileA};
  FourLines up_open = up_wrap & all_lines(empty);
  FourLines down_open = down_wrap & all_lines(empty);
  FourLines up = sources | (up_open & (sources << once));
  FourLines down = sources | (down_open & (sources >> once));
  up_open = up_open & (up_open << once);
  down_open = down_open & (down_open >> once);
  up = up | (up_open & (up << twice));
  down = down | (down_open & (down >> twice));
  up_open = up_open & (up_open << twice);
  down_open = down_open & (down_open >> twice);
  up = up | (up_open & (up << fourfold));
  down = down | (down_open & (down >> fourfold));
  return {(up << once) & up_wrap, (down >> once) & down_wrap};
}

}  // namespace headrace::HEADRACE_ISA::chess
