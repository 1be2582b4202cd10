# SPDX-License-Identifier: Apache-2.0
"""The `mpi` rung: the bits of one process whatever the ranks, and nothing left however it ends."""

import os
import re
import select
import signal
import subprocess
import sys
import sysconfig
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace import Batch, ExtraMissingError, HeadraceError, Policy, WorkerDiedError
from headrace.collect import mpi_launch
from headrace.collect.base import HostPolicy
from headrace.collect.dataset import arrays_of
from headrace.collect.mpi import MpiCollector

SCRIPTS = Path(sysconfig.get_path("scripts"))
MPIEXEC = str(SCRIPTS / "mpiexec")
JOB: dict[str, Any] = {"num_envs": 10, "steps": 30, "seed": 3}
CASES = [
    ("CartPole-v1", 20, (1, 2, 4)),
    ("Pendulum-v1", 13, (3,)),
    ("Memory-v0", 11, (2,)),
    ("Chess-v0", 25, (1, 4)),
]


def collected(name: str, limit: int, **more: Any) -> list[Batch]:
    with headrace.make_collector(name, max_episode_steps=limit, **{**JOB, **more}) as source:
        return [source.collect(more.get("params")).copy() for _ in range(3)]


def assert_identical(ours: list[Batch], theirs: list[Batch]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        mine, wanted = arrays_of(one), arrays_of(other)
        assert mine.keys() == wanted.keys()
        for name, array in wanted.items():
            assert mine[name].dtype == array.dtype
            assert mine[name].shape == array.shape
            assert mine[name].tobytes() == array.tobytes(), name
    assert sum(len(batch.final_obs) for batch in ours) > 5


def pids_of(source: Any) -> list[int]:
    """The processes of its ranks, in order."""
    assert isinstance(source, MpiCollector)
    ranks: Any = source._job._ranks  # pyright: ignore[reportAttributeAccessIssue]
    found = {}
    for descriptor, rank in ranks._ranks_of.items():
        text = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
        found[rank] = int(re.findall(r"Pid:\s+(\d+)", text)[0])
    return [found[rank] for rank in sorted(found)]


def running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def assert_gone(pids: list[int], before: set[str]) -> None:
    deadline = time.monotonic() + 5
    while any(map(running, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in pids if running(pid)]
    assert named_memory() <= before


def test_the_owner_asks_for_a_policys_outputs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ranks act; a random policy has no outputs of its own to ask for."""
    asked: list[int] = []
    act = HostPolicy.act

    def counted(self: HostPolicy, params: Any, obs: Any, clock: int, mask: Any = None) -> Any:
        asked.append(clock)
        return act(self, params, obs, clock, mask)

    monkeypatch.setattr(HostPolicy, "act", counted)
    with headrace.make_collector("Chess-v0", rung="mpi", ranks=1, **JOB) as source:
        assert source.calls_per_step == 1 / JOB["steps"]
        source.collect()
        source.collect()
        assert asked == []
    policy = Policy(lambda params, obs, mask, key: (np.zeros(len(obs), np.int32), {}), "numpy")
    with headrace.make_collector(
        "CartPole-v1", rung="mpi", ranks=1, policy=policy, **JOB
    ) as source:
        source.collect()
        source.collect()
        assert asked == [0]


def collect_on(source: headrace.Collector) -> None:
    for _ in range(2000):
        source.collect()
        time.sleep(0.002)


def named_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir() if "mpi" in path.name}


@pytest.mark.parametrize("exchange", ["shared", "messages"])
@pytest.mark.parametrize(
    ("name", "limit", "ranks"), [(name, limit, n) for name, limit, some in CASES for n in some]
)
def test_any_number_of_ranks(
    name: str, limit: int, ranks: int, exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_MPI_EXCHANGE", exchange)
    if exchange == "messages" and ranks == 1:
        ranks = 3
    want = collected(name, limit, rung="native-fused", first_env=5)
    assert_identical(collected(name, limit, rung="mpi", ranks=ranks, first_env=5), want)


def test_threads_and_seeds() -> None:
    want = collected("CartPole-v1", 20, rung="native-fused", num_envs=600)
    got = collected("CartPole-v1", 20, rung="mpi", ranks=2, threads=2, num_envs=600)
    assert_identical(got, want)
    other = collected("CartPole-v1", 20, rung="mpi", ranks=2, seed=4, num_envs=600)
    assert (other[0].obs != got[0].obs).any(axis=(0, 2)).mean() > 0.99


def pushy(params: Any, obs: Any, mask: Any, key: Any) -> tuple[Any, dict[str, Any]]:
    """Continuous actions without matrix products, whose rounding differs with the rows."""
    if params < 0 and 7 in key.who.index:
        raise RuntimeError("seven is refused")
    action = np.tanh(obs[:, :1] * params + np.float32(key.step % 3))
    return 2 * action, {"index": key.who.index, "pair": obs[:, :2]}


@pytest.mark.parametrize("exchange", ["shared", "messages"])
def test_policies(exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_MPI_EXCHANGE", exchange)
    arguments: dict[str, Any] = {"policy": Policy(pushy, "numpy"), **JOB}
    spec = headrace.spec("Pendulum-v1", max_episode_steps=13)
    with (
        headrace.make_collector(spec, rung="mpi", ranks=3, **arguments) as ours,
        headrace.make_collector(spec, rung="openmp", **arguments) as theirs,
    ):
        for _ in range(2):
            params = np.float32(0.3)
            assert_identical([ours.collect(params).copy()], [theirs.collect(params).copy()])
        with pytest.raises(WorkerDiedError, match=r"(?s)rank 2 of 3 .*RuntimeError: seven"):
            ours.collect(np.float32(-1))


@pytest.mark.parametrize("name", ["CartPole-v1", "Chess-v0"])
def test_saved_states_go_on_anywhere(name: str) -> None:
    arguments: dict[str, Any] = {"max_episode_steps": 20, **JOB}
    with headrace.make_collector(name, rung="mpi", ranks=3, **arguments) as source:
        source.collect()
        saved = source.save()
        want = source.collect().copy()
        source.restore(saved)
        assert_identical([source.collect().copy()], [want])
    with headrace.make_collector(name, rung="native-fused", **arguments) as other:
        other.restore(saved)
        assert_identical([other.collect().copy()], [want])
        with pytest.raises(HeadraceError, match="the saved states are of"):
            other.restore({**saved, "tag": np.frombuffer(b"Else/rows/1", np.uint8)})
        with pytest.raises(HeadraceError, match="have shape"):
            other.restore({**saved, "state": saved["state"][:1, :1]})


def test_a_rank_that_dies_is_named_and_nothing_is_left() -> None:
    before = named_memory()
    named = 0
    for victim, number in ((0, signal.SIGKILL), (1, signal.SIGKILL), (2, signal.SIGSEGV)):
        source = headrace.make_collector("CartPole-v1", rung="mpi", ranks=3, **JOB)
        source.collect()
        pids = pids_of(source)
        os.kill(pids[victim], number)
        begin = time.monotonic()
        with pytest.raises(WorkerDiedError, match=r"rank \d of 3 \(environments \d") as caught:
            collect_on(source)
        assert time.monotonic() - begin < 5
        named += f"rank {victim} of 3" in str(caught.value)
        assert_gone(pids, before)
        with pytest.raises(HeadraceError, match="have ended"):
            source.collect()
        source.close()
    assert named >= 2  # mpiexec kills the others, and now and then one of those is quicker


def test_ctrl_c_within_a_batch() -> None:
    before = named_memory()
    # A batch of seconds, so that Ctrl-C comes within one.
    source = headrace.make_collector(
        "Memory-v0", rung="mpi", ranks=2, num_envs=32, steps=4000, state_bytes=2**20
    )
    pids = pids_of(source)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(KeyboardInterrupt):
        collect_on(source)
    assert_gone(pids, before)


def test_the_ranks_end_with_their_owner() -> None:
    before = named_memory()
    program = textwrap.dedent(
        """
        import sys, headrace
        sys.path.insert(0, sys.argv[1])
        from test_mpi import pids_of
        source = headrace.make_collector("CartPole-v1", rung="mpi", ranks=2)
        print(*pids_of(source), flush=True)
        while True: source.collect()
        """
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert select.select([owner.stdout], [], [], 30)[0]
        pids = [int(word) for word in owner.stdout.readline().split()]
        owner.kill()
    assert len(pids) == 2
    assert_gone(pids, before)


def test_an_idle_job_leaves_the_processors_alone() -> None:
    def ticks(pid: int) -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    with headrace.make_collector("CartPole-v1", rung="mpi", ranks=3, **JOB) as source:
        source.collect()
        pids = pids_of(source)
        before = [ticks(pid) for pid in pids]
        time.sleep(1.5)
        used = max(ticks(pid) - was for pid, was in zip(pids, before, strict=True))
    assert used < 0.1 * 1.5 * os.sysconf("SC_CLK_TCK")


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    make = headrace.make_collector
    assert "num_envs is only 2" in refusal(
        lambda: make("CartPole-v1", rung="mpi", ranks=3, num_envs=2)
    )
    assert "ranks is 0" in refusal(lambda: make("CartPole-v1", rung="mpi", ranks=0))
    with make("CartPole-v1", rung="mpi", ranks=1) as source:
        assert isinstance(source, MpiCollector)
        assert "rank" in refusal(source.serve)
    assert "closed" in refusal(source.collect)
    with monkeypatch.context() as patch:
        patch.setattr(mpi_launch.shutil, "which", lambda *_, **__: None)
        message = refusal(lambda: make("CartPole-v1", rung="mpi"), ExtraMissingError)
        assert 'no mpiexec, and needs an extra: pip install "headrace[mpi]"' in message
    with monkeypatch.context() as patch:
        patch.setattr(mpi_launch.importlib.util, "find_spec", lambda _: None)
        message = refusal(lambda: make("CartPole-v1", rung="mpi"), ExtraMissingError)
        assert message == 'the mpi rung needs an extra: pip install "headrace[mpi]"'
        result = headrace.ladder(
            "CartPole-v1", rungs=["native", "mpi"], num_envs=8, seconds=0.05, update_seconds=0.1
        )
        assert [(one.rung, one.reason) for one in result.left_out] == [("mpi", message)]


def test_a_broken_mpiexec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "mpiexec"
    broken.write_text("#!/bin/sh\necho no such option; exit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(mpi_launch, "_find_mpiexec", lambda: str(broken))
    message = refusal(lambda: headrace.make_collector("CartPole-v1", rung="mpi", ranks=2))
    assert message == "the 2 ranks ended, mpiexec with exit code 3: no such option"


def test_in_the_ladder() -> None:
    result = headrace.ladder(
        "CartPole-v1",
        rungs=["openmp", "mpi"],
        num_envs=64,
        ranks=2,
        seconds=0.1,
        update_seconds=0.1,
    )
    assert [one.rung for one in result.measurements] == ["openmp", "mpi"]
    assert not result.left_out


PROGRAM = textwrap.dedent(
    """
    import sys, numpy as np, headrace
    from headrace.collect.dataset import arrays_of
    with headrace.make_collector(
        sys.argv[1], rung="mpi", num_envs=10, steps=30, seed=3, max_episode_steps=20
    ) as source:
        if source.root:
            for number in range(2):
                batch = source.collect()
                np.savez(f"{sys.argv[2]}/{number}.npz", **arrays_of(batch))
        else:
            source.serve()
    if source.root:
        batch.obs.sum()  # a batch that is kept outlives its collector
    """
)


@pytest.mark.parametrize("exchange", ["shared", "messages"])
def test_as_an_mpi_program(exchange: str, tmp_path: Path) -> None:
    before = named_memory()
    command = [MPIEXEC, "-n", "3", sys.executable, "-c", PROGRAM, "Chess-v0", str(tmp_path)]
    environment = {**os.environ, "HEADRACE_MPI_EXCHANGE": exchange}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    want = collected("Chess-v0", 20, rung="native-fused")
    for number in range(2):
        with np.load(tmp_path / f"{number}.npz") as found:
            for name, array in arrays_of(want[number]).items():
                assert found[name].tobytes() == array.tobytes(), name
    assert named_memory() <= before
