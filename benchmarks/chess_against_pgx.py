# SPDX-License-Identifier: Apache-2.0
"""Compare chess with Pgx's on random games: observations plane by plane, masks, rewards, ends.

    python benchmarks/peers/install.py gymnax
    python benchmarks/chess_against_pgx.py --games 64 --steps 512

Exits with 1 where there is a difference that docs/chess.md does not explain.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from headrace.envs.chess import Position

ROOT = Path(__file__).resolve().parents[1]
PGX = ROOT / ".peers" / "gymnax" / "bin" / "python"
SCALED = {113: 256.0, 118: 100.0}
"""Planes that are counts here and fractions there."""


def pgx_games(games: int, steps: int, seed: int) -> dict[str, np.ndarray]:
    """What Pgx saw, as arrays [steps, games, ...]."""
    if not PGX.exists():
        sys.exit("Pgx is not there: python benchmarks/peers/install.py gymnax")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "games.npz"
        script = Path(__file__).parent / "peers" / "pgx_games.py"
        arguments = [str(one) for one in (PGX, script, out, games, steps, seed)]
        subprocess.run(arguments, check=True)
        with np.load(out) as found:
            return dict(found)


class Comparison:
    """Counts of positions, and of differences by what they are in."""

    def __init__(self) -> None:
        self.positions = 0
        self.games_ended = 0
        self.differences: dict[str, int] = {}

    def check(self, what: str, same: bool) -> None:
        """Note a difference."""
        if not same:
            self.differences[what] = self.differences.get(what, 0) + 1

    def game(self, theirs: dict[str, np.ndarray], env: int) -> None:
        """One game, as long as neither side holds it to be over."""
        position = Position()
        for t in range(len(theirs["action"])):
            self.positions += 1
            self._position(position, theirs["obs"][t, env], theirs["mask"][t, env])
            position.play(int(theirs["action"][t, env]))
            over = position.outcome
            self.check("end", (over is not None) == bool(theirs["terminated"][t + 1, env]))
            reward = 1.0 if over == "checkmate" else 0.0
            self.check("reward", reward == float(theirs["reward"][t, env]))
            if over or theirs["terminated"][t + 1, env]:
                self.games_ended += 1
                return

    def _position(self, position: Position, obs: np.ndarray, mask: np.ndarray) -> None:
        bits = np.unpackbits(mask, bitorder="little").astype(bool)
        self.check("mask", np.array_equal(position.mask(), bits))
        ours = position.observation().astype(np.float64)
        for plane in range(119):
            theirs = obs[..., plane].astype(np.float64) * SCALED.get(plane, 1.0)
            # Half-moves in pairs: theirs may be half a move further.
            same = np.abs(ours[..., plane] - theirs).max() <= (0.5 if plane == 113 else 1e-4)
            self.check(f"plane {plane}", bool(same))


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--games", type=int, default=32)
    parser.add_argument("--steps", type=int, default=511, help="Pgx ends a game after 512")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    theirs = pgx_games(arguments.games, arguments.steps, arguments.seed)
    comparison = Comparison()
    for env in range(arguments.games):
        comparison.game(theirs, env)
    print(
        f"{comparison.positions} positions of {arguments.games} games, "
        f"{comparison.games_ended} of which ended"
    )
    for what, count in sorted(comparison.differences.items()):
        print(f"  {what}: {count} differ")
    if not comparison.differences:
        print("  no difference")
    return bool(comparison.differences)


if __name__ == "__main__":
    sys.exit(main())
