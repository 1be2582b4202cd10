# SPDX-License-Identifier: Apache-2.0
"""A run folder with everything that a run of some minutes would have written, made in a moment."""

import dataclasses
import json
import math
import time
from pathlib import Path

import headrace
from headrace.runtime.status import ProcessStatus, Rates, RunEvent, Status, StatusWriter
from headrace.train.algorithms import make_algorithm
from headrace.train.model import save_model

ROLES = [("supervisor", 0), ("sampler", 0), ("sampler", 1), ("learner", 0), ("evaluator", 0)]


def config(env: str = "CartPole-v1", algo: str = "ppo", mode: str = "async") -> dict:
    return {
        "format": 1,
        "env": env,
        "algo": algo,
        "mode": mode,
        "definition": "gym",
        "options": {},
        "max_episode_steps": 500,
        "preset": None,
        "total_steps": 8_000_000,
        "until": 475.0,
        "hyper_parameters": {"learning_rate": 3e-4, "hidden": [64, 64]},
    }


def status(second: float, began: float, **changes) -> Status:
    """How such a run stands after so many seconds."""
    learnt = 1 - math.exp(-second / 60)
    wave = math.sin(second / 7) + 0.5 * math.sin(second / 2.3)
    processes = tuple(
        ProcessStatus(
            role,
            index,
            4000 + 7 * number,
            "running",
            restarts=int(role == "sampler" and index == 1 and second > 40),
            reason="killed by SIGKILL" if second > 40 and (role, index) == ("sampler", 1) else "",
            cpu={"supervisor": 0.01, "sampler": 0.46, "learner": 0.93, "evaluator": 0.08}[role],
            memory={"learner": 520_000_000}.get(role, 61_000_000),
        )
        for number, (role, index) in enumerate(ROLES)
    )
    events = [RunEvent(began + 1.2, "tuned: 2 samplers of 16 environments, batch 2048")]
    if second > 40:
        events.append(RunEvent(began + 40, "sampler 1 was killed by SIGKILL; started anew (1)"))
    if second > 75:
        events.append(RunEvent(began + 75, "best policy so far: return 391.4"))
    return dataclasses.replace(
        Status(
            time=began + second,
            elapsed=second,
            state="running",
            env="CartPole-v1",
            algo="ppo",
            mode="async",
            env_steps=int(61_000 * second),
            updates=int(118 * second),
            frames=int(118 * 2048 * second),
            episodes=int(1200 * second / (1 + 4 * learnt)),
            policy_version=int(15 * second),
            rates=Rates(61_000 + 2500 * wave, 118 + 4 * wave, 241_000 + 8000 * wave, 2_900.0),
            ring_fill=min(1.0, second / 90),
            ring_capacity=1_000_000,
            staleness_mean=1.3 + 0.2 * wave,
            staleness_max=3 + int(wave > 0.9),
            staleness_bound=6,
            train_return=20 + 470 * learnt * (0.93 + 0.04 * wave),
            eval_return=22 + 478 * (1 - math.exp(-(second // 5 * 5) / 50)),
            best_return=22 + 478 * (1 - math.exp(-(second // 5 * 5) / 50)),
            processes=processes,
            events=tuple(events),
            settings={"samplers": 2, "envs_per_sampler": 16, "batch_size": 2048},
        ),
        **changes,
    )


def write_run(
    folder: Path, *, seconds: int = 120, state: str = "finished", with_status: bool = True, **about
) -> Path:
    """The folder, as the run would have left it after so many seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(**about)))
    began = time.time() - seconds
    writer = StatusWriter(folder)
    with (folder / "metrics.jsonl").open("w") as lines:
        for second in range(1, seconds + 1):
            now = status(second, began, state=state if second == seconds else "running")
            if with_status:
                writer.write(now)
            lines.write(json.dumps(metrics(now, evaluated=second % 5 == 0)) + "\n")
    return folder


def metrics(now: Status, *, evaluated: bool) -> dict:
    line = {
        "env_steps": now.env_steps,
        "seconds": now.elapsed,
        "time": now.time,
        "updates": now.updates,
        "rate/env_steps": now.rates.sampling,
        "rate/updates": now.rates.update,
        "rate/update_frames": now.rates.update_frames,
        "train/return": now.train_return,
        "loss/policy": 0.05 * math.exp(-now.elapsed / 50) + 0.004 * math.sin(now.elapsed),
        "loss/value": 40 * math.exp(-now.elapsed / 30),
        "policy/entropy": 0.69 * math.exp(-now.elapsed / 200),
    }
    return line | ({"evaluation/return": now.eval_return} if evaluated else {})


def save_policy(folder: Path, seed: int, **about) -> None:
    """One that has learnt nothing yet."""
    spec = headrace.spec("CartPole-v1")
    algorithm = make_algorithm("ppo", spec, {}, "test")
    params = algorithm.acting(algorithm.init(seed))
    save_model(folder, algorithm, params, dataclasses.asdict(algorithm.config), **about)
