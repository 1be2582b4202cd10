// SPDX-License-Identifier: Apache-2.0
// Chess against published numbers, without Python: perft on every instruction set; and the reader
// of positions against whatever may come.
//
// An argument "deep" asks for the depths that take seconds.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../core/dispatch.hpp"
#include "check.hpp"

namespace headrace::scalar {
ChessSession* chess_session();
}

namespace headrace::testing {
namespace {

struct Perft {
  const char* fen;
  std::vector<uint64_t> leaves;  // for depth 1, 2, ...
  int deep;                      // depths from here on are for a run that may take seconds
};

// The six positions of the Chess Programming Wiki's page "Perft Results": castling, en passant,
// promotions, pins and checks of every kind.
const std::vector<Perft>& published() {
  static const std::vector<Perft> all = {
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
       {20, 400, 8902, 197281, 4865609, 119060324},
       5},
      {"r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
       {48, 2039, 97862, 4085603, 193690690},
       4},
      {"8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", {14, 191, 2812, 43238, 674624, 11030083}, 6},
      {"r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
       {6, 264, 9467, 422333, 15833292},
       5},
      {"rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
       {44, 1486, 62379, 2103487, 89941194},
       4},
      {"r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
       {46, 2079, 89890, 3894594, 164075551},
       4},
  };
  return all;
}

using Session = std::unique_ptr<ChessSession>;

std::vector<std::pair<const char*, ChessSession* (*)()>> all_sets() {
  std::vector<std::pair<const char*, ChessSession* (*)()>> sets = {
      {"scalar", &scalar::chess_session}};
  for (int s = 0; s < kInstructionSets; ++s) {
    const InstructionSet& set = instruction_sets()[s];
    if (set.supported) sets.emplace_back(set.name, set.chess_session);
  }
  return sets;
}

// White and black change places: the same tree.
std::string mirrored(const std::string& fen) {
  const size_t board_end = fen.find(' ');
  std::vector<std::string> ranks = {""};
  for (char c : fen.substr(0, board_end)) {
    if (c == '/') {
      ranks.emplace_back();
    } else {
      ranks.back() += std::isalpha((unsigned char)c) ? (char)(c ^ 32) : c;
    }
  }
  std::string out;
  for (size_t i = ranks.size(); i-- > 0;) out += ranks[i] + (i ? "/" : "");
  out += fen[board_end + 1] == 'w' ? " b " : " w ";
  for (size_t i = board_end + 3; i < fen.size(); ++i) {
    const char c = fen[i];
    out += std::strchr("KQkq", c) ? (char)(c ^ 32) : c;
  }
  return out;
}

void set_up(ChessSession& session, const std::string& fen) {
  char error[kErrorRoom];
  HEADRACE_CHECK(session.set_up(fen.c_str(), error), "%s: %s", fen.c_str(), error);
}

void perft_gives_the_published_numbers(bool deep) {
  for (const auto& [name, make] : all_sets()) {
    const Session session(make());
    for (const Perft& one : published()) {
      for (const std::string& fen : {std::string(one.fen), mirrored(one.fen)}) {
        set_up(*session, fen);
        const int last = deep && fen == one.fen ? (int)one.leaves.size() : one.deep - 1;
        for (int depth = 1; depth <= last; ++depth) {
          const uint64_t leaves = session->perft(depth);
          HEADRACE_CHECK(leaves == one.leaves[depth - 1], "%s %s depth %d: %llu", name, fen.c_str(),
                         depth, (unsigned long long)leaves);
        }
      }
    }
  }
}

// ---- the reader of positions ----

uint32_t next_random(uint64_t& seed) {  // SplitMix64
  uint64_t z = seed += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return (uint32_t)(z >> 32);
}

std::string mutated(std::string fen, uint64_t& seed) {
  static const std::string letters = "pnbrqkPNBRQK12345678/ wb-KQkq36abcdefgh09\t\x80\xff";
  for (uint32_t edits = 1 + next_random(seed) % 4; edits > 0; --edits) {
    const size_t at = next_random(seed) % (fen.size() + 1);
    const char letter = letters[next_random(seed) % letters.size()];
    switch (next_random(seed) % 5) {
      case 0:
        fen.insert(at, 1, letter);
        break;
      case 1:
        if (at < fen.size()) fen.erase(at, 1 + next_random(seed) % 3);
        break;
      case 2:
        if (at < fen.size()) std::swap(fen[at], fen[next_random(seed) % fen.size()]);
        break;
      case 3:
        fen.insert(at, fen.substr(next_random(seed) % (fen.size() + 1), next_random(seed) % 20));
        break;
      default:
        if (at < fen.size()) fen[at] = letter;
    }
  }
  return fen;
}

// What is refused has a message and changes nothing; what is taken can be written, read back, and
// played on from.
void mutilated_positions_do_no_harm(int rounds) {
  for (const auto& [name, make] : all_sets()) {
    const Session session(make()), again(make());
    uint64_t seed = 1;
    int taken = 0;
    for (int round = 0; round < rounds; ++round) {
      const auto& from = published()[next_random(seed) % published().size()];
      const std::string text = mutated(from.fen, seed);
      char error[kErrorRoom] = "", before[kFenRoom], after[kFenRoom];
      session->write_fen(before);
      if (!session->set_up(text.c_str(), error)) {
        HEADRACE_CHECK(std::strlen(error) > 10, "%s: '%s' gives '%s'", name, text.c_str(), error);
        session->write_fen(after);
        HEADRACE_CHECK(std::strcmp(before, after) == 0, "%s: '%s'", name, text.c_str());
        continue;
      }
      ++taken;
      session->write_fen(before);
      HEADRACE_CHECK(again->set_up(before, error), "%s: '%s': %s", name, before, error);
      again->write_fen(after);
      HEADRACE_CHECK(std::strcmp(before, after) == 0, "%s: '%s' becomes '%s'", name, before, after);
      HEADRACE_CHECK(session->perft(2) == again->perft(2), "%s: '%s'", name, before);
      for (int ply = 0; ply < 20; ++ply) {
        uint16_t legal[kMovesRoom];
        const int count = session->legal_actions(legal);
        if (count == 0) break;
        session->play(legal[next_random(seed) % count]);
      }
    }
    HEADRACE_CHECK(taken > rounds / 50, "%s: only %d of %d were positions", name, taken, rounds);
  }
}

// ---- actions ----

void actions_mean_one_move_each() {
  for (const auto& [name, make] : all_sets()) {
    const Session session(make());
    int on_the_board = 0;
    for (int action = 0; action < 4672; ++action) {
      const int again = session->encoded_again(action);
      HEADRACE_CHECK(again == action || again == -1, "%s: %d becomes %d", name, action, again);
      on_the_board += again == action;
    }
    // 1,456 as a queen, 336 as a knight, and 22 promotions from the seventh rank to each of three
    // pieces; the first nine planes of other ranks are counted where they stay on the board.
    HEADRACE_CHECK(on_the_board == 1456 + 336 + 3 * 7 * 22, "%s: %d", name, on_the_board);
  }
}

int run_all(bool deep) {
  perft_gives_the_published_numbers(deep);
  mutilated_positions_do_no_harm(deep ? 100000 : 10000);
  actions_mean_one_move_each();
  std::printf("all is well\n");
  return 0;
}

}  // namespace
}  // namespace headrace::testing

int main(int argc, char** argv) {
  return headrace::testing::run_all(argc > 1 && std::strcmp(argv[1], "deep") == 0);
}
