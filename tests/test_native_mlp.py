"""The native networks against XLA's own products, values and gradients."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learner_numpy import assert_trees_close, assert_trees_equal, continuous_spec, transitions

from headrace import _native
from headrace.learn import native_mlp, sac, td3
from headrace.learn.native_mlp import mlps, outputs
from headrace.learn.networks import Dense

FORMS = [(23, 256, 256, 1), (3, 64, 64, 2), (5, 32, 1), (40, 64, 96, 32, 40)]


def native(precision):
    if not _native.has_mlp(precision == "bf16"):
        pytest.skip(f"this processor does not run it in {precision}")


def made(form, nets, rows):
    generator = np.random.default_rng(rows)

    def normal(*shape, scale=1.0):
        return jnp.asarray(scale * generator.standard_normal(shape), jnp.float32)

    def net():
        return tuple(
            Dense(normal(a, b, scale=a**-0.5), normal(b, scale=0.1)) for a, b in pairwise(form)
        )

    params = tuple(net() for _ in range(nets))
    return params, normal(rows, form[0]), normal(nets, rows, form[-1])


@pytest.fixture
def by_xla(monkeypatch):
    """`outputs` without the native core."""

    def switch():
        monkeypatch.setattr(native_mlp, "runs", lambda *_: False)

    return switch


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nets", [1, 2])
@pytest.mark.parametrize(("precision", "most"), [("f32", 1e-5), ("bf16", 0.2)])
def test_values_and_gradients(by_xla, form, nets, precision, most):
    """Blocks, what is left of them, and single rows; bfloat16 errs by whole activations."""
    native(precision)
    program = jax.jit(
        lambda params, x, gradient: (
            lambda out, back: (out, back(gradient), mlps(params, x, precision))
        )(*jax.vjp(lambda params, x: mlps(params, x, precision), params, x))
    )
    for rows in (1, 7, 64, 300):
        params, x, gradient = made(form, nets, rows)
        out, slopes, alone = program(params, x, gradient)
        np.testing.assert_array_equal(out, alone)
        by_xla()
        want, back = jax.vjp(outputs, params, x)
        for ours, theirs in zip(
            jax.tree.leaves((out, slopes)),
            jax.tree.leaves((want, back(gradient))),
            strict=True,
        ):
            if precision == "f32" or rows > 7:
                error = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
                assert error < most


def test_only_the_gradients_that_are_wanted():
    native("f32")
    params, x, gradient = made((23, 64, 64, 1), 2, 100)
    _, back = jax.vjp(lambda params, x: mlps(params, x), params, x)
    of_params, of_x = back(gradient)
    for frozen, first in ((True, 17), (False, -1), (True, 0)):
        _, back = jax.vjp(lambda p, x, f=frozen, i=first: mlps(p, x, "f32", f, i), params, x)
        params_now, x_now = back(gradient)
        want = jax.tree.map(jnp.zeros_like, of_params) if frozen else of_params
        assert_trees_equal(params_now, want)
        begin = 23 if first < 0 else first
        assert not x_now[:, :begin].any()
        np.testing.assert_allclose(x_now[:, begin:], of_x[:, begin:], rtol=1e-5, atol=1e-6)


def test_the_same_bits_again():
    """Whichever thread was faster."""
    native("f32")
    params, x, gradient = made((17, 64, 64, 12), 1, 1000)
    program = jax.jit(lambda p, x, g: jax.vjp(lambda p: mlps(p, x), p)[1](g))
    first = program(params, x, gradient)
    for _ in range(20):
        assert_trees_equal(program(params, x, gradient), first)


def test_a_nan_is_seen():
    native("f32")
    params, x, _ = made((3, 64, 64, 2), 1, 10)
    out = mlps(params, x.at[4, 1].set(np.nan))
    assert np.isnan(out[0, 4]).all()
    assert np.isfinite(np.delete(out[0], 4, axis=0)).all()


def test_other_widths_go_by_xla():
    params, x, _ = made((3, 20, 2), 1, 10)
    assert not native_mlp.runs(params[0], "f32")
    (first, last), *_ = params
    want = jnp.maximum(x @ first.weight + first.bias, 0) @ last.weight + last.bias
    np.testing.assert_allclose(outputs(params, x)[0], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("module", [sac, td3])
def test_updates_are_those_by_xla(by_xla, module):
    native("f32")
    spec = continuous_spec()
    algorithm = {sac: sac.Sac, td3: td3.Td3}[module](spec, module.Config(hidden=(32, 32)))
    ends = []
    for _ in range(2):
        state, update = algorithm.init(0), jax.jit(algorithm.update)
        for number in range(5):
            state, _ = update(state, transitions(spec, 64, number))
        ends.append((state.actor.params, state.critic.params))
        by_xla()
    assert_trees_close(*ends, rtol=1e-3, atol=1e-5)
