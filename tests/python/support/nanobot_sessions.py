"""Classes shaped like those around nanobot's sessions: of 0.1.4, and what is other in 0.3.5."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any

from shim_classes import LLMResponse, Message

KEY = "cli:direct"


@dataclass
class Session:
    key: str
    messages: list[Message] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    last_consolidated: int = 0
    provider_state: Any = None

    def get_history(self, max_messages: int = 500) -> list[Message]:
        behind = self.messages[self.last_consolidated :][-max_messages:]
        return [{"role": one["role"], "content": one["content"]} for one in behind]

    def clear(self) -> None:
        self.messages = []
        self.last_consolidated = 0

    def add(self, role: str, content: Any) -> None:
        stamp = f"2026-01-01T00:00:00.{len(self.messages):06}"
        self.messages.append({"role": role, "content": content, "timestamp": stamp})


class SessionManager:
    """Keeps what was saved as text, as in a file."""

    def __init__(self) -> None:
        self._cache: dict[str, Session] = {}
        self.files: dict[str, str] = {}

    def get_or_create(self, key: str) -> Session:
        if key not in self._cache:
            self._cache[key] = Session(key, *json.loads(self.files.get(key, "[]")))
        return self._cache[key]

    def save(self, session: Session) -> None:
        kept = (session.messages, session.metadata, session.last_consolidated)
        self.files[session.key] = json.dumps(kept)
        self._cache[session.key] = session

    def invalidate(self, key: str) -> None:
        self._cache.pop(key, None)


class ContextBuilder:
    def build_messages(self, history: list[Message], current_message: str) -> list[Message]:
        asked = {"role": "user", "content": current_message}
        return [{"role": "system", "content": "You are nanobot."}, *history, asked]


@dataclass(frozen=True)
class TranscriptInput:
    history: list[Message]
    current_message: str | None

    def checkpointed(self) -> TranscriptInput:
        """As 0.3.5 makes it to write the system prompt anew within a turn."""
        return replace(self, history=[], current_message=None)


class TranscriptBuilder:
    """`ContextBuilder` of 0.3.5."""

    def build_transcript(self, transcript: TranscriptInput) -> list[Message]:
        messages = [{"role": "system", "content": "You are nanobot."}, *transcript.history]
        if transcript.current_message is not None:
            messages.append({"role": "user", "content": transcript.current_message})
        return messages


class AgentLoop:
    """Answers everything with "yes" and keeps the prompts."""

    def __init__(self, provider: Any, builder: Any = None) -> None:
        self.provider, self.model = provider, "gpt-4o"
        self.sessions = SessionManager()
        self.context: Any = builder or ContextBuilder()
        self.prompts: list[list[Message]] = []

    @property
    def session(self) -> Session:
        return self.sessions.get_or_create(KEY)

    async def _process_message(self, text: str) -> list[Message]:
        session = self.session
        history = session.get_history()
        if isinstance(self.context, TranscriptBuilder):
            prompt = self.context.build_transcript(TranscriptInput(history, text))
            session.provider_state = [*prompt]
        else:
            prompt = self.context.build_messages(history=history, current_message=text)
        self.prompts.append(prompt)
        session.add("user", text)
        session.add("assistant", f"yes: {text}")
        self.sessions.save(session)
        return prompt


class Provider:
    """Answers for summaries as scripted; the last answer is given again and again.

    An exception is raised; for an event is waited.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers) or ["The user counts."]
        self.asked: list[dict[str, Any]] = []

    async def chat(self, **asked: Any) -> LLMResponse:
        self.asked.append(asked)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            return LLMResponse("The user counts, late.")
        return answer if isinstance(answer, LLMResponse) else LLMResponse(answer)
