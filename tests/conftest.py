# SPDX-License-Identifier: Apache-2.0
"""What several test files share."""

import os
import tempfile
from collections.abc import Iterator

import gymnasium
import pytest

from headrace.envs import registry


@pytest.fixture(autouse=True, scope="session")
def compiled_programs(request: pytest.FixtureRequest) -> None:
    """Programs that tests compile are kept with pytest's own things, not with the user's."""
    folder = request.config.cache.mkdir("compiled") if request.config.cache else None
    os.environ["HEADRACE_CACHE_DIR"] = str(folder or tempfile.mkdtemp())


@pytest.fixture
def own_environments(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Environments that the test registers are forgotten after it."""
    registry.entries()  # installed plugins are there before, and after
    known = set(gymnasium.registry)
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    yield
    for name in set(gymnasium.registry) - known:
        del gymnasium.registry[name]
