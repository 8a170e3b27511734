"""Selects the part of a stored conversation that goes into the next request.

Everything here is a pure function over lists of messages: nothing that came in is changed, and a
message that stays as it is comes back as the very same object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from nanobot_context._core import wrap_summary
from nanobot_context.arguments import (
    check_choice,
    check_instance,
    check_messages,
    check_whole,
    invalid,
)
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.json_text import parsed
from nanobot_context.types import Message

if TYPE_CHECKING:
    from nanobot_context.summary.record import Summary

__all__ = [
    "assemble_history",
    "call_id",
    "check_covers",
    "drop_duplicate_tail",
    "ensure_tool_responses",
    "function_of",
    "history_ladder",
    "leading_system",
    "newest",
    "summary_message",
    "tool_calls_of",
]

# Document 003, `ensure_tool_responses`.
_MISSING_RESULT = "aborted"
SYSTEM_ROLES = ("system", "developer")
_RESULT = ("tool", "function")


def assemble_history(
    messages: Sequence[Mapping[str, Any]],
    *,
    summary: Summary | None = None,
    mode: Literal["summary", "recent"] = "summary",
    max_messages: int | None = None,
    rounds: int | None = None,
    current: Sequence[Mapping[str, Any]] | None = None,
) -> list[Message]:
    """Return the messages of a request: instructions, the summary, what follows it, and `current`.

    Without limits each message is covered by the summary or shown: none is left out, and none
    comes twice. Costs O(messages).

    Args:
        messages: The conversation from its start. Leading system messages stay in front.
        summary: What stands for its first `covers` messages, as a system message.
        mode: `summary`, or `recent` for the newest messages as they are and no summary.
        max_messages: Messages shown at most, not counting leading system messages, the summary and
            `current`. The cut is at a user message, or where there is none later on, at the next
            message that parts no call from its result.
        rounds: Rounds shown at most: a user message and everything up to the next one.
        current: The messages of the present request. Where the conversation ends with them already,
            they are not doubled: see `drop_duplicate_tail`.

    Raises:
        InvalidArgumentError: A limit is not a positive integer, `mode` is neither of the two,
            `current` is not a list of messages, or the summary covers more messages than there
            are, and so is of another conversation.
    """
    check_choice("mode", mode, ("summary", "recent"))
    given = check_messages("messages", messages)
    present = check_messages("current", [] if current is None else current)
    start = leading_system(given)
    shown = given[:start]
    if mode == "summary" and summary is not None:
        check_covers(summary, given)
        start = max(start, summary.covers)
        shown.append(summary_message(summary.text))
    rest = drop_duplicate_tail(given[start:], present)
    return [*shown, *map(_read, newest(rest, max_messages, rounds)), *present]


def _read(message: Message) -> Message:
    """Return a message as a model reads it: a stored summary as its wrapped text.

    Source: document 003, sections 3.3 and 4.2: `metadata.type` is `session_summary`.
    """
    text, metadata = message.get("summary"), message.get("metadata")
    if isinstance(metadata, str):
        metadata = parsed(metadata)  # as a column of a table has it
    if not (isinstance(text, str) and text and isinstance(metadata, Mapping)):
        return message
    if metadata.get("type") != "session_summary":
        return message
    return {"role": message["role"], "content": wrap_summary(text)}


def summary_message(text: str) -> Message:
    """Return the system message that shows a summary."""
    check_instance("text", text, str)
    return {"role": "system", "content": wrap_summary(text)}


def system_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with a system role, wherever they stand."""
    return [message for message in messages if message.get("role") in SYSTEM_ROLES]


def leading_system(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return how many messages with instructions are in front.

    Raises:
        InvalidMessageError: A message is not a dict.
        InvalidArgumentError: `messages` is not a sequence.
    """
    check_messages("messages", messages)
    others = (at for at, message in enumerate(messages) if message.get("role") not in SYSTEM_ROLES)
    return next(others, len(messages))


def check_summary(summary: Any) -> None:
    """Raise `InvalidArgumentError` unless `summary` has the fields used here."""
    covers, text = getattr(summary, "covers", None), getattr(summary, "text", None)
    if not (isinstance(covers, int) and isinstance(text, str)):
        raise invalid("summary", "a `Summary`", summary)


def check_covers(summary: Summary, messages: Sequence[Mapping[str, Any]]) -> None:
    """Raise `InvalidArgumentError` where a summary covers more than there is.

    The messages were cleared and the summary was not; to go on would hide as many new ones.
    """
    check_summary(summary)
    if summary.covers > len(messages):
        raise InvalidArgumentError(
            f"the summary covers {summary.covers} messages, but there are {len(messages)}",
            argument="summary",
        )


def newest(
    messages: Sequence[Mapping[str, Any]],
    max_messages: int | None = None,
    rounds: int | None = None,
) -> list[Message]:
    """Return the newest messages within both limits; all without a limit.

    See `assemble_history` for where the cut is. Empty where the newest messages are results and
    their call is older.
    """
    given = check_messages("messages", messages)
    start = 0
    for argument, limit in (("max_messages", max_messages), ("rounds", rounds)):
        check_whole(argument, limit, least=1, optional=True)
    if max_messages is not None:
        start = max(len(given) - max_messages, 0)
    if rounds is not None:
        users = [at for at, message in enumerate(given) if message.get("role") == "user"]
        start = max(start, users[-rounds] if len(users) > rounds else 0)
    if start == 0:
        return list(given)
    cuts = [at for at in _places_to_cut(given) if at >= start]
    at_user = (at for at in cuts if given[at].get("role") == "user")
    return given[next(at_user, cuts[0] if cuts else len(given)) :]


def _places_to_cut(messages: Sequence[Message]) -> Iterator[int]:
    """Yield where the messages can begin without a result that has lost its call."""
    results = {caller: at for at, (caller, _) in answers_in(messages).items()}
    last_result = -1
    for at, message in enumerate(messages):
        if at > last_result and message.get("role") not in _RESULT:
            yield at
        last_result = max(last_result, results.get(at, -1))


def answers_in(messages: Sequence[Message]) -> dict[int, tuple[int, int]]:
    """Return for each result that answers a call its message's position, and the call's in it."""
    waiting: dict[str, tuple[int, int]] = {}
    answers = {}
    for at, message in enumerate(messages):
        for nth, call in enumerate(tool_calls_of(message)):
            if id_ := call_id(call):
                waiting[id_] = (at, nth)
        answered = _text(message.get("tool_call_id"))
        if message.get("role") == "tool" and answered in waiting:
            answers[at] = waiting.pop(answered)
    return answers


def drop_duplicate_tail(
    history: Sequence[Mapping[str, Any]], current: Sequence[Mapping[str, Any]]
) -> list[Message]:
    """Return `history` without the messages of `current`, where it ends with all of them.

    Messages are equal when role, content, calls and the answered call are. Texts are compared as
    such, whether they come as one string or in parts; parts that are not text must be equal, too.
    Where both have an `id` or `message_id`, these must be the same.

    What cannot be told apart: a request that repeats word for word the last message of the
    conversation, which nobody answered, from that message itself. Ids tell them apart. A history
    that ends with a part of `current` only keeps it: it is better to say something twice.

    Source: document 003, `drop_duplicate_tail`, which also dropped what matched in part.
    """
    given, present = check_messages("history", history), check_messages("current", current)
    kept = max(len(given) - len(present), 0)
    tail = given[kept:]
    is_repeated = len(tail) == len(present) and all(map(_is_same, tail, present))
    return given[: kept if is_repeated else None]


def _is_same(one: Message, other: Message) -> bool:
    if one is other:
        return True
    named = [
        (one[key], other[key]) for key in ("id", "message_id") if one.get(key) and other.get(key)
    ]
    return (
        one.get("role") == other.get("role")
        and all(mine == yours for mine, yours in named)
        and one.get("tool_call_id") == other.get("tool_call_id")
        and tool_calls_of(one) == tool_calls_of(other)
        and _compared(one.get("content")) == _compared(other.get("content"))
    )


def _compared(content: Any) -> Any:
    """Return content in the one form in which it is compared."""
    if not isinstance(content, list):
        return content or ""
    texts = [_part_text(part) for part in content]
    return content if None in texts else "\n".join(filter(None, texts))


def _part_text(part: Any) -> str | None:
    if isinstance(part, dict) and part.get("type") == "text":
        part = part.get("text")
    return part if isinstance(part, str) else None


def ensure_tool_responses(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return `messages` with each tool call answered once, right behind the message that makes it.

    A missing result becomes "aborted". A result goes where it is not directly behind its calls,
    answers none of them or one that is answered. Calls that stand in `metadata.toolCalls` or are
    a JSON text come back as `tool_calls` in a new dict. Calls without an id stay unanswered.

    Source: document 003, `ensure_tool_responses`, which kept foreign and repeated results.
    """
    made: list[Message] = []
    waiting: list[str] = []
    for message in check_messages("messages", messages):
        if message.get("role") == "tool":
            answered = _text(message.get("tool_call_id"))
            if answered in waiting:
                waiting.remove(answered)
                made.append(message)
            continue
        made += _aborted(waiting)
        waiting = _call_ids(message)
        calls = tool_calls_of(message)
        is_plain = not calls or message.get("tool_calls") is calls
        made.append(message if is_plain else {**message, "tool_calls": calls})
    return [*made, *_aborted(waiting)]


def _aborted(ids: list[str]) -> list[Message]:
    return [{"role": "tool", "tool_call_id": id_, "content": _MISSING_RESULT} for id_ in ids]


def tool_calls_of(message: Mapping[str, Any]) -> list[Any]:
    """Return the tool calls of an assistant's message, wherever it keeps them.

    Those of `metadata.toolCalls` go before `tool_calls`; each may be a JSON text. What cannot be
    read is not a call.

    Source: document 003, where both columns of a stored message were used.
    """
    check_instance("message", message, Mapping)
    if message.get("role") != "assistant":
        return []
    metadata = message.get("metadata")
    kept = metadata.get("toolCalls") if isinstance(metadata, dict) else None
    return _list(kept) or _list(message.get("tool_calls"))


def _list(value: Any) -> list[Any]:
    value = parsed(value) if isinstance(value, str) else value
    return value if isinstance(value, list) else []


def _call_ids(message: Mapping[str, Any]) -> list[str]:
    """Return the ids of a message's calls, each once, in their order."""
    ids = [call_id(call) for call in tool_calls_of(message)]
    return list(dict.fromkeys(filter(None, ids)))


def call_id(call: Any) -> str:
    """Return the id of a tool call; empty where it has none."""
    return _text(call.get("id") or call.get("call_id")) if isinstance(call, dict) else ""


def function_of(call: Any) -> Mapping[str, Any]:
    """Return the object with a tool call's name and arguments; in a flat call, the call itself."""
    call = call if isinstance(call, dict) else {}
    function = call.get("function")
    return function if isinstance(function, dict) else call


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def history_ladder(limit: int) -> int | None:
    """Return how many messages to try next after a refusal; `None` to give up.

    20, 10, 5, 2, 1: the last resort, when neither compression nor a summary was enough.

    Source: document 003, `prev_context.rs:55`.
    """
    check_instance("limit", limit, int)
    return limit // 2 if limit > 1 else None
