"""What is played with each release, and the results for tests."""

from __future__ import annotations

import os

import pytest

import forgetting
import reasoned
from plays import Result, Results, plays
from refusals import MISCOUNTED, WRONG

LITELLM: tuple[str, ...] = (
    "0.1.3.post7",
    "0.1.4",
    "0.1.4.post2",
    "0.1.4.post3",
    "0.1.4.post4",
    "0.1.4.post5",
)
"""The releases whose provider is litellm."""
OPENAI: tuple[str, ...] = (
    *("0.1.4.post6", "0.1.5", "0.1.5.post1", "0.1.5.post2", "0.1.5.post3"),
    *("0.2.0", "0.2.1", "0.2.2", "0.3.0", "0.3.5"),
)
"""The releases with a provider class of their own over OpenAI's client."""
ASKED = tuple(os.environ.get("NANOBOT_CONTEXT_RELEASES", "").split())
"""Releases to play in place of those below: one that came out later, for one."""
NEWEST = OPENAI[-1]
LATER = tuple(release for release in ASKED if release not in (*LITELLM, *OPENAI))
"""Those of them that came out after `NEWEST`, and are expected to do what it does."""
OPENAI += LATER
TESTED = (
    *("0.1.3.post7", "0.1.4", "0.1.4.post4", "0.1.4.post5"),
    *("0.1.4.post6", "0.1.5.post3", "0.2.2", "0.3.0", "0.3.5"),
)
"""Releases that differ in what the package touches, for every run."""
IS_MATRIX = os.environ.get("NANOBOT_CONTEXT_MATRIX") == "1"
RELEASES = ASKED or ((*LITELLM, *OPENAI) if IS_MATRIX else TESTED)
"""What the tests play; NANOBOT_CONTEXT_MATRIX=1 plays all sixteen, each in full."""
FULL = ("0.1.4.post4", "0.1.4.post5", "0.3.5") if RELEASES == TESTED else RELEASES
"""One release of each generation that `patches.plan` tells apart. The others play `SMOKE`."""
SMOKE = frozenset(
    (
        *("A:on", "C:on", "C:off", "G:on", "memory:on", "readback:on", "talk-short:on"),
        *("wrong-openai:on", "cut:on", "mute:on", "sub-refused:on", "errors:off", "errors:on"),
        *("custom:on", "wrong-custom:on", "azure:on", "wrong-azure:on", "wrong-responses:on"),
        *("own-window:on", "own-window:off", "told-code:on", "told-preset:on"),
        *("told-more:on", "told-65536:on", "told-block:on"),
        *("idle:on", "fallback:on", "small:off", "small:on", "console", "ruled:on"),
        *("sixty:off", "sixty:on"),
        *("switched-off:off", "switched-off:on", "switched-off:removed"),
    )
)
"""What goes through each part of nanobot once: the loop, subagents, parallel calls, consolidation,
sessions, each provider class, an overflow, an error, the console command, and off again. It leaves
out other windows, texts, error texts and vocabularies, which only the generation's code meets, and
broken connections."""
FITTING = (
    "A",
    "A2",
    "A-deepseek",
    "A-table",
    "A-gateway",
    "B",
    "B-table",
    "C",
    "D",
    "E2",
    "F",
    "G",
    "memory",
)
"""Scenarios whose window is known, so that no request may ever be refused."""
TOLD = ("twice", "mute", "sub-refused")
"""Scenarios in which the user is told that it does not fit."""
OTHER_PROVIDERS = {
    # Since 0.1.4.post6 the settings of the one class that is also played for OpenAI itself.
    "custom": tuple(release for release in RELEASES if release != "0.1.3.post7"),
    # Since 0.1.5 by OpenAI's Responses.
    "azure": tuple(r for r in RELEASES if r in ("0.1.4.post4", "0.1.4.post5", *OPENAI)),
}
"""The releases that have these providers of nanobot, which go past litellm."""
REFUSED = {"custom": ("wrong-custom",), "azure": ("wrong-azure", "wrong-responses")}
"""What is played with them beside the scenario that is called as they are."""
GOES_ON = "0.3.5"
"""The release that keeps what it sent and got by Responses, and sends that again with the news."""
COMPACT_IDLE = tuple(release for release in RELEASES if release in OPENAI[2:])
"""The releases that compact a session when nobody has used it for long, 0.1.5.post1 and later."""
BEFORE_PRESETS = (*LITELLM, *OPENAI[:5])
FALL_BACK = tuple(release for release in RELEASES if release not in BEFORE_PRESETS)
"""The releases that turn to another model when one fails."""
RESOLVERS = ("0.3.0", "0.3.5", *LATER)
"""The releases that select a model by a resolver of runtimes, in `LLMRuntime`."""
FORGETTING = tuple(
    r for r in RELEASES if r in ("0.1.4.post4", "0.1.5.post3", "0.2.2", "0.3.5", *LATER)
)
"""The releases that play the scenarios of `forgetting.py`."""
SMALL_WINDOWS = tuple(one.name for one in forgetting.FORGETTING)
REASONED = {
    # To the last release with litellm a call has no signature, and Google is asked in its own form.
    (release, family): reasoned.name_of(
        family, reasoned.MANY if IS_MATRIX else reasoned.CONVERSATIONS
    )
    for release in FORGETTING
    for family in reasoned.FAMILIES
    if family != "gemini" or release in OPENAI
}
"""What models that think are played with each release and family."""
CONSOLIDATES = "0.2.2"
"""A release that consolidates by itself, whatever is left of the window."""
COMPARED = ("switched-off", "small", "errors", "faults", "faults-pressed")
"""Scenarios that are also played without the package, with every release."""
SWITCHES = ("disabled", "environment", "removed")
"""The modes of the driver in which the package is there and must not be noticed."""
LOSES_REPORTS = ("0.1.5.post1", "0.1.5.post2")
"""Releases whose own provider drops a subagent's report that comes when the turn is over: it stands
last, as the assistant's, and what stands so is taken for a prefill."""
BASELINE = "0.1.4.post4"
"""The release that is also played without the package, to show that the scenarios overflow."""
RETRIES_DIGITS = "0.1.4.post5"
"""The release that takes an error with 503 in it for a transient one."""
KEEP_NAMES = (BASELINE, GOES_ON, *LATER)
"""An old release and the newest that send the name that a message of a session has."""
LIVE = (BASELINE, GOES_ON) if RELEASES == TESTED else RELEASES
"""An old release and the newest, unless all are played: what they tell while they work."""
CONSOLIDATING = tuple(r for r in RELEASES if r == "0.1.5.post3")
"""Consolidates a little before a request would be over the budget."""
PRICED = tuple(r for r in RELEASES if r in LIVE + CONSOLIDATING)
"""A release that saves a message in another form than it sends it, and one that does not."""
BY_ROUNDS_AND_TOKENS = ("talk-chinese", "talk-rolling", "talk-window")
TALKS = {
    BASELINE: ("talk-plain", "talk-troubled", "talk-both", *BY_ROUNDS_AND_TOKENS),
    GOES_ON: (
        *("talk-plain", "talk-troubled", "talk-late", "talk-thinking"),
        *BY_ROUNDS_AND_TOKENS,
    ),
}
"""The long talks; every release has the short one."""


def like(release: str) -> str:
    """Return the release that `release` is expected to be like: itself, or the newest listed."""
    return NEWEST if release in LATER else release


def jobs(release: str) -> list[str]:
    """Return what the driver plays with `release`."""
    wrong = [f"wrong-{form}" for form in WRONG]
    protected = [
        *FITTING,
        *wrong,
        "readback",
        "digits",
        "miscounted",
        *(f"miscounted-{form}" for form in MISCOUNTED),
        "cut",
        *TOLD,
        "refused-then-500",
        "capped",
        "ruled",
    ]
    protected += COMPARED
    plan = [f"{name}:off" for name in COMPARED]
    if release == BASELINE:
        plan += [f"{name}:off" for name in (*FITTING, *wrong, *TOLD)]
    if release in LOSES_REPORTS:
        plan += ["C:off"]
    if release == RETRIES_DIGITS:
        plan += ["digits:off"]
    if release == CONSOLIDATES:
        protected += ["sixty"]
        plan += ["sixty:off"]
    if release in COMPACT_IDLE:
        protected += ["idle"]
    if like(release) == GOES_ON:
        protected += ["thinking", "recalled"]
    protected += ["told-more", "told-unsaid", "told-65536", "told-block", "told-cut"]
    protected += ["counts-less", "frames-more"]
    if release in OPENAI:
        protected += ["own-window", "told-code"]
    if release in RESOLVERS:
        plan += ["own-window:off"]
    if release in FALL_BACK:
        # Presets of models came with fallbacks.
        protected += ["fallback", "told-preset"]
    if release in KEEP_NAMES:
        protected += ["uncountable"]
        plan += ["uncountable:off"]
    if release in LIVE:
        protected += ["live"]
    if release in PRICED:
        protected += ["priced"]
    if release in FORGETTING:
        plan += [f"{name}:on" for name in SMALL_WINDOWS]
    thoughtful = [f"{name}:on" for (one, _), name in REASONED.items() if one == release]
    plan += thoughtful
    for provider, releases in OTHER_PROVIDERS.items():
        if release in releases:
            protected += [provider, *REFUSED[provider]]
    protected += ["talk-short", *TALKS.get(like(release), ())]
    plan += [f"{name}:on" for name in protected]
    plan += [*(f"switched-off:{mode}" for mode in SWITCHES), "console"]
    always = {*SMOKE, *thoughtful, "priced:on", *(f"{name}:on" for name in SMALL_WINDOWS)}
    return [job for job in plan if release in FULL or job in always]


def each(*names: str) -> pytest.MarkDecorator:
    """Try a test with every scenario of `names`, on the releases that play it."""
    cases = [
        (release, name) for release in RELEASES for name in names if f"{name}:on" in jobs(release)
    ]
    return pytest.mark.parametrize(("release", "scenario"), cases)


full = pytest.mark.parametrize("release", FULL)
"""Tries a test on the releases that play everything."""


class Played:
    """The results of all drivers, each read once."""

    def __init__(self) -> None:
        self._results: dict[str, Results] = {}

    def of(self, release: str, scenario: str, mode: str = "on") -> Result:
        """Return what happened in one scenario; the test fails if it was not played to its end."""
        if release not in self._results:
            self._results[release] = plays(release, jobs(release))
        result = self._results[release][scenario, mode]
        if result["error"]:
            pytest.fail(f"{scenario}:{mode} on nanobot {release} broke off\n{result['error']}")
        return result
