// SPDX-License-Identifier: Apache-2.0
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

#include "checks.hpp"
#include "parts.hpp"

namespace headrace::bind {

namespace {

namespace nb = nanobind;

// A game, its border checked; actions that are no legal ones are refused here.
class ChessGame {
 public:
  explicit ChessGame(const std::string& isa) : session_(find_isa(isa).chess_session()) {}
  explicit ChessGame(ChessSession* session) : session_(session) {}

  void set_up(const std::string& fen) {
    char error[kErrorRoom];
    if (fen.find('\0') != std::string::npos) throw nb::value_error("a FEN is text without NULs");
    if (!session_->set_up(fen.c_str(), error)) throw nb::value_error(error);
  }

  std::string fen() const {
    char out[kFenRoom];
    session_->write_fen(out);
    return out;
  }

  std::vector<int> legal_actions() const {
    uint16_t out[kMovesRoom];
    const int count = session_->legal_actions(out);
    return {out, out + count};
  }

  std::string uci(int action) const {
    require_legal(action);
    char out[kUciRoom];
    session_->write_uci(action, out);
    return out;
  }

  std::vector<std::string> legal_moves() const {
    std::vector<std::string> out;
    char uci[kUciRoom];
    for (int action : legal_actions()) {
      session_->write_uci(action, uci);
      out.emplace_back(uci);
    }
    return out;
  }

  void play(int action) {
    require_legal(action);
    session_->play(action);
  }

  template <void (ChessSession::*kWrite)(uint8_t*) const>
  void write(const Array& out, std::vector<int64_t> shape) const {
    (session_.get()->*kWrite)((uint8_t*)checked<uint8_t>(out, "out", shape));
  }

  uint64_t perft(int depth) const {
    if (depth < 0) throw nb::value_error("depth must be at least 0");
    nb::gil_scoped_release release;
    return session_->perft(depth);
  }

  ChessGame copy() const { return ChessGame(session_->copy()); }
  const ChessSession& session() const { return *session_; }

 private:
  void require_legal(int action) const {
    for (int legal : legal_actions()) {
      if (legal == action) return;
    }
    throw nb::value_error(("action " + std::to_string(action) + " is illegal in " + fen()).c_str());
  }

  std::unique_ptr<ChessSession> session_;
};

}  // namespace

void bind_chess(nb::module_& m) {
  nb::class_<ChessGame>(m, "ChessGame", "One game of chess, by the native core's rules.")
      .def(nb::init<const std::string&>(), nb::arg("isa"))
      .def("set_up", &ChessGame::set_up, nb::arg("fen"))
      .def("fen", &ChessGame::fen)
      .def("legal_actions", &ChessGame::legal_actions, "From the smallest.")
      .def("legal_moves", &ChessGame::legal_moves, "As UCI, in the order of the actions.")
      .def("uci", &ChessGame::uci, nb::arg("action"))
      .def("play", &ChessGame::play, nb::arg("action"))
      .def("in_check", [](const ChessGame& g) { return g.session().in_check(); })
      .def("outcome", [](const ChessGame& g) { return g.session().outcome(); })
      .def("occurrences", [](const ChessGame& g) { return g.session().occurrences(); })
      .def("black_to_move", [](const ChessGame& g) { return g.session().black_to_move(); })
      .def("write_mask", [](const ChessGame& g,
                            const Array& out) { g.write<&ChessSession::write_mask>(out, {584}); })
      .def("write_planes",
           [](const ChessGame& g, const Array& out) {
             g.write<&ChessSession::write_planes>(out, {8, 8, 119});
           })
      .def("write_compact",
           [](const ChessGame& g, const Array& out) {
             g.write<&ChessSession::write_compact>(out, {8, 8, 20});
           })
      .def("perft", &ChessGame::perft, nb::arg("depth"))
      .def("encoded_again",
           [](const ChessGame& g, int action) {
             if (action < 0 || action >= 4672) throw nb::value_error("actions are 0 to 4671");
             return g.session().encoded_again(action);
           })
      .def("copy", &ChessGame::copy);
}

}  // namespace headrace::bind
