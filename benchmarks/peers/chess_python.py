# SPDX-License-Identifier: Apache-2.0
"""Worker: python-chess in a plain loop, in one process or in several; or its rules alone.

A step does all that ours do: planes and mask of the position, a random legal move, and the whole
transition written, with auto-reset. `--observation none` plays the games and writes nothing. Planes
and rules are those of our own gym definition, which is as fast as we know to write it.

With `--processes` the environments are shared out among so many, as on the slides: for each batch
they get a message each, write into memory that the parent shares with them, and answer.
"""

from __future__ import annotations

import argparse
import mmap
import multiprocessing
import random
import sys
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path

import chess  # pyright: ignore[reportMissingImports]
import numpy as np
from protocol import Block, serve

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
from headrace.envs.chess.encoding import compact, legal_actions, planes
from headrace.envs.chess.game import Game

PLY_LIMIT = 512
ENCODERS = {"planes": (planes, 119), "compact": (compact, 20)}


class Transitions:
    """Memory for a batch, time-major."""

    def __init__(self, steps: int, num_envs: int, depth: int):
        def zeros(shape: tuple[int, ...], dtype: type) -> np.ndarray:
            # Anonymous shared memory: processes that are forked later write into the same.
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            return np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape)

        shape = steps, num_envs
        self.obs = zeros((steps + 1, num_envs, 8, 8, depth), np.uint8)
        self.mask = zeros((steps + 1, num_envs, 584), np.uint8)
        self.to_play = zeros((steps + 1, num_envs), np.uint8)
        self.action = zeros(shape, np.uint16)
        self.reward = zeros(shape, np.float32)
        self.terminated = zeros(shape, np.bool_)
        self.truncated = zeros(shape, np.bool_)
        self.final_obs = zeros((*shape, 8, 8, depth), np.uint8)
        self.final_mask = zeros((*shape, 584), np.uint8)


class Table:
    """One environment: a game, and where its transitions go."""

    def __init__(self, out: Transitions, env: int, observation: str):
        self._out, self._env = out, env
        self._encode = ENCODERS[observation][0]
        self._random = random.Random(env)
        self._begin()
        self._observe(-1)

    def run(self, steps: int) -> None:
        """The next transitions."""
        out, env = self._out, self._env
        for array in (out.obs, out.mask, out.to_play):
            array[0, env] = array[-1, env]
        for t in range(steps):
            action = self._random.choice(list(self._legal))
            self._game.push(self._legal[action])
            self._legal = legal_actions(self._game)
            outcome = self._game.outcome()
            out.action[t, env] = action
            out.reward[t, env] = outcome is not None and outcome.winner is not None
            out.terminated[t, env] = outcome is not None
            out.truncated[t, env] = outcome is None and self._game.ply >= PLY_LIMIT
            if outcome or self._game.ply >= PLY_LIMIT:
                out.final_obs[t, env] = self._encode(self._game)
                out.final_mask[t, env] = self._mask()
                self._begin()
            self._observe(t + 1)

    def _begin(self) -> None:
        self._game = Game()
        self._legal = legal_actions(self._game)

    def _observe(self, t: int) -> None:
        self._out.obs[t, self._env] = self._encode(self._game)
        self._out.mask[t, self._env] = self._mask()
        self._out.to_play[t, self._env] = self._game.board.turn == chess.BLACK

    def _mask(self) -> np.ndarray:
        bits = 0
        for action in self._legal:
            bits |= 1 << action
        return np.frombuffer(bits.to_bytes(584, "little"), np.uint8)


def one_process(num_envs: int, steps: int, observation: str) -> Block:
    """One environment after another."""
    out = Transitions(steps, num_envs, ENCODERS[observation][1])
    tables = [Table(out, env, observation) for env in range(num_envs)]

    def block() -> int:
        for table in tables:
            table.run(steps)
        return num_envs * steps

    return block


def several_processes(num_envs: int, steps: int, observation: str, processes: int) -> Block:
    """A message to each process and an answer from each, for every batch."""
    out = Transitions(steps, num_envs, ENCODERS[observation][1])
    context = multiprocessing.get_context("fork")
    edges = [number * num_envs // processes for number in range(processes + 1)]
    ends: list[Connection] = []
    for first, last in pairwise(edges):
        ours, theirs = context.Pipe()
        arguments = (theirs, out, range(first, last), steps, observation)
        context.Process(target=_work, args=arguments, daemon=True).start()
        ends.append(ours)

    def block() -> int:
        for end in ends:
            end.send("collect")
        for end in ends:
            end.recv()
        return num_envs * steps

    return block


def _work(end: Connection, out: Transitions, envs: range, steps: int, observation: str) -> None:
    tables = [Table(out, env, observation) for env in envs]
    while True:
        end.recv()
        for table in tables:
            table.run(steps)
        end.send("done")


def rules_alone() -> Block:
    """Random legal playouts, to the same ends."""
    chance = random.Random(0)
    game = Game()

    def block() -> int:
        nonlocal game
        for _ in range(256):
            game.push(chance.choice(game.legal_moves))
            if game.ply >= PLY_LIMIT or game.outcome():
                game = Game()
        return 256

    return block


def main() -> None:
    """Read the arguments, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observation", choices=["planes", "compact", "none"], default="planes")
    parser.add_argument("--num-envs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--processes", type=int, default=0, help="default: this one alone")
    arguments = parser.parse_args()
    shape = arguments.num_envs, arguments.steps
    if arguments.observation == "none":
        block = rules_alone()
    elif arguments.processes:
        block = several_processes(*shape, arguments.observation, arguments.processes)
    else:
        block = one_process(*shape, arguments.observation)
    serve(chess.__version__, block)


if __name__ == "__main__":
    main()
