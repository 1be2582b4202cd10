# SPDX-License-Identifier: Apache-2.0
"""PPO's update without XLA: the losses of `ppo.py`, their derivatives written out.

For small networks of dense layers an XLA program takes longer to trace and to compile than many a
run takes to its end; this one needs nothing but NumPy. It learns what `Ppo.update` learns, to
rounding, from the same samples in the same order, so that a run may go on by either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.envs.array.namespace import namespace
from headrace.errors import HeadraceError
from headrace.learn import adam
from headrace.learn.actor_critic import ActorCriticParams
from headrace.learn.algorithm import Metrics, Rollout
from headrace.learn.networks import Dense, Mlp, flat_floats
from headrace.learn.ppo_samples import Samples, order, samples
from headrace.policy import legal_actions

if TYPE_CHECKING:
    from headrace.learn.ppo import Ppo, PpoState

NS = namespace("numpy")


class Flat:
    """A tree of float32 arrays that lie in one vector, one after another."""

    def __init__(self, like: Any):
        sizes: list[int] = []
        adam.tree_map(lambda leaf: sizes.append(np.size(leaf)), like)
        self.vector = np.empty(sum(sizes), np.float32)
        ends = np.cumsum(sizes).tolist()
        parts = iter(zip(ends, sizes, strict=True))

        def view(leaf: np.ndarray) -> np.ndarray:
            end, size = next(parts)
            part = self.vector[end - size : end].reshape(np.shape(leaf))
            part[...] = leaf
            return part

        self.tree = adam.tree_map(view, like)


@dataclass(frozen=True)
class Limits:
    """What is the same for all minibatches of an update."""

    learning_rate: float
    clip: float


def check(algorithm: Ppo) -> None:
    """Raise unless the host can learn it."""
    body = algorithm.network.body
    if not isinstance(body, Mlp) or not body.hidden:
        raise HeadraceError(
            f"learner host is for networks of dense layers; {algorithm.spec.id}'s is a "
            f"{type(body).__name__}: --learner xla"
        )


class HostUpdate:
    """`(state, rollout) -> state, metrics`, as `Ppo.update`, in NumPy arrays."""

    def __init__(self, algorithm: Ppo):
        check(algorithm)
        self._algorithm, self._config = algorithm, algorithm.config

    def __call__(self, state: PpoState, experience: Rollout) -> tuple[PpoState, Metrics]:
        """All epochs over one rollout [T, N]; what was given stays as it is."""
        from headrace.learn.ppo import METRICS

        algorithm, size = self._algorithm, experience.reward.size
        left = float(algorithm.left(NS, state, size))
        limits = Limits(self._config.learning_rate * left, self._config.clip * left)
        dealt, blocks = order(NS, algorithm, state, size)
        state, found = samples(NS, algorithm, state, experience)
        flat = Samples(*(None if rows is None else _rows(rows) for rows in found))
        flat = flat._replace(obs=np.ascontiguousarray(flat_floats(NS, flat.obs)))
        within = np.arange(size // blocks)
        params, mean, square = Flat(state.params), Flat(state.adam.mean), Flat(state.adam.square)
        count, sums = np.float32(state.adam.count), np.zeros(len(METRICS))
        for chosen in dealt:
            rows = chosen if blocks == size else (chosen[:, None] * len(within) + within).ravel()
            part = Samples(*(None if array is None else array[rows] for array in flat))
            gradient, metrics = self._gradient(params.tree, part, limits.clip)
            count = self._step(params, mean, square, count, gradient, limits.learning_rate)
            sums += metrics
        means: Metrics = dict(zip(METRICS, (sums / len(dealt)).astype(np.float32), strict=True))
        moments = adam.Adam(mean.tree, square.tree, count)
        rollouts = state.rollouts + np.uint32(1)
        state = state._replace(params=params.tree, adam=moments, rollouts=rollouts)
        return adam.tree_map(np.asarray, state), means

    def _step(
        self, params: Flat, mean: Flat, square: Flat, count: Any, gradient: Flat, rate: float
    ) -> Any:
        """Adam's, by a gradient that is not too long; returns its new count."""
        g = gradient.vector
        norm = np.sqrt(np.vdot(g, g))
        g *= np.minimum(np.float32(1), self._config.max_grad_norm / (norm + np.float32(1e-6)))
        count = np.float32(count + 1)
        mean.vector *= adam.MEAN_DECAY
        mean.vector += (1 - adam.MEAN_DECAY) * g
        square.vector *= adam.SQUARE_DECAY
        square.vector += (1 - adam.SQUARE_DECAY) * g * g
        unbias = np.float32(1) / (1 - np.float32(adam.SQUARE_DECAY) ** count)
        way = np.sqrt(square.vector * unbias)
        way += np.float32(adam.EPSILON)
        np.divide(mean.vector, way, out=way)
        way *= np.float32(rate) / (1 - np.float32(adam.MEAN_DECAY) ** count)
        params.vector -= way
        return count

    def _gradient(
        self, params: ActorCriticParams, part: Samples, clip: float
    ) -> tuple[Flat, np.ndarray]:
        """Of the loss of a minibatch [B, ...], and the metrics."""
        config, separate = self._config, bool(params.value_body)
        hidden = self._forward(params.body, part.obs)
        of_value = self._forward(params.value_body, part.obs) if separate else hidden
        outputs = _dense(params.policy, hidden[-1])
        away = _dense(params.value, of_value[-1])[:, 0] - part.value_target
        rule = _gaussian if params.log_std.size else _categorical
        log_prob, entropy, backwards = rule(outputs, params.log_std, part)
        log_ratio = log_prob - part.log_prob
        ratio = np.exp(log_ratio)
        advantage = part.advantage
        if config.normalise_advantages:
            advantage = (advantage - advantage.mean()) / (advantage.std() + np.float32(1e-8))
        gain, clipped = ratio * advantage, np.clip(ratio, 1 - clip, 1 + clip) * advantage
        size = np.float32(len(ratio))
        # Where the clipped gain is the lesser one it is a constant.
        of_log_prob = np.where(gain <= clipped, -gain, 0) / size
        of_outputs, of_log_std = backwards(of_log_prob, config.entropy_weight / size)
        made = Flat(adam.tree_map(np.zeros_like, params))
        tree: ActorCriticParams = made.tree
        tree.log_std[...] = of_log_std
        back = _dense_back(tree.policy, params.policy, hidden[-1], of_outputs)
        of_values = (config.value_weight / size * away)[:, None]
        value_back = _dense_back(tree.value, params.value, of_value[-1], of_values)
        if separate:
            self._back(tree.value_body, params.value_body, of_value, value_back)
        else:
            back += value_back
        self._back(tree.body, params.body, hidden, back)
        metrics = np.array([
            -np.minimum(gain, clipped).mean(),
            0.5 * (away * away).mean(),
            entropy.mean(),
            (ratio - 1 - log_ratio).mean(),
            (np.abs(ratio - 1) > clip).mean(),
        ])  # fmt: skip
        return made, metrics

    def _forward(self, layers: tuple[Dense, ...], x: np.ndarray) -> list[np.ndarray]:
        """What goes into each layer, and what comes out of the last."""
        through = [x]
        for layer in layers:
            out = _dense(layer, through[-1])
            if self._config.activation == "tanh":
                np.tanh(out, out=out)
            else:
                np.maximum(out, 0, out=out)
            through.append(out)
        return through

    def _back(
        self,
        gradient: tuple[Dense, ...],
        layers: tuple[Dense, ...],
        through: list[np.ndarray],
        back: np.ndarray,
    ) -> None:
        """Fill a body's gradient from that of what came out of it."""
        for number in reversed(range(len(layers))):
            out = through[number + 1]
            back = back * (1 - out * out if self._config.activation == "tanh" else out > 0)
            if number:
                back = _dense_back(gradient[number], layers[number], through[number], back)
            else:
                _params_back(gradient[0], through[0], back)


def _rows(array: np.ndarray) -> np.ndarray:
    """[T, N, ...] as [T * N, ...]."""
    return np.ascontiguousarray(array).reshape((-1, *array.shape[2:]))


def _dense(layer: Dense, x: np.ndarray) -> np.ndarray:
    out = x @ layer.weight
    out += layer.bias
    return out


def _params_back(gradient: Dense, x: np.ndarray, back: np.ndarray) -> None:
    np.matmul(x.T, back, out=gradient.weight)
    np.sum(back, axis=0, out=gradient.bias)


def _dense_back(gradient: Dense, layer: Dense, x: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Fill a layer's gradient, from that of what comes out; returns that of what goes in."""
    _params_back(gradient, x, back)
    return back @ layer.weight.T


def _categorical(logits: np.ndarray, _: np.ndarray, part: Samples) -> Any:
    """Log-probabilities [B] and entropies [B], and from gradients to the logits'."""
    rows, count = np.arange(len(logits)), logits.shape[1]
    legal = None
    if part.mask is not None:
        legal = legal_actions(NS, part.mask, count)
        logits = np.where(legal, logits, np.float32(-1e9))
    shifted = logits - logits.max(axis=1, keepdims=True)
    probs = np.exp(shifted)
    total = probs.sum(axis=1, keepdims=True)
    log_probs = shifted - np.log(total)
    probs /= total
    entropy = -(probs * log_probs).sum(axis=1)

    def backwards(of_log_prob: np.ndarray, entropy_weight: Any) -> tuple[np.ndarray, Any]:
        """For a bonus of `entropy_weight` times the sum of entropies."""
        back = -of_log_prob[:, None] * probs
        back[rows, part.action] += of_log_prob
        if entropy_weight:
            back += entropy_weight * probs * (log_probs + entropy[:, None])
        return (back if legal is None else np.where(legal, back, 0)), np.float32(0)

    return log_probs[rows, part.action], entropy, backwards


def _gaussian(mean: np.ndarray, log_std: np.ndarray, part: Samples) -> Any:
    """The same, to means and deviations."""
    half_log_2pi = np.float32(0.5 * np.log(2 * np.pi))
    narrow = np.exp(-log_std)
    away = (part.action - mean) * narrow
    log_prob = (-0.5 * away * away - log_std - half_log_2pi).sum(axis=1)
    entropy = np.full(len(mean), (log_std + np.float32(0.5) + half_log_2pi).sum(), np.float32)

    def backwards(of_log_prob: np.ndarray, entropy_weight: Any) -> tuple[np.ndarray, Any]:
        of_log_std = of_log_prob @ (away * away - 1) - entropy_weight * np.float32(len(mean))
        return of_log_prob[:, None] * away * narrow, of_log_std

    return log_prob, entropy, backwards
