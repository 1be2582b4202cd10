# SPDX-License-Identifier: Apache-2.0
"""Chess from nothing: the score against random play, and against the material-greedy player.

`headrace train` with its preset, a seed after the other: with the opponent inside, or by self-play
(`--env Chess-v0`). Then policies of its checkpoints play games on python-chess, of which the curve
is drawn, and the last one plays more of them. A score counts a win 1 and a draw ½.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import RESULTS, Benchmark

BAR = 0.85
OPPONENTS = {"random": "#2a6fbb", "greedy": "#c2571a"}


def trained(env: str, folder: Path, seed: int, minutes: float) -> None:
    """A run, unless it is there already: then it is looked at again."""
    if (folder / "result.json").exists():
        return
    command = [str(Path(sys.executable).with_name("headrace")), "train", env]
    command += ["--seed", str(seed), "--no-plot", "--time-limit", str(60 * minutes)]
    command += ["--keep-checkpoints", "1000"]
    subprocess.run([*command, "--checkpoint-every", "60", "--out", str(folder)], check=True)


def match(folder: Path, checkpoint: Path, opponent: str, games: int) -> dict[str, Any]:
    """Mean score and its 95 % interval, as `headrace eval` tells them."""
    told = folder / "match.json"
    command = [str(Path(sys.executable).with_name("headrace")), "eval", str(folder)]
    command += ["--checkpoint", str(checkpoint), "--opponent", opponent]
    command += ["--episodes", str(games), "--json", str(told)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    result = json.loads(told.read_text())
    return {name: result[name] for name in ("mean", "low", "high")}


def curve(folder: Path, points: int, games: int, last_games: int) -> list[dict[str, Any]]:
    """Scores at some checkpoints, the last with more games; seconds are those of the run."""
    from headrace.train.checkpoint import read

    paths = sorted((folder / "checkpoints").glob("step-*.npz"))
    chosen = sorted({round(i * (len(paths) - 1) / max(points - 1, 1)) for i in range(points)})
    rows = []
    for index in chosen:
        count = last_games if index == chosen[-1] else games
        meta = read(paths[index]).meta
        row = {"seconds": meta["seconds"], "env_steps": meta["env_steps"], "games": count}
        row |= {opponent: match(folder, paths[index], opponent, count) for opponent in OPPONENTS}
        print(f"  {row['seconds']:6.0f} s  {row['env_steps']:10,} steps  ", end="")
        print("  ".join(f"{name} {row[name]['mean']:.3f}" for name in OPPONENTS), flush=True)
        rows.append(row)
    return rows


def draw(curves: list[list[dict[str, Any]]], path: Path) -> None:
    """Scores by minutes, a line for each seed and opponent."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for opponent, color in OPPONENTS.items():
        for number, rows in enumerate(curves):
            minutes = [row["seconds"] / 60 for row in rows]
            scores = [row[opponent] for row in rows]
            label = f"against {opponent}" if number == 0 else None
            axes.plot(minutes, [one["mean"] for one in scores], color=color, label=label)
            low, high = ([one[side] for one in scores] for side in ("low", "high"))
            axes.fill_between(minutes, low, high, color=color, alpha=0.12, linewidth=0)
    axes.axhline(BAR, color="0.5", linewidth=0.8, linestyle="--")
    axes.set(xlabel="minutes of training", ylabel="score", ylim=(0, 1))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


def main() -> int:
    """Train, play, draw."""
    bench = Benchmark(
        "train_chess", __doc__, env="ChessVsRandom-v0", seeds=3, minutes=30.0,
        points=6, games=60, last=400,
        runs=RESULTS / "chess", plot=RESULTS / "train_chess.png",
    )  # fmt: skip
    arguments = bench.arguments
    arguments.runs.mkdir(parents=True, exist_ok=True)
    curves = []
    for seed in range(arguments.seeds):
        folder = arguments.runs / f"{arguments.env}-{seed}"
        trained(arguments.env, folder, seed, arguments.minutes)
        print(f"seed {seed}:", flush=True)
        rows = curve(folder, arguments.points, arguments.games, arguments.last)
        curves.append(rows)
        last = rows[-1]
        label = f"chess, seed {seed}: lost to random play"
        bench.check(label, 1 - last["random"]["mean"], 1 - BAR, "points a game")
    bench.extra = {"curves": curves}
    draw(curves, arguments.plot)
    print(f"{arguments.plot}: the curves")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
