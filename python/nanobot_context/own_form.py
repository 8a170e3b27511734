"""Takes Anthropic's messages and Responses items wherever a list of messages is taken.

The core reads OpenAI's chat messages. Lists of other forms are converted; results come back in the
given form, and their places are those of the given list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from nanobot_context import _core
from nanobot_context._core import Fitted, Receipt
from nanobot_context.arguments import check_messages
from nanobot_context.errors import InvalidMessageError

if TYPE_CHECKING:
    from nanobot_context._core import _Archive, _Settings
    from nanobot_context.types import Message
    from nanobot_context.wire.forms.form import Form

Function = TypeVar("Function", bound=Callable[..., Any])


def own_form(messages: Any, body: Mapping[str, Any] | None = None) -> Form | None:
    """Return the form of a list that is not OpenAI's; `None` for one that is.

    That costs one look at each message.

    Args:
        body: The request body that the list stands in, which may tell, too.

    Raises:
        InvalidMessageError: A message has a shape that no provider accepts.
    """
    is_told = body is not None and ("system" in body or "input" in body)
    if not (is_told or _may_be_other(messages)):
        return None
    forms, given = _forms(), check_messages("messages", messages)
    if all("role" in one for one in given):
        _core.find_last_user_index(given)
    try:
        form: Form | None = forms.form_of_messages(given, body)
    except _UNREADABLE:
        raise _unreadable(given) from None
    if form is None:
        return None
    try:
        _core.find_last_user_index(form.messages)
    except InvalidMessageError as error:
        place = form.place(error.index)
        text = str(error).replace(f"messages[{error.index}]", f"messages[{place}]", 1)
        raise InvalidMessageError(text, index=place, field=error.field) from None
    return form


def _forms() -> Any:
    """Return the readers of other forms; imported late, for most lists are OpenAI's."""
    from nanobot_context.wire import forms

    return forms


# What a block of no known shape raises.
_UNREADABLE = (AttributeError, TypeError, ValueError, RecursionError)


def _may_be_other(messages: Any) -> bool:
    if not isinstance(messages, Sequence):
        return False
    try:
        for message in messages:
            content = message.get("content")
            # Most have a text, and cost no more than that.
            if type(content) is not str and (
                "role" not in message or (type(content) is list and any(map(_is_call, content)))
            ):
                return True
    except Exception:
        return False  # The core says what is wrong with it.
    return False


def _is_call(part: Any) -> bool:
    kind = part.get("type") if type(part) is dict else None
    return type(kind) is str and kind.endswith(("tool_use", "tool_result", "compaction"))


def _unreadable(given: list[Any]) -> InvalidMessageError:
    index = next(index for index, one in enumerate(given) if not _is_readable(one))
    problem = "has a block of a shape that Anthropic's API does not take"
    return InvalidMessageError(
        f"`messages[{index}].content` {problem}", index=index, field=".content"
    )


def _is_readable(message: Any) -> bool:
    try:
        _forms().form_of_messages([message])
    except _UNREADABLE:
        return False
    return True


def _in_own_form(function: Function) -> Function:
    """Return `function` for lists of every form."""

    @wraps(function, assigned=("__name__", "__qualname__", "__doc__"))
    def read(*given: Any, **named: Any) -> Any:
        form = own_form(given[0] if given else named.get("messages"))
        if form is None:
            return function(*given, **named)
        named.pop("messages", None)
        above = named.get("above")
        if isinstance(above, int) and not isinstance(above, bool):
            named["above"] = form.read_before(above)
        return _handed_back(form, function(form.messages, *given[1:], **named))

    return cast("Function", read)


def _handed_back(form: Form, made: Any) -> Any:
    if isinstance(made, list):
        return form.written(made)
    if isinstance(made, Fitted):
        restored, (messages, receipt) = _parts(made)
        return restored(form.written(messages), in_own_places(receipt))
    return made


def _parts(made: Any) -> Any:
    """Return the constructor of a result of the core, and its arguments."""
    return made.__reduce__()


def in_own_places(receipt: Receipt) -> Receipt:
    """Return a receipt with the places of the list that its messages were read from."""
    if not receipt.cuts:
        return receipt
    from nanobot_context.wire.forms.form import place_of

    restored, (tokens_before, tokens_after, source, cuts, before, after) = _parts(receipt)
    places = [place_of(message) for message in before]
    if all(place is None for place in places):
        return receipt
    own: list[Message] = []
    for message, place in zip(before, places, strict=True):
        while place is not None and len(own) <= place:
            own.append({"role": "user", "content": []})
        if place is not None:
            own[place] = _joined(own[place], message)
    moved = []
    for cut in cuts:
        made, (index, *rest) = _parts(cut)
        moved.append(made(places[index] or 0, *rest))
    return cast("Receipt", restored(tokens_before, tokens_after, source, moved, own, after))


def _joined(one: Message, other: Message) -> Message:
    """Return one message with the content and calls of two that were read from it."""
    content = other.get("content")
    parts = content if isinstance(content, list) else [content] if content else []
    calls = [*one.get("tool_calls", ()), *other.get("tool_calls", ())]
    # Of results alone it is looked for errors.
    role = "tool" if one["role"] == "tool" else other["role"]
    joined = {"role": role, "content": [*one["content"], *parts]}
    return {**joined, "tool_calls": calls} if calls else joined


compress_messages = _in_own_form(_core.compress_messages)
count_tokens = _in_own_form(_core.count_tokens)
emergency_compress = _in_own_form(_core.emergency_compress)
fit_messages = _in_own_form(_core.fit_messages)
fits = _in_own_form(_core.fits)


@wraps(_core.find_last_user_index, assigned=("__doc__",))
def find_last_user_index(messages: Sequence[Mapping[str, Any]]) -> int:
    form = own_form(messages)
    if form is None:
        return _core.find_last_user_index(messages)
    index = _core.find_last_user_index(form.messages)
    return len(messages) if index == len(form.messages) else form.place(index)


@wraps(_core.find_safe_cut_point, assigned=("__doc__",))
def find_safe_cut_point(messages: Sequence[Mapping[str, Any]], keep_last: int) -> int:
    form = own_form(messages)
    if form is None:
        return _core.find_safe_cut_point(messages, keep_last)
    size, count = len(messages), len(form.messages)
    _core.find_safe_cut_point([], keep_last)
    if keep_last == 0:
        return size
    at = form.read_before(size - keep_last + 1) - 1
    while at > 0:
        at = _core.find_safe_cut_point(form.messages, count - at)
        # What is said beside a result is of one message with it, and a result may come late.
        if form.can_begin_at(at):
            break
        at -= 1
    return form.place(at) if at > 0 else 0


@final
class Compressor:
    """The compression of one conversation."""

    def __init__(
        self,
        context_window: int,
        model: str | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        max_output_tokens: int | None = None,
        settings: _Settings | None = None,
        archive: _Archive | None = None,
    ) -> None:
        self._core = _core.Compressor(
            context_window,
            model,
            tools=tools,
            max_output_tokens=max_output_tokens,
            settings=settings,
            archive=archive,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        _, state = _parts(self._core)
        return Compressor._restored, state

    @staticmethod
    def _restored(*state: Any) -> Compressor:
        compressor = object.__new__(Compressor)
        compressor._core = cast("Any", _core.Compressor)._restored(*state)
        return compressor

    @property
    def context_window(self) -> int:
        """The window in tokens."""
        return self._core.context_window

    @property
    def model(self) -> str | None:
        """The model whose tokens are counted."""
        return self._core.model

    @property
    def receipt(self) -> Receipt | None:
        """What the last call cut; `None` before the first one, and where nothing was to be done."""
        receipt = self._core.receipt
        return receipt and in_own_places(receipt)

    def compress(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        context_window: int | None = None,
        max_output_tokens: int | None = None,
        message_overhead_tokens: int | None = None,
    ) -> list[Message]:
        """Return the messages for the next call: the same as those of `compress_messages`.

        Remembers the conversation's last cut, so that a call costs what is new. `context_window`,
        `max_output_tokens` and `message_overhead_tokens` stand in place of the compressor's own, as
        where a provider has refused more.
        """
        form = own_form(messages)
        made = self._core.compress(
            form.messages if form else messages,
            context_window=context_window,
            max_output_tokens=max_output_tokens,
            message_overhead_tokens=message_overhead_tokens,
        )
        return form.written(made) if form else made

    def emergency(self, messages: Sequence[Mapping[str, Any]]) -> list[Message]:
        """Return messages below 60 % of the window: see `emergency_compress`."""
        form = own_form(messages)
        made = self._core.emergency(form.messages if form else messages)
        return form.written(made) if form else made
