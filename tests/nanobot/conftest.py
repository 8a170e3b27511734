"""The releases and what was played with them. Names for tests are in `played.py`."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from played import RELEASES, Played
from plays import failure


@pytest.fixture(scope="session")
def played() -> Played:
    """What was played with all releases."""
    return Played()


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """A nanobot release that this package supports."""
    return str(request.param)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have a release played again by the next run when a test of it fails."""
    report = yield
    if report.failed and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        for release in set(RELEASES) & set(map(str, item.callspec.params.values())):
            failure(release).touch()
    return report
