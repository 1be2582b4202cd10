# SPDX-License-Identifier: Apache-2.0
"""Chess as its preset learns it, by the native core's network and by XLA's products, in one run.

Boards a second through the residual tower, with and without gradients; and through whole
iterations of the compiled trainer, where a move of self-play is learnt from in each epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark, repeat
from timing import Rate

import headrace
from headrace.envs.array.namespace import namespace
from headrace.learn import native_moves, native_residual
from headrace.learn.convolution import Residual
from headrace.learn.ppo import Config, Ppo
from headrace.train.compiled import CompiledTrainer
from headrace.train.presets import DEFAULT, PRESETS

PRESET = PRESETS["Chess-v0", "ppo"][DEFAULT]
BOARDS, PLANES = 128, 20
"""Of a minibatch."""


@contextmanager
def by_xla() -> Iterator[None]:
    """Whatever is compiled meanwhile does without the native core."""
    with (
        patch.object(native_residual, "runs", return_value=False),
        patch.object(native_moves, "runs", return_value=False),
    ):
        yield


def tower(gradients: bool) -> Rate:
    """Boards a second."""
    generator, ns = np.random.default_rng(0), namespace("jax")
    net = Residual((8, 8, PLANES), PRESET["channels"], PRESET["blocks"])
    params = net.init(generator)
    obs = (generator.random((BOARDS, 8, 8, PLANES)) < 0.1).astype(np.uint8)
    slopes = generator.standard_normal((BOARDS, 8, 8, net.channels), np.float32)

    def both(params: Any, obs: Any, slopes: Any) -> Any:
        features, back = jax.vjp(lambda params: net.map(ns, params, obs), params)
        return features, back(slopes)

    def alone(params: Any, obs: Any, _: Any) -> Any:
        return net.map(ns, params, obs)

    program = jax.jit(both if gradients else alone)
    inputs = jax.device_put((params, obs, slopes))
    jax.block_until_ready(program(*inputs))
    return repeat(lambda: jax.block_until_ready(program(*inputs)), BOARDS)


def training() -> Rate:
    """Samples learnt from, a second, the games they come from included."""
    spec = headrace.spec("Chess-v0", **PRESET["options"])
    names = {field.name for field in fields(Config)}
    config = Config(**{name: value for name, value in PRESET.items() if name in names})
    num_envs, steps = PRESET["num_envs"], PRESET["steps"]
    trainer = CompiledTrainer(Ppo(spec, config), spec, num_envs=num_envs, steps=steps, seed=0)
    trainer.advance(1)
    return repeat(lambda: trainer.advance(1), num_envs * steps * config.epochs)


def main() -> int:
    """The parts, then the whole."""
    bench = Benchmark("residual_update", __doc__)
    for label, make, bar in (
        ("tower", lambda: tower(False), 4.0),
        ("tower and its gradients", lambda: tower(True), 6.0),
        ("iterations of the trainer", training, 3.0),
    ):
        ours = make()
        with by_xla():
            theirs = make()
        bench.compare(label, ours, theirs, bar)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
