"""Profiles of hypothesis: `fast` for every run, `slow` for 10,000 cases a property.

`NANOBOT_CONTEXT_SLOW=1` or `HYPOTHESIS_PROFILE=slow` chooses the second. A failure prints the case
and a `@reproduce_failure` line, and is tried first in the next run.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fast",
    max_examples=100,
    deadline=None,
    print_blob=True,
    # A history takes a while to draw, most of all on a busy machine; it says nothing of the code.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("slow", settings.get_profile("fast"), max_examples=10_000)
settings.load_profile(
    "slow"
    if os.environ.get("NANOBOT_CONTEXT_SLOW") == "1"
    else os.environ.get("HYPOTHESIS_PROFILE", "fast")
)
