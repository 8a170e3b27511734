"""What the shim finds of nanobot, what it replaces, and that all of it is put back.

The real releases run in `tests/nanobot`; here the shapes can be bent one at a time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nanobot_context import installer
from nanobot_context.host.detect import NanobotClasses
from nanobot_context.patches.plan import Plan, make_plan
from shim_classes import (
    WINDOW,
    Script,
    conversation,
    make_provider,
    shaped,
    with_safe_chat,
    with_stream,
)


def planned(classes: NanobotClasses) -> Plan:
    return make_plan(classes, ["guard", "own cuts", "own window", "events"])


def test_the_shape_without_safe_chat_is_the_provider_chat_generation(
    classes: NanobotClasses,
) -> None:
    found = planned(classes)
    assert found.generation == "provider-chat"
    assert {point.state for point in found.points if point.patch.needed} == {"ready"}


def test_the_shape_with_safe_chat_is_the_safe_chat_generation(classes: NanobotClasses) -> None:
    assert planned(with_safe_chat(classes)).generation == "safe-chat"


def test_the_shape_with_a_streaming_twin_is_the_safe_chat_stream_generation(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    def get_history(self: Any, max_messages: int = 120, *, max_tokens: int = 0) -> None: ...

    classes.session.get_history = get_history
    state = install(with_stream(classes))
    assert state.generation == "safe-chat-stream"
    patched = {point.name.rpartition(".")[2] for point in state.points if point.state == "patched"}
    own = {"_safe_chat", "_safe_chat_stream", "_run_subagent"}
    assert patched == {*own, "__init_subclass__"}
    assert classes.session.get_history is get_history


def _chat_not_async(classes: NanobotClasses) -> None:
    classes.provider.chat = lambda self, messages: None  # type: ignore[attr-defined]


def _chat_of_another_form(classes: NanobotClasses) -> None:
    async def chat(self: Any, request: Any) -> None: ...

    classes.provider.chat = chat  # type: ignore[attr-defined]


def _safe_chat_of_another_form(classes: NanobotClasses) -> None:
    async def _safe_chat(self: Any, request: Any) -> None: ...

    classes.provider._safe_chat = _safe_chat  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("bend", "named"),
    [
        (_chat_not_async, "chat` is not `async`"),
        (_chat_of_another_form, "chat` takes no `messages`"),
        (_safe_chat_of_another_form, "_safe_chat` takes no `messages`"),
    ],
)
def test_a_nanobot_whose_calls_cannot_be_reached_is_left_untouched(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    bend: Callable[[NanobotClasses], None],
    named: str,
) -> None:
    bend(classes)
    before = snapshot(classes)
    state = install(classes)
    assert not state.installed
    assert state.generation is None
    assert named in state.reason
    assert "is not known to this version" in state.reason
    assert snapshot(classes) == before


def snapshot(classes: NanobotClasses) -> list[dict[str, Any]]:
    owners = (classes.provider, classes.response, classes.subagents, classes.session)
    return [dict(owner.__dict__) for owner in owners]


def test_uninstall_puts_every_attribute_back(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    shaped(classes, generation)
    provider = make_provider(classes, Script())
    before = [*snapshot(classes), dict(type(provider).__dict__)]
    assert install(classes).installed
    assert [*snapshot(classes), dict(type(provider).__dict__)] != before
    installer.uninstall()
    assert [*snapshot(classes), dict(type(provider).__dict__)] == before
    assert not installer.status().installed


def test_installing_twice_patches_once(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    shaped(classes, generation)
    first = install(classes)
    after = snapshot(classes)
    assert install(classes) == first
    assert snapshot(classes) == after


def test_a_provider_class_made_later_is_protected_and_put_back(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    later = type(make_provider(classes, Script()))
    assert inspect.unwrap(later.chat) is not later.chat
    names = [point.name for point in installer.status().points]
    assert any(name.endswith("Scripted.chat") for name in names)
    installer.uninstall()
    assert inspect.unwrap(later.chat) is later.chat


def test_what_somebody_else_wrapped_stays_and_passes_calls_on(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    ours = classes.session.get_history
    classes.session.get_history = theirs = lambda self, **kw: ours(self, **kw)
    installer.uninstall()
    assert classes.session.get_history is theirs
    session = classes.session(messages=conversation(9, 50))
    assert theirs(session, max_tokens=10) == conversation(9, 50)


def test_switched_off_nothing_is_patched(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    before = snapshot(classes)
    state = install(classes, context_compression=False)
    assert not state.installed
    assert "switched off" in state.reason
    assert snapshot(classes) == before


def test_broken_settings_leave_nanobot_untouched(
    classes: NanobotClasses, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text('{"agents": {"defaults": {"contextCompression": "?"}}}')
    monkeypatch.setattr(installer, "load_classes", lambda: classes)
    monkeypatch.setattr(installer, "nanobot_config_path", lambda: tmp_path / "config.json")
    before = snapshot(classes)
    state = installer.install()
    assert not state.installed
    assert "`agents.defaults.contextCompression` must be" in state.reason
    assert snapshot(classes) == before


def test_status_names_the_window_and_its_source(
    classes: NanobotClasses, install: Callable[..., installer.Status], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text('{"agents": {"defaults": {"model": "gpt-4o"}}}')
    state = install(classes)
    assert (state.window_tokens, state.window_source) == (
        WINDOW,
        "your setting `install(settings=...)`",
    )
    assert state.model == "gpt-4o"
    assert state.to_dict()["settings"]["context_window_override"] == WINDOW
