# SPDX-License-Identifier: Apache-2.0
"""Build the frameworks Headrace is measured against, each in its own virtual environment.

    python benchmarks/peers/install.py envpool pufferlib    # two of them
    python benchmarks/peers/install.py all                  # every one

The environments lie in `.peers/NAME/` at the repository root: the peers' pins conflict with each
other and with ours. A finished environment carries a marker with the recipe it was built from; it
is rebuilt only when the recipe has changed. What pip says goes to `.peers/NAME.log`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pufferlib_source import fetch_source, patch_source

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".peers"
MARKER = "headrace-peer.json"
PYTHON_VERSION = "3.11"
GYMNASIUM = "gymnasium==1.4.0"
# Named first and alone: a peer that pulls torch in by itself would get a CUDA build of several GB
# wherever pip is configured with a CPU wheel.
TORCH = "torch==2.13.0"


class InstallError(RuntimeError):
    """A step of a recipe failed; the message says which, and shows the end of its output."""


@dataclass(frozen=True)
class Recipe:
    """How one peer is built: lists of requirements, installed in this order."""

    about: str
    steps: tuple[tuple[str, ...], ...]
    from_source: str = ""
    """`NAME==VERSION` of a peer built from its patched source archive, before the last step."""


RECIPES = {
    "chess": Recipe(
        "python-chess 1.11.2 and rust-chess 0.4.3",
        (("chess==1.11.2", "rust-chess==0.4.3", GYMNASIUM),),
    ),
    "envpool": Recipe(
        "EnvPool 1.2.5, C++ environments behind a thread pool (chess by JAX)",
        (("envpool==1.2.5", "envpool-assets==0.3.0", GYMNASIUM, "jax[cpu]==0.10.2"),),
    ),
    "gymnasium": Recipe(
        "Gymnasium 1.4, the plain Python loop",
        (("gymnasium[classic-control,mujoco]==1.4.0",),),
    ),
    "gymnax": Recipe(
        "gymnax 1.0.1 and Pgx 2.6.0, environments in JAX",
        (("jax[cpu]==0.10.2", "gymnax==1.0.1", "pgx==2.6.0", "six"),),
    ),
    "openspiel": Recipe("OpenSpiel 2.0.2, games in C++", (("open-spiel==2.0.2",),)),
    "pufferlib": Recipe(
        "PufferLib 3.0.0 with its C CartPole alone, 500 steps an episode",
        (
            (TORCH, "setuptools<80", "wheel", "numpy<2", "cython", "ninja"),
            (
                *(TORCH, "numpy<2", "gym<=0.23", "gymnasium<=0.29.1", "pettingzoo<=1.24.1"),
                *("shimmy[gym-v21]", "psutil", "pynvml", "rich", "rich_argparse", "imageio"),
                *("pyro-ppl", "heavyball==1.7.2"),
            ),
        ),
        from_source="pufferlib==3.0.0",
    ),
    "rejax": Recipe(
        "rejax 0.1.3, training inside one JAX program",
        (("jax[cpu]==0.10.2", "rejax==0.1.3", "gymnax<1", "gymnasium[classic-control]"),),
    ),
    "rllib": Recipe(
        "RLlib 2.60",
        (
            (TORCH,),
            (TORCH, "ray[rllib]==2.60.0", "gymnasium[classic-control,mujoco]"),
        ),
    ),
    "sample_factory": Recipe(
        "Sample Factory 2.1.1, asynchronous PPO",
        (
            (TORCH,),
            (TORCH, "sample-factory==2.1.1", "gymnasium[classic-control]"),
        ),
    ),
    "sbx": Recipe(
        "SBX 0.28, Stable-Baselines3 in JAX",
        (
            (TORCH,),
            (TORCH, "sbx-rl==0.28.0", "gymnasium[classic-control,mujoco]"),
        ),
    ),
    "sb3": Recipe(
        "Stable-Baselines3 2.9.2",
        (
            (TORCH,),
            (TORCH, "stable-baselines3==2.9.2", "gymnasium[classic-control,mujoco]"),
        ),
    ),
}


class Builder:
    """Builds one peer's environment, and keeps everything its commands print in one log."""

    def __init__(self, name: str, recipe: Recipe, python: str) -> None:
        self.name, self.recipe, self.base_python = name, recipe, python
        self.venv = PEERS / name
        self.log = PEERS / f"{name}.log"
        self.python = str(self.venv / "bin" / "python")

    @property
    def fingerprint(self) -> dict[str, object]:
        """What the marker must say for the environment to count as this recipe's."""
        steps = [list(step) for step in self.recipe.steps]
        return {"steps": steps, "from_source": self.recipe.from_source}

    def is_finished(self) -> bool:
        """Whether the environment is there, complete and of this recipe."""
        try:
            marker = json.loads((self.venv / MARKER).read_text())
        except (OSError, ValueError):
            return False
        return marker.get("recipe") == self.fingerprint

    def build(self) -> None:
        """Start from nothing, so that a broken or outdated environment leaves no trace."""
        PEERS.mkdir(exist_ok=True)
        self.log.write_text("")
        shutil.rmtree(self.venv, ignore_errors=True)
        try:
            self._build_venv()
        except BaseException:
            shutil.rmtree(self.venv, ignore_errors=True)
            raise

    def _build_venv(self) -> None:
        venv_command = [self.base_python, "-m", "venv", str(self.venv)]
        self._step("create the environment", lambda: self._run(venv_command))
        source = self.venv / "source"
        if self.recipe.from_source:
            # Before anything else is installed: see fetch_source.
            self._step(
                f"fetch the source of {self.recipe.from_source}",
                lambda: fetch_source(self.python, self.recipe.from_source, source),
            )
            self._step("patch it", lambda: patch_source(source))
        for number, requirements in enumerate(self.recipe.steps, start=1):
            if self.recipe.from_source and number == len(self.recipe.steps):
                self._step(
                    f"build {self.recipe.from_source}",
                    lambda: self._pip("--no-build-isolation", "--no-deps", str(source)),
                )
            self._step(
                "install " + " ".join(requirements),
                lambda requirements=requirements: self._pip(*requirements),
            )
        shutil.rmtree(source, ignore_errors=True)
        freeze = self._run([self.python, "-m", "pip", "freeze"]).split()
        marker = {"recipe": self.fingerprint, "installed": freeze}
        (self.venv / MARKER).write_text(json.dumps(marker, indent=2) + "\n")

    def _step(self, what: str, action: Callable[[], object]) -> None:
        print(f"  {what} ...", end="", flush=True)
        start = time.monotonic()
        try:
            action()
        except BaseException:
            print(" failed", flush=True)
            raise
        print(f" {time.monotonic() - start:.0f} s", flush=True)

    def _pip(self, *arguments: str) -> None:
        self._run([self.python, "-m", "pip", "install", "--no-input", *arguments])

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=PEERS,
        )
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}\n")
        if done.returncode:
            tail = "\n".join(done.stdout.splitlines()[-15:])
            raise InstallError(f"{' '.join(command)}\n{tail}\n(everything: {self.log})")
        return done.stdout


def find_python() -> str | None:
    """The interpreter the pins are for: this one if its version fits, or one on the PATH."""
    if sys.version.startswith(f"{PYTHON_VERSION}."):
        return sys.executable
    return shutil.which(f"python{PYTHON_VERSION}")


def parse_arguments() -> argparse.Namespace:
    """The command line; `--help` lists the peers."""
    listing = "\n".join(f"  {name:10} {recipe.about}" for name, recipe in RECIPES.items())
    parser = argparse.ArgumentParser(
        description="Build the virtual environments of the frameworks we measure against.",
        epilog=f"peers:\n{listing}\n  {'all':10} every one of them",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="+", metavar="NAME", choices=[*RECIPES, "all"], help="a peer, or all"
    )
    parser.add_argument("--force", action="store_true", help="rebuild what is already finished")
    parser.add_argument(
        "--python", default=find_python(), help=f"a Python {PYTHON_VERSION} (default: %(default)s)"
    )
    return parser.parse_args()


def main() -> int:
    """Build what was named, one after the other; the exit status."""
    arguments = parse_arguments()
    if arguments.python is None:
        print(f"no python{PYTHON_VERSION} on the PATH: name one with --python", file=sys.stderr)
        return 2
    names = list(RECIPES) if "all" in arguments.names else list(dict.fromkeys(arguments.names))
    for number, name in enumerate(names, start=1):
        builder = Builder(name, RECIPES[name], arguments.python)
        heading = f"[{number}/{len(names)}] {name}"
        if builder.is_finished() and not arguments.force:
            print(f"{heading}: already built")
            continue
        print(f"{heading}: building {builder.venv}", flush=True)
        try:
            builder.build()
        except KeyboardInterrupt:
            print(f"\ninterrupted: {name} was not finished and is removed", file=sys.stderr)
            return 130
        except (InstallError, OSError) as error:
            print(f"{name} could not be built:\n{error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
