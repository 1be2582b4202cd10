# SPDX-License-Identifier: Apache-2.0
"""The viewer's process: the page of a run, with the weights that its samplers act with.

It has no heartbeat: a page that hangs does the run no harm, and one that dies is served anew, on
the same port, so that pages that are open find it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from headrace.errors import HeadraceError
from headrace.runtime import counters
from headrace.runtime.child import SAY, STOP, Wire
from headrace.runtime.plan import Plan, open_channels
from headrace.runtime.shared import SharedMemory
from headrace.runtime.viewer.policy import SharedPolicies
from headrace.runtime.viewer.server import free_port, serve


@dataclass(frozen=True)
class Viewer:
    """The work."""

    plan: Plan
    port: int

    def __call__(self, memory: SharedMemory, line: Wire) -> None:
        """Until told to stop."""
        channels = open_channels(memory, self.plan)

        def policies() -> SharedPolicies:
            return SharedPolicies(self.plan.algorithm(), channels.weights.reader())

        def stop_asked() -> bool:
            if channels.counters.orders.get(counters.STOP):
                return True
            order = line.order()
            return order is not None and order.kind == STOP

        for port in (self.port, 0):  # somebody else may have taken it meanwhile
            with contextlib.suppress(HeadraceError):
                serve(
                    self.plan.folder,
                    port,
                    ready=lambda url: line.tell(SAY, f"the run is shown at {url}"),
                    policies=policies,
                    stop_asked=stop_asked,
                )
                return


def viewer(plan: Plan) -> Callable[[int], Viewer]:
    """Its work, for each of its lives."""
    work = Viewer(plan, free_port())
    return lambda _: work
