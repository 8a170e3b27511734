"""Random operations on every store: equal results, equal errors, and an equal session afterwards.

Memory is the model; a file, and Redis where this build knows it, are compared with it. Left out:
what expires, since clocks differ by a millisecond, and the order of a list, for the same reason;
`test_sessions_state` and `test_sessions` test both. Writers at once are in
`test_session_processes`.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from nanobot_context import NanobotContextError
from nanobot_context.sessions import SessionEvent, SessionHead, SessionService, SessionSummary
from nanobot_context.summary import Summarizer, SummaryPolicy, SummaryRequest, Trigger
from redis_server import RedisServer, running
from session_cases import HAS_REDIS

pytestmark = pytest.mark.timeout(3_600)

APPS, USERS, IDS = ("app", "a/b"), ("me", "b/c"), ("s", "t\x00")
NAMES = ("own", "app:v", "user:v", "temp:v", "字 ", "app:", "")
KEYS = ("", "a", "a/b", "b")

names = st.sampled_from(NAMES)
values: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, "", "字", b"", b"\x00", [], {"a": [1.5]}]
)
states = st.dictionaries(names, values, max_size=3)
plain_states = st.dictionaries(st.sampled_from(("v", "字", "user:v", "app:v")), values, max_size=3)
payloads: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        {"role": "user", "content": "hello"},
        {"role": "user", "content": "字 😀 \x00"},
        {"role": "assistant", "content": "hi"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": "result"},
        {"role": "system", "content": "rules"},
        {"progress": 1},
        [],
        5,
    ]
)
drafts = st.fixed_dictionaries(
    {
        "payload": payloads,
        "id": st.sampled_from([str(at) for at in range(40)]),
        "author": st.sampled_from(("", "me")),
        "filter_key": st.sampled_from(KEYS),
        "time": st.integers(-5, 5),
        "state": states,
        "partial": st.booleans(),
    }
)
counts = st.none() | st.integers(0, 6)


def told(request: SummaryRequest) -> str:
    """Answer for the model, or fail, by what it was asked and nothing else."""
    asked = "".join(str(message["content"]) for message in request.messages)
    digest = hashlib.sha256(asked.encode()).hexdigest()
    if digest[0] in "01234":
        raise RuntimeError("quota")
    return f"summary {digest[:8]}"


def shown(value: Any) -> Any:
    """Return a result without what no two stores have in common: times, and ids that were made."""
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, SessionSummary):
        return replace(value, id="", created=0.0)
    if isinstance(value, SessionEvent):
        if value.is_summary:
            return replace(value, id="-", raw="", time=0.0, payload=value.payload["summary"])
        return replace(value, state={})
    if isinstance(value, SessionHead):
        fields = dict(vars(value), created=0.0, updated=0.0, generation="")
        for name in ("events", "summaries"):
            if name in fields:
                items = fields[name]
                fields[name] = shown(items if name == "events" else [*items.values()])
        return fields
    return value


class Stores(RuleBasedStateMachine):
    """The same operation on each store; a session is known by one object of each."""

    server: ClassVar[RedisServer | None] = None
    sessions: Bundle[tuple[SessionHead, ...]] = Bundle("sessions")

    @initialize(
        limit=st.sampled_from([0, 1, 3, 6]),
        summarises=st.booleans(),
        placeholder=st.booleans(),
        routing=st.sampled_from(["scoped", "raw"]),
    )
    def open(self, limit: int, summarises: bool, placeholder: bool, routing: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="nanobot-context-model-")
        urls = ["memory:", f"sqlite:///{self.folder.name}/sessions.db"]
        if self.server is not None:
            self.server.command("FLUSHALL")
            urls.append(self.server.url)
        options: dict[str, Any] = {
            "event_limit": limit,
            "routing": routing,
            "summarizer": Summarizer(told) if summarises else None,
            "trigger": Trigger.messages(ge=2),
            "policy": SummaryPolicy(keep_last=1),
            "placeholder": placeholder,
            "auto_summary": False,
        }
        self.services = [SessionService(url, **options) for url in urls]

    def teardown(self) -> None:
        if hasattr(self, "services"):
            for service in self.services:
                service.close()
            self.folder.cleanup()

    def outcomes(self, work: Callable[[int, SessionService], Any]) -> list[Any]:
        """Do something on each store; fail where the results or the errors differ."""
        results: list[Any] = []
        told: list[Any] = []
        for at, service in enumerate(self.services):
            try:
                results.append(work(at, service))
                told.append(shown(results[-1]))
            except NanobotContextError as error:
                results.append(None)
                told.append((type(error), str(error), vars(error)))
        for other in told[1:]:
            assert told[0] == other
        return results

    def found(self, results: list[Any]) -> Any:
        """Return what belongs into the bundle: sessions, where there are any."""
        return tuple(results) if results[0] is not None else multiple()

    @rule(
        target=sessions,
        app=st.sampled_from(APPS),
        user=st.sampled_from(USERS),
        id_=st.sampled_from(IDS),
        state=states,
        overwrite=st.booleans(),
    )
    def create(self, app: str, user: str, id_: str, state: dict[str, Any], overwrite: bool) -> Any:
        return self.found(
            self.outcomes(
                lambda at, service: service.create(
                    app, user, id_, state=state, meta={"n": 1}, overwrite=overwrite
                )
            )
        )

    @rule(
        target=sessions,
        app=st.sampled_from(APPS),
        user=st.sampled_from(USERS),
        id_=st.sampled_from(IDS),
        last=counts,
        since=st.none() | st.integers(-6, 6),
        user_first=st.sampled_from(["prepend", "drop", "off"]),
    )
    def get(self, app: str, user: str, id_: str, last: Any, since: Any, user_first: Any) -> Any:
        return self.found(
            self.outcomes(
                lambda at, service: service.get(
                    app, user, id_, last=last, since=since, user_first=user_first
                )
            )
        )

    @rule(sessions=sessions, batch=st.lists(drafts, max_size=5), expects=st.booleans())
    def append(self, sessions: Any, batch: list[dict[str, Any]], expects: bool) -> None:
        self.outcomes(
            lambda at, service: [
                service.append(
                    sessions[at],
                    [SessionEvent(**draft) for draft in batch],
                    expected=sessions[at].seq if expects else None,
                ),
                sessions[at],
            ]
        )

    @rule(
        sessions=sessions,
        back=st.integers(0, 8),
        batch=st.lists(drafts, max_size=3),
    )
    def replace_tail(self, sessions: Any, back: int, batch: list[dict[str, Any]]) -> None:
        after = max(sessions[0].seq - back, 0)
        self.outcomes(
            lambda at, service: [
                service.replace_tail(
                    sessions[at], after, [SessionEvent(**draft) for draft in batch]
                ),
                sessions[at],
            ]
        )

    @rule(sessions=consumes(sessions))
    def delete(self, sessions: Any) -> None:
        self.outcomes(lambda at, service: service.delete(*sessions[at].key))

    @rule(sessions=sessions, meta=st.sampled_from([{}, {"n": 2}, {"字": []}]), force=st.booleans())
    def set_meta(self, sessions: Any, meta: dict[str, Any], force: bool) -> None:
        self.outcomes(lambda at, service: service.set_meta(sessions[at], meta, force=force))

    @rule(sessions=sessions, delta=plain_states)
    def change_session(self, sessions: Any, delta: dict[str, Any]) -> None:
        self.outcomes(lambda at, service: service.update_session_state(sessions[at], delta))

    @rule(app=st.sampled_from(APPS), user=st.sampled_from(USERS), delta=plain_states)
    def change_owners(self, app: str, user: str, delta: dict[str, Any]) -> None:
        self.outcomes(lambda at, service: service.update_user_state(app, user, delta))
        self.outcomes(lambda at, service: service.update_app_state(app, delta))

    @rule(sessions=sessions, key=st.sampled_from(KEYS), force=st.booleans())
    def summarize(self, sessions: Any, key: str, force: bool) -> None:
        self.outcomes(lambda at, service: service.summarize(sessions[at], key, force=force))

    @rule(sessions=sessions, key=st.none() | st.sampled_from(KEYS), last=counts)
    def summaries(self, sessions: Any, key: str | None, last: int | None) -> None:
        self.outcomes(
            lambda at, service: [
                service.summaries(sessions[at], key, links=True, last=last),
                service.summaries(sessions[at], key, failed=True, last=last),
                service.context(sessions[at], key=key or "", max_messages=last),
            ]
        )

    @rule()
    def cleanup(self) -> None:
        self.outcomes(lambda at, service: service.cleanup())

    @invariant()
    def all_is_the_same(self) -> None:
        if not hasattr(self, "services"):
            return
        self.outcomes(
            lambda at, service: [
                service.get(app, user, id_, user_first="off") for app, user, id_ in KEYED
            ]
        )
        self.outcomes(
            lambda at, service: [
                service.app_state(app) | service.user_state(app, user)
                for app in APPS
                for user in USERS
            ]
        )
        self.outcomes(
            lambda at, service: [
                sorted(service.list_sessions(app, user), key=lambda head: head.id)
                for app in APPS
                for user in USERS
            ]
        )


KEYED = [(app, user, id_) for app in APPS for user in USERS for id_ in IDS]


@pytest.fixture(scope="module", autouse=True)
def redis() -> Iterator[None]:
    """One server for all examples; each finds it empty."""
    with contextlib.ExitStack() as stack:
        if HAS_REDIS:
            Stores.server = stack.enter_context(running())
        yield


TestStores = Stores.TestCase
TestStores.settings = settings(stateful_step_count=30)
