# SPDX-License-Identifier: Apache-2.0
"""What a run has learnt of chess, against a player that learns nothing: games on python-chess."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.envs import registry
from headrace.envs.array.namespace import namespace
from headrace.envs.chess.encoding import action_mask, compact, legal_actions, planes
from headrace.envs.chess.extra import chess
from headrace.envs.chess.game import Game
from headrace.envs.chess.players import PLAYERS
from headrace.envs.philox import identify
from headrace.errors import HeadraceError, unknown
from headrace.policy import PolicyKey
from headrace.train.model import TrainedPolicy

GAMES = ("Chess-v0", "ChessVsRandom-v0")


def play_match(trained: TrainedPolicy, opponent: str, games: int, seed: int) -> np.ndarray:
    """Scores [games], 1 for a win and ½ for a draw; the policy is white in every other game.

    All games go on side by side, so that the policy answers for all of them at once.
    """
    if trained.spec.id not in GAMES:
        raise HeadraceError(f"--opponent is for chess; the run learnt {trained.spec.id}")
    if opponent not in PLAYERS:
        raise unknown("player", opponent, PLAYERS)
    chance = np.random.default_rng(seed)
    boards = [Game() for _ in range(games)]
    white = np.arange(games) % 2 == 0
    scores = np.full(games, np.nan)
    limit = registry.spec(GAMES[0]).max_episode_steps or 512
    act = _Batched(trained, games, seed)
    for ply in range(limit):
        for i in np.flatnonzero(np.isnan(scores)):
            if (outcome := boards[i].outcome()) is not None:
                winner = outcome.winner
                scores[i] = 0.5 if winner is None else float((winner == chess.WHITE) == white[i])
        going = np.isnan(scores)
        if not going.any():
            return scores
        ours = going & (white == (ply % 2 == 0))
        for i, move in act(boards, np.flatnonzero(ours), ply):
            boards[i].push(move)
        for i in np.flatnonzero(going & ~ours):
            boards[i].push(PLAYERS[opponent](boards[i], chance))
    return np.where(np.isnan(scores), 0.5, scores)  # broken off


class _Batched:
    """The policy for some of the games; always as many rows, so that one program does."""

    def __init__(self, trained: TrainedPolicy, games: int, seed: int):
        import jax

        self._apply = jax.jit(trained.policy("jax").apply)
        self._params = trained.params
        self._who = identify(namespace("numpy"), games, seed, 0)
        shape = trained.spec.observation_space.shape or ()
        self._obs = np.zeros((games, *shape), np.uint8)
        self._mask = np.full((games, trained.spec.mask_bytes), 255, np.uint8)
        self._encode = compact if trained.spec.options.get("observation") == "compact" else planes

    def __call__(self, boards: list[Game], which: np.ndarray, ply: int) -> list[tuple[int, Any]]:
        """Of these games, by number, the moves."""
        legal = {int(i): legal_actions(boards[i]) for i in which}
        for i, moves in legal.items():
            self._obs[i] = self._encode(boards[i])
            self._mask[i] = np.packbits(action_mask(moves), bitorder="little")
        if not legal:
            return []
        key = PolicyKey(self._who, np.uint32(ply))
        actions = np.asarray(self._apply(self._params, self._obs, self._mask, key)[0])
        return [(i, moves[int(actions[i])]) for i, moves in legal.items()]
