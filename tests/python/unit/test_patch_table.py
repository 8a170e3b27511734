"""The table of patches, held against a nanobot in which one attribute after the other is bent.

That nanobot is made of the table: every class of the newest release that it names, and every
attribute as it is expected. The releases themselves run in `tests/nanobot`.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nanobot_context import installer
from nanobot_context.guard import fuse
from nanobot_context.host.detect import (
    PROVIDER,
    RESPONSE,
    SESSION,
    SUBAGENTS,
    TESTED,
    NanobotClasses,
    find,
    is_between,
)
from nanobot_context.patches import TABLE
from nanobot_context.patches.declaration import Patch
from nanobot_context.settings import Settings
from scripts.patch_table import DESIGN, with_table
from shim_classes import (
    WINDOW,
    LLMResponse,
    Script,
    conversation,
    make_classes,
    make_provider,
    with_stream,
)

NEWEST = TESTED[-1]
ROOT = Path(__file__).parents[3]

Spaces = dict[str, dict[str, Any]]
Install = Callable[..., installer.Status]


class OwnError(Exception):
    """What nanobot itself raises."""


def function(parameters: tuple[str, ...], *, is_async: bool) -> Any:
    """Return a method that takes `parameters`, and raises `OwnError`."""

    async def asynchronous(*args: Any, **kwargs: Any) -> Any:
        raise OwnError

    def synchronous(*args: Any, **kwargs: Any) -> Any:
        raise OwnError

    made: Any = asynchronous if is_async else synchronous
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    taken = [inspect.Parameter(name, kind) for name in ("self", *parameters)]
    made.__signature__ = inspect.Signature(taken)
    return made


def shape(patch: Patch, spaces: Spaces) -> None:
    """Give the class that `patch` is of the attribute that it expects."""
    space = spaces.setdefault(patch.owner, {})
    if patch.kind == "value":

        def init(self: Any, model: Any = None, context_window_tokens: int = 0) -> None: ...

        space["__init__"] = init
    elif patch.kind != "new" and patch.attribute:
        same = [one for one in TABLE if named(one) == named(patch)]
        names = tuple(dict.fromkeys(name for one in same for name in one.parameters))
        # What makes the patches of earlier releases needless.
        names += tuple(one.unless for one in same if one.unless and one not in NEW)
        is_async = any(one.kind == "async" for one in same)
        space[patch.attribute] = function(names, is_async=is_async)


NEW = [patch for patch in TABLE if is_between(NEWEST, patch.since, patch.until)]
REPLACED = [patch for patch in NEW if patch.wrap is not None]
"""What is replaced in the newest release."""
EXISTING = [patch for patch in REPLACED if patch.kind in ("function", "async")]


def named(patch: Patch) -> str:
    return f"{patch.owner}.{patch.attribute}"


def dotted(patch: Patch) -> str:
    return f"{patch.owner.rstrip(':').replace(':', '.')}.{patch.attribute}"


def each(patches: list[Patch]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "patch", patches, ids=[f"{named(one).partition(':')[2]}, {one.part}" for one in patches]
    )


@pytest.fixture
def spaces() -> Spaces:
    """The attributes of every class."""
    found: Spaces = {}
    for patch in NEW:
        shape(patch, found)
    provider = with_stream(make_classes()).provider
    own = ("chat", "_safe_chat", "_safe_chat_stream")
    found[PROVIDER] = {name: provider.__dict__[name] for name in own}
    return found


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Install]:
    """Put a nanobot in place that has these attributes, and install the package."""
    monkeypatch.setattr(installer, "nanobot_config_path", lambda: tmp_path / "config.json")
    monkeypatch.setattr(installer, "nanobot_version", lambda: NEWEST)

    def module(name: str) -> ModuleType:
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            path = ".".join(parts[:depth])
            if path not in sys.modules:
                monkeypatch.setitem(sys.modules, path, ModuleType(path))
        return sys.modules[name]

    def run(spaces: Spaces) -> installer.Status:
        monkeypatch.setattr(
            module("nanobot.utils.helpers"), "estimate_prompt_tokens_chain", print, raising=False
        )
        for owner, space in spaces.items():
            where, _, name = owner.partition(":")
            if not name:
                for attribute, made in space.items():
                    monkeypatch.setattr(module(where), attribute, made, raising=False)
                continue
            bases: tuple[type, ...] = ()
            if owner == PROVIDER:
                bases = (make_classes().provider,)
                space = {**space, "chat_stream": function((), is_async=True)}
            made = type(name, bases, {**space, "__module__": where})
            monkeypatch.setattr(module(where), name, made, raising=False)
        monkeypatch.setattr(installer, "load_classes", classes_here)
        return installer.install(
            Settings(
                context_window_override=WINDOW,
                enable_history_summarization=True,
                session_store=f"sqlite:///{tmp_path}/sessions.db",
            )
        )

    yield run
    installer.uninstall()


def classes_here() -> NanobotClasses:
    owners = (PROVIDER, RESPONSE, SUBAGENTS, SESSION)
    return NanobotClasses(*(find(*owner.split(":")) for owner in owners))


def patched(state: installer.Status) -> set[tuple[str, str]]:
    return {(point.name, point.why) for point in state.points if point.state == "patched"}


def points(patches: list[Patch]) -> set[tuple[str, str]]:
    return {(dotted(patch), patch.why) for patch in patches}


def without(gone: Patch) -> set[tuple[str, str]]:
    """Return what stays patched when `gone` cannot be."""
    stay = [patch for patch in REPLACED if named(patch) != named(gone)]
    parts = {one.part for one in REPLACED if named(one) == named(gone) and one.needed}
    if gone.guards:
        parts |= {"own cuts", "own window"}
    return points([patch for patch in stay if patch.part not in parts])


def check_calls(streamed: bool = True) -> None:
    """Check that model calls are answered, and shortened first."""
    classes = classes_here()
    for name in ("_safe_chat", "_safe_chat_stream")[: 1 + streamed]:
        script = Script(LLMResponse("fine"))
        provider = make_provider(classes, script)
        messages = conversation(20, 300)
        chat = getattr(provider, name, provider.chat)
        assert asyncio.run(chat(messages=messages)).content == "fine"
        assert len(str(script.sent[0])) < len(str(messages))


def test_as_expected_everything_is_patched_and_put_back(spaces: Spaces, install: Install) -> None:
    state = install(spaces)
    later = (
        "nanobot.providers.base.LLMProvider.__init_subclass__",
        "providers that are loaded later",
    )
    assert patched(state) == points(REPLACED) | {later}
    assert (state.unguarded, state.fuses) == ((), ())
    assert {point.state for point in state.points} == {"patched"}
    assert state.protected
    check_calls()
    manager = sys.modules["nanobot.session.manager"].Session
    assert "summary" in vars(manager)
    installer.uninstall()
    assert "summary" not in vars(manager)
    for patch in EXISTING:
        owner = classes_here().find(patch.owner)
        assert vars(owner)[patch.attribute] is spaces[patch.owner][patch.attribute]


@each(EXISTING)
def test_one_that_is_missing_costs_only_what_needs_it(
    spaces: Spaces, install: Install, patch: Patch
) -> None:
    del spaces[patch.owner][patch.attribute]
    state = install(spaces)
    assert state.installed
    name = dotted(patch)
    if patch.formerly == "chat":
        # The method of earlier releases takes its place.
        assert points([one for one in REPLACED if one is not patch]) <= patched(state)
        check_calls()
        return
    is_missed = patch.only_with != f"{patch.owner}{patch.attribute}"
    missing = {point.name for point in state.points if point.state == "missing"}
    assert (name in missing) is is_missed
    assert without(patch) <= patched(state)
    check_calls(streamed=not patch.guards)


@each([patch for patch in EXISTING if patch.parameters])
def test_one_whose_parameter_was_renamed_costs_only_what_needs_it(
    spaces: Spaces, install: Install, patch: Patch
) -> None:
    names = tuple(f"new_{name}" for name in patch.parameters)
    spaces[patch.owner][patch.attribute] = function(names, is_async=patch.kind == "async")
    state = install(spaces)
    if patch.part == "guard" and patch.needed:
        assert not state.installed
        assert f"takes no `{patch.parameters[0]}`" in state.reason
        return
    changed = {point.name: point.why for point in state.points if point.state == "changed"}
    assert f"takes no `{patch.parameters[0]}`" in changed[dotted(patch)]
    assert without(patch) <= patched(state)
    check_calls(streamed=not patch.guards)


@each(EXISTING)
def test_one_that_takes_more_is_patched_as_ever(
    spaces: Spaces, install: Install, patch: Patch
) -> None:
    if patch.owner != PROVIDER:
        original = spaces[patch.owner][patch.attribute]
        names = tuple(inspect.signature(original).parameters)[1:]
        is_async = inspect.iscoroutinefunction(original)
        spaces[patch.owner][patch.attribute] = function((*names, "later"), is_async=is_async)
    state = install(spaces)
    assert points(REPLACED) <= patched(state)
    assert {point.state for point in state.points} == {"patched"}


@each([patch for patch in EXISTING if patch.owner != PROVIDER and patch.part != "own cuts"])
def test_what_nanobot_raises_comes_through(spaces: Spaces, install: Install, patch: Patch) -> None:
    install(spaces)
    replaced = vars(classes_here().find(patch.owner))[patch.attribute]
    names = tuple(inspect.signature(replaced).parameters)

    async def run() -> None:
        result = replaced(*(object() for _ in names))
        if inspect.isawaitable(result):
            await result

    with pytest.raises(OwnError):
        asyncio.run(run())


@each(EXISTING)
def test_one_that_cannot_be_wrapped_costs_only_what_needs_it(
    spaces: Spaces, install: Install, monkeypatch: pytest.MonkeyPatch, patch: Patch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("a mistake")

    object.__setattr__(patch, "wrap", fail)
    try:
        state = install(spaces)
    finally:
        object.__setattr__(patch, "wrap", WRAPS[id(patch)])
    assert [fuse.error for fuse in state.fuses] == ["ValueError"]
    if patch.part == "guard" and patch.needed:
        assert not state.installed
        assert patched(state) == set()
        return
    assert without(patch) <= patched(state)


WRAPS = {id(patch): patch.wrap for patch in TABLE}


@pytest.mark.parametrize("bend", ["missing", "renamed"])
def test_where_streams_are_not_guarded_nanobots_own_cuts_stay_and_status_says_so(
    spaces: Spaces, install: Install, bend: str
) -> None:
    original = spaces[PROVIDER].pop("_safe_chat_stream")
    if bend == "renamed":
        spaces[PROVIDER]["_safe_chat_streaming"] = original
    state = install(spaces)
    assert state.installed
    assert not state.protected
    assert state.unguarded == (
        "streamed answers: `nanobot.providers.base.LLMProvider._safe_chat_stream` does not exist",
    )
    owner = "nanobot.agent.context_governance:ContextGovernor"
    governor = classes_here().find(owner)
    for name in ("snip_history", "request_pressure", "ensure_request_fits"):
        assert vars(governor)[name] is spaces[owner][name]
    check_calls(streamed=False)


def test_a_provider_with_a_stream_of_its_own_is_protected_and_the_rest_with_it(
    spaces: Spaces, install: Install
) -> None:
    install(spaces)
    classes = classes_here()
    script = Script(LLMResponse("fine"))
    parent = type(make_provider(classes, script))

    async def stream(self: Any, **kwargs: Any) -> Any:
        return await self.chat(**kwargs)

    own = type("Own", (parent,), {"_safe_chat_stream": stream})
    messages = conversation(20, 300)
    assert asyncio.run(own()._safe_chat_stream(messages=messages)).content == "fine"
    assert len(str(script.sent[0])) < len(str(messages))
    assert installer.status().protected


@pytest.mark.parametrize("form", ["annotation", "default", "slot"])
def test_a_later_field_of_the_name_of_ours_works(
    spaces: Spaces, install: Install, form: str
) -> None:
    def init(self: Any) -> None:
        self.summary = "nanobot's own"

    space = spaces["nanobot.session.manager:Session"]
    space["__init__"] = init
    forms: Spaces = {
        "annotation": {"__annotations__": {"summary": str}},
        "default": {"summary": ""},
        "slot": {"__slots__": ("summary",)},
    }
    space |= forms[form]
    assert install(spaces).installed
    session = sys.modules["nanobot.session.manager"].Session()
    assert session.summary == "nanobot's own"


def test_an_attribute_that_only_the_constructor_sets_works(
    spaces: Spaces, install: Install
) -> None:
    def init(self: Any) -> None:
        self.summary = "nanobot's own"

    spaces["nanobot.session.manager:Session"]["__init__"] = init
    assert "summary" in {point.name.rpartition(".")[2] for point in install(spaces).points}
    assert sys.modules["nanobot.session.manager"].Session().summary == "nanobot's own"


def test_a_release_that_no_test_has_seen_is_named(
    spaces: Spaces, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert install(spaces).is_tested
    monkeypatch.setattr(installer, "nanobot_version", lambda: "9.1")
    assert not installer.status().is_tested


def test_status_counts_what_failed(spaces: Spaces, install: Install) -> None:
    install(spaces)
    for _ in range(3):
        assert fuse.fused("try", lambda: 1 // 0, 7) == 7
    (blown,) = installer.status().fuses
    assert (blown.what, blown.error, blown.times) == ("try", "ZeroDivisionError", 3)


def test_what_failed_is_counted_for_the_command_line(spaces: Spaces, install: Install) -> None:
    install(spaces)
    fuse.fused("try", lambda: 1 // 0, 7)
    counters = installer.status().counters
    assert counters is not None
    assert counters.failures == 1


PLUGINS = (
    ("opened_store.Opened.take", "__init__", ("workspace",)),
    ("opened_store.Opened.service", "__init__", ("workspace",)),
    ("summaries.SummaryJobs.begin_if_due", "save", ("session",)),
)


@pytest.mark.parametrize(("point", "attribute", "arguments"), PLUGINS)
def test_a_plugin_that_fails_does_not_stop_nanobot(
    spaces: Spaces,
    install: Install,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    attribute: str,
    arguments: tuple[str, ...],
) -> None:
    owner = "nanobot.session.manager:SessionManager"
    done: list[str] = []

    def own(self: Any, *given: str, key: Any = None, session: Any = None) -> None:
        self._store = self._jsonl_store = None
        done.append(attribute)

    spaces[owner][attribute] = own
    install(spaces)

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("a mistake")

    monkeypatch.setattr(f"nanobot_context.plugins.{point}", fail)
    manager = object.__new__(classes_here().find(owner))
    manager._store, manager._jsonl_store = "in a store", None
    getattr(manager, attribute)(*arguments)
    assert done == [attribute]
    assert [blown.error for blown in installer.status().fuses] == ["OSError"]


def test_the_tested_releases_are_those_with_a_lock() -> None:
    locks = {path.stem for path in (ROOT / "tests" / "nanobot" / "locks").glob("*.txt")}
    assert set(TESTED) == locks


def test_the_table_on_the_page_is_that_of_the_code() -> None:
    page = DESIGN.read_text("utf-8")
    assert page == with_table(page), "hint: python -m scripts.patch_table"
