# SPDX-License-Identifier: Apache-2.0
"""What faster generation does for a whole run.

    run time = batches x (generation + update)

A rung changes the generation alone, so its speed-up of the run is bounded by the share that
generation had: where the update dominates, a faster rung stops mattering.
"""

DECK_UPDATE_SECONDS = 0.1
"""What an update takes in the lecture whose ladder this is."""


def run_speedup(baseline: float, generation: float, update: float) -> float:
    """How many times faster the run is; the arguments are seconds for a batch.

    `baseline` is the generation that `generation` takes the place of.
    """
    return (baseline + update) / (generation + update)


def generation_share(generation: float, update: float) -> float:
    """The part of the run spent in generation, of 1."""
    return generation / (generation + update)
