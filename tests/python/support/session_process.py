"""What a process of its own does to a session: `python session_process.py WORK URL …`.

The session is "s" of the user "me" of "app". Every line that is printed is an acknowledgement:
what it names was written before.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from nanobot_context.errors import SessionStoreError
from nanobot_context.sessions import SessionEvent, SessionHead, SessionService
from nanobot_context.summary import Summarizer, SummaryPolicy, Trigger

BATCH = 3


def event(name: str) -> SessionEvent:
    """Return an event whose id, text and state say the same."""
    return SessionEvent({"role": "user", "content": name}, id=name, state={name: name})


def head_of(service: SessionService) -> SessionHead:
    """Return the session without its events."""
    [head] = service.list_sessions("app", "me")
    return head


def append(url: str, writer: str, count: str) -> None:
    """Append events one by one; send every fourth twice, and a piece along with every tenth."""
    with SessionService(url, event_limit=0) as service:
        head = head_of(service)
        for at in range(int(count)):
            name = f"{writer}-{at}"
            events = [event(name)]
            if at % 10 == 0:
                piece = SessionEvent(
                    {}, id=f"{name}-piece", partial=True, state={f"{name}-piece": "x"}
                )
                events.append(piece)
            service.append(head, events)
            if at % 4 == 0:
                service.append(head, events)
            time.sleep(0.002)  # an agent's turn takes longer than a write
        print("done", flush=True)


def append_and_look(url: str, writer: str, count: str) -> None:
    """Append events while a thread reads the file with Python's own SQLite."""
    is_done = threading.Event()

    def look() -> None:
        while not is_done.is_set():
            file = sqlite3.connect(url.removeprefix("sqlite:///"))
            file.execute("SELECT count(*) FROM event").fetchone()
            file.close()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        with SessionService(url, event_limit=0) as service:
            head = head_of(service)
            for at in range(int(count)):
                service.append(head, [event(f"{writer}-{at}")])
    finally:
        is_done.set()
        thread.join()


def summarise(url: str, writer: str, end: str) -> None:
    """Summarise whatever is new until a file `end` exists."""
    summarizer = Summarizer(lambda request: f"by {writer}")
    summarizer.summarize([{"role": "user", "content": "the first one takes a while"}])
    trigger, policy = Trigger.messages(ge=20), SummaryPolicy(keep_last=5)
    with SessionService(
        url, event_limit=0, summarizer=summarizer, trigger=trigger, policy=policy
    ) as service:
        print("ready", flush=True)
        made = 0
        while not Path(end).exists():
            made += service.summarize(head_of(service)) is not None
        print(f"made {made}", flush=True)


def keep_appending(url: str, first: str) -> None:
    """Append batches from the number `first` on, until the process is killed."""
    service = SessionService(url, event_limit=0)
    head = head_of(service)
    number = int(first)
    while True:
        service.append(head, [event(f"{number}.{at}") for at in range(BATCH)])
        print(number, flush=True)
        number += 1


def open_many(url: str, count: str) -> None:
    """Open a new store, and create a session in it, for each line that comes in."""
    for at, _ in zip(range(int(count)), sys.stdin, strict=False):
        with SessionService(f"{url}{at}.db") as service:
            service.create("app", "me", str(os.getpid()))
        print("opened", flush=True)


def fill(url: str) -> None:
    """Append large events to a session until the store refuses one; print its error's class."""
    with SessionService(url, event_limit=0) as service:
        head = head_of(service)
        for number in range(10_000):
            try:
                service.append(head, [SessionEvent({"role": "user", "content": "x" * 10_000})])
            except SessionStoreError as error:
                print(type(error).__name__, flush=True)
                return
            print(number, flush=True)


WORKS: dict[str, Callable[..., None]] = {
    work.__name__: work
    for work in (append, append_and_look, summarise, keep_appending, open_many, fill)
}

if __name__ == "__main__":
    WORKS[sys.argv[1]](*sys.argv[2:])
