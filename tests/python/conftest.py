"""Profiles of hypothesis: `fast` for every run, `slow` for 10,000 cases a property.

The cases of the first are the same in every run, so that a red run means a change of the code.
`NANOBOT_CONTEXT_SLOW=1` or `HYPOTHESIS_PROFILE=slow` chooses the second, which tries new ones. A
failure prints the case and a `@reproduce_failure` line.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "fast",
    max_examples=100,
    derandomize=True,
    deadline=None,
    print_blob=True,
    # A history takes a while to draw, most of all on a busy machine; it says nothing of the code.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "slow", settings.get_profile("fast"), max_examples=10_000, derandomize=False
)
settings.load_profile(
    "slow"
    if os.environ.get("NANOBOT_CONTEXT_SLOW") == "1"
    else os.environ.get("HYPOTHESIS_PROFILE", "fast")
)


@pytest.fixture(autouse=True)
def _nothing_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test's servers state is not what another's do, nor is what the developer's did."""
    from nanobot_context.guard import shared

    monkeypatch.setattr(shared, "nanobot_config_path", lambda: Path("/nowhere/config.json"))
    shared.forget()


def pytest_collection_finish() -> None:
    """Keep what was imported, a million objects of clients alone, from each `gc.collect`."""
    gc.collect()
    gc.freeze()
