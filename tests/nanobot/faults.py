"""What goes wrong between nanobot and its model that has nothing to do with the window."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from refusals import error


class Fault(NamedTuple):
    """A good answer that is spoilt on its way."""

    about: str
    spoil: Callable[[bytes], bytes | None]
    """From the body that was meant to the one that is sent; None for no answer, not even a status.
    """
    status: int = 200
    breaks_off: bool = False
    """Whether the length of the body that was meant is stated before the connection is closed."""


def replaced(status: int, message: str, **fields: Any) -> Fault:
    """Return an error of OpenAI's form in place of the answer."""
    body = json.dumps(error(message, **fields)).encode()
    return Fault(str(status), lambda _: body, status)


FAULTS = {
    fault.about: fault
    for fault in (
        Fault("cut", lambda meant: meant[: len(meant) // 2], breaks_off=True),
        Fault("closed", lambda _: None),
        Fault("garbage", lambda meant: meant.replace(b'":', b'"')),
        Fault("empty", lambda _: b""),
        replaced(500, "The server had an error. Sorry about that!", type="server_error"),
        # Without "try again in 2.4s", which nanobot would wait for.
        replaced(429, "Rate limit reached for requests.", code="rate_limit_exceeded"),
        replaced(408, "Request timed out.", type="timeout"),
    )
}
