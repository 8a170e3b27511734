"""Whatever an argument of the session services is, it is used or refused by a typed error."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest

from nanobot_context import NanobotContextError, Session
from nanobot_context.sessions import AsyncSessionService, SessionEvent, SessionService
from nanobot_context.summary import Summarizer

ODD: list[Any] = [
    *(None, True, -1, 0, 1.5, 10**30, -(10**30), math.nan, math.inf, "", "x", "\ud800", b"x"),
    *([], [1], {}, {"role": "user"}, {1: 2}, {"a": {1}}, object(), print, SessionEvent, range(3)),
]
METHODS = [name for name, _ in inspect.getmembers(SessionService, callable) if name[0] != "_"]
# What a call needs beside the odd argument; any other is the session.
NEEDED: dict[str, Any] = {
    **{"app": "app", "user": "me", "session_id": "s", "events": [], "after": 0},
    **{"meta": {}, "delta": {}},
}


def arguments_of(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def refusal(work: Callable[[], Any]) -> str | None:
    """Return why `work` is refused; `None` where it is done. Another error fails the test."""
    try:
        work()
    except NanobotContextError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", METHODS)
def test_an_argument_of_a_method_is_used_or_refused(name: str) -> None:
    parameters = inspect.signature(getattr(SessionService, name)).parameters.values()
    needed = [one.name for one in parameters if one.default is one.empty and one.name != "self"]
    for argument in arguments_of(getattr(SessionService, name)):
        for odd in ODD:
            with SessionService(summarizer=Summarizer()) as service:
                session = service.get_or_create("app", "me", "s")
                service.append(session, [SessionEvent({"role": "user", "content": "hello"})])
                given = {one: NEEDED.get(one, session) for one in needed}
                refusal(lambda: getattr(service, name)(**{**given, argument: odd}))  # noqa: B023


@pytest.mark.parametrize("kind", [SessionService, AsyncSessionService])
@pytest.mark.parametrize("argument", arguments_of(SessionService.__mro__[1]))
def test_an_option_of_a_service_is_used_or_refused_by_its_name(kind: Any, argument: str) -> None:
    for odd in ODD:
        why = refusal(lambda: kind(**{argument: odd}))  # noqa: B023
        assert why is None or argument in why, odd


@pytest.mark.parametrize("field", arguments_of(SessionEvent))
def test_a_field_of_an_event_is_used_or_refused(field: str) -> None:
    with SessionService() as service:
        session = service.create("app", "me", "s")
        for odd in ODD:
            fields = {"payload": {"a": 1}, field: odd}
            refusal(lambda: service.append(session, [SessionEvent(**fields)]))  # noqa: B023


@pytest.mark.parametrize("argument", ["max_messages", "max_tokens"])
def test_a_limit_of_the_history_is_used_or_refused_by_its_name(argument: str) -> None:
    session = Session()
    session.add_message("user", "hello")
    for odd in ODD:
        why = refusal(lambda: session.get_history(**{argument: odd}))  # noqa: B023
        assert why is None or argument in why, odd


def test_asyncio_is_told_the_same() -> None:
    async def tried(work: Callable[[], Any]) -> None:
        try:
            await work()
        except NanobotContextError as error:
            print(error)

    async def run() -> None:
        async with AsyncSessionService() as service:
            session = await service.create("app", "me", "s")
            for odd in ODD:
                await tried(lambda: service.append(session, odd))  # noqa: B023
                await tried(lambda: service.append(odd, []))  # noqa: B023
                await tried(lambda: service.get("app", "me", "s", last=odd))  # noqa: B023
                await tried(lambda: service.enqueue_summary(odd))  # noqa: B023
                await tried(lambda: service.user_state("app", odd))  # noqa: B023
                await tried(lambda: service.context(session, mode=odd))  # noqa: B023

    asyncio.run(run())
