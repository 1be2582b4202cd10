# SPDX-License-Identifier: Apache-2.0
"""`headrace envs`."""

from __future__ import annotations

from dataclasses import dataclass

from tyro.conf import FlagCreatePairsOff


@dataclass(frozen=True)
class Envs:
    """List the environments: their spaces, time limits and definitions.

    A gym definition gives the rungs python and processes; an array one numpy, torch and xla; a
    native one the native rungs.
    """

    gymnasium: FlagCreatePairsOff[bool] = False
    """Gymnasium's ids as well."""

    def run(self) -> int:
        """Print the list."""
        from headrace.report.catalogue import print_environments

        print_environments(with_gymnasium=self.gymnasium)
        return 0
