# SPDX-License-Identifier: Apache-2.0
"""Samplers alone: against independent Gymnasium processes with the same policy, and AsyncVectorEnv.

The independent processes are the plainest loop there can be: several environments, one call of the
same NumPy policy for all of them, nothing kept. So what is missing to 1 is what recording costs.
AsyncVectorEnv has as many workers as there are samplers, one environment each as it is made, and
the same policy for the observations of all.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv
from gymnasium.wrappers import TimeLimit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark

from headrace.collect.worker_pool import ONE_THREAD
from headrace.envs.array.namespace import namespace
from headrace.envs.philox import identify
from headrace.policy import PolicyKey, action_dtype
from headrace.runtime.machine import processors
from headrace.runtime.plan import Plan
from headrace.runtime.run import make_plan
from headrace.runtime.trials import Samplers
from headrace.train.config import environment
from headrace.train.resolve import resolve
from headrace.train.session import make_algorithm_of


def a_plan(env: str, algo: str, samplers: int, envs: int, steps: int) -> Plan:
    """For samplers by themselves."""
    given = {"samplers": samplers, "envs_per_sampler": envs, "steps": steps, "sampling_rate": None}
    if algo == "ppo":
        given |= {"hidden": (64, 64), "num_envs": samplers * envs}
    config = resolve(env, algo=algo, mode="async", definition="gym", preset="none", given=given)
    algorithm = make_algorithm_of(config, environment(config))
    acting = algorithm.acting(algorithm.init(0))
    return make_plan(config, Path(tempfile.mkdtemp(prefix="headrace-bench-")), algorithm, acting)


def plain_loop(env: str, algo: str, num_envs: int, seconds: float) -> float:
    """Steps a second of one process that keeps nothing."""
    plan = a_plan(env, algo, 1, num_envs, 32)
    policy, spec = plan.algorithm().policy("numpy"), plan.spec
    envs = [spec.make_gym() for _ in range(num_envs)]
    obs: Any = np.stack([one.reset(seed=i)[0] for i, one in enumerate(envs)]).astype(np.float32)
    who, dtype = identify(namespace("numpy"), num_envs, 0), action_dtype(spec.action_space)
    lengths, limit = [0] * num_envs, spec.max_episode_steps or 1 << 60
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for _ in range(32):
            key = PolicyKey(who, np.uint32(steps & 0xFFFFFFFF))
            action, _ = policy.apply(plan.acting, obs, None, key)
            action = np.asarray(action).astype(dtype, copy=False)
            for i, one in enumerate(action.tolist() if action.ndim == 1 else action):
                seen, _, terminated, truncated, _ = envs[i].step(one)
                lengths[i] += 1
                if terminated or truncated or lengths[i] >= limit:
                    seen, _ = envs[i].reset()
                    lengths[i] = 0
                obs[i] = seen
            steps += num_envs
    return steps / (time.perf_counter() - begin)


def vector_loop(env: str, algo: str, workers: int, seconds: float) -> float:
    """Steps a second of AsyncVectorEnv, acted in by the same policy."""
    plan = a_plan(env, algo, 1, workers, 32)
    policy, spec = plan.algorithm().policy("numpy"), plan.spec
    who, dtype = identify(namespace("numpy"), workers, 0), action_dtype(spec.action_space)
    envs = AsyncVectorEnv([lambda: TimeLimit(spec.make_gym(), spec.max_episode_steps or 1 << 60)
                           for _ in range(workers)])  # fmt: skip
    obs: Any = envs.reset(seed=0)[0]
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for _ in range(32):
            key = PolicyKey(who, np.uint32(steps & 0xFFFFFFFF))
            action, _ = policy.apply(plan.acting, obs.astype(np.float32), None, key)
            obs = envs.step(np.asarray(action).astype(dtype, copy=False))[0]
            steps += workers
    rate = steps / (time.perf_counter() - begin)
    envs.close()
    return rate


LOOPS = {"plain": plain_loop, "vector": vector_loop}


def started(loop: str, *arguments: object) -> subprocess.Popen[str]:
    """One of them in a process of its own, its policy on one thread as a sampler's is."""
    command = [sys.executable, __file__, loop, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD)


def in_its_own_process(loop: str, *arguments: object, count: int = 1) -> float:
    """Steps a second of as many of them at once."""
    running = [started(loop, *arguments) for _ in range(count)]
    return sum(float(process.communicate()[0].split()[-1]) for process in running)


def main() -> int:
    """Both tasks."""
    bench = Benchmark("async_sampling", __doc__)
    cores, seconds = processors(), max(1.0, 5 * bench.arguments.seconds)

    def against_loops(env: str, algo: str, envs: int, count: int, bar: float | None) -> float:
        plan = a_plan(env, algo, count, envs, 32)
        with Samplers(plan, plan.acting) as samplers:
            samplers.begun()
            time.sleep(0.5)
            ours = max(samplers.rate(seconds) for _ in range(2))
        theirs = max(in_its_own_process("plain", env, algo, envs, seconds, count=count)
                     for _ in range(2))  # fmt: skip
        bench.check_rate(f"{env}: {count} samplers / plain loops", ours, theirs, bar)
        return ours

    ours = against_loops("HalfCheetah-v5", "sac", 8, cores, 0.9)

    theirs = max(in_its_own_process("vector", "HalfCheetah-v5", "sac", cores, seconds)
                 for _ in range(2))  # fmt: skip
    bench.check_rate(f"HalfCheetah-v5: / AsyncVectorEnv({cores})", ours, theirs, 2.0)
    ours = against_loops("CartPole-v1", "ppo", 32, 1, None)
    bench.check_rate("CartPole-v1, a sampler, 64x64 / 60 k", ours, 60_000, 1.0)
    return bench.finish()


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in LOOPS:
        loop, env, algo, number, seconds = sys.argv[1:]
        print(LOOPS[loop](env, algo, int(number), float(seconds)))
        sys.exit()
    sys.exit(main())
