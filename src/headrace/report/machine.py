# SPDX-License-Identifier: Apache-2.0
"""Where and with what something was measured."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass, field
from pathlib import Path

from headrace.envs.native import default_isa, max_threads

PACKAGES = ("headrace", "numpy", "jax", "jaxlib", "torch", "gymnasium")


@dataclass(frozen=True)
class Machine:
    """This one."""

    processor: str
    processors: int
    """That this process may run on."""
    isa: str
    """Instruction set of the native kernels."""
    system: str
    python: str
    versions: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        plural = "s" if self.processors > 1 else ""
        return f"{self.processor}, {self.processors} processor{plural}, {self.isa} kernels"


def this_machine() -> Machine:
    """Described as far as the system tells."""
    return Machine(
        processor=_processor(),
        processors=max_threads(),
        isa=default_isa(),
        system=platform.platform(),
        python=platform.python_version(),
        versions=_versions(),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    out = {}
    for package in PACKAGES:
        try:
            out[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return out
