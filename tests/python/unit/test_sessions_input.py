"""Sessions with odd keys and odd values, large ones, and what is left of deleted ones.

Input that cannot be used ends in a typed error, never in a panic (a `BaseException`, which
`pytest.raises` of these classes does not catch), and changes nothing.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from nanobot_context import InvalidArgumentError, SessionStoreError
from nanobot_context.sessions import (
    AsyncSessionService,
    SessionEvent,
    SessionService,
    StoredSession,
)
from nanobot_context.summary import Summarizer, SummaryPolicy
from session_cases import HAS_REDIS, answered, ids, read, said

if TYPE_CHECKING:
    from session_cases import Store

pytest_plugins = ("session_fixtures",)
pytestmark = pytest.mark.timeout(300)

SURROGATE = "\ud800"

# Keys and ids that no store may stumble over or mix up.
ODD = {
    "NUL": "a\x00b",
    "NUL alone": "\x00",
    "signs": "a/b:c{d}|e*?[f]\\%_'\"--",
    "newline": "a\r\nb\t",
    "Chinese": "会话 😀",
    "combining": "e\u0301",
    "precomposed": "\u00e9",
    "spaces": "  a  ",
    "huge": "x" * 1_000_000,
}


@pytest.mark.parametrize("name", ODD)
def test_odd_keys_are_keys_like_any_other(store: Store, name: str) -> None:
    odd = ODD[name]
    service = store.open()
    session = service.create(odd, odd, odd, state={odd: 1, f"user:{odd}": 2, f"app:{odd}": 3})
    service.append(session, [said(odd, author=odd, filter_key=odd, state={odd: 4})])
    found = read(service, session)
    assert (found.app, found.user, found.id) == (odd, odd, odd)
    assert found.state == {odd: 4, f"user:{odd}": 2, f"app:{odd}": 3}
    event = found.events[0]
    assert (event.id, event.author, event.filter_key) == (odd, odd, odd)
    assert event.payload == {"role": "user", "content": odd}
    assert [head.id for head in service.list_sessions(odd, odd)] == [odd]
    assert service.delete(odd, odd, odd)
    assert service.list_sessions(odd, odd) == []


def test_keys_that_look_alike_are_different_ones(store: Store) -> None:
    service = store.open()
    keys = [*ODD.values(), "a", "b", "A", "a\x00", "\x00b", "x" * 999_999, "0", "00", "None"]
    for key in keys:
        service.create("app", "me", key, meta={"length": len(key)})
        service.create("app", key, "s")
    assert sorted(
        head.id for head in service.list_sessions("app", "me") if head.id != "s"
    ) == sorted(keys)
    for key in keys:
        found = service.get("app", "me", key)
        assert found is not None
        assert found.meta == {"length": len(key)}
        assert len(service.list_sessions("app", key)) == 1


@pytest.mark.parametrize("wrong", ["", SURROGATE, f"a{SURROGATE}b"])
def test_a_key_that_is_empty_or_no_text_is_refused(store: Store, wrong: str) -> None:
    service = store.open()
    session = service.create("app", "me", "s")
    works: list[Callable[[], Any]] = [
        lambda: service.create(wrong, "me"),
        lambda: service.create("app", wrong),
        lambda: service.get(wrong, "me", "s"),
        lambda: service.get("app", wrong, "s"),
        lambda: service.get("app", "me", wrong),
        lambda: service.list_sessions(wrong, "me"),
        lambda: service.list_sessions("app", wrong),
        lambda: service.delete("app", "me", wrong),
        lambda: service.app_state(wrong),
        lambda: service.user_state("app", wrong),
        lambda: service.update_app_state(wrong, {"a": 1}),
        lambda: service.update_user_state("app", "me", {wrong: 1}),
        lambda: service.update_session_state(session, {wrong: 1}),
    ]
    if wrong:
        works += [
            lambda: service.create("app", "me", wrong),
            lambda: service.create("app", "me", state={wrong: 1}),
            lambda: service.append(session, [said("a", id=wrong)]),
            lambda: service.append(session, [said("a", author=wrong)]),
            lambda: service.append(session, [said("a", filter_key=wrong)]),
            lambda: service.append(session, [said("a", state={wrong: 1})]),
            lambda: service.summary_text(session, wrong),
        ]
    for work in works:
        with pytest.raises(InvalidArgumentError):
            work()
    assert read(service, session).seq == 0
    assert [head.id for head in service.list_sessions("app", "me")] == ["s"]


UNUSABLE: dict[str, Callable[[SessionService, StoredSession], Any]] = {
    "NaN in a payload": lambda service, session: SessionEvent({"n": math.nan}),
    "infinity in a payload": lambda service, session: SessionEvent({"n": [math.inf]}),
    "bytes in a payload": lambda service, session: SessionEvent({"role": "user", "content": b"a"}),
    "a set in a payload": lambda service, session: SessionEvent({"a": {1}}),
    "NaN in raw": lambda service, session: service.append(
        session, [SessionEvent(raw='{"role": "user", "content": "a", "n": NaN}')]
    ),
    "raw that is no JSON": lambda service, session: SessionEvent(raw="{"),
    "NaN in state": lambda service, session: session_state(service, session, math.nan),
    "a set in state": lambda service, session: session_state(service, session, {1}),
    "bytes within state": lambda service, session: session_state(service, session, [b"a"]),
    "a number as a name": lambda service, session: service.update_app_state("app", {1: 1}),  # type: ignore[dict-item]
    "NaN in metadata": lambda service, session: service.set_meta(session, {"n": math.nan}),
    "bytes in metadata": lambda service, session: service.set_meta(session, {"n": b"a"}),
    "a NaN time": lambda service, session: service.append(session, [said("a", time=math.nan)]),
    "an infinite time": lambda service, session: service.append(
        session, [said("a", time=math.inf)]
    ),
    "a time without end": lambda service, session: service.append(session, [said("a", time=1e300)]),
    "a NaN since": lambda service, session: service.get(*session.key, since=math.nan),
    "an endless since": lambda service, session: service.get(*session.key, since=1e300),
    "a negative last": lambda service, session: service.get(*session.key, last=-1),
    "a huge last": lambda service, session: service.get(*session.key, last=10**30),
    "a half last": lambda service, session: service.get(*session.key, last=1.5),  # type: ignore[arg-type]
    "a negative limit": lambda service, session: service.list_sessions("app", "me", limit=-1),
    "a huge offset": lambda service, session: service.list_sessions("app", "me", offset=10**30),
    "an unknown user_first": lambda service, session: service.get(*session.key, user_first="x"),  # type: ignore[arg-type]
    "a negative position": lambda service, session: service.append(session, [], expected=-1),
    "an empty id": lambda service, session: emptied(service, session),
}


def session_state(service: SessionService, session: StoredSession, value: Any) -> None:
    """Write one value."""
    service.update_session_state(session, {"fine": 1, "a": value})


def emptied(service: SessionService, session: StoredSession) -> None:
    """Append an event whose id was taken away after it was made."""
    event = said("a")
    event.id = ""
    service.append(session, [said("b"), event])


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_value_that_cannot_be_used_is_refused(store: Store, what: str) -> None:
    service = store.open()
    session = service.create("app", "me")
    with pytest.raises(InvalidArgumentError):
        UNUSABLE[what](service, session)
    found = read(service, session)
    assert (found.seq, found.state, found.meta) == (0, {}, {})


@pytest.mark.parametrize("wrong", [None, 5, b"app", ["app"]])
def test_a_key_of_another_type_is_refused(store: Store, wrong: Any) -> None:
    service = store.open()
    for work in (
        lambda: service.get(wrong, "me", "s"),
        lambda: service.list_sessions("app", wrong),
        lambda: service.create(wrong, "me"),
    ):
        with pytest.raises((TypeError, InvalidArgumentError)):
            work()


def test_text_that_is_no_unicode_is_kept_as_json_writes_it(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me", state={"s": f"a{SURROGATE}"})
    service.append(session, [SessionEvent({"role": "user", "content": f"a{SURROGATE}b"}, id="1")])
    found = read(service, session)
    assert found.events[0].payload["content"] == f"a{SURROGATE}b"
    assert found.state == {"s": f"a{SURROGATE}"}


def test_a_large_event_comes_back_whole(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    text = "字" * 5_000_000
    service.append(
        session, [said("large"), SessionEvent({"role": "user", "content": text}, id="1")]
    )
    assert read(service, session).events[1].payload["content"] == text


def test_deep_json_comes_back_whole_or_is_refused(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    for depth in (100, 400, 100_000):
        deep: Any = []
        for _ in range(depth):
            deep = [deep]
        try:
            service.append(
                session, [SessionEvent({"role": "user", "content": deep}, id=str(depth))]
            )
        except InvalidArgumentError:
            assert depth > 400
    assert ids(read(service, session)) == ["100", "400"]


# Large sessions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [8_000, 100_000])
def test_a_large_session_is_read_whole_and_by_its_newest(plain_store: Store, count: int) -> None:
    service = plain_store.open(event_limit=0, user_first="off")
    service.create("app", "me", "s")
    [head] = service.list_sessions("app", "me")
    for start in range(0, count, 1_000):
        service.append(head, [said(str(at)) for at in range(start, start + 1_000)])
    found = service.get("app", "me", "s")
    assert ids(found) == [str(at) for at in range(count)]
    assert ids(service.get("app", "me", "s", last=50)) == [
        str(at) for at in range(count - 50, count)
    ]
    service.append(head, [said("one more")])
    newest = service.get("app", "me", "s", last=2)
    assert ids(newest) == [str(count - 1), "one more"]
    assert newest is not None
    assert newest.seq == count + 1


def test_a_read_changes_nothing_that_is_stored(store: Store) -> None:
    service = store.open(summarizer=Summarizer(lambda request: "short"), session_ttl_seconds=60)
    session = service.create("app", "me", "s", state={"user:a": 1, "app:b": 2})
    service.append(session, [said(str(at)) for at in range(20)])
    service.summarize(session, force=True)
    before = store.content()
    for _ in range(3):
        service.get("app", "me", "s")
        service.get("app", "me", "s", last=3, since=1.0, user_first="drop")
        service.list_sessions("app", "me")
        service.session_state(session)
        service.user_state("app", "me")
        service.summaries(session, links=True)
        service.summary_text(session)
        service.context(session)
    assert store.content() == before


def test_an_append_after_a_filtered_read_keeps_the_history(store: Store) -> None:
    service = store.open()
    service.append(service.create("app", "me", "s"), [said(str(at)) for at in range(20)])
    for at, window in enumerate(({"last": 1}, {"last": 0}, {"since": 9e9})):
        windowed = service.get("app", "me", "s", **window)  # type: ignore[arg-type]
        assert windowed is not None
        service.append(windowed, [said(f"new{at}")])
        assert windowed.seq == 21 + at
    expected = [*(str(at) for at in range(20)), "new0", "new1", "new2"]
    assert ids(service.get("app", "me", "s")) == expected


# What is left -------------------------------------------------------------------------------------


def secretive(store: Store) -> tuple[SessionService, StoredSession]:
    """Return a session that holds a secret wherever it can hold anything."""
    service = store.open(
        summarizer=Summarizer(lambda request: "secret summary"),
        policy=SummaryPolicy(keep_last=0),
        placeholder=True,
        auto_summary=False,
    )
    session = service.create(
        "app", "me", "secret id", state={"secret": "secret"}, meta={"secret": 1}
    )
    service.append(session, [said("secret", filter_key="secret"), answered("secret too")])
    assert service.summarize(session, "secret", force=True) is not None
    service.append(session, [said("piece", id="secret piece", partial=True)])
    service.replace_tail(session, session.seq - 1, [said("another secret")])
    return service, session


def test_deleting_leaves_nothing_in_the_store(store: Store) -> None:
    service, session = secretive(store)
    if store.is_shared:
        assert "secret" in repr(store.content())
    assert service.delete(*session.key)
    assert "secret" not in repr(store.content())
    if store.server is not None:
        assert store.server.key_names() == [b"nbctx:schema"]


def test_creating_anew_leaves_nothing_of_the_old_session(store: Store) -> None:
    service, session = secretive(store)
    service.create(*session.key, overwrite=True)
    # Its name is still needed.
    assert "secret" not in repr(store.content()).replace("secret id", "")


@pytest.mark.parametrize("how", ["delete", "create", "replace_tail"])
def test_what_leaves_is_gone_from_the_file_as_well(tmp_path: Path, how: str) -> None:
    path = tmp_path / "sessions.db"
    with SessionService(f"sqlite:///{path}", event_limit=5) as service:
        session = service.create("app", "me", "s")
        # Ids of events that have left are kept for a while: a batch may be sent again.
        texts = [answered("secret " * 50, id=f"event-{at}") for at in range(4)]
        service.append(session, [said("u"), *texts])
        if how == "delete":
            service.delete(*session.key)
        elif how == "create":
            service.create("app", "me", "s", overwrite=True)
        else:
            service.replace_tail(session, 1, [said("v")])
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"secret" not in left


def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "sessions.db"
    with SessionService(f"sqlite:///{path}") as service:
        service.append(service.create("app", "me"), [said("hello")])
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


URLS = [
    "redis://ada:{password}@127.0.0.1:1/0",
    "rediss://ada:{password}@127.0.0.1:1/0",
    "redis://ada:{password}@127.0.0.1:1/x",
    "redis://ada:{password}@no host:1/0",
    "redis://ada:{password}@127.0.0.1:99999/0",
    "redis://127.0.0.1:1/0?password={password}",
    "postgres://ada:{password}@127.0.0.1:1/0",
    "sqlite:///ada:{password}@/?key={password}",
    "sqlite://ada:{password}@host/file",
    "://ada:{password}@127.0.0.1",
    "ada:{password}@127.0.0.1",
]


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("service", [SessionService, AsyncSessionService])
def test_no_error_tells_a_password(service: Any, url: str, in_folder: None) -> None:
    password = "hunter2"
    try:
        opened = service(url.format(password=password))
    except (InvalidArgumentError, SessionStoreError) as error:
        told = f"{error!r} {error} {error.args} {vars(error)}"
        assert password not in told
        return
    assert password not in repr(opened)


@pytest.mark.skipif(not HAS_REDIS, reason="this build or this machine has no Redis")
def test_a_client_of_redis_py_stands_for_its_server() -> None:
    from redis_server import running

    with running(password="hunter2 @/?") as server:
        # As redis-py has it; its connections are not used.
        known = {"host": "127.0.0.1", "port": server.port, "db": 1, "password": server.password}
        client = SimpleNamespace(connection_pool=SimpleNamespace(connection_kwargs=known))
        options = {"prefix": "mine", "timeout": 2.5}
        with SessionService(client, store_options=options) as service:
            service.create("app", "me", "s")
            assert "mine" in repr(service)
            assert "hunter2" not in repr(service)
            with SessionService(client) as other:
                assert other.list_sessions("app", "me") == [], "another prefix"
        # redis-py's own connections go to this machine where nothing is said.
        here = {name: value for name, value in known.items() if name != "host"}
        with SessionService(
            SimpleNamespace(connection_pool=SimpleNamespace(connection_kwargs=here))
        ) as local:
            assert "localhost" in repr(local)
            assert local.list_sessions("app", "me") == []
    nowhere = SimpleNamespace(connection_pool=SimpleNamespace(connection_kwargs={"path": "/x"}))
    for wrong in (nowhere, 5):
        with pytest.raises(InvalidArgumentError, match="url"):
            SessionService(wrong)  # type: ignore[arg-type]


def test_options_of_a_store_are_those_of_its_url(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with SessionService(url, store_options={"durability": "full"}) as service:
        service.create("app", "me", "s")
    with pytest.raises(InvalidArgumentError):
        SessionService(url, store_options={"durability": "none"})


@pytest.mark.skipif(not HAS_REDIS, reason="this build or this machine has no Redis")
def test_a_password_opens_the_server_and_is_not_shown(plain_store: Store) -> None:
    from redis_server import running

    with running(password="hunter2") as server:
        with SessionService(server.url) as service:
            assert service.create("app", "me", "s").id == "s"
            assert "hunter2" not in repr(service)
        wrong = server.url.replace("hunter2", "wrong3")
        with pytest.raises(SessionStoreError) as caught:
            SessionService(wrong).create("app", "me")
        assert "wrong3" not in repr(caught.value)
