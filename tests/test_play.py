# SPDX-License-Identifier: Apache-2.0
"""`headrace play`, through pipes as from a terminal."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import chess
import pytest
from refusals import refusal

from headrace.report.play import parse_move, picture

FOOLS_MATE = "f3\ne5\ng4\nQh4\n"


def headrace(*arguments: str, said: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace", "play", *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **settings},
    )


def played(*arguments: str, said: str = "", **settings: str) -> str:
    done = headrace(*arguments, said=said, **settings)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_two_people_and_a_mate() -> None:
    out = played("--white", "human", "--black", "human", said=FOOLS_MATE)
    assert out.endswith("\n0-1 by checkmate\n")
    last = out[out.rindex("8  ") : out.rindex("\n\n0-1")]
    board = chess.Board()
    for san in FOOLS_MATE.split():
        board.push_san(san)
    assert last == picture(board, chess.WHITE, ascii_only=False).strip()
    assert "♛" in last


def test_a_machine_answers_and_a_seed_repeats_it() -> None:
    said = "e4\ng1f3\nquit\n"
    out = played("--seed", "7", said=said)
    assert out == played("--seed", "7", said=said)
    assert len({played("--seed", str(seed), said=said) for seed in range(4)}) > 1
    assert "\n1... " in out.replace("1. 1...", "\n1...")
    assert out.endswith("the game is left unfinished\n")


def test_black_sits_below_when_black_is_played() -> None:
    out = played("--black", "human", "--ascii", "--seed", "1", said="moves\nresign\n")
    assert "\n8  r n b k q b n r\n   h g f e d c b a\n" in out
    assert "Na6 Nc6" in out
    assert out.endswith("1-0: black resigns\n")


def test_commands() -> None:
    out = played("--seed", "0", said="e4\nundo\nundo\nfen\nhelp\nboard\nbogus\n--\n0000\nNd2\n")
    assert "there is no move of yours to take back" in out
    assert f"1. {chess.STARTING_FEN}\n" in out
    assert "resign    give up" in out
    for said in ("bogus", "--", "0000", "Nd2"):
        assert f'"{said}" is no legal move here; try "moves" or "help"' in out
    assert out.endswith("\nthe game is left unfinished\n")  # the input has ended
    assert out.count("8  ♜") == 4


def test_a_position_given() -> None:
    fen = "7k/P7/6K1/8/8/8/8/8 w - - 0 1"
    assert "1-0 by checkmate" in played("--fen", fen, said="a8=Q\n")
    assert "1-0 by checkmate" in played("--fen", fen, said="A7A8R\n")
    stalemate = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"
    assert played("--fen", stalemate).endswith("1/2-1/2 by stalemate\n")


def test_a_demonstration() -> None:
    out = played("--white", "random", "--black", "greedy", "--seed", "3")
    scores = out[: out.index("\n\n8  ")]
    board = chess.Board()
    for word in scores.split():
        if not word.endswith("."):
            board.push_san(word)
    assert len(board.move_stack) > 20
    assert board.is_stalemate()
    assert out.endswith("1/2-1/2 by stalemate\n")


def test_letters_where_there_are_no_chessmen() -> None:
    out = played("--white", "human", "--black", "human", PYTHONIOENCODING="ascii")
    assert "8  r n b q k b n r" in out
    assert "?" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("CartPole-v1",), "CartPole-v1 cannot be played in a terminal; try Chess-v0"),
        (("Ches-v0",), "unknown environment 'Ches-v0'; did you mean Chess-v0"),
        (("--white", "greed"), "unknown player 'greed'; did you mean greedy"),
        (("--seed", "-1"), "--seed -1: give a whole number of at least 0"),
        (("--fen", "8/8 w - - 0 1"), "this is no FEN: expected 8 rows"),
        (("--fen", "8/8/8/8/8/8/8/k7 w - - 0 1"), "is not a position of a game: no white king"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], message: str) -> None:
    done = headrace(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("headrace: error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_ambiguous_moves_are_said_to_be() -> None:
    board = chess.Board("4k3/8/8/8/8/8/4K3/R6R w - - 0 1")
    assert "may mean several moves" in refusal(lambda: parse_move(board, "Rd1"))
    assert parse_move(board, "Rad1") == parse_move(board, "a1d1")


def test_ctrl_c_at_the_prompt() -> None:
    """In a terminal of its own: it ends at once, with 130, and prints no traceback."""
    ours, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "play"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,  # where Python's prompts go
    )
    said = b""
    try:
        while not said.endswith(b"1. "):
            assert select.select([ours], [], [], 30)[0], said
            said += os.read(ours, 4096)
        time.sleep(0.3)  # the prompt is there before Python reads, and can be interrupted
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert b"Traceback" not in os.read(ours, 4096)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(terminal)
