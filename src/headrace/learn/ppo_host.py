# SPDX-License-Identifier: Apache-2.0
"""PPO's update without XLA, for small networks of dense layers.

Their XLA program takes longer to trace and to compile than many a run takes to its end; this one
begins at once, and needs no JAX. It learns what `Ppo.update` learns, to rounding, from the same
samples in the same order, so that a run may go on by either. The minibatches are one native call
where the processor and the network allow it, and NumPy's elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace import _native
from headrace.envs.array.namespace import namespace
from headrace.errors import HeadraceError
from headrace.learn import adam
from headrace.learn.algorithm import Metrics, Rollout
from headrace.learn.networks import Mlp
from headrace.learn.ppo_numpy import Flat, Learning, Minibatches, NumPySteps
from headrace.learn.ppo_samples import Samples, order, samples

if TYPE_CHECKING:
    from headrace.learn.ppo import Ppo, PpoState

NS = namespace("numpy")
_MOST_LAYERS, _LANES = 7, 32
"""Of the native steps' networks; widths are multiples of lanes."""


class HostUpdate:
    """`(state, rollout) -> state, metrics`, as `Ppo.update`, in NumPy arrays."""

    def __init__(self, algorithm: Ppo, native: bool | None = None):
        """`native` None: where it can be."""
        body = algorithm.network.body
        if not isinstance(body, Mlp) or not body.hidden:
            raise HeadraceError(
                f"the host learns networks of dense layers; {algorithm.spec.id} has a "
                f"{type(body).__name__} one: --learner xla"
            )
        self._algorithm, self._body = algorithm, body
        wanted = has_native(body) if native is None else native
        self._steps = NativeSteps(algorithm) if wanted else NumPySteps(algorithm.config)

    def __call__(self, state: PpoState, experience: Rollout) -> tuple[PpoState, Metrics]:
        """All epochs over one rollout [T, N]; what was given stays as it is."""
        from headrace.learn.ppo import METRICS

        algorithm, config = self._algorithm, self._algorithm.config
        size, count = experience.reward.size, state.adam.count
        left = float(algorithm.left(NS, state, size))
        dealt, blocks = order(NS, algorithm, state, size)
        state, found = samples(NS, algorithm, state, experience)
        given = Minibatches(
            _flat(found, self._body),
            dealt,
            size // blocks,
            config.learning_rate * left,
            config.clip * left,
        )
        learning = Learning(*map(Flat, (state.params, state.adam.mean, state.adam.square)))
        means = self._steps(learning, float(count), given).astype(np.float32)
        params, mean, square = (part.tree for part in learning)
        moments = adam.Adam(mean, square, count + np.float32(len(dealt)))
        state = state._replace(params=params, adam=moments)
        state = state._replace(rollouts=state.rollouts + np.uint32(1))
        return adam.tree_map(np.asarray, state), dict(zip(METRICS, means, strict=True))


class NativeSteps:
    """All minibatches of an update in one call of the native core."""

    def __init__(self, algorithm: Ppo):
        config, network = algorithm.config, algorithm.network
        body = network.body
        assert isinstance(body, Mlp)
        self._native = _native.PpoSteps(
            inputs=body.inputs,
            hidden=list(body.hidden),
            outputs=network.outputs,
            separate=network.separate,
            continuous=network.log_std is not None,
            tanh=body.activation == "tanh",
            value_weight=config.value_weight,
            entropy_weight=config.entropy_weight,
            max_grad_norm=config.max_grad_norm,
            normalise_advantages=config.normalise_advantages,
            adam=[adam.MEAN_DECAY, adam.SQUARE_DECAY, adam.EPSILON],
        )

    def __call__(self, learning: Learning, count: float, given: Minibatches) -> np.ndarray:
        """One step a minibatch, `count` having been done before; the means of the metrics."""
        vectors = (part.vector for part in learning)
        rest = (given.dealt, given.block, given.learning_rate, given.clip)
        return np.array(self._native.update(*vectors, count, *given.samples, *rest))


def has_native(body: Mlp) -> bool:
    """Whether this processor runs `NativeSteps` of such a network."""
    fits = 0 < len(body.hidden) <= _MOST_LAYERS and not any(width % _LANES for width in body.hidden)
    return fits and _native.has_ppo()


def _flat(found: Samples, body: Mlp) -> Samples:
    """[T * N, ...], observations as the network's numbers."""
    rows = Samples(
        *(
            None if part is None else np.ascontiguousarray(part.reshape((-1, *part.shape[2:])))
            for part in found
        )
    )
    if rows.action.ndim > 1:
        rows = rows._replace(action=rows.action.reshape((len(rows.action), -1)))
    return rows._replace(obs=np.ascontiguousarray(body.read(NS, rows.obs)))
