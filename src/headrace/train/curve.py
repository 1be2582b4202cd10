# SPDX-License-Identifier: Apache-2.0
"""The return curve of a run as a picture: by environment steps, and by time."""

from __future__ import annotations

from pathlib import Path

from headrace.train.files import write_whole
from headrace.train.metrics import LINES, read
from headrace.train.run_folder import CURVE, read_config

TRAINING, EVALUATION = "#9db8c7", "#0b6e99"


def draw_curve(folder: Path) -> Path | None:
    """Draw what the run's log says; None where there is nothing to draw yet."""
    from matplotlib.figure import Figure  # without pyplot: it looks for no display

    lines = list(read(folder / LINES))
    if not any("train/return" in line or "evaluation/return" in line for line in lines):
        return None
    config = read_config(folder)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for one, x, label in (
        (axes[0], "env_steps", "environment steps"),
        (axes[1], "seconds", "seconds"),
    ):
        for name, colour, legend in (
            ("train/return", TRAINING, "training"),
            ("evaluation/return", EVALUATION, "evaluation"),
        ):
            rows = [line for line in lines if name in line]
            marker = "." if name == "evaluation/return" else None
            one.plot(
                [row[x] for row in rows], [row[name] for row in rows],
                color=colour, label=legend, marker=marker, linewidth=1.2,
            )  # fmt: skip
        if config["until"] is not None:
            one.axhline(config["until"], color="grey", linewidth=0.8, linestyle=":")
        one.set_xlabel(label)
        one.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("mean return")
    axes[0].legend(frameon=False)
    figure.suptitle(f"{config['env']} · {config['algo']} · seed {config['seed']}", fontsize=10)
    path = folder / CURVE
    write_whole(path, lambda file: figure.savefig(file, format="png", dpi=130))
    return path
