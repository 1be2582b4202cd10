# SPDX-License-Identifier: Apache-2.0
"""Looking into, and setting, the states of vector environments."""

from typing import Any

import numpy as np

import headrace
from headrace.envs.vector.base import HostVectorEnv

FIELDS = {"CartPole-v1": 4, "Pendulum-v1": 2}


def make(name: str, num_envs: int, definition: str, **arguments: Any) -> HostVectorEnv:
    envs = headrace.make_vec(name, num_envs, definition=definition, **arguments)
    assert isinstance(envs, HostVectorEnv)
    return envs


def fields(name: str, envs: HostVectorEnv) -> np.ndarray:
    """The environments' own float32 state [fields, num_envs]."""
    arrays, count = envs.state_dict()["arrays"], FIELDS[name]
    return arrays[0][:count].view(np.float32) if len(arrays) == 1 else np.stack(arrays[:count])


def set_fields(name: str, envs: HostVectorEnv, values: np.ndarray) -> None:
    state = envs.state_dict()
    arrays = state["arrays"]
    for k in range(FIELDS[name]):
        if len(arrays) == 1:
            arrays[0][k] = values[k].view(np.uint32)
        else:
            arrays[k][...] = values[k]
    envs.load_state(state)
