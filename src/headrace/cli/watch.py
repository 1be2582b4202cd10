# SPDX-License-Identifier: Apache-2.0
"""`headrace watch`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg


@dataclass(frozen=True)
class Watch:
    """Show a run in the browser, while it goes on or afterwards.

    The agent playing, its returns, the rates, the processes; on a page that this machine alone can
    open. Ctrl-C ends it; the run does not notice.
    """

    run_folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """Folder of a run: what headrace train wrote."""
    port: Annotated[int, arg(metavar="PORT")] = 0
    """Where the page is served; 0: any port that is free."""
    open: FlagCreatePairsOff[bool] = False
    """Open it in the browser."""

    def run(self) -> int:
        """Serve the page."""
        from headrace.runtime.viewer.server import serve

        serve(self.run_folder, self.port, ready=self._announce)
        return 0

    def _announce(self, url: str) -> None:
        print(f"{self.run_folder}: {url}   (Ctrl-C ends)", flush=True)
        if self.open:
            import webbrowser

            webbrowser.open(url)
