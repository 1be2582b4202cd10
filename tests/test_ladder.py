# SPDX-License-Identifier: Apache-2.0
"""The ladder: what it measures, the arithmetic of its tables, its sweeps, and how it is stopped."""

import itertools
import json
import math
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace.collect.worker_pool import default_workers
from headrace.report.impact import generation_share, run_speedup
from headrace.report.limits import Limit, Yardsticks, count_operations
from headrace.report.machine import this_machine
from headrace.report.measure import Measurement, facts
from headrace.report.operations import operations
from headrace.report.plan import make_plan
from headrace.report.plots import plot
from headrace.report.result import LadderResult, Update

RUNGS = ("python", "numpy", "native", "native-fused")
SHORT = {"seconds": 0.04, "repeats": 2}


@pytest.fixture(scope="module")
def ladder() -> LadderResult:
    return headrace.ladder(
        "CartPole-v1", num_envs=64, steps=8, rungs=RUNGS[::-1], update_seconds=0.01, **SHORT
    )


def test_the_rungs_are_in_order_and_measured(ladder: LadderResult) -> None:
    assert [one.rung for one in ladder.measurements] == list(RUNGS)
    calls = {one.rung: one.calls_per_step for one in ladder.measurements}
    assert calls["python"] == 64
    assert calls["native"] == 1
    assert calls["native-fused"] == 1 / 8
    assert calls["numpy"] is not None
    assert 30 < calls["numpy"] < 200
    for one in ladder.measurements:
        assert len(one.batch_seconds) >= 2
        assert one.best_seconds == min(one.batch_seconds)
        assert one.steps_per_second == 64 * 8 / one.best_seconds
        # obs, action, reward, two flags; ends of episodes add to it
        assert 16 + 1 + 4 + 2 <= one.transition_bytes < 30


def test_the_arithmetic_of_the_table(ladder: LadderResult) -> None:
    rows = ladder.rows()
    first = ladder.measurements[0]
    assert rows[0].speedup == 1
    assert rows[0].above is None
    assert rows[0].run_speedup == 1
    for above, row in itertools.pairwise(rows):
        one = row.measurement
        assert row.speedup == pytest.approx(first.best_seconds / one.best_seconds)
        assert row.above == pytest.approx(above.measurement.best_seconds / one.best_seconds)
        assert row.run_speedup == pytest.approx(
            (first.best_seconds + 0.01) / (one.best_seconds + 0.01)
        )
        assert row.share == pytest.approx(one.best_seconds / (one.best_seconds + 0.01))
        limit = ladder.limit(one)
        assert limit is not None
        assert row.of_limit == pytest.approx(one.steps_per_second / limit.steps_per_second)
        assert 0 < row.of_limit < 1


DECK: dict[str, Any] = {
    "steps": 32, "fused_steps": None, "state_bytes": None, "seconds": 1.0, "repeats": 1,
    "threads": None, "seed": 0, "options": {},
}  # fmt: skip


def test_processes_are_also_the_decks_on_its_batch() -> None:
    one, deck = {default_workers(24)}, {default_workers(20), 20}
    for num_envs, count, wanted in ((20, None, deck), (24, None, one), (20, 3, {3})):
        plan = make_plan(
            "Chess-v0", num_envs=num_envs, rungs=None, workers=count, ranks=count, **DECK
        )
        (work,) = plan.works()
        for rung in ("processes", "mpi"):
            assert {case.processes for case in work.cases if case.rung == rung} == wanted
        assert {"python", "native", "openmp"} < {case.rung for case in work.cases}


def test_the_decks_update_stands_beside_the_other() -> None:
    plan = make_plan("Chess-v0", num_envs=20, rungs=None, workers=None, ranks=None, **DECK)
    taken = {("python", None): 0.9, ("processes", 20): 0.1, ("mpi", 20): 0.001}
    measured = [
        Measurement(rung, 20, 32, None, 0.0, [seconds], None, 8210.0, processes=processes)
        for (rung, processes), seconds in taken.items()
    ]
    result = LadderResult(plan, this_machine(), "today", measured, update=Update(0.01, "measured"))
    python, processes, mpi = result.rows()
    assert processes.deck_run_speedup == pytest.approx(1.0 / 0.2)
    assert processes.run_speedup == pytest.approx(0.91 / 0.11)
    assert mpi.deck_run_speedup == pytest.approx(1.0 / 0.101)
    assert (python.deck_share, processes.deck_share) == pytest.approx((0.9, 0.5))
    text = result.text()
    for word in ("processes × 20", "mpi × 20", "deck's 100 ms", "9.90×"):
        assert word in text
    assert "a batch" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_the_text_says_what_was_measured(ladder: LadderResult) -> None:
    text = ladder.text()
    for word in (
        *RUNGS,
        "steps/s",
        "64 environments × 8 steps = 512 transitions",
        "limit",
        "given",
    ):
        assert word in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_the_json_is_whole(ladder: LadderResult) -> None:
    found = json.loads(json.dumps(ladder.to_json(), allow_nan=False))
    assert [one["rung"] for one in found["measurements"]] == list(RUNGS)
    assert [one["measurement"] for one in found["ladder"]] == list(RUNGS)
    assert found["env"] == "CartPole-v1"
    assert found["update"] == {"seconds": 0.01, "source": "given"}
    assert found["limits"][0]["binding"] in ("store bandwidth", "arithmetic")


def test_the_estimate_is_tested_by_training() -> None:
    rungs = ("python", "numpy", "native-fused", "native-xla")
    result = headrace.ladder("CartPole-v1", num_envs=8, steps=8, rungs=rungs, train=True, **SHORT)
    assert [one.rung for one in result.trained] == ["python", "numpy", "native-xla"]
    (left_out,) = result.not_trained
    assert left_out.reason == "the native-fused rung takes no policy"
    first, second, _ = result.trained
    assert first.estimated(first) == first.measured(first) == 1
    assert result.update is not None
    assert second.update == result.update.seconds
    assert second.estimated(first) == pytest.approx(
        (first.generation + first.update) / (second.generation + second.update)
    )
    assert second.measured(first) == pytest.approx(first.iteration / second.iteration)
    text = result.text()
    assert "short training with generation from each rung" in text
    assert "not trained with: native-fused: the native-fused rung takes no policy" in text
    told = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert [one["rung"] for one in told["trained"]] == ["python", "numpy", "native-xla"]
    message = refusal(lambda: headrace.ladder("CartPole-v1", train=True, update_seconds=0.1))
    assert message.startswith("train goes with neither a sweep nor update_seconds")


def test_the_impact_model() -> None:
    """The deck's example: with an update that takes nothing, all of the gain stays."""
    assert run_speedup(15.1, 3.1, 0.0) == pytest.approx(15.1 / 3.1)
    assert run_speedup(15.1, 3.1, 1e6) == pytest.approx(1, abs=1e-4)
    assert run_speedup(0.8, 0.0, 0.2) == pytest.approx(5)
    assert generation_share(0.3, 0.1) == pytest.approx(0.75)


def test_the_machines_limit() -> None:
    limit = Limit(64, 8, 100e9, 50e9, 25.0, 100.0, {})
    assert limit.by_store == 4e9
    assert limit.by_arithmetic == 0.5e9
    assert (limit.steps_per_second, limit.binding) == (0.5e9, "arithmetic")
    unknown = Limit(64, 8, 100e9, 50e9, 25.0, None, {})
    assert (unknown.steps_per_second, unknown.binding) == (4e9, "store bandwidth")


def test_the_yardsticks_measure() -> None:
    small, large = Yardsticks(1 << 16, 1), Yardsticks(1 << 26, 1)
    small.sample()
    large.sample()
    assert 1e9 < large.store_bandwidth < 1e13
    assert 1e9 < small.arithmetic_peak < 1e13


def test_operations_are_counted() -> None:
    x = jnp.ones(10)
    assert operations(lambda a: a * 2 + 1, x) == 20
    assert operations(lambda a: jnp.sin(a), x) == 80
    assert operations(lambda a: a / 3 - a, x) == 50
    assert operations(lambda a: jnp.reshape(a, (2, 5)), x) == 0
    cartpole = count_operations(headrace.spec("CartPole-v1"), 0.0)
    with_ends = count_operations(headrace.spec("CartPole-v1"), 0.05)
    assert cartpole is not None
    assert with_ends is not None
    assert 50 < cartpole < with_ends < 150
    small, large = (
        count_operations(headrace.spec("Memory-v0", state_bytes=size), 0.0) for size in (64, 4096)
    )
    assert small is not None
    assert large is not None
    assert large > 40 * small / 2
    assert count_operations(headrace.spec("MountainCar-v0"), 0.0) is None


def test_facts_of_a_batch() -> None:
    dense = facts(headrace.collect("CartPole-v1", rung="xla-fused", num_envs=16, steps=32))
    compact = facts(headrace.collect("CartPole-v1", rung="native", num_envs=16, steps=32))
    assert dense.ends == compact.ends > 0
    assert dense.needed_bytes == pytest.approx(compact.needed_bytes, rel=1e-3)
    assert dense.transition_bytes > compact.transition_bytes


# ---- sweeps ----


def test_by_number_of_environments(tmp_path) -> None:
    result = headrace.ladder("Pendulum-v1", num_envs=[1, 32], steps=4, rungs=RUNGS[1:], **SHORT)
    assert result.kind == "num_envs"
    assert [(one.num_envs, one.rung) for one in result.measurements] == [
        (n, rung) for n in (1, 32) for rung in RUNGS[1:]
    ]
    assert "N=32" in result.text()
    draw(result, tmp_path)


def test_xla_over_torch(tmp_path) -> None:
    rungs = ["torch", "xla", "xla-fused"]
    result = headrace.ladder("CartPole-v1", num_envs=[1, 8], steps=4, rungs=rungs, **SHORT)
    for words in ("xla ÷ torch", "xla-fused ÷ torch", "xla-fused ÷ xla"):
        assert words in result.text()


def test_by_fused_steps(tmp_path) -> None:
    result = headrace.ladder("CartPole-v1", num_envs=8, fused_steps=[1, 4, 64], **SHORT)
    assert result.kind == "fused_steps"
    assert [one.fused_steps for one in result.measurements] == [1, 4, 64]
    assert [one.calls_per_step for one in result.measurements] == [1, 1 / 4, 1 / 64]
    assert {one.rung for one in result.measurements} == {"native-fused"}
    draw(result, tmp_path)


def test_vectorisation_times_fusion(tmp_path) -> None:
    result = headrace.ladder("CartPole-v1", num_envs=[1, 8], fused_steps=[1, 16], **SHORT)
    assert result.kind == "two_way"
    assert len(result.measurements) == 4
    draw(result, tmp_path)


def test_by_state_bytes(tmp_path) -> None:
    result = headrace.ladder("Memory-v0", num_envs=8, state_bytes=[64, 1024], steps=8, **SHORT)
    assert result.kind == "state_bytes"
    assert {one.options["state_bytes"] for one in result.measurements} == {64, 1024}
    assert {one.fused_steps for one in result.measurements if one.rung == "native-fused"} == {1, 8}
    assert "native-fused, 8 ÷ 1 a call" in result.text(140)
    draw(result, tmp_path)


def draw(result: LadderResult, folder) -> None:
    """A plot of each kind is a picture that is not empty."""
    from matplotlib import image

    target = folder / "plot.png"
    plot(result, target)
    pixels = image.imread(target)
    assert min(pixels.shape[:2]) > 300
    assert np.std(pixels[..., :3]) > 0.02


# ---- what cannot be measured ----


def test_what_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.envs.array import namespace

    namespace.namespace.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "array_api_compat.torch", None)
    result = headrace.ladder("CartPole-v1", num_envs=4, steps=4, rungs=["torch", "native"], **SHORT)
    namespace.namespace.cache_clear()
    assert [one.rung for one in result.measurements] == ["native"]
    (left,) = result.left_out
    assert left.rung == "torch"
    assert "pip install" in left.reason
    assert left.reason in result.text(400)


def test_definitions_that_are_not_there_are_left_out() -> None:
    result = headrace.ladder("Memory-v0", num_envs=4, steps=4, rungs=RUNGS, **SHORT)
    assert [one.rung for one in result.measurements] == ["numpy", "native", "native-fused"]
    assert result.left_out[0].reason == "Memory-v0 has no gym definition"
    assert result.baseline == "numpy"


WRONG = [
    ({"rungs": ["nativ"]}, "unknown rung 'nativ'; did you mean native"),
    ({"rungs": []}, "no rungs are named"),
    ({"num_envs": 0}, "num_envs is 0; it must be a whole number of at least 1"),
    ({"seconds": 0.0}, "seconds must be more than 0"),
    ({"seconds": math.nan}, "seconds must be more than 0"),
    ({"repeats": 0}, "repeats at least 1"),
    ({"update_seconds": -1.0}, "update_seconds is -1.0; it must be at least 0"),
    ({"update_seconds": math.inf}, "update_seconds is inf; it must be"),
    ({"fused_steps": 9, "steps": 8}, "fused_steps 9 is more than the batch's steps, 8"),
    ({"fused_steps": [1, 2], "rungs": ["native"]}, "fused_steps can be swept for"),
    ({"state_bytes": [64, 128]}, "CartPole-v1 has no option 'state_bytes'"),
    ({"state_bytes": [64, 128], "num_envs": [1, 2]}, "CartPole-v1 has no option 'state_bytes'"),
    ({"gravity": 3}, "CartPole-v1 has no option 'gravity'"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_settings(wrong: dict, message: str) -> None:
    assert message in refusal(lambda: headrace.ladder("CartPole-v1", **wrong))
