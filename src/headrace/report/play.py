# SPDX-License-Identifier: Apache-2.0
"""`headrace play`: a game of chess in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from headrace.envs import registry
from headrace.envs.chess.encoding import action_mask, compact, legal_actions, planes
from headrace.envs.chess.extra import chess
from headrace.envs.chess.game import Game, read_fen
from headrace.envs.chess.players import PLAYERS, Player
from headrace.errors import HeadraceError, unknown
from headrace.train.model import load_policy

HUMAN = "human"
GAMES = ("Chess-v0", "ChessVsRandom-v0")
HELP = """\
  a move    in SAN (Nf3, exd5, O-O, e8=Q) or UCI (g1f3, e8q)
  moves     list the legal ones
  undo      take back your last move, and the reply to it
  board     show the board again
  fen       show the position in FEN
  resign    give up
  quit      leave the game, as does the end of the input"""


def play(
    env: str,
    *,
    white: str | None,
    black: str | None,
    fen: str | None,
    ascii_only: bool,
    seed: int | None,
) -> int:
    """Play one game, on standard input and output; returns the exit code.

    A player that is not named is a person where the other is not, and else one who plays any move.
    """
    white = white or (HUMAN if black != HUMAN else "random")
    black = black or (HUMAN if white != HUMAN else "random")
    if registry.spec(env).id not in GAMES:
        raise HeadraceError(f"{env} cannot be played in a terminal; try {GAMES[0]}")
    players = {name: find_player(name) for name in (white, black) if name != HUMAN}
    if seed is not None and seed < 0:
        raise HeadraceError(f"--seed {seed}: give a whole number of at least 0")
    game = Game(None if fen is None else read_fen(fen))
    names = {chess.WHITE: white, chess.BLACK: black}
    Match(game, names, players, seed, ascii_only).play()
    return 0


def find_player(name: str) -> Player:
    """One of ours, or the policy of a run that learnt chess, named by its folder."""
    if name in PLAYERS:
        return PLAYERS[name]
    if not Path(name).is_dir():
        known = (HUMAN, *PLAYERS)
        raise HeadraceError(f"{unknown('player', name, known)}; or give the folder of a run")
    trained = load_policy(name)
    if trained.spec.id not in GAMES:
        raise HeadraceError(f"{name} learnt {trained.spec.id}, not chess")

    def move(game: Game, chance: np.random.Generator) -> chess.Move:
        legal = legal_actions(game)
        options = trained.spec.options
        obs = compact(game) if options.get("observation") == "compact" else planes(game)
        return legal[int(trained(obs, action_mask(legal)))]

    return move


class Match:
    """A game between two players, who may be at the terminal."""

    def __init__(
        self,
        game: Game,
        names: dict[chess.Color, str],
        players: dict[str, Player],
        seed: int | None,
        ascii_only: bool,
    ):
        self._game = game
        self._names, self._players = names, players
        self._humans = [color for color in chess.COLORS if names[color] == HUMAN]
        self._chance = np.random.default_rng(seed)
        self._ascii = ascii_only or not _has_chessmen()
        self._limit = registry.spec(GAMES[0]).max_episode_steps or sys.maxsize
        self._result: str | None = None
        """How the match has ended."""
        self._commands: dict[str, Callable[[], None]] = {
            "help": lambda: print(HELP),
            "moves": self._list_moves,
            "undo": self._undo,
            "board": self._show,
            "fen": lambda: print(self._game.board.fen()),
            "resign": self._resign,
            "quit": self._quit,
        }

    def play(self) -> None:
        """Take turns until the game has ended."""
        self._look_for_end()
        if self._humans and self._result is None:
            self._show()
            print('"help" lists what you can say')
        while self._result is None:
            self._turn()
        print(self._result)

    def _turn(self) -> None:
        name = self._names[self._game.board.turn]
        if name == HUMAN:
            self._ask()
            return
        board = self._game.board
        move = self._players[name](self._game, self._chance)
        if self._humans:
            print(_numbered(board), board.san(move))
        elif board.turn == chess.WHITE or not board.move_stack:
            print(_numbered(board), board.san(move), end=" ")
        else:
            print(board.san(move))
        self._push(move)
        if self._humans and self._result is None:
            self._show()

    def _ask(self) -> None:
        """One line from whoever is at the terminal."""
        try:
            text = input(f"{_numbered(self._game.board)} ").strip()
        except EOFError:
            print()
            self._quit()
            return
        except KeyboardInterrupt:
            print()
            raise
        if text.lower() in self._commands:
            self._commands[text.lower()]()
        elif text:
            self._try(text)

    def _try(self, text: str) -> None:
        try:
            move = parse_move(self._game.board, text)
        except HeadraceError as error:
            print(error)
            return
        self._push(move)
        if len(self._humans) == 2 and self._result is None:
            self._show()

    def _push(self, move: chess.Move) -> None:
        self._game.push(move)
        self._look_for_end()

    def _look_for_end(self) -> None:
        outcome = self._game.outcome()
        if outcome is not None:
            reason = outcome.termination.name.lower().replace("_", " ")
            self._end(f"{outcome.result()} by {reason}")
        elif self._game.ply >= self._limit:
            self._end(f"broken off after {self._limit} plies")

    def _end(self, result: str) -> None:
        if not self._humans and self._game.board.turn == chess.BLACK:
            print()  # the line of moves had one more to come
        self._show()
        self._result = result

    def _list_moves(self) -> None:
        board = self._game.board
        print(" ".join(sorted(board.san(move) for move in self._game.legal_moves)))

    def _undo(self) -> None:
        plies = 1 if len(self._humans) == 2 else 2
        if self._game.ply < plies:
            print("there is no move of yours to take back")
            return
        self._game = self._game.earlier(plies)
        self._show()

    def _resign(self) -> None:
        white = self._game.board.turn == chess.WHITE
        self._result = f"{'0-1' if white else '1-0'}: {'white' if white else 'black'} resigns"

    def _quit(self) -> None:
        self._result = "the game is left unfinished"

    def _show(self) -> None:
        alone = len(self._humans) == 1
        side = self._humans[0] if alone else chess.WHITE
        print(picture(self._game.board, side, ascii_only=self._ascii), flush=True)


def parse_move(board: chess.Board, text: str) -> chess.Move:
    """The legal move that this says, in SAN or UCI."""
    why = "is no legal move here"
    for parse, said in ((board.parse_san, text), (board.parse_uci, text.lower())):
        try:
            move = parse(said)
        except chess.AmbiguousMoveError:
            why = "may mean several moves; name the square it comes from"
        except ValueError:
            continue
        else:
            if move:  # both have a way of saying "pass"
                return move
    raise HeadraceError(f'"{text}" {why}; try "moves" or "help"')


def picture(board: chess.Board, side: chess.Color, *, ascii_only: bool) -> str:
    """The board as one side sees it, with its coordinates."""
    ranks = range(7, -1, -1) if side == chess.WHITE else range(8)
    files = range(8) if side == chess.WHITE else range(7, -1, -1)
    lines = []
    for rank in ranks:
        pieces = [board.piece_at(chess.square(file, rank)) for file in files]
        empty = "." if ascii_only else "·"
        squares = [
            empty if piece is None else piece.symbol() if ascii_only else piece.unicode_symbol()
            for piece in pieces
        ]
        lines.append(f"{rank + 1}  {' '.join(squares)}")
    lines.append("   " + " ".join(chess.FILE_NAMES[file] for file in files))
    return "\n".join(["", *lines, ""])


def _numbered(board: chess.Board) -> str:
    """The number of the move to come, as scores of games have it."""
    return f"{board.fullmove_number}{'.' if board.turn == chess.WHITE else '...'}"


def _has_chessmen() -> bool:
    try:
        "♔·".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
