"""Sessions and their events: what trpc-agent-go's tests check of them, on every store.

The list is in spec/sessions-and-summaries.md, 1.8. Here otherwise, on purpose (4.3 there):

- creating a session under an id that exists is refused; there, it is overwritten in silence;
- `since` is applied before `last`, on every store; there, it depends on the store;
- a window without the user begins with their newest message before it, which makes one event
  more; `user_first="drop"` shows nothing, as there;
- a list has no events, the session written last comes first, and it is paged;
- state named `app:`, `user:` and `temp:` goes where it says, and `None` deletes;
  `routing="raw"` leaves the names as they are, as there;
- the caller's session is changed after the store has taken the events, not before;
- reading does not prolong a session's life; `refresh="read_write"` does, as there;
- the event limit holds in the store, and calls leave together with their results;
- what has expired is invisible at once, whether or not the cleaner has run;
- nothing is written later than it is acknowledged, so there are no workers for writing; after
  `close` every call says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from nanobot_context import (
    ConflictError,
    InvalidArgumentError,
    SessionExistsError,
    SessionGoneError,
    SessionNotFoundError,
    StoreClosedError,
)
from nanobot_context.sessions import SessionEvent, SessionService, StoredSession
from session_cases import answered, at_once, ids, read, said

if TYPE_CHECKING:
    from session_cases import Store

pytest_plugins = ("session_fixtures",)
pytestmark = pytest.mark.timeout(120)


# Create, get, list, delete ------------------------------------------------------------------------


def test_a_session_has_the_id_it_was_given_or_one_of_its_own(store: Store) -> None:
    service = store.open()
    given = service.create("app", "me", "mine", meta={"title": "字"})
    made, other = service.create("app", "me"), service.create("app", "me")
    assert given.id == "mine"
    assert len({given.id, made.id, other.id}) == 3
    again = read(service, given)
    assert (again.meta, again.events, again.state, again.seq) == ({"title": "字"}, [], {}, 0)
    assert abs(again.created - time.time()) < 60
    assert again.created == again.updated


@pytest.mark.parametrize("state", [None, {}])
def test_a_session_may_begin_without_state(store: Store, state: dict[str, Any] | None) -> None:
    service = store.open()
    assert read(service, service.create("app", "me", state=state)).state == {}


def test_a_session_that_exists_is_not_created_again(store: Store) -> None:
    service = store.open()
    old = service.create("app", "me", "s", state={"old": 1})
    service.append(old, [said("hello")])
    with pytest.raises(SessionExistsError):
        service.create("app", "me", "s")
    assert ids(read(service, old)) == ["hello"]
    new = service.create("app", "me", "s", overwrite=True)
    assert new.generation != old.generation
    found = read(service, new)
    assert (found.events, found.state, found.seq) == ([], {}, 0)
    with pytest.raises(SessionGoneError):
        service.append(old, [said("too late")])
    assert read(service, new).events == []


def test_of_many_that_create_one_session_at_once_one_succeeds(store: Store) -> None:
    first = store.open()
    services = [first, *(store.open_again(first) for _ in range(3))]
    works = [partial(one.create, "app", "me", "s") for one in services * 2]
    outcomes = at_once(works)
    assert sum(isinstance(outcome, StoredSession) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, SessionExistsError) for outcome in outcomes) == 7


def test_of_many_that_get_or_create_all_have_the_same_session(store: Store) -> None:
    first = store.open()
    services = [first, *(store.open_again(first) for _ in range(3))]
    works = [
        partial(one.get_or_create, "app", "me", "s", state={"by": at})
        for at, one in enumerate(services * 2)
    ]
    outcomes: list[StoredSession] = at_once(works)
    assert len({outcome.generation for outcome in outcomes}) == 1
    assert len({outcome.state["by"] for outcome in outcomes}) == 1


def test_a_session_that_is_not_there_is_none(store: Store) -> None:
    service = store.open()
    service.create("app", "me", "s")
    for key in (("app", "me", "t"), ("app", "you", "s"), ("ppa", "me", "s")):
        assert service.get(*key) is None


def test_windows_show_the_newest_events_in_their_order(store: Store) -> None:
    service = store.open(user_first="off")
    session = service.create("app", "me")
    service.append(session, [said(str(at), time=1_000.0 + at) for at in range(10)])
    assert ids(read(service, session)) == [str(at) for at in range(10)]
    assert ids(read(service, session, last=3)) == ["7", "8", "9"]
    assert ids(read(service, session, last=30)) == [str(at) for at in range(10)]
    assert ids(read(service, session, last=0)) == []
    assert ids(read(service, session, since=1_006.0)) == ["6", "7", "8", "9"], "inclusive"
    assert ids(read(service, session, since=1_006.0, last=2)) == ["8", "9"]
    assert ids(read(service, session, since=1_008.0, last=5)) == ["8", "9"]
    assert ids(read(service, session, since=2_000.0)) == []


def test_a_list_shows_the_sessions_of_one_user_the_one_written_last_first(store: Store) -> None:
    service = store.open()
    assert service.list_sessions("app", "me") == []
    sessions = []
    for name in ("a", "b", "c", "d"):
        sessions.append(service.create("app", "me", name, meta={"name": name}))
        time.sleep(0.003)
    service.create("app", "you", "e")
    service.create("other", "me", "f")
    service.append(sessions[1], [said("hello")])
    heads = service.list_sessions("app", "me")
    assert [head.id for head in heads] == ["b", "d", "c", "a"]
    assert (heads[0].meta, heads[0].seq) == ({"name": "b"}, 1)
    assert [head.id for head in service.list_sessions("app", "me", offset=1, limit=2)] == ["d", "c"]
    assert [head.id for head in service.list_sessions("app", "me", offset=3)] == ["a"]
    assert service.list_sessions("app", "me", offset=4) == []
    assert service.list_sessions("app", "me", limit=0) == []


def test_a_deleted_session_is_gone_and_one_that_is_not_there_can_be_deleted(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me", "s", state={"user:lang": "zh", "app:v": 1, "own": 1})
    other = service.create("app", "me", "t")
    service.append(session, [said("hello")])
    assert service.delete("app", "me", "s") is True
    assert service.delete("app", "me", "s") is False
    assert service.get("app", "me", "s") is None
    assert [head.id for head in service.list_sessions("app", "me")] == ["t"]
    with pytest.raises(SessionNotFoundError):
        service.append(session, [said("too late")])
    assert service.user_state("app", "me") == {"lang": "zh"}
    assert service.app_state("app") == {"v": 1}
    assert read(service, other).events == []
    new = service.create("app", "me", "s")
    assert (new.state.get("own"), new.events) == (None, [])


def test_an_append_and_a_delete_at_once_leave_no_half_of_either(plain_store: Store) -> None:
    service = plain_store.open()
    other = plain_store.open_again(service)
    for turn in range(20):
        session = service.create("app", "me", f"s{turn}")
        batch = [said(f"{turn}-{at}", state={f"k{at}": at}) for at in range(5)]
        appended, _ = at_once(
            [
                partial(service.append, session, batch),
                partial(other.delete, *session.key),
            ]
        )
        assert isinstance(appended, list | SessionNotFoundError)
        assert service.get(*session.key) is None
        assert service.create("app", "me", f"s{turn}").state == {}


# Append -------------------------------------------------------------------------------------------


def test_events_keep_the_order_in_which_they_were_appended(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    service.append(session, [said("m", time=5_000.0)])
    service.append(session, [said("a", time=5_000.0)])
    service.append(session, [said("z", time=1.0), answered("k", time=9_000_000_000.0)])
    service.append(session, [said(str(at)) for at in range(10)])
    expected = ["m", "a", "z", "k", *(str(at) for at in range(10))]
    assert ids(session) == expected, "the caller's session is brought up to date"
    stored = read(service, session)
    assert ids(stored) == expected
    assert [event.seq for event in stored.events] == list(range(1, 15))
    assert stored.events[3].time == 9_000_000_000.0


def test_an_event_comes_back_as_it_was(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    raw = '{"role": "user",  "content": "字 😀 \\u0000", "n": 1760000000000000123, "f": 1.50}'
    event = SessionEvent(raw=raw, id="1", author="me", filter_key="a/b", time=1_000.125)
    service.append(session, [event])
    found = read(service, session).events[0]
    assert (found.raw, found.payload) == (raw, event.payload)
    assert (found.id, found.author, found.filter_key, found.time) == ("1", "me", "a/b", 1_000.125)
    assert (found.seq, found.partial, found.is_summary) == (1, False, False)


def test_each_append_says_when_it_was(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    updated = [session.updated]
    for at in range(3):
        time.sleep(0.005)
        # The time of the event is its maker's; when it was written is the store's.
        service.append(session, [said(str(at), time=1.0, partial=at == 1, state={"at": at})])
        updated.append(session.updated)
        assert read(service, session).updated == session.updated
    assert updated == sorted(set(updated))
    assert session.created == updated[0]


def test_events_that_say_nothing_change_state_only(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    events = [
        SessionEvent(None, id="no payload", state={"a": 1}),
        SessionEvent({"role": "assistant", "content": ""}, id="empty", state={"b": 1}),
        SessionEvent({"role": "assistant", "content": None}, id="null", state={"c": 1}),
        said("piece", partial=True, state={"d": 1}),
        said("hello", state={"e": 1}),
        SessionEvent({"role": "assistant", "tool_calls": [{"id": "1"}]}, id="calls"),
        SessionEvent({"role": "tool", "tool_call_id": "1", "content": ""}, id="result"),
        SessionEvent({"progress": 0.5}, id="data"),
    ]
    stored = service.append(session, events)
    assert [event.id for event in stored] == ["hello", "calls", "result", "data"]
    found = read(service, session)
    assert ids(found) == ["hello", "calls", "result", "data"]
    assert found.state == session.state == dict.fromkeys("abcde", 1)


def test_an_event_is_taken_once_however_often_it_is_sent(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    events = [said("a", state={"n": 1}), said("b"), said("piece", partial=True, state={"n": 2})]
    for _ in range(3):
        stored = service.append(session, [*events, said("a", state={"n": 9})])
        assert [(event.id, event.seq) for event in stored] == [("a", 1), ("b", 2), ("a", 1)]
    found = read(service, session)
    assert (ids(found), found.state, found.seq) == (["a", "b"], {"n": 2}, 2)
    assert ids(session) == ["a", "b"]


def test_an_append_to_no_session_changes_nothing(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me", "s")
    service.delete(*session.key)
    with pytest.raises(SessionNotFoundError):
        service.append(session, [said("hello", state={"user:x": 1})])
    assert (session.events, session.state, session.seq) == ([], {}, 0)
    assert service.user_state("app", "me") == {}
    assert service.get("app", "me", "s") is None


def test_of_two_that_expect_the_same_position_one_is_told(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    late = read(service, session)
    service.append(session, [said("a")], expected=session.seq)
    with pytest.raises(ConflictError) as caught:
        service.append(late, [said("b", state={"user:b": 1})], expected=late.seq)
    assert (caught.value.expected, caught.value.actual) == ("0", "1")
    assert caught.value.retry == "after_reading"
    assert late.events == []
    late = read(service, session)
    service.append(late, [said("b")], expected=late.seq)
    assert ids(read(service, session)) == ["a", "b"]


def test_writers_at_once_lose_neither_events_nor_state(store: Store) -> None:
    first = store.open()
    first.create("app", "me", "s")
    services = [first, *(store.open_again(first) for _ in range(3))]

    def write(name: str, service: SessionService) -> None:
        session = service.get("app", "me", "s")
        assert session is not None
        for at in range(25):
            event = said(f"{name}{at}", state={f"{name}{at}": at, f"user:{name}": at})
            service.append(session, [event])

    works = [partial(write, name, one) for name, one in zip("abcd", services, strict=True)]
    assert at_once(works) == [None] * 4
    found = first.get("app", "me", "s")
    assert found is not None
    assert [event.seq for event in found.events] == list(range(1, 101))
    for name in "abcd":
        assert [one for one in ids(found) if one[0] == name] == [f"{name}{at}" for at in range(25)]
    assert len([key for key in found.state if ":" not in key]) == 100
    assert first.user_state("app", "me") == dict.fromkeys("abcd", 24)


def test_a_tail_is_replaced_whole_or_not_at_all(store: Store) -> None:
    service = store.open(user_first="off")
    session = service.create("app", "me")
    late = read(service, session)
    service.append(session, [said("a"), said("b"), said("c")])
    with pytest.raises(ConflictError):
        service.replace_tail(late, 1, [said("x")])
    assert ids(read(service, session)) == ["a", "b", "c"]
    replaced = service.replace_tail(session, 1, [said("c"), said("d")])
    assert [event.seq for event in replaced] == [4, 5], "no position is given twice"
    assert ids(session) == ids(read(service, session)) == ["a", "c", "d"]


def test_metadata_is_compared_before_it_is_replaced(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me", meta={"title": "a"})
    late = read(service, session)
    service.set_meta(session, {"title": "b", "n": [1]})
    with pytest.raises(ConflictError):
        service.set_meta(late, {"title": "c"})
    assert read(service, session).meta == session.meta == {"title": "b", "n": [1]}
    service.set_meta(late, {"title": "c"}, force=True)
    assert read(service, session).meta == {"title": "c"}


def test_after_close_every_call_says_so(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    service.close()
    service.close()
    works: list[Callable[[], Any]] = [
        lambda: service.create("app", "me"),
        lambda: service.get(*session.key),
        lambda: service.list_sessions("app", "me"),
        lambda: service.append(session, [said("hello")]),
        lambda: service.delete(*session.key),
        lambda: service.app_state("app"),
        lambda: service.update_user_state("app", "me", {"a": 1}),
        lambda: service.summaries(session),
        service.cleanup,
    ]
    for work in works:
        with pytest.raises(StoreClosedError):
            work()


def test_an_argument_that_no_service_takes_is_refused(plain_store: Store) -> None:
    for options in (
        {"event_limit": -1},
        {"event_limit": True},
        {"session_ttl_seconds": -1},
        {"session_ttl_seconds": float("nan")},
        {"session_ttl_seconds": float("inf")},
        {"refresh": "sometimes"},
        {"routing": "east"},
        {"user_first": "maybe"},
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            plain_store.open(**options)
        assert caught.value.argument in options


@pytest.mark.parametrize("is_read", [True, False])
def test_of_an_id_that_comes_again_what_is_stored_is_returned(is_read: bool) -> None:
    def said(text: str) -> SessionEvent:
        return SessionEvent({"role": "user", "content": text}, id="x")

    with SessionService() as service:
        session = service.create("app", "user", "id")
        head = session if is_read else service.list_sessions("app", "user")[0]
        stored = service.append(head, [said("first"), said("second")])
        assert [event.payload["content"] for event in stored] == ["first", "first"]
        if is_read:
            (again,) = service.append(session, [said("third")])
            assert again.payload["content"] == "first"
