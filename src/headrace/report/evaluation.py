# SPDX-License-Identifier: Apache-2.0
"""What `headrace eval` does."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import HeadraceError
from headrace.report.format import figures
from headrace.report.output import check_writable, write_whole
from headrace.train.config import config_from_json, environment
from headrace.train.evaluate import evaluate
from headrace.train.model import load_policy
from headrace.train.run_folder import CONFIG, read_config
from headrace.train.session import evaluation_environment
from headrace.train.video import film, write_gif


def run_eval(
    path: Path,
    *,
    episodes: int,
    deterministic: bool,
    definition: str | None,
    opponent: str | None,
    checkpoint: str | None,
    seed: int,
    json_file: Path | None,
    video_file: Path | None,
) -> int:
    """Play, print, write; returns the exit code."""
    if episodes < 1:
        raise HeadraceError(f"--episodes {episodes}: give a whole number of at least 1")
    if not 0 <= seed < 2**63:
        raise HeadraceError(f"--seed {seed}: it must be in 0 .. 2^63 - 1")
    if json_file is not None:
        check_writable(json_file, "--json")
    if video_file is not None:
        check_writable(video_file, "--video", (".gif",))
    config = config_from_json(read_config(path), str(path / CONFIG))
    trained = load_policy(path, checkpoint=checkpoint, deterministic=deterministic)
    spec = evaluation_environment(config, definition)
    if opponent is not None:
        from headrace.report.chess_match import play_match

        name, where = "score", f"{trained.spec.id} against {opponent}"
        values = play_match(trained, opponent, episodes, seed)
    else:
        name, where = "return", f"{spec.id}, {spec.definitions[0]}"
        values = evaluate(
            trained.algorithm, trained.params, spec, episodes, seed, deterministic=deterministic
        )
    told = summary(values)
    how = "deterministic" if deterministic else "exploring"
    print(
        f"{where}, {how}, {episodes} episodes: mean {name} {figures(told['mean'])}, "
        f"95 % interval {figures(told['low'])} to {figures(told['high'])}, "
        f"from {figures(told['least'])} to {figures(told['greatest'])}"
    )
    if json_file is not None:
        about = {"env": spec.id, "definition": spec.definitions[0], "opponent": opponent}
        about |= {"run": str(path), "checkpoint": checkpoint}
        about |= {"deterministic": deterministic, "episodes": episodes}
        told |= {"seed": seed, f"{name}s": values.tolist()}
        text = json.dumps(about | told, indent=2) + "\n"
        write_whole(json_file, lambda draft: draft.write_text(text, "utf-8"))
    if video_file is not None:
        shown = film(trained, environment(config), seed % 2**31)
        write_gif(video_file, shown)
        print(f"{video_file}: {len(shown.frames)} pictures, return {figures(shown.total)}")
    return 0


def summary(returns: np.ndarray) -> dict[str, Any]:
    """Mean, and where it lies with 95 % (by Student's normal limit); spread; extremes."""
    mean, spread = float(np.mean(returns)), float(np.std(returns, ddof=min(1, len(returns) - 1)))
    half = 1.96 * spread / math.sqrt(len(returns))
    return {
        "mean": mean,
        "spread": spread,
        "low": mean - half,
        "high": mean + half,
        "least": float(np.min(returns)),
        "greatest": float(np.max(returns)),
    }
