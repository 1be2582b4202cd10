# SPDX-License-Identifier: Apache-2.0
"""How tests look at what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace import HeadraceError


def refusal(of: Callable[[], Any], error: type[Exception] | tuple = HeadraceError) -> str:
    with pytest.raises(error) as caught:
        of()
    message = str(caught.value)
    assert "\n" not in message
    assert 20 < len(message) < 200
    return message
