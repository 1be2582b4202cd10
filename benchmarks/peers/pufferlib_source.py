# SPDX-License-Identifier: Apache-2.0
"""PufferLib's source archive, cut down to the one environment that we measure: its C CartPole.

PufferLib publishes no wheel, and its setup script downloads two graphics libraries from elsewhere
while it runs and builds some fifty environments. The patches below take the downloads out (the
archive already holds the Linux raylib that CartPole's renderer links with), keep one binding, keep
CUDA out, and give CartPole the 500 steps of CartPole-v1. Nothing on the path of a step is touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Patch:
    """Replace `old`, which must be there, by `new` wherever it stands in `file`."""

    file: str
    old: str
    new: str


PATCHES = (
    Patch("setup.py", "download_raylib('raylib-5.5_webassembly', '.zip')", "pass"),
    Patch("setup.py", "download_raylib('raylib-5.5_linux_amd64', '.tar.gz')", "pass"),
    Patch("setup.py", "download_box2d('box2d-web')", "pass"),
    Patch("setup.py", "download_box2d(BOX2D_NAME)", "pass"),
    Patch("setup.py", "pufferlib/ocean/**/binding.c", "pufferlib/ocean/cartpole/binding.c"),
    Patch("setup.py", 'shutil.which("nvcc")', "False"),
    Patch("pufferlib/pufferl.py", 'shutil.which("nvcc") is not None', "False"),
    Patch("pufferlib/ocean/cartpole/cartpole.h", "#define MAX_STEPS 200", "#define MAX_STEPS 500"),
)


def fetch_source(python: str, requirement: str, target: Path) -> None:
    """Unpack the source archive of `requirement` at `target`, with the pip of a bare environment.

    `pip download` asks the setup script for its metadata. In an environment that has no NumPy yet,
    the script fails in its first lines, before it downloads anything; `--no-clean` has pip leave
    the unpacked archive behind, and that is what we came for. So the exit status means nothing.
    """
    scratch = target.with_name(target.name + "-download")
    scratch.mkdir(parents=True)
    command = [python, "-m", "pip", "download", "--no-input", "--no-clean", "--no-deps"]
    command += ["--no-build-isolation", "--no-binary", ":all:", "-d", str(scratch), requirement]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=scratch,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    unpacked = [script.parent for script in scratch.glob("*/*/setup.py")]
    if len(unpacked) != 1:
        raise OSError(f"pip left no source archive behind:\n{done.stdout[-2000:]}")
    shutil.move(str(unpacked[0]), target)
    shutil.rmtree(scratch)


def patch_source(source: Path) -> None:
    """Apply PATCHES; a text that is not there means another version, and is an error."""
    for patch in PATCHES:
        path = source / patch.file
        text = path.read_text()
        if patch.old not in text:
            raise OSError(f"{patch.file} does not contain {patch.old!r}: not the pinned version?")
        path.write_text(text.replace(patch.old, patch.new))
