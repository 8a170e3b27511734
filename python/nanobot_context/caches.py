"""The caches of this process: their sizes, their common limit, and how to empty them.

They save work and decide nothing: results are the same with empty caches. Vocabularies are no
cache; one that was used stays loaded, at 5 to 7 MB.
"""

from __future__ import annotations

import sys

from nanobot_context import _core

__all__ = ["cache_limit_bytes", "cache_sizes", "clear_caches", "set_cache_limit"]


def cache_sizes() -> dict[str, int]:
    """Return about how many bytes each cache takes, by its name."""
    return _core.cache_sizes()


def cache_limit_bytes() -> int:
    """Return how many bytes the caches may take together: `cacheMb`, by default 128 MB."""
    return _core.cache_limit_bytes()


def set_cache_limit(megabytes: int) -> None:
    """Set how many megabytes the caches may take together; 0 switches them off.

    A cache that has more than its share of the new limit is emptied.

    Raises:
        InvalidArgumentError: `megabytes` is not a non-negative integer.
    """
    _core.set_cache_limit(megabytes)


def clear_caches() -> int:
    """Empty the caches, give their memory back to the system, and return how many bytes they took.

    The next calls take longer, as after a start. Steps that a `Compressor` remembers are its own,
    and go with it.
    """
    freed = _core.clear_caches()
    if sys.platform == "linux":
        _trim()
    return freed


def _trim() -> None:
    # glibc keeps what is freed in small blocks; other C libraries have no such call.
    import contextlib
    import ctypes

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
