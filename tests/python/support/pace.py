"""Stories in which something expires, told slowly enough for the machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

SLOWER = (1, 5, 25)


def unhurried(story: Callable[[float], None]) -> None:
    """Run `story` with its lives and waits multiplied by 1, then by more as long as it fails.

    On a busy machine what must still live may be over before it is looked at. What is wrong fails
    at every pace.
    """
    for slower in SLOWER:
        try:
            return story(slower)
        except (Exception, pytest.fail.Exception):
            continue
    story(5 * SLOWER[-1])
