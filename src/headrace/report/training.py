# SPDX-License-Identifier: Apache-2.0
"""What `headrace train` and `headrace resume` do around the run: show it, draw it, film it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.interrupt import PostponedInterrupt
from headrace.report.training_log import Lines, outcome
from headrace.train.config import RunConfig, environment
from headrace.train.resolve import resolve
from headrace.train.run_folder import VIDEO, new_path, read_config
from headrace.train.session import train_new, train_on
from headrace.train.watch import Run, Silent, Watch

INTERRUPTED = 130


def train(
    env: str | None = None,
    *,
    algo: str | None = None,
    preset: str | None = None,
    mode: Any = None,
    definition: Any = None,
    learner: Any = None,
    options: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    watch: Watch | None = None,
    plot: bool = True,
    video: bool = False,
    **given: Any,
) -> Run:
    """Learn an environment: what `headrace train` does, silently unless there is a `watch`.

    `given` are settings (`seed`, `total_steps`, `until`, ...) and hyper-parameters of the
    algorithm, by their names. Ctrl-C stops with a checkpoint.
    """
    resolved = resolve(
        env,
        algo=algo,
        preset=preset,
        mode=mode,
        definition=definition,
        learner=learner,
        options=options,
        config_file=None if config is None else Path(config),
        given=given,
    )
    run = _new(resolved, None if out is None else Path(out), watch or Silent())
    _finish(run, resolved, watch or Silent(), plot=plot, video=video)
    return run


def resume(
    run: str | Path, *, watch: Watch | None = None, plot: bool = True, **changed: Any
) -> Run:
    """Continue a run: what `headrace resume` does."""
    result = _on(Path(run), changed, watch or Silent())
    _finish(result, None, watch or Silent(), plot=plot, video=False)
    return result


def run_train(config: RunConfig, *, out: Path | None, quiet: bool, video: bool, plot: bool) -> int:
    """Train; returns the exit code."""
    watch = _watch(quiet)
    run = _new(config, out, watch)
    return _told(run, config, watch, quiet=quiet, plot=plot, video=video)


def run_resume(path: Path, changed: dict[str, Any], *, quiet: bool, plot: bool) -> int:
    """Continue; returns the exit code."""
    watch = _watch(quiet)
    run = _on(path, changed, watch)
    return _told(run, None, watch, quiet=quiet, plot=plot, video=False)


def _new(config: RunConfig, out: Path | None, watch: Watch) -> Run:
    path = out or new_path(config.env, config.algo)
    with PostponedInterrupt() as stop:
        begin = train_new
        if config.mode == "async":
            from headrace.runtime.run import train_new as begin
        return begin(config, path, watch, lambda: stop.asked)


def _on(path: Path, changed: Mapping[str, Any], watch: Watch) -> Run:
    with PostponedInterrupt() as stop:
        go_on = train_on
        if read_config(path).get("mode") == "async":
            from headrace.runtime.run import train_on as go_on
        return go_on(path, changed, watch, lambda: stop.asked)


def _told(
    run: Run, config: RunConfig | None, watch: Watch, *, quiet: bool, plot: bool, video: bool
) -> int:
    if not quiet:
        print(outcome(run), flush=True)  # the answer first: pictures take a second
    _finish(run, config, watch, plot=plot, video=video)
    if run.ending == "interrupted" and not quiet:
        print(f"headrace resume {run.folder} continues", flush=True)
    return INTERRUPTED if run.ending == "interrupted" else 0


def _finish(run: Run, config: RunConfig | None, watch: Watch, *, plot: bool, video: bool) -> None:
    """Pictures; that one cannot be made is told, and is no failure of the run."""
    if plot:
        from headrace.train.curve import draw_curve

        _try(lambda: draw_curve(run.folder), watch)
    if video and config is not None:
        _try(lambda: _film(run, config), watch)


def _film(run: Run, config: RunConfig) -> None:
    from headrace.train.model import load_policy
    from headrace.train.video import film, write_gif

    shown = film(load_policy(run.folder), environment(config), config.settings.seed)
    write_gif(run.folder / VIDEO, shown)


def _try(make: Callable[[], object], watch: Watch) -> None:
    try:
        make()
    except HeadraceError as error:
        watch.say(f"no picture: {error}")


def _watch(quiet: bool) -> Watch:
    if quiet:
        return Silent()
    if not sys.stdout.isatty():
        return Lines()
    from rich.console import Console

    from headrace.report.live import Terminal

    return Terminal(Console())
