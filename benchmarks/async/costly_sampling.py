# SPDX-License-Identifier: Apache-2.0
"""SAC where samples cost about as much as updates: asynchronous, and serial.

The same command in both modes, for the same number of environment steps, and an update for every
two of them; wall time of the whole process, compilation included. What part of its time serial
training samples is printed beside it: with two processors of their own, and half of the time each,
both at once would take half as long. How near this machine comes to that is measured as well: a
process that only steps the environment and one that only learns, alone and side by side.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS / "train")]
from contestants import timed  # noqa: E402
from harness import Benchmark  # noqa: E402

BAR = 1.3
FLAGS = ("--preset", "none", "--no-plot", "--num-envs", "8", "--steps", "16",
         "--learning-starts", "1000", "--evaluation-every", "1000000000",
         "--evaluation-episodes", "1")  # fmt: skip
"""Nothing is evaluated but what was learnt in the end, over one episode."""
MODES = {
    "serial": ("--updates", "64"),
    "async": ("--no-tune", "--samplers", "1", "--envs-per-sampler", "8", "--replay-ratio", "0.5",
              "--updates-per-dispatch", "64", "--learner-threads", "1"),
}  # fmt: skip


def train(mode: str, seed: int, cache: Path, arguments: Any) -> dict[str, Any]:
    """One run: seconds, steps, updates, and what part of it was sampling."""
    with tempfile.TemporaryDirectory(prefix="headrace-race-") as scratch:
        folder = Path(scratch) / "run"
        command = [str(Path(sys.executable).with_name("headrace")), "train", arguments.env]
        command += ["--algo", "sac", "--mode", mode, *FLAGS, *MODES[mode]]
        command += ["--hidden", *arguments.hidden.split(), "--batch-size", str(arguments.batch)]
        command += ["--total-steps", str(arguments.steps), "--seed", str(seed)]
        command += ["--out", str(folder)]
        settings = {"HEADRACE_CACHE_DIR": str(cache)}
        seconds = timed(command, 300.0, arguments.prefix, settings)["seconds"]
        told = json.loads((folder / "result.json").read_text())
        rows = list(map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()))
    shares = [row["rate/generation_share"] for row in rows if "rate/generation_share" in row]
    return {
        "mode": mode,
        "seed": seed,
        "seconds": seconds,
        "env_steps": told["env_steps"],
        "updates": told["updates"],
        "sampling_share": shares[-1] if shares else None,
    }


ALONE = """
import sys, time
import numpy as np
what, env, hidden, batch, seconds = sys.argv[1:6]
from headrace.envs import registry
from headrace.learn.sac import Config, Sac
spec, batch = registry.spec(env), int(batch)
algorithm = Sac(spec, Config(hidden=tuple(map(int, hidden.split())), batch_size=batch))
state = algorithm.init(0)
if what == "samples":
    import headrace
    policy = algorithm.policy("numpy")
    made = headrace.make_collector(spec, rung="python", num_envs=8, steps=8, policy=policy)
    def work():
        made.collect(algorithm.acting(state))
        return 64
else:
    import jax
    from headrace.learn.algorithm import Transitions
    from headrace.train.cache import use_cache
    use_cache()
    size, action = spec.observation_space.shape[0], spec.action_space.shape[0]
    draw = np.random.default_rng(0).standard_normal
    rows = [draw((32, batch, *tail), np.float32) for tail in ((size,), (action,), (), (), (size,))]
    rows[1] = np.tanh(rows[1])
    batches = Transitions(*rows)
    program = jax.jit(lambda state, rows: jax.lax.scan(algorithm.update, state, rows)[0])
    def work():
        global state
        state = jax.block_until_ready(program(state, batches))
        return 32
work()
work()
print("ready", flush=True)
sys.stdin.readline()
begin, done = time.perf_counter(), 0
while time.perf_counter() < begin + float(seconds):
    done += work()
print(done / (time.perf_counter() - begin))
"""
"""Steps, or updates, a second, for as long as is asked."""


def at_work(*whats: str, arguments: Any, threads: int | None = None) -> dict[str, float]:
    """Rates of processes that do nothing else, side by side; each has so many threads."""
    limit = {} if threads is None else {"PJRT_NPROC": str(threads)}
    given = [arguments.env, arguments.hidden, str(arguments.batch), str(arguments.both)]
    processes = {
        what: subprocess.Popen(
            [sys.executable, "-c", ALONE, what, *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | limit,
        )
        for what in whats
    }
    for process in processes.values():
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes.values():
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return {what: float(process.communicate()[0]) for what, process in processes.items()}


def ceiling(arguments: Any) -> dict[str, float]:
    """How much sooner a step and an update are done side by side than one after the other."""
    alone = at_work("samples", arguments=arguments) | at_work("learns", arguments=arguments)
    beside = at_work("samples", "learns", arguments=arguments, threads=1)
    for rates in (alone, beside):
        rates["learns"] *= 2  # in steps as well: an update for every two
    serial = 1 / alone["samples"] + 1 / alone["learns"]
    found = {f"{what}, alone": rate for what, rate in alone.items()}
    found |= {f"{what}, side by side": rate for what, rate in beside.items()}
    # The slower of the two sets the pace; the other is idle for the rest, and disturbs nobody then.
    fast, slow = sorted(beside, key=lambda what: -beside[what])
    together = 1 / beside[fast]
    rest = (1 - beside[slow] * together) / alone[slow]
    return found | {"sampling share": 1 / alone["samples"] / serial,
                    "ceiling": serial / (together + rest)}  # fmt: skip


def main() -> int:
    """Both modes by turns, then what this machine allows."""
    bench = Benchmark(
        "costly_sampling", __doc__, env="InvertedDoublePendulum-v5", hidden="64 64", batch=128,
        both=5.0, seeds=3, steps=60_000, prefix="",
    )  # fmt: skip
    arguments = bench.arguments
    cache = Path(tempfile.mkdtemp(prefix="headrace-bench-cache-"))
    runs = []
    for seed in range(arguments.seeds):
        for mode in MODES:
            run = train(mode, seed, cache, arguments)
            share = run["sampling_share"]
            told = "" if share is None else f"   sampling {share:.0%}, updating {1 - share:.0%}"
            done = f"{run['env_steps']:,} steps and {run['updates']:,} updates{told}"
            print(f"{arguments.env} {mode:6} {run['seconds']:6.2f} s for {done}", flush=True)
            runs.append(run)
    bench.extra["runs"] = runs
    if arguments.both:
        bench.extra["machine"] = found = ceiling(arguments)
        for name, value in found.items():
            print(f"{name:24} {value:10,.2f}", flush=True)
    times = {
        mode: statistics.mean(run["seconds"] for run in runs if run["mode"] == mode)
        for mode in MODES
    }
    ratio = times["serial"] / times["async"]
    verdict = "reached" if ratio >= BAR else "MISSED"
    print(f"serial / asynchronous: {ratio:.2f}   bar {BAR}: {verdict}")
    bench.rows.append({"label": f"{arguments.env}: serial / asynchronous, wall time",
                       "bar": BAR, "ratio": ratio})  # fmt: skip
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
