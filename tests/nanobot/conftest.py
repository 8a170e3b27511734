"""The releases and what was played with them. Names for tests are in `played.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from played import RELEASES, Played


@pytest.fixture(scope="session")
def played(request: pytest.FixtureRequest) -> Iterator[Played]:
    """Start the drivers of all releases that the selected tests need."""
    wanted = {
        item.callspec.params["release"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        if "release" in item.callspec.params
    }
    all_played = Played([release for release in RELEASES if release in wanted])
    yield all_played
    all_played.close()


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """A nanobot release that this package supports."""
    return str(request.param)
