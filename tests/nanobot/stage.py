"""A real nanobot on a stage: its own AgentLoop and LiteLLMProvider, home and workspace made for it.

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
from collections.abc import Iterator
from importlib import import_module
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
IDLE_SECONDS = 20.0


class Stage:
    """One nanobot, ready to be talked to. `turns` is what the user said and saw.

    `notes` is what a scenario's script wants a test to know.
    """

    def __init__(
        self,
        home: Path,
        server: ModelServer,
        model: str,
        *,
        defaults: dict[str, Any],
        memory_window: int | None = None,
        nanobot_window: int | None = None,
        provider: str = "litellm",
        gateway: str | None = None,
        restricted: bool = False,
        package: str = "off",
    ) -> None:
        self.home = home
        self.workspace = home / ".nanobot" / "workspace"
        self.workspace.mkdir(parents=True)
        (self.workspace / "AGENTS.md").write_text("\n".join(RULES), encoding="utf-8")
        os.environ["HOME"] = str(home)
        write_config(home, server.base, model, defaults)
        set_package(package)
        self.server = server
        self.turns: list[dict[str, Any]] = []
        self.facts: list[str] = []
        self.notes: dict[str, Any] = {}
        self.said: list[str] = []
        self.prompts: set[tuple[str, str]] = set()
        self.calls = 0
        self.lists_changed = 0
        provider_class = getattr(
            import_module(f"nanobot.providers.{provider}_provider"), PROVIDERS[provider]
        )
        gateway_name = {"provider_name": gateway} if gateway else {}
        self.provider = provider_class(
            api_key="sk-not-a-key", api_base=server.base, default_model=model, **gateway_name
        )
        if hasattr(self.provider, "_CHAT_RETRY_DELAYS"):
            self.provider._CHAT_RETRY_DELAYS = (0, 0, 0)
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
            "context_window_tokens": nanobot_window,
            "restrict_to_workspace": restricted,
        }
        known = inspect.signature(loop_class.__init__).parameters
        given = {name: v for name, v in wanted.items() if v is not None and name in known}
        self.loop = loop_class(**given)

    def file(self, name: str, text: str, facts: tuple[str, ...] = ()) -> str:
        """Write a file to the workspace and return its path."""
        path = self.workspace / name
        path.write_text(text, encoding="utf-8")
        self.facts.extend(facts)
        return str(path)

    def paths(self, names: list[str]) -> list[Path]:
        """Return where `names` are in the workspace."""
        return [self.workspace / name for name in names]

    async def say(self, text: str, session: str = "cli:direct") -> str:
        """Send a user's message and return what the user sees."""
        start = self.begin(text)
        channel, chat = session.split(":", 1)
        answer = await self.loop.process_direct(text, session, channel=channel, chat_id=chat)
        self.end(text, answer, start)
        return str(answer)

    async def announce(self, text: str, session: str = "cli:direct") -> str:
        """Send what a subagent reports for `session` and return what the user sees."""
        message_class = import_module("nanobot.bus.events").InboundMessage
        message = message_class(
            channel="system", sender_id="subagent", chat_id=session, content=text
        )
        return await self._deliver(message)

    async def relay(self) -> str:
        """Wait for the next message on the bus, have it processed, return what the user sees."""
        message = await asyncio.wait_for(self.bus.consume_inbound(), IDLE_SECONDS)
        return await self._deliver(message)

    async def _deliver(self, message: Any) -> str:
        start = self.begin(message.content)
        response = await self.loop._process_message(message)
        answer = response.content if response else ""
        self.end(message.content, answer, start)
        return str(answer)

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

    def begin(self, said: str) -> float:
        """Begin an exchange and return the time; the requests from now on belong to it."""
        self.said.append(said)
        self.server.turn = len(self.said)
        return time.perf_counter()

    def end(self, said: str, answer: str, start: float) -> None:
        """Note one exchange with the user."""
        seconds = round(time.perf_counter() - start, 3)
        self.turns.append({"said": said[:60], "answer": answer, "seconds": seconds})

    def _watch(self) -> None:
        """Note each list that nanobot passes to its provider, and whether the call changed it.

        The wrapper sits on the instance, outside every patch that a class may carry.
        """
        name = "chat_with_retry" if hasattr(self.provider, "chat_with_retry") else "chat"
        inner = getattr(self.provider, name)

        async def watched(*args: Any, **kwargs: Any) -> Any:
            messages = kwargs["messages"]
            before = json.dumps(messages), [id(message) for message in messages]
            users = [content_text(m) for m in messages if m["role"] == "user"]
            self.prompts.add((content_text(messages[0]), users[-1]))
            self.calls += 1
            try:
                return await inner(*args, **kwargs)
            finally:
                after = json.dumps(messages), [id(message) for message in messages]
                self.lists_changed += before != after

        setattr(self.provider, name, watched)


def background() -> list[asyncio.Task[Any]]:
    """Return nanobot's own tasks; litellm keeps one for its log that never ends."""
    current = asyncio.current_task()
    return [
        task
        for task in asyncio.all_tasks()
        if task is not current and f"{os.sep}nanobot{os.sep}agent{os.sep}" in source(task)
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
    status = package.install()
    if status.installed != (mode in ("on", "removed")):
        raise RuntimeError(f"`install()` in mode `{mode}` said: {status}")
    if mode == "removed":
        package.uninstall()


def write_config(home: Path, base: str, model: str, defaults: dict[str, Any]) -> None:
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
    }
    path = home / ".nanobot" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")


def session_faults(home: Path) -> list[str]:
    """Return what is wrong with the session files under `home`: lines, roles, tool pairs."""
    faults = []
    for path in sorted(home.rglob("sessions/*.jsonl")):
        try:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except ValueError as error:
            faults.append(f"{path.name}: {error}")
            continue
        if not lines or lines[0].get("_type") != "metadata":
            faults.append(f"{path.name}: no metadata in the first line")
        open_ids: list[str] = []
        for number, line in enumerate(lines[1:], start=2):
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
