# SPDX-License-Identifier: Apache-2.0
"""What `import headrace` costs beyond Gymnasium's own import, each in fresh interpreters."""

import statistics
import subprocess
import sys
import time

from harness import Benchmark


def seconds_of(code: str) -> float:
    """Wall-clock of an interpreter that runs this."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> int:
    """Pairs, alternately."""
    bench = Benchmark("import_time", __doc__)
    pairs = [
        (seconds_of("import gymnasium"), seconds_of("import gymnasium, headrace"))
        for _ in range(bench.arguments.rounds)
    ]
    extra = statistics.median(ours - theirs for theirs, ours in pairs)
    bench.extra = {"pairs": pairs}
    bench.check("import headrace", extra, 0.1, "s beyond import gymnasium")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
