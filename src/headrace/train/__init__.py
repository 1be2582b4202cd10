# SPDX-License-Identifier: Apache-2.0
"""Runs: an algorithm fed by a collector, its folder, checkpoints, figures and evaluation.

The package can be called, as `headrace.collect` can: `headrace.train(...)` does what the command
does.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

_COMMAND = "headrace.report.training"
"""Of a layer above this one: whoever calls the package stands above all of them."""


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return importlib.import_module(_COMMAND).train(*arguments, **named)


sys.modules[__name__].__class__ = _Callable
