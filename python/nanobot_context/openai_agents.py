"""Sessions of OpenAI's Agents SDK in a store that many processes share, and items that fit.

session = OpenAIAgentsSession("sqlite:///agents.db", "thread-7", max_tokens=60_000, model="gpt-4o")
result = await Runner.run(agent, "What failed last night?", session=session)

The SDK is not imported: a session has the methods of its `Session` protocol, and items are dicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nanobot_context._core import compress_messages, fits, get_context_window
from nanobot_context.adapters.converted import schema, text_in
from nanobot_context.archive import Archive
from nanobot_context.arguments import check_instance, check_mappings, check_whole
from nanobot_context.errors import (
    ConflictError,
    SessionExistsError,
    SessionGoneError,
    SessionNotFoundError,
    StoreClosedError,
)
from nanobot_context.responses import from_response_items, to_response_items
from nanobot_context.sessions import AsyncSessionService, SessionEvent, SessionHead, StoredSession
from nanobot_context.settings import Settings
from nanobot_context.types import Message
from nanobot_context.wire.forms.responses import Responses

__all__ = ["InputFilter", "OpenAIAgentsSession", "compress_items", "fit_input"]

Item = dict[str, Any]
# The SDK has a type for each kind of item, which it does not tell apart from a dict at run time.
Items = list[Any]

_RESULTS = ("function_call_output", "custom_tool_call_output")
# Under this key an event says which item it is.
_ITEM = "item"
# What is within a budget comes back as it is, and all of the budget is for messages.
_BUDGET = Settings(
    context_reserve_ratio=0.0,
    tool_result_soft_limit=1.0,
    tool_result_hard_limit=1.0,
    max_user_message_chars=0,
    max_assistant_message_chars=0,
)


class OpenAIAgentsSession:
    """A session for `Runner.run(agent, input, session=…)`.

    Every item is an event that holds it whole and, where it has such a form, the chat message that
    it is: `SessionService` shows, summarises and exports the session as any other. Two processes
    may use one session; what one adds at once stays together. A server of Responses is not needed:
    with `set_default_openai_api("chat_completions")` the SDK makes chat messages of the items.

    Args:
        store: The service that keeps it, or the URL of a store: see `AsyncSessionService`. A
            service that is made here keeps everything, and is closed by `close`.
        session_id: The session. It is created with the first item.
        app: The app that it is one of.
        user: The user whom it belongs to.
        max_tokens: Tokens of `get_items` at most; `None` for all that is stored. New input, tools
            and instructions come on top of it.
        model: The model that tokens are counted for.

    Raises:
        InvalidArgumentError: `max_tokens` is not a positive integer.
        SessionStoreError: The store cannot be opened; its classes say why.
    """

    # Of the protocol: the SDK's `SessionSettings`, whose `limit` is that of `get_items`.
    session_settings: Any = None

    def __init__(
        self,
        store: AsyncSessionService | str,
        session_id: str,
        *,
        app: str = "openai-agents",
        user: str = "user",
        max_tokens: int | None = None,
        model: str | None = None,
    ) -> None:
        check_whole("max_tokens", max_tokens, least=1, optional=True)
        self._is_owner = isinstance(store, str)
        if isinstance(store, str):
            store = AsyncSessionService(store, event_limit=0)
        self._service = store
        self.session_id = session_id
        self.max_tokens = max_tokens
        self.model = model
        self._key = app, user, session_id
        self._head: SessionHead | None = None
        self._is_closed = False

    async def __aenter__(self) -> OpenAIAgentsSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get_items(self, limit: int | None = None) -> Items:
        """Return the conversation's items, oldest first.

        Where the service has summarised the session, the summary is a system message in front, and
        the items behind it follow. Of more than `max_tokens`, long results are shortened and what
        is old is left out, by `compress_items`, which keeps calls together with their results.

        Args:
            limit: The newest items at most, without a summary; `None` for the limit of
                `session_settings`, where these have one. Where they are within `max_tokens`
                they are just those that were added last, a result without its call among them: so
                the SDK finds again what it wrote, and it leaves such results out by itself.

        Raises:
            ContextOverflowError: System messages alone are larger than `max_tokens`.
        """
        self._check_open()
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
        if limit is not None and limit < 1:
            return []
        stored = await self._service.get(*self._key, last=limit, user_first="off")
        if stored is None:
            return []
        items: list[Item] = []
        events = stored.events
        if limit is None and (summary := stored.summaries.get("")):
            items += to_response_items([], summaries=[summary.text])
            events = [event for event in events if (event.seq or 0) > summary.last_seq]
        items += [_from_payload(event.payload) for event in events if _is_item(event)]
        # New input always follows. Standing in for it, this keeps none of the old from being cut.
        given = [*items, {"role": "user", "content": ""}]
        messages = Responses({"input": given}).messages
        if self.max_tokens is None or fits(messages, self.max_tokens, self.model):
            return items
        shown = compress_items(given, self.max_tokens, self.model, settings=_BUDGET)
        # Calls without results may wait for an approval: that is for the SDK to know.
        results = {item.get("call_id") for item in items if item.get("type") in _RESULTS}
        return [
            item
            for item in shown[:-1]
            if item.get("type") not in _RESULTS or item.get("call_id") in results
        ]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Add items behind the others, all of them in one write.

        Raises:
            InvalidArgumentError: An item cannot be written as JSON.
        """
        self._check_open()
        events = [SessionEvent(_to_payload(item)) for item in items]
        while events:
            head = self._head = self._head or await self._create()
            try:
                await self._service.append(head, events)
            except (SessionNotFoundError, SessionGoneError):
                # Cleared or expired meanwhile, which ends no conversation.
                self._head = None
            else:
                break

    async def pop_item(self) -> Any:
        """Remove the newest item and return it; `None` where there is none.

        A summary that covers it goes, too. Of several callers each gets another item.
        """
        self._check_open()
        while newest := await self._newest():
            session, event = newest
            try:
                await self._service.replace_tail(session, (event.seq or 0) - 1, [])
            except (ConflictError, SessionGoneError, SessionNotFoundError):
                continue  # another writer was first
            return _from_payload(event.payload)
        return None

    async def clear_session(self) -> None:
        """Delete the session; what is added later begins a new one."""
        self._check_open()
        await self._service.delete(*self._key)
        self._head = None

    async def close(self) -> None:
        """Close the store unless its service was handed in; no other method works afterwards."""
        self._is_closed = True
        if self._is_owner:
            await self._service.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError("the session has been closed", retry="never")

    async def _create(self) -> SessionHead:
        stored = None
        while stored is None:
            try:
                stored = await self._service.create(*self._key)
            except SessionExistsError:
                stored = await self._service.get(*self._key, last=0, user_first="off")
        # Not the session itself, which would collect all that is added.
        return stored.head

    async def _newest(self) -> tuple[StoredSession, SessionEvent] | None:
        """Return the session and its newest item."""
        # All are read where the newest event is not an item, but stands for a summary.
        for last in (1, None):
            stored = await self._service.get(*self._key, last=last, user_first="off")
            if stored is None:
                return None
            items = [event for event in stored.events if _is_item(event)]
            if items:
                return stored, items[-1]
        return None


def compress_items(
    items: Sequence[Any],
    context_window: int,
    model: str | None = None,
    *,
    instructions: str | None = None,
    tools: list[Any] | None = None,
    max_output_tokens: int | None = None,
    settings: Settings | None = None,
    archive: Archive | None = None,
) -> Items:
    """Return Responses items that fit, as `compress_messages` does it for chat messages.

    Items that stay as they are come back as the very same objects. Reasoning stays and goes with
    the message or the calls behind it. Where the thoughts of older rounds are left out, what they
    led to loses its `id`: the provider would look for them.

    Args:
        items: The input of a request, with `instructions` in front of it.
        context_window: The model's window in tokens.
        model: The model that tokens are counted for.
        instructions: What a request sends beside its items; they count.
        tools: The tool schemas in the form of chat completions; they count.
        max_output_tokens: The limit for the answer.
        settings: Limits of the compression.
        archive: Where originals of shortened tool results are kept.

    Raises:
        ContextOverflowError: What must stay is larger than what is allowed.
        InvalidMessageError: An item makes a message of a shape that no provider accepts.
        InvalidArgumentError: Another argument cannot be used.
    """
    check_mappings("items", items)
    check_instance("instructions", instructions, str, optional=True)
    body = {"input": list(items), **({"instructions": instructions} if instructions else {})}
    form = Responses(body)
    fitted = compress_messages(
        form.messages,
        context_window,
        model,
        tools=tools,
        max_output_tokens=max_output_tokens,
        settings=settings,
        archive=archive,
    )
    return form.written(fitted)


class InputFilter:
    """A `call_model_input_filter` of `RunConfig`: each request fits, in the middle of a turn, too.

    Instructions and tools count, those of MCP servers as the SDK has listed them. It cannot repair
    a request: `nanobot_context.wrap` does, around the client that the SDK sends with.

    Args:
        context_window: The window of every model in tokens; `None` is what is known of each.
        settings: Limits of the compression.
        archive: Where originals of shortened tool results are kept.
    """

    def __init__(
        self,
        context_window: int | None = None,
        *,
        settings: Settings | None = None,
        archive: Archive | None = None,
    ) -> None:
        check_whole("context_window", context_window, optional=True)
        self._window, self._settings, self._archive = context_window, settings, archive

    def __call__(self, data: Any) -> Any:
        """Return the input of one request, as the SDK's `ModelInputData`."""
        request, agent = data.model_data, data.agent
        model = agent.model if isinstance(agent.model, str) else text_in(agent.model, "model")
        tools = [
            schema(tool.name, tool.description, tool.params_json_schema)
            for tool in agent.tools
            if hasattr(tool, "params_json_schema")
        ]
        # The SDK has listed these for this very request.
        servers = getattr(agent, "mcp_servers", None) or ()
        tools += [
            schema(tool.name, tool.description, _parameters(tool))
            for server in servers
            for tool in getattr(server, "cached_tools", None) or ()
        ]
        items = compress_items(
            request.input,
            get_context_window(model or None) if self._window is None else self._window,
            model or None,
            instructions=request.instructions,
            tools=tools,
            max_output_tokens=getattr(agent.model_settings, "max_tokens", None),
            settings=self._settings,
            archive=self._archive,
        )
        return replace(request, input=items)


def _parameters(tool: Any) -> Any:
    """Return the schema of the parameters of an MCP tool, whose releases spell it in two ways."""
    return getattr(tool, "inputSchema", None) or getattr(tool, "input_schema", None)


fit_input = InputFilter()
"""The filter with what is known of each model."""


def _to_payload(item: Item) -> Item:
    """Return the stored form of an item; texts that message and item share are stored once."""
    message = next(iter(from_response_items([item])), None)
    if message is None or not (message.get("content") or len(message) > 2):
        return {_ITEM: item}  # a message that says nothing would not be stored
    own = _shared(message)
    return {**message, _ITEM: {k: None if own.get(k) == v else v for k, v in item.items()}}


def _from_payload(payload: Item) -> Item:
    own = _shared(payload)
    return {k: own.get(k) if v is None else v for k, v in payload[_ITEM].items()}


def _shared(message: Message) -> Item:
    """Return the texts of a message by their names in an item; none of one without a role."""
    content = message.get("content")
    if not isinstance(content, str):
        content = None
    (call,) = message.get("tool_calls") or [{}]
    said = call.get("function") or call.get("custom") or {}
    given = {name: said[name] for name in ("arguments", "input") if name in said}
    return {"content": content, "output": content, **given}


def _is_item(event: SessionEvent) -> bool:
    return isinstance(event.payload, dict) and isinstance(event.payload.get(_ITEM), dict)
