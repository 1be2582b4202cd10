# SPDX-License-Identifier: Apache-2.0
"""Chess against every other way of making it: python-chess, Pgx, EnvPool, OpenSpiel, rust-chess.

Both sides do all of the work: observation as bytes and mask as bits, a random legal move, reward,
auto-reset, every transition written. OpenSpiel has its own 20 planes. rust-chess plays games and
writes nothing, and so do we against it: legal moves, a random one, how the game ends, a new game.
"""

import sys
import timeit
from collections.abc import Iterator
from contextlib import contextmanager

from harness import Benchmark, collecting, make, repeat
from peer import Peer
from timing import Rate

from headrace.envs.chess import Position, playouts

SHAPES = ((16, 8), (32, 16), (64, 16), (64, 64), (256, 16))
"""Environments x steps to choose the best from: small batches stay in the caches."""
DECK = 20, 32
PLAYOUTS = 64, 2048
"""Games x plies of playouts: some seven games on each board."""
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
KIWIPETE_5 = 193_690_690
PATIENCE = 300.0
"""Seconds that a peer which compiles for long may take."""


def best(bench: Benchmark, observation: str, threads: int) -> tuple[str, Rate]:
    """The fastest shape of the fused rung, and its rate."""
    rates: dict[float, tuple[str, Rate]] = {}
    for num_envs, steps in SHAPES:
        collector = make(
            "Chess-v0", "native-fused", num_envs, steps, threads=threads, observation=observation
        )
        rate = collecting(collector)
        rates[rate(bench.arguments.seconds / 2)] = f"{num_envs} x {steps}", rate
    return rates[max(rates)]


@contextmanager
def fastest_peer(name: str, worker: str, variants: list[list[str]]) -> Iterator[Peer]:
    """The variant of a worker that is fastest here; one runs at a time."""
    rates: dict[float, list[str]] = {}
    for arguments in variants:
        with Peer(name, worker, *arguments, patience=PATIENCE) as peer:
            rates[peer.rate(1.0)] = arguments
    with Peer(name, worker, *rates[max(rates)], patience=PATIENCE) as peer:
        yield peer


def sizes(*counts: int, **more: int) -> list[list[str]]:
    """Arguments of workers that differ in the number of environments."""
    rest = [part for name, value in more.items() for part in (f"--{name}", str(value))]
    return [["--num-envs", str(count), *rest] for count in counts]


def against_python_chess(bench: Benchmark) -> None:
    """The same observation on both sides; one thread, and two."""
    with Peer("chess", "chess_python.py") as peer:
        for threads, bar in ((1, 80), (2, 150)):
            shape, ours = best(bench, "planes", threads)
            label = f"planes {shape}, {threads} thread / python-chess"
            bench.compare(label, ours, peer.rate, bar)
    with Peer("chess", "chess_python.py", "--observation", "compact") as peer:
        shape, ours = best(bench, "compact", 1)
        bench.compare(f"compact {shape}, 1 thread / python-chess", ours, peer.rate, 150)
    with make("Chess-v0", "python", 4, 64) as plain, Peer("chess", "chess_python.py") as peer:
        bench.compare("python rung / python-chess", collecting(plain), peer.rate)


def against_pgx(bench: Benchmark) -> None:
    """Its best batch, on all processors, as ours."""
    shape, ours = best(bench, "planes", 2)
    with fastest_peer("gymnax", "chess_pgx.py", sizes(16, 64, 256, 1024)) as peer:
        bench.compare(f"planes {shape} / Pgx", ours, peer.rate, 200)


def against_envpool(bench: Benchmark) -> None:
    """Its best batch, on all processors, as ours."""
    shape, ours = best(bench, "planes", 2)
    variants = sizes(2, 16, 64, 256, threads=2) + sizes(64, threads=1)
    with fastest_peer("envpool", "chess_envpool.py", variants) as peer:
        bench.compare(f"planes {shape} / EnvPool", ours, peer.rate, 200)


def against_openspiel(bench: Benchmark) -> None:
    """One thread, as it has."""
    shape, ours = best(bench, "planes", 1)
    with Peer("openspiel", "chess_openspiel.py") as peer:
        bench.compare(f"planes {shape}, 1 thread / OpenSpiel", ours, peer.rate, 20)


def against_rust_chess(bench: Benchmark) -> None:
    """Rules alone, on one thread, as it has; and with the compact observation written beside it."""
    games, plies = PLAYOUTS
    rules = repeat(lambda: playouts(games, plies), games * plies)
    shape, observing = best(bench, "compact", 1)
    with Peer("chess", "chess_rust.py") as peer:
        bench.compare("rules alone, 1 thread / rust-chess", rules, peer.rate, 8)
        bench.compare(f"compact {shape}, 1 thread / rust-chess", observing, peer.rate)


def against_the_deck(bench: Benchmark) -> None:
    """A batch of 20 x 32 examples, by 20 Python processes and by ours."""
    num_envs, steps = DECK
    arguments = ("--num-envs", str(num_envs), "--steps", str(steps), "--processes", str(num_envs))
    with (
        make("Chess-v0", "native-fused", num_envs, steps) as ours,
        make("Chess-v0", "processes", num_envs, steps) as ours_in_processes,
        Peer("chess", "chess_python.py", *arguments) as peer,
    ):
        label = f"{num_envs} x {steps} / {num_envs} processes"
        row = bench.compare(label, collecting(ours), peer.rate, 100)
        for name, rates in (("ours", row.ours), ("theirs", row.theirs)):
            milliseconds = 1e3 * num_envs * steps / sorted(rates)[len(rates) // 2]
            bench.extra[f"{name}_ms_per_batch"] = milliseconds
            print(f"    {name}: {milliseconds:.3g} ms a batch of {num_envs * steps}")
        bench.compare(f"processes rung / {num_envs} processes", collecting(ours_in_processes),
                      peer.rate)  # fmt: skip


def perft(bench: Benchmark) -> None:
    """The move generator alone, on one thread: leaves are counted, not played."""
    position = Position(KIWIPETE)
    best = min(timeit.repeat(lambda: position.perft(5), number=1, repeat=5))
    bench.check("perft, a node", 1e9 * best / KIWIPETE_5, 1e9 / 150e6, "ns")


def main() -> int:
    """Every peer that is installed."""
    bench = Benchmark("chess_peers", __doc__)
    perft(bench)
    for part in (
        against_python_chess,
        against_openspiel,
        against_the_deck,
        against_rust_chess,
        against_pgx,
        against_envpool,
    ):
        bench.with_peer(lambda part=part: part(bench))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
