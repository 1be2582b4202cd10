# SPDX-License-Identifier: Apache-2.0
"""Random games on python-chess that tests look at."""

from collections.abc import Iterator

import numpy as np

from headrace.envs.chess.game import Game, read_fen
from headrace.envs.chess.players import random_move

BARE = (  # few pieces: draws, promotions and repetitions come soon
    "8/5k2/8/8/8/8/2K5/7R w - - 0 1",
    "8/P6k/8/8/8/8/p6K/8 w - - 0 1",
    "8/8/3k4/8/8/3K4/3P4/8 w - - 93 80",
    "k7/8/8/8/8/8/6p1/K3B2N b - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
    "4k3/8/8/2pP4/8/8/8/4K2Q w - c6 0 2",
)


def random_games(count: int, seed: int) -> Iterator[Game]:
    """Every position of random games, half of which begin with few pieces."""
    chance = np.random.default_rng(seed)
    for number in range(count):
        start = read_fen(BARE[number // 2 % len(BARE)]) if number % 2 else None
        game = Game(start)
        yield game
        while game.outcome() is None and game.ply < 250:
            game.push(random_move(game, chance))
            yield game
