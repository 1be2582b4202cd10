# SPDX-License-Identifier: Apache-2.0
"""What several test files share."""

from collections.abc import Iterator

import gymnasium
import pytest

from headrace.envs import registry


@pytest.fixture
def own_environments(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Environments that the test registers are forgotten after it."""
    registry.entries()  # installed plugins are there before, and after
    known = set(gymnasium.registry)
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    yield
    for name in set(gymnasium.registry) - known:
        del gymnasium.registry[name]
