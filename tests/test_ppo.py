# SPDX-License-Identifier: Apache-2.0
"""PPO against the equations in plain NumPy, finite differences, and another's optimiser."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import headrace
from headrace import HeadraceError
from headrace.envs.array.namespace import namespace
from headrace.envs.chess.native import Position
from headrace.envs.philox import identify
from headrace.learn.actor_critic import BoardActorCritic
from headrace.learn.algorithm import Rollout
from headrace.learn.convolution import Residual
from headrace.learn.normaliser import Moments
from headrace.learn.ppo import Config, Ppo
from headrace.learn.ppo_samples import Samples, next_values, order, samples
from headrace.policy import PolicyKey
from headrace.train.experience import rollout_of

NS, JAX = namespace("numpy"), namespace("jax")
SMALL = Config(hidden=(5,), epochs=2, minibatches=3, entropy_weight=0.1)


def ppo(env, **changes):
    return Ppo(headrace.spec(env), replace(SMALL, **changes))


def shaken(algorithm, seed=1):
    """Parameters that prefer something."""
    chance = np.random.default_rng(seed)
    params = algorithm.init(seed).params
    return jax.tree.map(lambda a: a + chance.normal(0, 0.3, a.shape).astype(np.float32), params)


def rollout(algorithm, num_envs=6, steps=8, seed=0, env=None, **options):
    """Experience of a policy that is not the one that learns from it."""
    spec = env or algorithm.spec
    with headrace.make_collector(
        spec,
        rung="native",
        num_envs=num_envs,
        steps=steps,
        seed=seed,
        policy=algorithm.policy("numpy"),
    ) as source:
        acting = algorithm.acting(algorithm.init(3))._replace(params=shaken(algorithm, 5))
        source.collect(acting)
        return jax.tree.map(np.array, rollout_of(source.collect(acting)))


def samples_of(algorithm, chance, count=12):
    """Minibatches out of nothing; some actions are illegal where the environment has such."""
    spec, shape = algorithm.spec, algorithm.spec.observation_space.shape
    mask = None
    if spec.masked:
        obs = chance.integers(0, 2, (count, *shape)).astype(np.uint8)
        mask = chance.integers(0, 256, (count, spec.mask_bytes)).astype(np.uint8)
        legal = np.unpackbits(mask, axis=-1, bitorder="little")
        action = np.array([chance.choice(np.flatnonzero(row)) for row in legal])
    else:
        obs = chance.normal(size=(count, *shape)).astype(np.float32)
        action = chance.integers(0, 2, count)
    if not hasattr(spec.action_space, "n"):
        action = chance.normal(size=(count, *spec.action_space.shape)).astype(np.float32)
    log_prob, advantage, target = chance.normal(-1, 0.3, (3, count)).astype(np.float32)
    return Samples(obs, action, log_prob, advantage, target, mask)


def plain_loss(algorithm, params, part, clip):
    """The loss of Schulman et al. (2017), equation 9, in float64."""
    config = algorithm.config
    outputs, value = algorithm.network.apply(NS, params, part.obs)
    outputs, value = outputs.astype(np.float64), value.astype(np.float64)
    if params.log_std.size:
        std = np.exp(params.log_std.astype(np.float64))
        away = (part.action - outputs) / std
        log_prob = (-(away**2) / 2 - np.log(std * np.sqrt(2 * np.pi))).sum(-1)
        entropy = 0.5 * np.log(2 * np.pi * np.e * std**2).sum()
    else:
        exps = np.exp(outputs)
        if part.mask is not None:
            bits = np.unpackbits(part.mask, axis=-1, bitorder="little")
            exps = exps * bits[:, : exps.shape[1]]
        p = exps / exps.sum(-1, keepdims=True)
        log_prob = np.log(p[np.arange(len(p)), part.action])
        entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(-1).mean()
    ratio = np.exp(log_prob - part.log_prob)
    advantage = (part.advantage - part.advantage.mean()) / part.advantage.std()
    gain = np.minimum(ratio * advantage, np.clip(ratio, 1 - clip, 1 + clip) * advantage)
    value_loss = 0.5 * ((value - part.value_target) ** 2).mean()
    total = -gain.mean() + config.value_weight * value_loss - config.entropy_weight * entropy
    return total, [-gain.mean(), value_loss, entropy]


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "Chess-v0"])
def test_the_loss_is_the_papers(env):
    algorithm = ppo(env, channels=4, blocks=1)
    params, part = shaken(algorithm), samples_of(algorithm, np.random.default_rng(0))
    loss, metrics = jax.jit(algorithm._loss)(params, part, 0.5)
    wanted, parts = plain_loss(algorithm, params, part, 0.1)
    assert float(loss) == pytest.approx(wanted, rel=1e-3)
    np.testing.assert_allclose(metrics[:3], parts, rtol=2e-3)


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_gradients_are_those_of_finite_differences(env):
    algorithm = ppo(env)
    with jax.enable_x64(True):
        params, part = jax.tree.map(
            lambda a: jnp.asarray(a, None if a.dtype == np.int64 else np.float64),
            (shaken(algorithm), samples_of(algorithm, np.random.default_rng(0))),
        )
        flat, rebuild = jax.flatten_util.ravel_pytree(params)

        def loss(flat):
            return algorithm._loss(rebuild(flat), part, 1.0)[0]

        gradient = np.asarray(jax.jit(jax.grad(loss))(flat))
        step = 1e-6 * np.eye(len(flat))
        both = np.asarray(jax.jit(jax.vmap(loss))(np.concatenate([flat + step, flat - step])))
    numeric = (both[: len(flat)] - both[len(flat) :]) / 2e-6
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-6)


def test_an_update_is_the_optimisers_steps_on_each_minibatch_in_turn():
    algorithm = ppo("CartPole-v1", learning_rate=0.01, max_grad_norm=0.3)
    state, experience = algorithm.init(2), rollout(ppo("CartPole-v1"))
    after, _ = jax.jit(algorithm.update)(state, experience)
    _, found = samples(NS, algorithm, state, experience)
    dealt, blocks = order(NS, algorithm, state, experience.reward.size)
    assert blocks == experience.reward.size
    flat = jax.tree.map(lambda rows: rows.reshape((-1, *rows.shape[2:])), found)
    theirs = optax.chain(optax.clip_by_global_norm(0.3), optax.adam(0.01))

    @jax.jit
    def one(params, moments, part):
        gradient, _ = jax.grad(algorithm._loss, has_aux=True)(params, part, 1.0)
        change, moments = theirs.update(gradient, moments)
        return optax.apply_updates(params, change), moments

    params, moments = state.params, jax.jit(theirs.init)(state.params)
    for chosen in dealt:
        part = jax.tree.map(lambda rows, chosen=chosen: np.asarray(rows)[chosen], flat)
        params, moments = one(params, moments, part)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), after.params, params
    )


@pytest.mark.parametrize("size", [48, 3 * 2**14])
def test_every_epoch_deals_out_every_block_once(size):
    algorithm = ppo("CartPole-v1")
    orders = []
    for rollouts in (0, 1):
        state = algorithm.init(0)._replace(rollouts=np.uint32(rollouts))
        dealt, blocks = order(JAX, algorithm, state, size)
        assert size % blocks == 0
        assert blocks <= max(size, 4096)
        np.testing.assert_array_equal(dealt, order(NS, algorithm, state, size)[0])
        for epoch in np.asarray(dealt).reshape(2, -1):
            np.testing.assert_array_equal(np.sort(epoch), np.arange(blocks))
        orders += list(np.asarray(dealt).reshape(2, -1))
    assert len({one.tobytes() for one in orders}) == 4


@pytest.mark.parametrize(
    ("env", "network", "num_envs", "steps", "limit"),
    [("CartPole-v1", {}, 20, 40, 12), ("Chess-v0", {"channels": 4, "blocks": 1}, 3, 9, 4)],
)
def test_what_was_cut_off_is_valued_by_what_followed_and_all_else_by_the_next_row(
    env, network, num_envs, steps, limit
):
    algorithm = ppo(env, **network)
    state = algorithm.init(0)._replace(params=shaken(algorithm))
    made = rollout(
        algorithm,
        num_envs=num_envs,
        steps=steps,
        env=headrace.spec(env, max_episode_steps=limit),
    )
    assert made.truncated[:-1].any()
    assert made.terminated.any() or env == "Chess-v0"
    got = next_values(NS, algorithm, state, made)
    np.testing.assert_allclose(next_values(JAX, algorithm, state, made), got, rtol=1e-5, atol=1e-5)
    flat = made.next_obs.reshape((-1, *made.next_obs.shape[2:]))
    network = algorithm.network.values(NS, state.params, flat).reshape(got.shape)
    for t, env in np.ndindex(*got.shape):
        if made.terminated[t, env]:
            continue  # it does not count
        recorded = t + 1 < len(got) and not made.truncated[t, env]
        wanted = made.extras["value"][t + 1, env] if recorded else network[t, env]
        assert got[t, env] == pytest.approx(wanted, rel=1e-4, abs=1e-4)


def test_annealing_ends_learning():
    algorithm = ppo("CartPole-v1", anneal_steps=96)
    state, made = algorithm.init(0), rollout(ppo("CartPole-v1"))
    update = jax.jit(algorithm.update)
    for done in range(3):
        before, (state, _) = state, update(state, made)
        moved = jax.tree.map(lambda a, b: (np.asarray(a) != b).any(), before.params, state.params)
        assert any(jax.tree.leaves(moved)) == (done < 2)


def test_normalisers_learn_from_a_rollout_and_ship_with_the_policy():
    algorithm = ppo("CartPole-v1", normalise_observations=True, scale_rewards=True)
    made = rollout(ppo("CartPole-v1"))
    state, _ = jax.jit(algorithm.update)(algorithm.init(0), made)
    flat = made.obs.reshape(-1, 4)
    acting = algorithm.acting(state)
    assert isinstance(acting.observations, Moments)
    np.testing.assert_allclose(acting.observations.mean, flat.mean(axis=0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(acting.observations.var, flat.var(axis=0), rtol=1e-3)
    assert float(state.rewards.count) == made.reward.size


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "Chess-v0"])
def test_both_libraries_choose_the_same_actions(env, deterministic):
    algorithm = ppo(env, channels=8, blocks=1, normalise_observations=env == "Pendulum-v1")
    chance = np.random.default_rng(4)
    part = samples_of(algorithm, chance, 64)
    acting = algorithm.acting(algorithm.init(0))._replace(params=shaken(algorithm))
    out = []
    for ns in (NS, JAX):
        apply = algorithm.policy(ns.name, deterministic=deterministic).apply
        apply = jax.jit(apply) if ns is JAX else apply
        key = PolicyKey(identify(ns, 64, 7), np.uint32(11))
        out.append(apply(acting, part.obs, part.mask, key))
    (action, extras), (action2, extras2) = out
    np.testing.assert_allclose(action, action2, rtol=1e-4, atol=1e-4)
    for name, value in extras.items():
        np.testing.assert_allclose(value, extras2[name], rtol=1e-3, atol=1e-4, err_msg=name)
    if part.mask is not None:
        bits = np.unpackbits(part.mask, axis=-1, bitorder="little")
        assert bits[np.arange(64), action].all()


def test_a_boards_moves_are_told_from_the_squares_they_begin_on():
    network = BoardActorCritic(Residual((8, 8, 20), 1, 0), 4672)
    params = network.init(np.random.default_rng(0))
    own_pawns = np.zeros((3, 3, 20, 1), np.float32)
    own_pawns[1, 1, 0] = 1
    params = params._replace(
        body=params.body._replace(first=params.body.first._replace(weight=own_pawns)),
        policy=params.policy._replace(weight=np.ones((1, 1, 1, 73), np.float32)),
    )
    for fen in (
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "8/4P3/8/1p4k1/8/6K1/3R3p/8 b - - 0 1",
    ):
        game = Position(fen)
        logits, _ = network.apply(NS, params, game.observation("compact")[None])
        for move, action in zip(game.legal_moves, game.legal_actions, strict=True):
            board = {}
            for rank, text in zip("87654321", fen.split()[0].split("/"), strict=True):
                file = 0
                for piece in text:
                    if piece.isdigit():
                        file += int(piece)
                    else:
                        board["abcdefgh"[file] + rank] = piece
                        file += 1
            assert logits[0, action] == float(board[move[:2]] in "Pp")


def test_wrong_settings_are_named():
    with pytest.raises(HeadraceError, match="discount is 2"):
        Config(discount=2)
    with pytest.raises(HeadraceError, match="epochs is 0"):
        Config(epochs=0)
    with pytest.raises(HeadraceError, match="minibatches"):
        ppo("CartPole-v1", minibatches=5).update(ppo("CartPole-v1").init(0), _empty())
    with pytest.raises(HeadraceError, match="is for images"):
        ppo("CartPole-v1", network="conv")


def _empty():
    zero = np.zeros((4, 4), np.float32)
    flags = zero > 0
    obs = np.zeros((4, 4, 4), np.float32)
    extras = {"log_prob": zero, "value": zero}
    return Rollout(obs, zero.astype(np.uint8), zero, flags, flags, obs, extras)
