# SPDX-License-Identifier: Apache-2.0
"""Where compiled programs are kept, so that the next run of the same begins at once."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Of compiled programs."""
    return base_folder() / "xla"


def base_folder() -> Path:
    """HEADRACE_CACHE_DIR, or a place in the user's folder for caches."""
    if given := os.environ.get("HEADRACE_CACHE_DIR"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headrace"


def use_cache() -> None:
    """Turn JAX's persistent compilation cache on, unless it has been given a place already."""
    import jax

    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
