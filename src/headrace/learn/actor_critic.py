# SPDX-License-Identifier: Apache-2.0
"""A policy and a value in one network, as on-policy algorithms have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import gymnasium
import numpy as np

from headrace.envs.array.namespace import Array, Namespace
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.learn.convolution import Convolutional, Residual, convolution_init, convolve
from headrace.learn.distributions import Categorical, Gaussian
from headrace.learn.networks import Activation, Dense, Network, dense, dense_init, mlp_for
from headrace.policy import legal_actions

if TYPE_CHECKING:
    from headrace.learn.native_moves import LegalMoves

NetworkName = Literal["auto", "mlp", "conv", "residual"]
BOARD_PLANES = 73
"""AlphaZero's kinds of moves from a square: 8 x 8 x 73 actions, in Pgx's order."""
_POLICY_GAIN = 0.01


class ActorCriticParams(NamedTuple):
    """`value_body` is () where policy and value share one body."""

    body: Any
    value_body: Any
    policy: Dense
    value: Any
    """The last layer, or two on a board."""
    log_std: Array
    """[n] of continuous actions, else [0]."""


@dataclass(frozen=True)
class ActorCritic:
    """Outputs for a distribution of actions, and a value, for a batch of observations."""

    body: Network
    outputs: int
    log_std: float | None = None
    """Of continuous actions to begin with; None: there are none."""
    separate: bool = False
    """Whether the value has a body of its own."""

    def init(self, generator: np.random.Generator) -> ActorCriticParams:
        """A policy that prefers nothing yet."""
        continuous = self.log_std is not None
        return ActorCriticParams(
            body=self.body.init(generator),
            value_body=self.body.init(generator) if self.separate else (),
            policy=self._policy_init(generator),
            value=self._value_init(generator),
            log_std=np.full(self.outputs if continuous else 0, self.log_std or 0, np.float32),
        )

    def apply(self, ns: Namespace, params: ActorCriticParams, obs: Array) -> tuple[Array, Array]:
        """Outputs [B, outputs] and values [B]."""
        features = self.body.apply(ns, params.body, obs)
        return dense(params.policy, features), self._value(ns, params, obs, features)

    def policy(
        self, ns: Namespace, params: ActorCriticParams, obs: Array, mask: Array | None
    ) -> tuple[Categorical | Gaussian | LegalMoves, Array]:
        """The distribution of actions for a batch of observations, and values [B].

        `mask` is uint8 [B, bytes] where some actions may be illegal.
        """
        outputs, value = self.apply(ns, params, obs)
        if self.log_std is not None:
            return Gaussian(ns, outputs, params.log_std), value
        legal = None if mask is None else legal_actions(ns, mask, outputs.shape[-1])
        return Categorical(ns, outputs, legal), value

    def values(self, ns: Namespace, params: ActorCriticParams, obs: Array) -> Array:
        """Values [B] alone."""
        features = () if self.separate else self.body.apply(ns, params.body, obs)
        return self._value(ns, params, obs, features)

    def _policy_init(self, generator: np.random.Generator) -> Dense:
        return dense_init(generator, self.body.features, self.outputs, _POLICY_GAIN)

    def _value_init(self, generator: np.random.Generator) -> Any:
        return dense_init(generator, self.body.features, 1)

    def _value(
        self, ns: Namespace, params: ActorCriticParams, obs: Array, features: Array
    ) -> Array:
        if self.separate:
            features = self.body.apply(ns, params.value_body, obs)
        return dense(params.value, features)[..., 0]


@dataclass(frozen=True)
class BoardActorCritic(ActorCritic):
    """On a chess board: moves from a square are told from its own features, by few weights."""

    def apply(self, ns: Namespace, params: ActorCriticParams, obs: Array) -> tuple[Array, Array]:
        """Logits [B, 8 * 8 * 73] and values [B]."""
        board = self._board.map(ns, params.body, obs)  # [B, row, column, channels]
        planes = convolve(ns, params.policy, board)
        # Rows count from the eighth rank down, actions by file and then by rank upwards.
        by_file = ns.xp.moveaxis(ns.xp.flip(planes, axis=1), 1, 2)
        return by_file.reshape((obs.shape[0], -1)), self._board_value(ns, params, board)

    def policy(
        self, ns: Namespace, params: ActorCriticParams, obs: Array, mask: Array | None
    ) -> tuple[Categorical | Gaussian | LegalMoves, Array]:
        """Over the legal moves alone where the native core computes them."""
        if ns.name == "jax" and mask is not None:
            from headrace.learn import native_moves

            if native_moves.runs(self._board.channels):
                board = self._board.map(ns, params.body, obs)
                value = self._board_value(ns, params, board)
                return native_moves.LegalMoves(params.policy, board, mask), value
        return super().policy(ns, params, obs, mask)

    def values(self, ns: Namespace, params: ActorCriticParams, obs: Array) -> Array:
        """Values [B] alone."""
        return self._board_value(ns, params, self._board.map(ns, params.body, obs))

    @property
    def _board(self) -> Residual:
        assert isinstance(self.body, Residual)
        return self.body

    def _policy_init(self, generator: np.random.Generator) -> Dense:
        return convolution_init(generator, 1, self._board.channels, BOARD_PLANES, _POLICY_GAIN)

    def _value_init(self, generator: np.random.Generator) -> tuple[Dense, Dense]:
        return (
            dense_init(generator, self._board.features, self._board.channels),
            dense_init(generator, self._board.channels, 1),
        )

    def _board_value(self, ns: Namespace, params: ActorCriticParams, board: Array) -> Array:
        first, last = params.value
        hidden = ns.xp.maximum(dense(first, board.reshape((board.shape[0], -1))), 0)
        return ns.xp.tanh(dense(last, hidden))[..., 0]


def actor_critic(
    spec: EnvSpec,
    *,
    network: NetworkName,
    hidden: tuple[int, ...],
    activation: Activation,
    separate: bool,
    channels: int,
    blocks: int,
    log_std: float,
) -> ActorCritic:
    """The network for an environment: "auto" goes by the shape of its observations."""
    space, actions = spec.observation_space, spec.action_space
    shape = space.shape or ()
    discrete = isinstance(actions, gymnasium.spaces.Discrete)
    if not discrete and not isinstance(actions, gymnasium.spaces.Box):
        raise HeadraceError(
            f"{spec.id}: actions are {type(actions).__name__}; this network has Discrete or Box"
        )
    outputs = int(actions.n) if discrete else int(np.prod(actions.shape))
    board = discrete and shape[:2] == (8, 8) and outputs == 64 * BOARD_PLANES
    if network == "auto":
        pixels = len(shape) == 3 and min(sorted(shape)[1:]) >= 36
        network = "residual" if board else "conv" if pixels else "mlp"
    log_std_or_none = None if discrete else log_std
    if network == "mlp":
        body = mlp_for(space, tuple(hidden), activation)
        return ActorCritic(body, outputs, log_std_or_none, separate)
    if len(shape) != 3:
        raise HeadraceError(f"{spec.id}: network '{network}' is for images; these are {shape}")
    if network == "conv":
        return ActorCritic(Convolutional(shape), outputs, log_std_or_none)
    body = Residual(shape, channels, blocks)
    return (BoardActorCritic if board else ActorCritic)(body, outputs, log_std_or_none)
