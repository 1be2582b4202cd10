# SPDX-License-Identifier: Apache-2.0
"""The rungs by name, from the slowest idea to the fastest."""

from __future__ import annotations

from typing import Any, Literal

from headrace.collect.base import Collector, Request
from headrace.collect.batch import Batch
from headrace.envs.registry import spec as find_spec
from headrace.envs.spec import EnvSpec, load
from headrace.errors import HeadraceError, unknown
from headrace.policy import Policy

RUNGS: dict[str, str] = {
    "python": "headrace.collect.python:PythonCollector",
    "processes": "headrace.collect.processes:ProcessCollector",
    "numpy": "headrace.collect.numpy:NumPyCollector",
    "torch": "headrace.collect.torch:TorchCollector",
    "torch-compile": "headrace.collect.torch:TorchCompileCollector",
    "xla": "headrace.collect.xla:XlaCollector",
    "xla-fused": "headrace.collect.xla_fused:XlaFusedCollector",
    "native": "headrace.collect.native:NativeCollector",
    "openmp": "headrace.collect.native:OpenMpCollector",
    "mpi": "headrace.collect.mpi:MpiCollector",
    "native-fused": "headrace.collect.native_fused:NativeFusedCollector",
    "native-xla": "headrace.collect.native_xla:NativeXlaCollector",
}


def rung_class(name: str) -> type[Collector]:
    """The collector of this name; an error names near matches."""
    if name not in RUNGS:
        raise unknown("rung", name, RUNGS)
    return load(RUNGS[name])  # pyright: ignore[reportReturnType]


def make_collector(
    env: str | EnvSpec,
    *,
    rung: str = "auto",
    num_envs: int = 64,
    steps: int = 128,
    policy: Policy | Literal["random"] = "random",
    seed: int = 0,
    first_env: int = 0,
    threads: int | None = None,
    workers: int | None = None,
    ranks: int | None = None,
    fused_steps: int | None = None,
    **options: Any,
) -> Collector:
    """A source of batches [steps, num_envs, ...] from an environment, by one of the rungs.

    `rung="auto"` takes the fastest that the environment and the policy allow. `options` are the
    environment's. The other arguments are those of `Request`.
    """
    if isinstance(env, EnvSpec) and options:
        raise HeadraceError(f"options {sorted(options)} go with an environment's id, not its spec")
    chosen = env if isinstance(env, EnvSpec) else find_spec(env, **options)
    request = Request(
        chosen, num_envs, steps, policy, seed, first_env, threads, workers, ranks, fused_steps
    )
    return rung_class(fastest(request) if rung == "auto" else rung)(request)


def fastest(request: Request) -> str:
    """What `rung="auto"` is for this."""
    kind = request.policy if isinstance(request.policy, str) else request.policy.namespace
    if "native" in request.spec.definitions:
        return {"random": "native-fused", "jax": "native-xla", "numpy": "openmp"}[kind]
    if "array" in request.spec.definitions:
        return {"random": "xla-fused", "jax": "xla-fused", "numpy": "numpy"}[kind]
    return "python" if request.num_envs == 1 else "processes"


def collect(env: str | EnvSpec, *, params: Any = None, **arguments: Any) -> Batch:
    """One batch, in memory of its own; the arguments are those of `make_collector`."""
    with make_collector(env, **arguments) as collector:
        return collector.collect(params).copy()
