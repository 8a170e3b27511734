"""State, what a session shows first, how long it lives and how much it holds, on every store.

As in trpc-agent-go's tests, but for the differences that `test_sessions` lists.
"""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from nanobot_context import InvalidArgumentError, SessionNotFoundError
from nanobot_context.sessions import AsyncSessionService, SessionEvent, SessionService
from nanobot_context.summary import Summarizer
from pace import unhurried
from session_cases import answered, ids, read, said

if TYPE_CHECKING:
    from pathlib import Path

    from session_cases import Store

pytest_plugins = ("session_fixtures",)
pytestmark = pytest.mark.timeout(120)


# State --------------------------------------------------------------------------------------------


def test_state_goes_where_its_name_says(store: Store) -> None:
    service = store.open()
    start = {"own": 1, "app:v": 2, "user:lang": "zh", "temp:x": 3}
    session = service.create("app", "me", state=start)
    assert session.state == {"own": 1, "app:v": 2, "user:lang": "zh"}
    assert service.app_state("app") == {"v": 2}
    assert service.user_state("app", "me") == {"lang": "zh"}
    assert service.session_state(session) == {"own": 1}
    delta: dict[str, Any] = {
        "own": None,
        "app:v": 3,
        "app:w": 4,
        "user:lang": None,
        "temp:x": 5,
        "new": [],
    }
    service.append(session, [said("hello", state=delta)])
    assert read(service, session).state == {"app:v": 3, "app:w": 4, "new": []}
    other = service.create("app", "you")
    assert other.state == {"app:v": 3, "app:w": 4}


def test_raw_routing_leaves_names_as_they_are(store: Store) -> None:
    service = store.open(routing="raw")
    session = service.create("app", "me", state={"app:v": 1, "temp:x": 2})
    service.append(session, [said("hello", state={"user:lang": "zh"})])
    assert read(service, session).state == {"app:v": 1, "temp:x": 2, "user:lang": "zh"}
    assert (service.app_state("app"), service.user_state("app", "me")) == ({}, {})


def test_app_and_user_hide_a_name_of_the_session(store: Store) -> None:
    service = store.open(routing="raw")
    session = service.create("app", "me", state={"app:v": "session's"})
    service.update_app_state("app", {"v": "app's"})
    assert read(service, session).state == {"app:v": "app's"}
    assert service.session_state(session) == {"app:v": "session's"}


def test_apps_and_users_see_only_their_own_state(store: Store) -> None:
    service = store.open()
    # Joined by any sign, some of these would be the same.
    owners = [("a", "b/c"), ("a/b", "c"), ("a:b", "c"), ("a", "b:c"), ("a|b", "c"), ("a", "b|c")]
    owners += [("a{b", "c}"), ("{a", "b}c"), ("a", "*"), ("a", "b"), ("A", "b")]
    for app, user in owners:
        service.create(app, user, "s")
        service.update_user_state(app, user, {"who": [app, user]})
        service.update_app_state(app, {"app": app})
    for app, user in owners:
        assert service.user_state(app, user) == {"who": [app, user]}
        assert service.app_state(app) == {"app": app}
        assert [head.id for head in service.list_sessions(app, user)] == ["s"]


def test_values_come_back_as_they_were(store: Store) -> None:
    service = store.open()
    values = {
        "text": "字 😀 \x00",
        "empty": "",
        "bytes": b"\x00\xff",
        "no bytes": b"",
        "whole": 1_760_000_000_000_000_123,
        "float": 0.1,
        "false": False,
        "zero": 0,
        "list": [],
        "dict": {"a": {"b": [None, {}]}},
        "a name: with/signs {and} 字": 1,
        "x" * 1_000: "long name",
        "long": "x" * 1_000_000,
    }
    session = service.create("app", "me", state=values)
    assert read(service, session).state == values
    service.update_user_state("app", "me", values)
    service.update_app_state("app", values)
    assert service.user_state("app", "me") == service.app_state("app") == values


def test_an_update_adds_replaces_and_deletes(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    assert service.app_state("app") == service.user_state("app", "me") == {}
    service.update_app_state("app", {"app:a": 1, "b": 2})
    service.update_app_state("app", {"b": 3, "app:c": None, "d": None})
    assert service.app_state("app") == {"a": 1, "b": 3}
    service.update_user_state("app", "me", {"user:a": 1, "b": 2})
    service.update_user_state("app", "me", {"user:a": None})
    assert service.user_state("app", "me") == {"b": 2}
    service.update_session_state(session, {"x": 1, "y": 2})
    service.update_session_state(session, {"y": None})
    assert service.session_state(session) == {"x": 1}
    service.update_user_state("app", "me", {})
    assert read(service, session).state == {"app:a": 1, "app:b": 3, "user:b": 2, "x": 1}


def test_a_name_of_another_scope_is_refused_before_anything_is_written(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    for wrong in ("app:x", "temp:x", "", "user:"):
        with pytest.raises(InvalidArgumentError):
            service.update_user_state("app", "me", {"a": 1, wrong: 1})
    for wrong in ("user:x", "temp:x", "", "app:"):
        with pytest.raises(InvalidArgumentError):
            service.update_app_state("app", {"a": 1, wrong: 1})
    for wrong in ("app:x", "user:x", "temp:x", ""):
        with pytest.raises(InvalidArgumentError):
            service.update_session_state(session, {"a": 1, wrong: 1})
    assert read(service, session).state == {}


def test_the_state_of_no_session_is_empty_and_cannot_be_changed(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    service.delete(*session.key)
    assert service.session_state(session) == {}
    with pytest.raises(SessionNotFoundError):
        service.update_session_state(session, {"a": 1})
    assert service.list_sessions("app", "me") == []


# What is shown first ------------------------------------------------------------------------------

USER_FIRST: dict[str, tuple[list[SessionEvent], dict[str, int], list[str], list[str]]] = {
    # Events; the window; what is shown with "drop", and with "prepend".
    "the user is first": ([said("u"), answered("a")], {}, ["u", "a"], ["u", "a"]),
    "the assistant is first": (
        [answered("a"), answered("b"), said("u"), answered("c")],
        {},
        ["u", "c"],
        ["u", "c"],
    ),
    "nobody but the assistant": ([answered("a"), answered("b")], {}, [], []),
    "neither text nor user": ([SessionEvent({"progress": 1}, id="x"), said("u")], {}, ["u"], ["u"]),
    "the user before the window": (
        [said("u"), said("v"), answered("a"), answered("b")],
        {"last": 2},
        [],
        ["v", "a", "b"],
    ),
    "the user within the window": (
        [said("u"), answered("a"), said("v"), answered("b")],
        {"last": 3},
        ["v", "b"],
        ["v", "b"],
    ),
    "what came since": (
        [said("u"), answered("a"), answered("b")],
        {"after": 2},
        [],
        ["u", "b"],
    ),
    "no window": ([said("u"), answered("a")], {"last": 0}, [], []),
}


@pytest.mark.parametrize("case", USER_FIRST)
def test_a_session_begins_with_the_user(store: Store, case: str) -> None:
    events, window, dropped, prepended = USER_FIRST[case]
    service = store.open(user_first="drop")
    session = service.create("app", "me")
    service.append(session, events)
    assert ids(read(service, session, **window)) == dropped
    assert ids(read(service, session, user_first="prepend", **window)) == prepended
    every = [event.id for event in events]
    shown = every[len(every) - window.get("last", len(every)) :][window.get("after", 0) :]
    assert ids(read(service, session, user_first="off", **window)) == shown


def test_what_is_not_shown_is_still_there(store: Store) -> None:
    service = store.open(user_first="drop")
    session = service.create("app", "me")
    service.append(session, [answered("a")])
    service.append(session, [answered("b"), said("u")])
    assert ids(read(service, session)) == ["u"]
    assert ids(read(service, session, user_first="off")) == ["a", "b", "u"]


# How long it lives --------------------------------------------------------------------------------


def test_without_a_ttl_nothing_expires(store: Store) -> None:
    service = store.open(session_ttl_seconds=0, app_state_ttl_seconds=0, user_state_ttl_seconds=0)
    session = service.create("app", "me", state={"user:a": 1, "app:b": 1})
    time.sleep(0.05)
    assert service.cleanup() == 0
    assert read(service, session).state == {"user:a": 1, "app:b": 1}


def test_a_session_expires_as_a_whole_and_its_owners_state_stays(store: Store) -> None:
    def story(slower: float) -> None:
        me = f"me-{slower}"
        service = store.open(session_ttl_seconds=0.3 * slower)
        session = service.create("app", me, "s", state={"own": 1, "user:a": 1, "app:b": 1})
        service.append(session, [said("hello")])
        time.sleep(0.5 * slower)
        assert service.get("app", me, "s") is None
        assert service.list_sessions("app", me) == []
        assert service.session_state(session) == {}
        assert service.summaries(session) == []
        with pytest.raises(SessionNotFoundError):
            service.append(session, [said("too late")])
        new = service.create("app", me, "s")
        assert (new.state, new.events, new.seq) == ({"user:a": 1, "app:b": 1}, [], 0)

    unhurried(story)


def test_state_of_user_and_app_expires_by_its_own_ttl(store: Store) -> None:
    def story(slower: float) -> None:
        me, app = f"me-{slower}", f"app-{slower}"
        service = store.open(
            user_state_ttl_seconds=0.3 * slower, app_state_ttl_seconds=0.3 * slower
        )
        session = service.create(app, me, state={"own": 1, "user:a": 1, "app:b": 1})
        time.sleep(0.5 * slower)
        assert read(service, session).state == {"own": 1}
        assert (service.user_state(app, me), service.app_state(app)) == ({}, {})
        service.update_user_state(app, me, {"c": 1})
        assert service.user_state(app, me) == {"c": 1}, "what has expired does not come back"

    unhurried(story)


def test_writing_prolongs_a_life_and_reading_does_not(store: Store) -> None:
    def story(slower: float) -> None:
        me = f"me-{slower}"
        service = store.open(session_ttl_seconds=0.5 * slower)
        session = service.create("app", me, "written")
        service.create("app", me, "read")
        for at in range(4):
            time.sleep(0.2 * slower)
            service.append(session, [said(str(at))])
            service.get("app", me, "read")
        assert len(read(service, session).events) == 4
        assert service.get("app", me, "read") is None

    unhurried(story)


def test_reading_prolongs_a_life_where_that_is_asked_for(store: Store) -> None:
    def story(slower: float) -> None:
        service = store.open(session_ttl_seconds=0.5 * slower, refresh="read_write")
        session = service.create("app", f"me-{slower}")
        for _ in range(4):
            time.sleep(0.2 * slower)
            assert service.get(*session.key) is not None
        time.sleep(0.7 * slower)
        assert service.get(*session.key) is None

    unhurried(story)


def test_reading_gives_no_session_an_end_that_has_none(store: Store) -> None:
    service = store.open(session_ttl_seconds=0, refresh="read_write")
    session = service.create("app", "me")
    read(service, session)
    time.sleep(0.05)
    assert service.get(*session.key) is not None


def test_what_has_expired_is_freed_though_nobody_asks(store: Store) -> None:
    service = store.open(
        session_ttl_seconds=0.2, user_state_ttl_seconds=0.2, cleanup_interval_seconds=0.1
    )
    session = service.create("app", "me", state={"own": "secret", "user:a": "secret"})
    service.append(session, [said("secret")])
    files = [path for path in store.path.parent.iterdir() if path.name.startswith(store.path.name)]
    assert not files or any(b"secret" in path.read_bytes() for path in files)
    deadline = time.monotonic() + 30
    while any(b"secret" in path.read_bytes() for path in files):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if store.name == "memory":
        time.sleep(1)
        assert service.cleanup() == 0, "the background was first"


@pytest.mark.parametrize("is_short", [True, False], ids=["short", "unused"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_what_expired_before_is_freed_by_whoever_opens_the_file_next(
    tmp_path: Path, is_short: bool, is_async: bool
) -> None:
    file = tmp_path / "sessions.db"
    url = f"sqlite:///{file}"
    with SessionService(url, session_ttl_seconds=0.05, cleanup_interval_seconds=0) as service:
        service.append(service.create("app", "me"), [said("secret")])
    time.sleep(0.1)

    async def opened() -> None:
        async with AsyncSessionService(url) as service:
            await service.list_sessions("app", "me")
            await asyncio.sleep(0 if is_short else 2)

    if is_async:
        asyncio.run(opened())
    else:
        with SessionService(url):
            time.sleep(0 if is_short else 2)
            assert is_short or not holds(tmp_path, b"secret")
    assert not holds(tmp_path, b"secret")


def holds(folder: Path, text: bytes) -> bool:
    return any(text in path.read_bytes() for path in folder.iterdir())


def test_a_cleaner_that_is_off_frees_nothing(plain_store: Store) -> None:
    service = plain_store.open(session_ttl_seconds=0.05, cleanup_interval_seconds=0)
    service.create("app", "me")
    time.sleep(0.5)
    assert service.cleanup() == (plain_store.name != "redis")


def test_a_service_that_is_forgotten_is_not_kept_alive_by_its_cleaner() -> None:
    service = SessionService(session_ttl_seconds=1, cleanup_interval_seconds=0.05)
    service.create("app", "me")
    gone = weakref.ref(service)
    del service
    gc.collect()
    assert gone() is None


def test_cleaning_up_frees_what_has_expired_and_nothing_else(store: Store) -> None:
    def story(slower: float) -> None:
        me = f"me-{slower}"
        service = store.open(session_ttl_seconds=0.3 * slower, user_state_ttl_seconds=0.3 * slower)
        service.cleanup()
        for at in range(3):
            state = {"own": "secret", "user:a": "secret"}
            session = service.create("app", me, f"s{at}", state=state)
            service.append(session, [said(f"secret {at}")])
        time.sleep(0.5 * slower)
        lasting = service.create("app", f"you-{slower}", "t", state={"user:b": 1, "app:c": 1})
        freed = service.cleanup()
        # Redis frees what has expired by itself.
        assert freed == 3 or store.name == "redis"
        assert service.cleanup() == 0
        assert "secret" not in repr(store.content())
        assert read(service, lasting).state == {"user:b": 1, "app:c": 1}

    unhurried(story)


# How much it holds --------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 10])
def test_the_oldest_events_leave_in_the_same_write(store: Store, limit: int) -> None:
    service = store.open(event_limit=limit, user_first="off")
    session = service.create("app", "me")
    for at in range(25):
        service.append(session, [said(str(at), state={str(at): at})])
        assert len(session.events) == min(at + 1, limit)
    found = read(service, session)
    assert ids(found) == ids(session) == [str(at) for at in range(25 - limit, 25)]
    assert (found.seq, found.first_seq) == (25, 26 - limit)
    assert len(found.state) == 25, "state does not leave"
    service.append(session, [said(f"batch{at}") for at in range(40)])
    assert ids(read(service, session)) == [f"batch{at}" for at in range(40 - limit, 40)]


def test_without_a_limit_nothing_leaves(store: Store) -> None:
    service = store.open(event_limit=0)
    session = service.create("app", "me")
    service.append(session, [said(str(at)) for at in range(1_500)])
    assert len(read(service, session).events) == 1_500


def test_a_thousand_events_stay_by_default(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    service.append(session, [said(str(at)) for at in range(1_003)])
    assert ids(read(service, session))[0] == "3"


def test_results_leave_with_their_calls(store: Store) -> None:
    service = store.open(event_limit=4, user_first="off")
    session = service.create("app", "me")
    calls = {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}, {"id": "2"}]}
    results = [{"role": "tool", "tool_call_id": one, "content": one} for one in "12"]
    group = [
        SessionEvent(calls, id="calls"),
        *(SessionEvent(one, id=one["content"]) for one in results),
    ]
    service.append(session, [said("u"), *group])
    service.append(session, [answered("a")])
    assert ids(read(service, session)) == ["calls", "1", "2", "a"]
    service.append(session, [said("v")])
    assert ids(read(service, session)) == ids(session) == ["a", "v"]


def test_events_stay_until_they_are_summarised_up_to_twice_as_many(store: Store) -> None:
    service = store.open(event_limit=5, user_first="off", summarizer=Summarizer())
    session = service.create("app", "me")
    service.append(session, [said(str(at)) for at in range(8)])
    assert len(read(service, session).events) == 8
    service.append(session, [said(str(at)) for at in range(8, 13)])
    assert ids(read(service, session)) == [str(at) for at in range(3, 13)]
    assert service.summarize(session, force=True) is not None
    service.append(session, [said("13")])
    assert ids(read(service, session)) == ["9", "10", "11", "12", "13"]
