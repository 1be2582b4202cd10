# SPDX-License-Identifier: Apache-2.0
"""What a run is: everything resolved, in one frozen dataclass, and as the JSON of its folder."""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from headrace.envs.spec import DEFINITIONS, EnvSpec
from headrace.errors import HeadraceError, unknown

Mode = Literal["compiled", "serial", "async"]
Definition = Literal["native", "array", "gym"]
LearnerName = Literal["xla", "host"]
ABOUT = ("format", "versions")
"""What a run's config.json has besides."""


@dataclass(frozen=True)
class Settings:
    """Of a run, besides its environment and its algorithm; the fields of `headrace train`."""

    seed: int = 0
    """Of environments, networks and evaluation: the same seed, the same run."""
    num_envs: int = 64
    """Environments side by side."""
    steps: int = 32
    """Steps of every environment in an iteration."""
    total_steps: int = 1_000_000
    """Stop after so many environment steps."""
    until: float | None = None
    """Stop when the mean return of an evaluation reaches this."""
    time_limit: float | None = None
    """Stop after so many seconds."""
    evaluation_every: int = 10_000
    """Environment steps between evaluations, rounded up to whole iterations."""
    evaluation_episodes: int = 20
    """Episodes of an evaluation, played without exploration."""
    checkpoint_every: float = 30.0
    """Seconds between checkpoints; there is one at the end as well."""
    keep_checkpoints: int = 3
    """How many of them are kept, besides the best."""
    updates: int | None = None
    """Off-policy: updates in an iteration; by default one for each environment step."""
    replay_size: int = 100_000
    """Off-policy: transitions that are kept to learn from."""
    learning_starts: int = 1000
    """Off-policy: transitions there must be before the first update."""
    samplers: int | None = None
    """Asynchronous: processes that make experience; measured where it is not given."""
    envs_per_sampler: int | None = None
    """Asynchronous: environments in each of them; measured where it is not given."""
    learner_threads: int | None = None
    """Asynchronous: threads of the learner's programs; by default one for each processor. If fewer,
    samplers have the other processors to themselves; for small networks one is enough."""
    updates_per_dispatch: int | None = None
    """Asynchronous, off-policy: updates in one call of the learner's program."""
    replay_ratio: float | None = None
    """Asynchronous, off-policy: updates for each environment step; by default as many of both as
    can be made."""
    sampling_rate: float | None = None
    """Asynchronous: environment steps a second that samplers make together and do not exceed; by
    default as many as they can."""
    largest_batch: int | None = None
    """Asynchronous, off-policy: the tuner raises the batch no further; by default twice the
    algorithm's own, which learns as well."""
    staleness: int = 4
    """Asynchronous, on-policy: versions of the policy after which a rollout is thrown away."""
    tune: bool = True
    """Asynchronous: whether what is not given is measured first, unless it is known from before."""
    lock_step: bool = False
    """Asynchronous: samplers and learner wait for each other, as in serial training."""
    evaluator: bool = True
    """Asynchronous: whether there is a process that evaluates."""
    evaluation_share: float = 0.25
    """Asynchronous: the part of its time that the evaluator may be busy. A small one keeps it out
    of the others' way; with a large one a run that has reached its target ends sooner."""
    view: bool = False
    """Asynchronous: whether there is a page on this machine that shows the run as it goes on."""
    video_every: float | None = 300.0
    """Asynchronous: seconds between videos of the agent, where its environment draws itself; the
    first after a fifth of them. The last ten are kept. None: there are none."""
    silence_limit: float = 60.0
    """Asynchronous: seconds after which a process that says nothing is taken for hung."""
    failures_in_a_row: int = 5
    """Asynchronous: restarts of one process, none of which lasted, after which the run stops."""
    save_replay: bool = False
    """Asynchronous, off-policy: whether checkpoints keep what was to be learnt from."""
    actor_device: str | None = None
    """Asynchronous, SAC and TD3: where the actor's updates run, "cpu:0" for instance."""
    critic_device: str | None = None
    """Asynchronous, SAC and TD3: where the critics' updates run."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "steps", "total_steps", "evaluation_every",
                     "evaluation_episodes", "keep_checkpoints", "replay_size", "updates",
                     "learning_starts", "samplers", "envs_per_sampler", "updates_per_dispatch",
                     "largest_batch", "failures_in_a_row", "learner_threads"):  # fmt: skip
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise HeadraceError(f"{name} is {value!r}; it must be a whole number of at least 1")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise HeadraceError(f"seed is {self.seed!r}; it must be in 0 .. 2^63 - 1")
        if self.until is not None and not math.isfinite(self.until):
            raise HeadraceError(f"until is {self.until}; it must be a return that can be reached")
        for name in ("time_limit", "checkpoint_every", "silence_limit", "video_every"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise HeadraceError(f"{name} is {value}; it must be a number of seconds")
        for name in ("replay_ratio", "sampling_rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise HeadraceError(f"{name} is {value}; it must be more than 0")
        if not 0 < self.evaluation_share <= 1:
            raise HeadraceError(
                f"evaluation_share is {self.evaluation_share}; it must be more than 0, at most 1"
            )
        if not isinstance(self.staleness, int) or self.staleness < 0:
            raise HeadraceError(f"staleness is {self.staleness!r}; it must be 0 or more")


@dataclass(frozen=True)
class RunConfig:
    """All that a run is made from."""

    env: str
    algo: str
    algorithm: Any
    """The algorithm's own `Config`."""
    settings: Settings
    mode: Mode
    definition: Definition
    learner: LearnerName = "xla"
    """Whether updates are XLA's programs, or the host's own, which need no JAX."""
    options: dict[str, Any] = field(default_factory=dict)
    """The environment's."""
    max_episode_steps: int | None = None
    preset: str | None = None
    """What the defaults were taken from."""
    evaluation_env: str | None = None
    """What evaluations are played in, where it is another: one with an opponent inside."""

    def to_json(self) -> dict[str, Any]:
        """One flat object, with the algorithm's in a place of its own; `from_json` reads it."""
        out = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        del out["settings"], out["algorithm"]
        out |= dataclasses.asdict(self.settings)
        return out | {"hyper_parameters": dataclasses.asdict(self.algorithm)}


def read_config_file(path: Path) -> dict[str, Any]:
    """A file of settings: the config.json of a run, or one's own, in JSON or TOML."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise HeadraceError(f"--config {path}: cannot be read ({error.strerror})") from error
    try:
        found = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        raise HeadraceError(f"--config {path}: {error}") from error
    if not isinstance(found, dict):
        raise HeadraceError(f"--config {path}: it must be one object with settings in it")
    return found


def checked_fields(kind: type, given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Values for fields of a dataclass, from JSON; an error names a near match, or the type."""
    hints = typing.get_type_hints(kind)
    known = [item.name for item in dataclasses.fields(kind)]
    out = {}
    for name, value in given.items():
        if name not in known:
            raise HeadraceError(f"{where}: {unknown('setting', name, known)}")
        out[name] = _as_type(hints[name], value, f"{where}: {name}")
    return out


def replaced(config: Any, given: Mapping[str, Any], where: str) -> Any:
    """The dataclass with these fields instead of its own, checked."""
    return dataclasses.replace(config, **checked_fields(type(config), given, where))


def _as_type(hint: Any, value: Any, where: str) -> Any:
    """The value as the field has it: JSON has no tuples, and writes 1.0 as 1."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        if value in parts:
            return value
        raise HeadraceError(f"{where} is {value!r}; it must be one of {', '.join(map(str, parts))}")
    if origin is tuple and isinstance(value, list | tuple):
        inner = parts[0]
        return tuple(_as_type(inner, one, where) for one in value)
    if origin not in (None, dict, tuple):  # a union
        for part in parts:
            try:
                return _as_type(part, value, where)
            except HeadraceError:
                continue
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    elif hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    elif hint is not int and hint is not float and isinstance(value, origin or hint):
        return value
    name = getattr(hint, "__name__", str(hint)) if origin is None else str(hint)
    raise HeadraceError(f"{where} is {value!r}; it must be of type {name}")


def config_from_json(told: dict[str, Any], where: str) -> RunConfig:
    """What `to_json` gave."""
    from headrace.train.algorithms import find_algorithm

    rest = {name: value for name, value in told.items() if name not in ABOUT}
    of_settings = {item.name for item in dataclasses.fields(Settings)}
    own = {name: rest.pop(name) for name in sorted(of_settings & set(rest))}
    try:
        algorithm = find_algorithm(rest["algo"])[1]()
        algorithm = replaced(algorithm, rest.pop("hyper_parameters"), where)
        settings = replaced(Settings(), own, where)
        return RunConfig(algorithm=algorithm, settings=settings, **rest)
    except (KeyError, TypeError) as error:
        raise HeadraceError(f"{where} is not what headrace train wrote: {error}") from error


def environment(config: RunConfig) -> EnvSpec:
    """The one that is learnt."""
    from headrace.envs import registry

    limit = config.max_episode_steps
    return registry.spec(config.env, max_episode_steps=limit or 0, **config.options)


def only(spec: EnvSpec, definition: str) -> EnvSpec:
    """The environment with this definition alone."""
    spec.require(definition, f"--definition {definition}")
    others = {name: None for name in DEFINITIONS if name != definition}
    return replace(spec, entry=replace(spec.entry, **others))
