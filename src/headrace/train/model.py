# SPDX-License-Identifier: Apache-2.0
"""A learnt policy as files: `model.safetensors`, its parameters, and `model.json`, what they are.

The card says all that is needed to act: algorithm, hyper-parameters, spaces. So whoever acts needs
neither the environment nor JAX.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headrace.envs.array.namespace import namespace
from headrace.envs.philox import identify
from headrace.envs.spec import EnvEntry, EnvSpec
from headrace.errors import HeadraceError
from headrace.learn.algorithm import Acting, Algorithm
from headrace.policy import Policy, PolicyKey, action_dtype
from headrace.train import trees
from headrace.train.algorithms import make_algorithm
from headrace.train.checkpoint import CHECKPOINTS, Checkpoints, read
from headrace.train.files import read_json, write_json, write_whole
from headrace.train.spaces import space_from_json, space_to_json

MODEL, CARD = "model.safetensors", "model.json"
FORMAT = 1
NEWEST = "newest"
LEARNER = "learner/"
"""What all that the algorithm knows is named in every trainer's checkpoints."""


def save_model(
    folder: Path,
    algorithm: Algorithm,
    acting: Acting,
    hyper_parameters: dict[str, Any],
    **about: Any,
) -> None:
    """Write both files; `about` is whatever is worth knowing."""
    from safetensors.numpy import save

    spec = algorithm.spec
    arrays = {name: np.ascontiguousarray(array) for name, array in trees.named(acting).items()}
    card = {
        "format": FORMAT,
        "env": spec.id,
        "options": dict(spec.options),
        "max_episode_steps": spec.max_episode_steps,
        "algo": algorithm.name,
        "hyper_parameters": hyper_parameters,
        "observation_space": space_to_json(spec.observation_space),
        "action_space": space_to_json(spec.action_space),
        "masked": spec.masked,
        "players": spec.players,
        **about,
    }
    data = save(arrays)
    write_whole(folder / MODEL, lambda file: file.write(data))
    write_json(folder / CARD, card)


@dataclass
class TrainedPolicy:
    """What a run learnt: `policy(obs) -> action`, of one observation or of a batch of them.

    `mask`, where some actions may be illegal, says which are legal: 0 and 1 for each action. It
    acts deterministically, or explores as in training; then two calls do not give the same.
    """

    algorithm: Algorithm
    params: Acting
    card: dict[str, Any]
    deterministic: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        self.spec = self.algorithm.spec
        self._policy = self.algorithm.policy("numpy", deterministic=self.deterministic)
        self._calls = 0
        self._dtype = action_dtype(self.spec.action_space)

    def __call__(self, obs: Any, mask: Any = None) -> Any:
        """The action, or a row of them."""
        wanted = self.spec.observation_space.shape or ()
        obs = np.asarray(obs, self._observation_dtype())
        single = obs.shape == wanted
        if not single and obs.shape[1:] != wanted:
            raise HeadraceError(
                f"an observation has shape {wanted}, or (N, ...) of several; not {obs.shape}"
            )
        rows = obs[None] if single else obs
        key = PolicyKey(self._who(len(rows)), np.uint32(self._calls & 0xFFFFFFFF))
        self._calls += 1
        action, _ = self._policy.apply(self.params, rows, self._bits(mask, len(rows)), key)
        action = np.asarray(action).astype(self._dtype, copy=False)
        return action[0] if single else action

    def policy(self, library: Any = "numpy") -> Policy:
        """For a collector, with `params`."""
        return self.algorithm.policy(library, deterministic=self.deterministic)

    def _who(self, count: int) -> Any:
        return identify(namespace("numpy"), count, self.seed, 0)

    def _observation_dtype(self) -> Any:
        dtype = self.spec.observation_space.dtype
        return np.float32 if dtype == np.float64 else dtype

    def _bits(self, mask: Any, count: int) -> np.ndarray | None:
        if not self.spec.masked:
            return None
        actions = int(self.spec.action_space.n)  # pyright: ignore[reportAttributeAccessIssue]
        if mask is None or np.size(mask) != count * actions:
            raise HeadraceError(
                f"{self.spec.id}: give a mask with each observation, {actions} zeros and ones "
                "(info['action_mask'])"
            )
        rows = np.asarray(mask).reshape(count, actions)
        return np.packbits(rows.astype(bool), axis=-1, bitorder="little")


def load_policy(
    run: str | Path,
    *,
    checkpoint: str | Path | None = None,
    deterministic: bool = True,
    seed: int = 0,
) -> TrainedPolicy:
    """The best policy of a run folder, as a function of observations. It needs NumPy alone.

    `checkpoint` takes the policy of that moment instead: a file, or "newest".
    """
    folder = Path(run)
    card = read_card(folder)
    algorithm = make_algorithm(card["algo"], _spec(card), card["hyper_parameters"], str(folder))
    if checkpoint is None:
        params = _read_params(folder, algorithm)
    else:
        params = _params_then(folder, algorithm, checkpoint)
    return TrainedPolicy(algorithm, params, card, deterministic, seed)


def read_card(folder: Path) -> dict[str, Any]:
    """What is known of a run's policy; an error where there is none."""
    if not (folder / CARD).is_file():
        raise HeadraceError(
            f"{folder} has no policy: there is no {CARD} (headrace train writes one)"
        )
    card = read_json(folder / CARD)
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise HeadraceError(f"{folder / CARD} is not what this version of headrace writes")
    return card


def _read_params(folder: Path, algorithm: Algorithm) -> Acting:
    """In the place of those that the algorithm begins with."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = folder / MODEL
    try:
        return trees.filled(algorithm.acting(algorithm.init(0)), load_file(path))
    except FileNotFoundError:
        raise HeadraceError(f"{path} is missing") from None
    except (OSError, SafetensorError, HeadraceError) as error:
        raise HeadraceError(f"{path} is damaged: {error}") from error


def _params_then(folder: Path, algorithm: Algorithm, checkpoint: str | Path) -> Acting:
    """Of what the learner was at a checkpoint."""
    if str(checkpoint) == NEWEST:
        paths = Checkpoints(folder / CHECKPOINTS).paths()
        if not paths:
            raise HeadraceError(f"{folder} has no checkpoint yet")
        checkpoint = paths[-1]
    loaded = read(Path(checkpoint))
    learner = {
        name.removeprefix(LEARNER): array
        for name, array in loaded.arrays.items()
        if name.startswith(LEARNER)
    }
    try:
        return algorithm.acting(trees.filled(algorithm.init(0), learner))
    except HeadraceError as error:
        raise HeadraceError(f"{checkpoint} is of another run than {folder}: {error}") from error


def _spec(card: dict[str, Any]) -> EnvSpec:
    """As far as acting needs it: the environment itself may not be installed here."""
    return EnvSpec(
        EnvEntry(card["env"]),
        space_from_json(card["observation_space"]),
        space_from_json(card["action_space"]),
        card["max_episode_steps"],
        card["options"],
        card["masked"],
        card["players"],
    )
