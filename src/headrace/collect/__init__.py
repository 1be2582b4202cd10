# SPDX-License-Identifier: Apache-2.0
"""Ways of turning an environment and a policy into experience: one file a rung.

The package can be called: `headrace.collect(...)` is `headrace.collect.rungs.collect(...)`. For
whoever imports a module of it makes `headrace.collect` the package, over any function of that name.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        from headrace.collect.rungs import collect

        return collect(*arguments, **named)


sys.modules[__name__].__class__ = _Callable
