"""A real nanobot on a stage: its own AgentLoop and provider, home and workspace made for it.

Imported by the driver only, with the interpreter of a nanobot environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import inspect
import json
import os
import random
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from server import ModelServer, content_text

RULES = (
    "RULE 1: never delete a file before it was read.",
    "RULE 2: amounts are given in kilograms, not in pounds.",
)
"""Written to AGENTS.md, which nanobot puts into its system prompt."""

PROVIDERS = {
    "litellm": "LiteLLMProvider",
    "custom": "CustomProvider",
    "azure_openai": "AzureOpenAIProvider",
}
RETRYING = ("chat_with_retry", "chat_stream_with_retry")
"""What nanobot calls since 0.1.4.post5 and, to stream, since 0.1.4.post6; no call is in both."""
WATCHING = ("on_progress", "on_stream", "on_stream_end")
"""How nanobot tells what it does within a turn: since 0.1.4 and, to stream, since 0.1.4.post6."""
IDLE_SECONDS = 600.0


class Stage:
    """One nanobot, ready to be talked to. `turns` is what the user said and saw.

    `notes` is what a scenario's script wants a test to know, `dropped` the turns whose words reach
    nanobot's provider and are left out by it.
    """

    def __init__(
        self,
        home: Path,
        server: ModelServer,
        model: str,
        *,
        defaults: dict[str, Any],
        presets: dict[str, Any] | None = None,
        memory_window: int | None = None,
        nanobot_window: int | None = None,
        provider: str = "litellm",
        gateway: str | None = None,
        fallback: str | None = None,
        restricted: bool = False,
        result_chars: int | None = None,
        package: str = "off",
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.home = home
        self.workspace = home / ".nanobot" / "workspace"
        self.workspace.mkdir(parents=True, exist_ok=True)
        (self.workspace / "AGENTS.md").write_text("\n".join(RULES), encoding="utf-8")
        os.environ["HOME"] = str(home)
        write_config(home, server.base, model, defaults, presets)
        write_settings(home, settings or {})
        set_package(package)
        self.server = server
        self.turns: list[dict[str, Any]] = []
        self.facts: list[str] = []
        self.notes: dict[str, Any] = {}
        self.said: list[str] = []
        self.prompts: set[tuple[str, str]] = set()
        self.dropped: set[int] = set()
        self.calls = 0
        self.lists_changed = 0
        self.provider = make_provider(provider, gateway, server.base, model)
        if fallback:
            self.provider = with_fallback(self.provider, server.base, fallback)
        for one in (self.provider, getattr(self.provider, "_primary", self.provider)):
            if hasattr(one, "_CHAT_RETRY_DELAYS"):
                # Not 0: it would say nothing of the wait.
                one._CHAT_RETRY_DELAYS = (0.001, 0.001, 0.001)
        self.joins = hasattr(self.provider, "_enforce_role_alternation")
        self._watch()
        bus_class = import_module("nanobot.bus.queue").MessageBus
        loop_class = import_module("nanobot.agent.loop").AgentLoop
        self.bus = bus_class()
        wanted = {
            "bus": self.bus,
            "provider": self.provider,
            "workspace": self.workspace,
            "model": model,
            "max_iterations": 40,
            "memory_window": memory_window,
            "context_window_tokens": nanobot_window or configured_window(home),
            "context_block_limit": defaults.get("contextBlockLimit"),
            "max_tool_result_chars": result_chars,
            "restrict_to_workspace": restricted,
        }
        known = inspect.signature(loop_class.__init__).parameters
        self._given = {name: v for name, v in wanted.items() if v is not None and name in known}
        self.start()

    def start(self, **given: Any) -> None:
        """Make a loop that knows of no session but what is in the files, as after a restart."""
        self.loop = import_module("nanobot.agent.loop").AgentLoop(**self._given | given)

    def file(self, name: str, text: str, facts: tuple[str, ...] = ()) -> str:
        """Write a file to the workspace and return its path."""
        path = self.workspace / name
        path.write_text(text, encoding="utf-8")
        self.facts.extend(facts)
        return str(path)

    def paths(self, names: list[str]) -> list[Path]:
        """Return where `names` are in the workspace."""
        return [self.workspace / name for name in names]

    async def say(self, text: str, session: str = "cli:direct", *, streamed: bool = False) -> str:
        """Send a user's message and return what the user sees.

        `streamed` asks for the answer as it comes, from the releases that can; the turn notes it.
        """
        channel, chat = session.split(":", 1)
        shown: list[str] = []

        async def show(text: str = "", **_: Any) -> None:
            shown.append(text)

        known = inspect.signature(self.loop.process_direct).parameters
        watching = {name: show for name in WATCHING if streamed and name in known}
        working = self.loop.process_direct(text, session, channel=channel, chat_id=chat, **watching)
        answer = await self._exchange(text, working)
        self.turns[-1]["shown"] = shown
        return answer

    async def announce(self, text: str, session: str = "cli:direct") -> str:
        """Send what a subagent reports for `session` and return what the user sees."""
        message_class = import_module("nanobot.bus.events").InboundMessage
        message = message_class(
            channel="system", sender_id="subagent", chat_id=session, content=text
        )
        return await self._deliver(message)

    async def delegate(self, text: str, session: str = "cli:direct") -> None:
        """Send a user's message that starts a subagent, and wait for its report to be answered.

        The report is a message of its own, or joins the turn where nanobot's loop waits for it.
        """
        if "pending_queue" in inspect.signature(self.loop._process_message).parameters:
            channel, chat = session.split(":", 1)
            message_class = import_module("nanobot.bus.events").InboundMessage
            message = message_class(channel=channel, sender_id="user", chat_id=chat, content=text)
            await self._deliver(message, pending_queue=self.bus.inbound)
        else:
            await self.say(text, session)
        await self.idle()
        if not self.bus.inbound.empty():
            await self._deliver(await self.bus.consume_inbound())

    async def _deliver(self, message: Any, **options: Any) -> str:
        return await self._exchange(message.content, self.loop._process_message(message, **options))

    async def _exchange(self, said: str, working: Awaitable[Any]) -> str:
        """Note one exchange with the user and return what the user sees.

        The requests from now on belong to it. What nanobot raises is the answer, as in a channel,
        where its dispatcher says that it encountered an error.
        """
        self.said.append(said)
        self.server.turn = len(self.said)
        start = time.perf_counter()
        try:
            response = await working
        except Exception as error:
            response = f"RAISED {type(error).__name__}: {error}"
        # A text until 0.1.4.post5, then a message for the bus, or nothing.
        answer = str(getattr(response, "content", response) or "")
        seconds = round(time.perf_counter() - start, 3)
        self.turns.append({"said": said[:60], "answer": answer, "seconds": seconds})
        return answer

    async def compact_idle(self, session: str = "cli:direct") -> None:
        """Have nanobot compact a session that nobody has used for long, as from 0.1.5.post1 on."""
        compact = self.loop.auto_compact._archive
        needs_runtime = "runtime" in inspect.signature(compact).parameters
        runtime = {"runtime": self.loop.runtime_resolver.runtime} if needs_runtime else {}
        await compact(session, **runtime)

    def remember(self, texts: list[str], session: str = "cli:direct") -> None:
        """Give `session` a past: `texts` said by user and assistant in turn."""
        past = self.loop.sessions.get_or_create(session)
        for number, text in enumerate(texts):
            past.add_message("assistant" if number % 2 else "user", text)
        self.loop.sessions.save(past)

    async def idle(self) -> None:
        """Wait until nothing runs in the background (consolidation)."""
        if tasks := background():
            await asyncio.wait(tasks, timeout=IDLE_SECONDS)

    async def close(self) -> None:
        """Leave nothing behind for the next scenario."""
        tasks = background()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if client := getattr(self.provider, "_client", None):
            await client.close()

    def _watch(self) -> None:
        """Note each list that nanobot passes to its provider, and whether the call changed it.

        The wrapper sits on the instance, outside every patch that a class may carry.
        """
        names = [name for name in RETRYING if hasattr(self.provider, name)]
        for name in names or ["chat"]:
            setattr(self.provider, name, self._watched(getattr(self.provider, name)))

    def _watched(self, inner: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def watched(*args: Any, **kwargs: Any) -> Any:
            messages = kwargs["messages"]
            before = json.dumps(messages), [id(message) for message in messages]
            self._note(messages)
            self.calls += 1
            try:
                return await inner(*args, **kwargs)
            finally:
                after = json.dumps(messages), [id(message) for message in messages]
                self.lists_changed += before != after

        return watched

    def _note(self, messages: list[dict[str, Any]]) -> None:
        """Note what must be in the prompt that comes of `messages`.

        nanobot's provider itself joins neighbours of one role and, for the sake of those that take
        no prefill, drops a last message of the assistant: a subagent's report since 0.1.4.post6.
        """
        sent = self.provider._enforce_role_alternation(messages) if self.joins else messages
        users = [content_text(m) for m in messages if m["role"] == "user"]
        self.prompts.add((content_text(sent[0]), users[-1] if users else ""))
        given, left = (any(self.said[-1] in content_text(m) for m in ms) for ms in (messages, sent))
        if given and not left:
            self.dropped.add(len(self.said))


def make_provider(name: str, gateway: str | None, base: str, model: str) -> Any:
    """Return nanobot's provider `name`; one class took the place of litellm in 0.1.4.post6."""
    common = {"api_key": "sk-not-a-key", "api_base": base, "default_model": model}
    if find_spec(f"nanobot.providers.{name}_provider"):
        gateway_name = {"provider_name": gateway} if gateway else {}
        module = import_module(f"nanobot.providers.{name}_provider")
        return getattr(module, PROVIDERS[name])(**common, **gateway_name)
    spec_name = gateway or ("openai" if name in ("litellm", "responses") else name)
    spec = import_module("nanobot.providers.registry").find_by_name(spec_name)
    module = import_module("nanobot.providers.openai_compat_provider")
    # Without a word of the user's it asks by Responses at OpenAI's own address only.
    asked_by = {"api_type": "responses"} if name == "responses" else {}
    return module.OpenAICompatProvider(**common, **asked_by, spec=spec)


def with_fallback(primary: Any, base: str, model: str) -> Any:
    """Return a provider that turns to `model` when `primary` fails, as 0.2.0 and later have it."""
    preset = import_module("nanobot.config.schema").ModelPresetConfig(model=model, max_tokens=1_024)
    fallback = make_provider("litellm", None, base, model)
    provider_class = import_module("nanobot.providers.fallback_provider").FallbackProvider
    return provider_class(primary, [preset], lambda _: fallback)


def configured_window(home: Path) -> int | None:
    """Return the window of the config file, as nanobot's commands pass it to the loop."""
    config = import_module("nanobot.config.loader").load_config(home / ".nanobot" / "config.json")
    has_presets = hasattr(config, "resolve_preset")
    in_force = config.resolve_preset() if has_presets else config.agents.defaults
    window: int | None = getattr(in_force, "context_window_tokens", None)
    return window


def background() -> list[asyncio.Task[Any]]:
    """Return the tasks of nanobot's agents; litellm keeps one for its log that never ends."""
    current = asyncio.current_task()
    # The package wraps what a subagent runs: then the task's own code is the package's.
    owners = [f"{os.sep}nanobot{os.sep}agent{os.sep}", f"{os.sep}nanobot_context{os.sep}"]
    return [
        task
        for task in asyncio.all_tasks()
        if task is not current and any(owner in source(task) for owner in owners)
    ]


def source(task: asyncio.Task[Any]) -> str:
    """Return the file that defines what `task` runs."""
    code = getattr(task.get_coro(), "cr_code", None)
    return str(code.co_filename) if code else ""


def set_package(mode: str) -> None:
    """Put nanobot-context into the state that a scenario asks for; the settings are read anew."""
    if mode == "off":
        if "nanobot_context" in sys.modules:
            raise RuntimeError("nanobot_context is imported\nhint: `nanobot-context disable` here")
        return
    package = import_module("nanobot_context")
    package.uninstall()
    os.environ["NANOBOT_CONTEXT_COMPRESSION"] = "off" if mode == "environment" else ""
    status = package.install()
    if status.installed != (mode in ("on", "removed")):
        raise RuntimeError(f"`install()` in mode `{mode}` said: {status}")
    if mode == "removed":
        package.uninstall()


def write_settings(home: Path, settings: dict[str, Any]) -> None:
    """Write nanobot-context.json into `home`; without settings there is none."""
    path = home / ".nanobot" / "nanobot-context.json"
    path.unlink(missing_ok=True)
    if settings:
        path.write_text(json.dumps(settings), encoding="utf-8")


def write_config(
    home: Path,
    base: str,
    model: str,
    defaults: dict[str, Any],
    presets: dict[str, Any] | None = None,
) -> None:
    """Write nanobot's config.json into `home`."""
    config = {
        "agents": {
            "defaults": {
                "workspace": str(home / ".nanobot" / "workspace"),
                "model": model,
                "maxToolIterations": 40,
                "maxTokens": 4096,
                **defaults,
            }
        },
        "providers": {"openai": {"apiKey": "sk-not-a-key", "apiBase": base}},
        # At the root earlier releases take no key that they do not know.
        **({"modelPresets": presets} if presets else {}),
    }
    path = home / ".nanobot" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")


def session_files(home: Path) -> list[Path]:
    """Return nanobot's session files under `home`; since 0.3.5 in a folder for each workspace."""
    return sorted({*home.rglob("sessions/*.jsonl"), *home.rglob("sessions/*/*.jsonl")})


def session_faults(home: Path) -> list[str]:
    """Return what is wrong with the session files under `home`: lines, roles, tool pairs."""
    faults = []
    for path in session_files(home):
        try:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except ValueError as error:
            faults.append(f"{path.name}: {error}")
            continue
        if not lines or lines[0].get("_type") != "metadata":
            faults.append(f"{path.name}: no metadata in the first line")
        open_ids: list[str] = []
        for number, line in enumerate(lines[1:], start=2):
            if "_type" in line:
                continue
            if line.get("role") == "tool":
                if line.get("tool_call_id") not in open_ids:
                    faults.append(f"{path.name}:{number}: a result without a call")
                else:
                    open_ids.remove(line["tool_call_id"])
            elif open_ids:
                faults.append(f"{path.name}:{number}: calls without results: {open_ids}")
                open_ids = []
            if line.get("role") not in ("user", "assistant", "tool"):
                faults.append(f"{path.name}:{number}: role {line.get('role')!r}")
            open_ids += [call["id"] for call in line.get("tool_calls") or []]
        if open_ids:
            faults.append(f"{path.name}: calls without results at the end: {open_ids}")
    return faults


@contextlib.contextmanager
def stopped_clock() -> Iterator[None]:
    """Make what nanobot writes into a request by clock and dice the same at every run."""

    class Stopped(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Stopped:
            return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    real = datetime.datetime
    holders = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("nanobot.") and getattr(module, "datetime", None) is real
    ]
    choice, dice = secrets.choice, random.Random(1)
    for module in [datetime, *holders]:
        module.datetime = Stopped  # type: ignore[attr-defined]
    secrets.choice = dice.choice
    try:
        yield
    finally:
        for module in [datetime, *holders]:
            module.datetime = real  # type: ignore[attr-defined]
        secrets.choice = choice
