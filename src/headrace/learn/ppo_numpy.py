# SPDX-License-Identifier: Apache-2.0
"""PPO's minibatches by NumPy: the losses of `ppo.py`, with their derivatives written out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.envs.array.namespace import namespace
from headrace.learn import adam
from headrace.learn.actor_critic import ActorCriticParams
from headrace.learn.networks import Dense
from headrace.learn.ppo_samples import Samples
from headrace.policy import legal_actions

if TYPE_CHECKING:
    from headrace.learn.ppo import Config

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


class Learning(NamedTuple):
    """What steps move: the parameters, and Adam's moments of their gradients."""

    params: Flat
    mean: Flat
    square: Flat


class Minibatches(NamedTuple):
    """What an update's steps are made with."""

    samples: Samples
    """[S, ...]; observations are float32 [S, size]."""
    dealt: np.ndarray
    """[minibatches, blocks]"""
    block: int
    """Consecutive samples in a block."""
    learning_rate: float
    clip: float


class NumPySteps:
    """Steps a network of dense layers; `NativeSteps` does the same, to rounding."""

    def __init__(self, config: Config):
        self._config = config

    def __call__(self, learning: Learning, count: float, given: Minibatches) -> np.ndarray:
        """One step a minibatch, `count` having been done before; the means of the metrics."""
        every = []
        for number, chosen in enumerate(given.dealt):
            rows = (chosen[:, None] * given.block + np.arange(given.block)).ravel()
            part = Samples(*(None if array is None else array[rows] for array in given.samples))
            gradient, metrics = self._gradient(learning.params.tree, part, given.clip)
            self._step(learning, np.float32(count + number + 1), gradient, given.learning_rate)
            every.append(metrics)
        return np.mean(every, axis=0)

    def _step(self, learning: Learning, count: Any, gradient: Flat, rate: float) -> None:
        """Adam's, the `count`-th, by a gradient that is not too long."""
        params, mean, square = learning
        g = gradient.vector
        norm = np.sqrt(np.vdot(g, g))
        g *= np.minimum(np.float32(1), self._config.max_grad_norm / (norm + np.float32(1e-6)))
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
