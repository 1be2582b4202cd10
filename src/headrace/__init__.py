# SPDX-License-Identifier: Apache-2.0
"""Reinforcement-learning experience at the hardware's limit.

envs = headrace.make_vec("CartPole-v1", num_envs=1024)       # a gymnasium.vector.VectorEnv
batch = headrace.collect("CartPole-v1", num_envs=20, steps=32)
source = headrace.make_collector("CartPole-v1", rung="native-fused", num_envs=4096, steps=32)
batch = source.collect()                                      # again and again
run = headrace.train("CartPole-v1", until=475)                # a folder with everything in it
policy = headrace.load_policy(run.folder)                     # policy(obs) -> action
"""

import importlib
from typing import TYPE_CHECKING, Any

from headrace.errors import ExtraMissingError, HeadraceError, WorkerDiedError
from headrace.make_vec import make_vec  # and with it, every environment is known to Gymnasium

if TYPE_CHECKING:
    from headrace.collect.base import Collector
    from headrace.collect.batch import Batch
    from headrace.collect.dataset import Dataset, load
    from headrace.collect.rungs import collect, make_collector
    from headrace.envs.registry import register, spec
    from headrace.envs.spec import EnvSpec
    from headrace.policy import MlpPolicy, Policy, PolicyKey
    from headrace.report.ladder import ladder
    from headrace.report.training import resume, train
    from headrace.train.model import TrainedPolicy, load_policy
    from headrace.train.watch import Run
else:
    from headrace import collect, train  # packages, which are the functions as well

__version__ = "0.1.0"

# Imported on first use: `import headrace` costs no more than it must.
_HOMES = {
    "Batch": "headrace.collect.batch",
    "Collector": "headrace.collect.base",
    "EnvSpec": "headrace.envs.spec",
    "MlpPolicy": "headrace.policy",
    "Policy": "headrace.policy",
    "PolicyKey": "headrace.policy",
    "Dataset": "headrace.collect.dataset",
    "ladder": "headrace.report.ladder",
    "load": "headrace.collect.dataset",
    "load_policy": "headrace.train.model",
    "make_collector": "headrace.collect.rungs",
    "register": "headrace.envs.registry",
    "resume": "headrace.report.training",
    "Run": "headrace.train.watch",
    "spec": "headrace.envs.registry",
    "TrainedPolicy": "headrace.train.model",
}

__all__ = [
    "Batch",
    "Collector",
    "Dataset",
    "EnvSpec",
    "ExtraMissingError",
    "HeadraceError",
    "MlpPolicy",
    "Policy",
    "PolicyKey",
    "Run",
    "TrainedPolicy",
    "WorkerDiedError",
    "__version__",
    "collect",
    "ladder",
    "load",
    "load_policy",
    "make_collector",
    "make_vec",
    "register",
    "resume",
    "spec",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headrace' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
