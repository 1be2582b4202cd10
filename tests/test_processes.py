# SPDX-License-Identifier: Apache-2.0
"""Worker processes: what they give, and that nothing is left of them however they end."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gym_examples import Counter, Discretes, Inspector, Walker
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import headrace
from headrace import Batch, HeadraceError, MlpPolicy, Policy
from headrace.collect.process_vector import ProcessVectorEnv
from headrace.collect.shared_arrays import SharedArrays
from headrace.envs.spec import EnvSpec

HERE = Path(__file__).parent


def collect(spec: EnvSpec, rung: str, params: Any = None, **arguments: Any) -> list[Batch]:
    with headrace.make_collector(spec, rung=rung, **arguments) as collector:
        return [collector.collect(params).copy() for _ in range(3)]


def assert_equal(ours: list[Batch], theirs: list[Batch]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert one.end_at is not None
        for name, value in vars(other).items():
            if isinstance(value, np.ndarray):
                assert getattr(one, name).dtype == value.dtype
                np.testing.assert_array_equal(getattr(one, name), value, err_msg=name)
        assert one.extras.keys() == other.extras.keys()
        for name, value in other.extras.items():
            np.testing.assert_allclose(one.extras[name], value, rtol=1e-4, atol=1e-5)


def pushy(params: Any, obs: Any, mask: Any, key: Any) -> tuple[Any, dict[str, Any]]:
    """Continuous actions without matrix products, whose rounding differs with the rows."""
    action = np.tanh(obs[:, :1] * params + np.float32(key.step % 3))
    return 2 * action, {"index": key.who.index, "pair": obs[:, :2]}


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("library", ["random", "numpy", "jax"])
def test_batches_are_those_of_the_python_rung(library: Any, workers: int) -> None:
    spec = headrace.spec("CartPole-v1", max_episode_steps=15)
    network = MlpPolicy(spec, (8,))
    arguments: dict[str, Any] = {
        "num_envs": 5, "steps": 12, "seed": 6, "first_env": 2, "params": network.init(1),
        "policy": "random" if library == "random" else network.policy(library),
    }  # fmt: skip
    ours = collect(spec, "processes", workers=workers, **arguments)
    assert_equal(ours, collect(spec, "python", **arguments))
    assert sum(len(batch.final_obs) for batch in ours) > 5


@pytest.mark.usefixtures("own_environments")
def test_other_spaces_too() -> None:
    pendulum = headrace.spec("Pendulum-v1", max_episode_steps=15)
    policy = Policy(pushy, "numpy")
    for workers, arguments in ((2, {}), (3, {"policy": policy, "params": np.float32(0.3)})):
        ours = collect(pendulum, "processes", num_envs=5, steps=12, workers=workers, **arguments)
        assert_equal(ours, collect(pendulum, "python", num_envs=5, steps=12, **arguments))
    headrace.register("Counter-v0", gym=Counter, max_episode_steps=7)
    headrace.register("Walker-v0", gym="gym_examples:Walker")
    for name in ("Counter-v0", "Walker-v0", "MountainCar-v0"):
        spec = headrace.spec(name, max_episode_steps=7)
        ours = collect(spec, "processes", num_envs=3, steps=12, workers=2)
        assert_equal(ours, collect(spec, "python", num_envs=3, steps=12))
    refuse = Policy(Unpicklable(), "numpy")
    with pytest.raises(HeadraceError, match="no such policy"):
        headrace.make_collector(pendulum, rung="processes", num_envs=2, policy=refuse)


class Unpicklable:
    def __call__(self, *_: Any) -> Any: ...

    def __reduce__(self) -> Any:
        raise TypeError("no such policy elsewhere")


@pytest.mark.usefixtures("own_environments")
def test_workers_are_lean_and_no_more_than_needed() -> None:
    import jax  # here, not there

    assert jax
    headrace.register("Inspector-v0", gym=Inspector)
    spec = headrace.spec("Inspector-v0")
    network = MlpPolicy(spec, (4,))
    for policy in ("random", network.policy("numpy")):
        batch = collect(
            spec, "processes", network.init(), num_envs=3, steps=2, workers=8, policy=policy
        )[0]
        loaded, threads, processes = (set(batch.obs[..., i].flat) for i in range(3))
        assert loaded == {0}
        assert threads == {1}
        assert len(processes) == 3
        assert os.getpid() not in processes
    batch = collect(spec, "processes", num_envs=100, steps=1)[0]
    assert len(set(batch.obs[..., 2].flat)) == len(os.sched_getaffinity(0))


def test_memory_is_shared_and_has_no_name() -> None:
    one = SharedArrays()
    ours = [one.zeros((3, 5), np.float32), one.zeros((), np.bool_), one.zeros((2, 0), np.int8)]
    other = SharedArrays(os.dup(one.descriptor))
    theirs = [other.zeros((3, 5), np.float32), other.zeros((), np.bool_)]
    late = one.zeros(20000, np.int64)
    other.zeros((2, 0), np.int8)
    ours[0][2] = 7
    theirs[1][...] = True
    late[-1] = 5
    one.close()
    one.close()
    assert theirs[0].tolist() == [[0] * 5] * 2 + [[7] * 5]
    assert ours[1]
    assert other.zeros(20000, np.int64)[-1] == 5
    assert not os.fstat(other.descriptor).st_nlink
    other.close()


# ---- the vector environment, against Gymnasium's ----


MODES = list(AutoresetMode)


@pytest.fixture
def both(request: Any, own_environments: None) -> Iterator[tuple[ProcessVectorEnv, SyncVectorEnv]]:
    """The same environments in processes and in Gymnasium's SyncVectorEnv."""
    headrace.register("Counter-v0", gym=Counter)
    headrace.register("Discretes-v0", gym=Discretes)
    name, mode, limit, options = request.param
    spec = headrace.spec(name, max_episode_steps=limit, **options)
    makers = [lambda: TimeLimit(spec.make_gym(), limit)] * 5
    ours = ProcessVectorEnv(spec, 5, autoreset=mode, workers=2)
    theirs = SyncVectorEnv(makers, autoreset_mode=mode)
    yield ours, theirs
    ours.close()
    theirs.close()


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal in value, type and dtype, whatever they are made of."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = tuple(ours.values()), tuple(theirs.values())
    if isinstance(theirs, tuple) or getattr(theirs, "dtype", None) == np.dtype(object):
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs


COUNTER = {"length": 6, "talkative": True, "reuse": False}  # SyncVectorEnv keeps references
CASES = [
    *[("CartPole-v1", mode, 30, {}) for mode in MODES],
    *[("Pendulum-v1", mode, 13, {}) for mode in MODES],
    *[("Counter-v0", mode, 5, {**COUNTER, "cut": 3 * (mode is MODES[0])}) for mode in MODES],
    *[("Discretes-v0", mode, 9, {"binary": mode is MODES[0]}) for mode in MODES],
]


@pytest.mark.parametrize("both", CASES, indirect=True, ids=str)
def test_the_vector_is_gymnasiums(both: tuple[ProcessVectorEnv, SyncVectorEnv]) -> None:
    ours, theirs = both
    mode = theirs.autoreset_mode
    for name in ("single_observation_space", "single_action_space", "observation_space"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.action_space == theirs.action_space
    assert ours.metadata == theirs.metadata
    options = {"start": 3} if "Counter" in ours.env_spec.id else None
    assert_same(ours.reset(seed=3, options=options), theirs.reset(seed=3, options=options))
    theirs.action_space.seed(1)
    ended = 0
    for t in range(400):
        actions = theirs.action_space.sample()
        one, other = ours.step(actions), theirs.step(actions)
        assert_same(one, other)
        over = other[2] | other[3]
        ended += over.sum()
        if mode is AutoresetMode.DISABLED and over.any():
            # SyncVectorEnv takes the mask out of the caller's options.
            assert_same(*(envs.reset(options={"reset_mask": over.copy()}) for envs in both))
        if t in (150, 200):
            seeds = [None, 5, None, t, 2]
            assert_same(ours.reset(seed=seeds), theirs.reset(seed=seeds))
        if t == 250 and mode is not AutoresetMode.DISABLED:
            mask = np.arange(5) % 2 == 1
            kept = {"reset_mask": mask, "start": 2}
            assert_same(ours.reset(options=kept), theirs.reset(options=dict(kept)))
            assert "reset_mask" in kept
    assert ended > 30


@pytest.mark.usefixtures("own_environments")
def test_calls_by_name() -> None:
    headrace.register("Counter-v0", gym=Counter)
    spec = headrace.spec("Counter-v0", render_mode="ansi")
    with ProcessVectorEnv(spec, 3, workers=2) as envs:
        envs.reset(seed=7)
        envs.step(np.array([4, 5, 6]))
        assert envs.render_mode == "ansi"
        assert envs.render() == ("1 steps",) * 3
        assert envs.call("twice", number=4) == (8, 8, 8)
        envs.set_attr("length", [2, 3, 4])
        assert envs.get_attr("length") == (2, 3, 4)
        assert envs.np_random_seed == (7, 8, 9)
        assert envs.np_random[1].bit_generator.state == envs.np_random[1].bit_generator.state
        with pytest.raises(HeadraceError, match=r"AttributeError.*nothing"):
            envs.call("nothing")
        with pytest.raises(HeadraceError, match="2 values for 3"):
            envs.set_attr("length", [2, 3])
        _, _, terminated, _, _ = envs.step([4, 4, 4])  # and all goes on
        assert terminated.tolist() == [True, False, False]


def test_copies_and_views() -> None:
    spec = headrace.spec("CartPole-v1")
    for copy in (True, False):
        with ProcessVectorEnv(spec, 2, copy=copy, workers=1) as envs:
            first, _ = envs.reset(seed=1)
            before = first.copy()
            second = envs.step([0, 1])[0]
            assert (second is first) == (not copy)
            assert (first == before).all() == copy


def test_mistakes_are_refused_and_change_nothing() -> None:
    spec = headrace.spec("CartPole-v1", max_episode_steps=2)
    with ProcessVectorEnv(spec, 3, autoreset=AutoresetMode.DISABLED, workers=2) as envs:
        twin = SyncVectorEnv([spec.make_gym] * 3)
        everywhere = np.ones(3, bool)
        mistakes: list[tuple[str, Any]] = [
            ("reset.. comes before", lambda: envs.step([0, 0, 0])),
            ("first reset", lambda: envs.reset(options={"reset_mask": everywhere})),
            ("there are 2 seeds for 3", lambda: envs.reset(seed=[1, 2])),
            ("seed is -1", lambda: envs.reset(seed=-1)),
        ]
        later: list[tuple[str, Any]] = [
            (r"shape \(2,\).*takes \(3,\)", lambda: envs.step([0, 0])),
            ("takes other actions", lambda: envs.step([0.5, 0, 0])),
            ("takes other actions", lambda: envs.step(["a", "b", "c"])),
            (r"actions\[2\] is 5; CartPole-v1 takes 0 to 1", lambda: envs.step([0, 0, 5])),
            (r"actions\[0\] is -1", lambda: envs.step([-1, 0, 0])),
            ("reset_mask", lambda: envs.reset(options={"reset_mask": ~everywhere})),
            ("reset_mask", lambda: envs.reset(options={"reset_mask": [True] * 3})),
        ]
        for message, mistake in mistakes:
            with pytest.raises(HeadraceError, match=message):
                mistake()
        envs.reset(seed=4)
        twin.reset(seed=4)
        for message, mistake in later:
            with pytest.raises(HeadraceError, match=message):
                mistake()
        assert_same(envs.step([0, 1, 0]), twin.step(np.array([0, 1, 0])))
        envs.step([0, 1, 0])
        with pytest.raises(HeadraceError, match=r"environments \[0, 1, 2\] have ended"):
            envs.step([0, 1, 0])
    envs.close()
    for after in (lambda: envs.step([0, 0, 0]), envs.reset, lambda: envs.call("twice")):
        with pytest.raises(HeadraceError, match="closed"):
            after()


def test_components_that_are_no_numbers() -> None:
    with headrace.make_vec("Pendulum-v1", 2, definition="gym", workers=1) as envs:
        envs.reset(seed=0)
        with pytest.raises(HeadraceError, match=r"actions\[1, 0\] is nan; actions must be finite"):
            envs.step(np.array([[0], [np.nan]], np.float32))
        envs.step(np.zeros((2, 1), np.float32))


@pytest.mark.usefixtures("own_environments")
def test_spaces_that_are_not_shared() -> None:
    class Mapping(Walker):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = gymnasium.spaces.Dict({"at": gymnasium.spaces.Discrete(9)})

    headrace.register("Mapping-v0", gym=Mapping)
    spec = headrace.spec("Mapping-v0")
    with pytest.raises(HeadraceError, match="Dict spaces are not shared"):
        ProcessVectorEnv(spec, 2)
    with pytest.raises(HeadraceError, match="Dict spaces are not supported"):
        headrace.make_collector(spec, rung="processes", num_envs=2)


# ---- faults: each in a process of its own, so that a hang or an orphan is seen from outside ----


PRELUDE = """
import gc, os, subprocess, sys, warnings
import numpy as np
import headrace
from headrace.collect.gym_envs import env_seed
from headrace.collect.process_vector import ProcessVectorEnv
from gym_examples import Trouble

headrace.register("Trouble-v0", gym=Trouble)

def trouble(how, others="", bad=None):
    return headrace.spec("Trouble-v0", how=how, others=others, bad_seed=bad, owner=os.getpid())

def left():
    gc.collect()
    ps = subprocess.Popen(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, text=True)
    rows = [line.split() for line in ps.communicate()[0].splitlines()]
    children = [pid for pid, parent in rows if int(parent) == os.getpid() and int(pid) != ps.pid]
    files = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if int(n) > 2
             and os.path.exists(f"/proc/self/fd/{n}")]
    return children, [name for name in files if not name.startswith(("/dev/null", "/proc"))]

def act(params, obs, mask, key):
    return np.zeros(len(obs), int), {}

# Four environments in two workers; the one numbered 6 is in the second.
def collector(how, others="", lockstep=False, steps=50):
    policy = "random"
    if lockstep:
        import jax.numpy as jnp
        policy = headrace.Policy(lambda p, obs, m, k: (jnp.zeros(len(obs), int), {}), "jax")
    return headrace.make_collector(
        trouble(how, others, env_seed(0, 6)), rung="processes", num_envs=4, steps=steps,
        first_env=4, workers=2, policy=policy)

def vector(how, others=""):
    envs = ProcessVectorEnv(trouble(how, others, 102), 4, workers=2)
    envs.reset(seed=100)
    return envs

def step(envs):
    for _ in range(5):
        envs.step(np.zeros(4, int))

def outcome(act, *arguments):
    try:
        act(*arguments)
    except BaseException as error:
        print(type(error).__name__, error)
"""


def script(body: str) -> subprocess.Popen[str]:
    """It has a session to itself, so that its processes are known even when it has ended."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PRELUDE + textwrap.dedent(body)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE, start_new_session=True,
    )  # fmt: skip


def living(session: int) -> list[str]:
    """The processes of a session that have not ended."""
    rows = subprocess.run(["ps", "-A", "-o", "sess=,stat=,args="], capture_output=True, text=True)
    lines = [line.split(None, 2) for line in rows.stdout.splitlines()]
    return [args for sess, stat, args in lines if int(sess) == session and stat[0] != "Z"]


def run(body: str) -> str:
    """What a script prints; it must end well, say nothing on stderr, and leave no process."""
    process = script(body)
    with process:
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert err == ""
    assert process.returncode == 0
    assert living(process.pid) == []
    assert not list(Path("/dev/shm").glob("*headrace*"))
    return out


FAULTS = [
    ("kill", "sleep", "exit code -9 (SIGKILL); was there too little memory?"),
    ("exit", "", "exit code 7"),
    ("raise", "sleep", "KeyError: 'a bug in the environment'"),
    ("leave", "", "SystemExit: 5"),
]


@pytest.mark.parametrize(("how", "others", "message"), FAULTS)
def test_a_worker_that_ends(how: str, others: str, message: str) -> None:
    """Whatever the other worker does at the time, even nothing for ten minutes."""
    out = run(f"""
        source = collector({how!r}, {others!r})
        outcome(source.collect)
        print(left()[0])
        outcome(source.collect)
        source.close()
        source = None
        envs = vector({how!r}, {others!r})
        outcome(step, envs)
        print(left()[0])
        outcome(step, envs)
        outcome(envs.reset)
        envs.close()
        envs = None
        print(left())
    """)
    first, second, third = out.split("[]\n")
    assert first.startswith("WorkerDiedError worker 2 of 2 (environments 6 to 7) ")
    assert second.startswith("HeadraceError its worker processes have ended")
    assert "WorkerDiedError worker 2 of 2 (environments 2 to 3) " in second
    assert out.count(message) == 2
    assert third.count("HeadraceError its worker processes have ended") == 2
    assert third.endswith("([], [])\n")
    if how == "raise":
        assert "(raised by environment 6 of Trouble-v0)" in first
        assert 'raise KeyError("a bug in the environment")' in first
        assert "gym_envs" not in first


def test_a_worker_that_ends_in_lockstep() -> None:
    out = run("""
        outcome(collector("exit", lockstep=True).collect)
        print(left()[0])
    """)
    assert out.startswith("WorkerDiedError worker 2 of 2 (environments 6 to 7) died with")
    assert out.endswith("exit code 7\n[]\n")


def test_a_worker_that_cannot_start() -> None:
    out = run("""
        outcome(collector, "unmade")
        outcome(vector, "unmade")
        print(left())
        sys.executable = "/bin/false"
        outcome(collector, "")
        print(left())
    """)
    assert out.count("WorkerDiedError worker 1 of 2 (environments ") == 3
    assert out.count("RuntimeError: no licence here") == 2
    assert out.count("([], [])") == 2
    assert "died with exit code 1" in out


def test_closing() -> None:
    """Twice, by forgetting, and by leaving; a fork of the owner's closes nothing."""
    out = run("""
        source, envs = collector(""), vector("")
        source.collect()
        kept = source.collect().obs
        if not os.fork():
            warnings.simplefilter("ignore", ResourceWarning)
            sys.exit()
        os.wait()
        source.collect()
        for one in (source, envs, source, envs):
            one.close()
        del one
        print(left()[0], kept.sum())
        source = envs = kept = None
        print(left())
        headrace.register("Counter-v0", gym="gym_examples:Counter")
        forgotten = headrace.make_collector("Counter-v0", rung="processes", num_envs=2)
        del forgotten
        print(left())
        forgotten = headrace.make_collector("Counter-v0", rung="processes", num_envs=2)
        forgotten.collect()
    """)
    assert out.splitlines() == ["[] 0.0", "([], [])", "([], [])"]


def test_definitions_of_the_main_script() -> None:
    """What a script or a notebook defines is sent by value; nothing there is run again."""
    out = run("""
        class Local(Trouble):
            def step(self, action):
                return super().step(action)[0] + offset, 1.0, False, False, {}

        print("run")
        offset = 0.5
        headrace.register("Local-v0", gym=lambda **options: Local(**options))
        policy = headrace.Policy(act, "numpy")
        batch = headrace.collect("Local-v0", rung="processes", num_envs=2, steps=3, policy=policy)
        print(batch.obs[1:].min(), batch.action.max())
    """)
    assert out == "run\n0.5 0\n"


@pytest.mark.parametrize("habit", ["sleep", "spin", "idle"])
def test_the_owner_killed(habit: str) -> None:
    """Workers end with it, even in the middle of a long call that gives nobody else a turn."""
    process = script(f"""
        envs = vector({habit!r}, {habit!r})
        source = collector({habit!r}, {habit!r})
        print("ready", flush=True)
        step(envs) if {habit!r} == "idle" else source.collect()
        print("idle", flush=True)
        sys.stdin.read() if {habit!r} == "idle" else None
        import time; time.sleep(600)
    """)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        assert len(living(process.pid)) == 5
        process.kill()
    for _ in range(50):
        if not living(process.pid):
            return
        time.sleep(0.1)
    pytest.fail(f"still there: {living(process.pid)}")


@pytest.mark.parametrize("habit", ["sleep", "starting"])
def test_ctrl_c(habit: str) -> None:
    """The terminal sends it to all; the owner alone answers, and ends the others."""
    process = script(f"""
        print("ready", flush=True)
        try:
            if {habit!r} == "starting":
                while True:
                    collector("").close()
            collector("sleep", "sleep").collect()
        except KeyboardInterrupt:
            print("interrupted", left()[0], flush=True)
    """)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.8)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (out, err, process.returncode) == ("interrupted []\n", "", 0)
    assert living(process.pid) == []
