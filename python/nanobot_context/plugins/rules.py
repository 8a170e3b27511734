"""Repeats the user's rules and past calls in the system prompt when nanobot drops their messages.

    save(), get_history()  rules and facts of new messages, and calls that changed something
                           -> metadata of the session
    get_history()          what the history does not say -> a list that knows it
    build_messages()       such a list as `history` -> it stands at the end of the system prompt

It changes when nanobot moves messages out of the history, and then the provider's prompt cache has
to begin anew anyway. What was taken back (`nanobot-context rules --forget`) is in a file of ours,
as nanobot writes the session's own: {session: {sentence: when}}. Who says it again has it again.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from nanobot_context._core import rules_left_out
from nanobot_context.guard.friendly import is_chinese
from nanobot_context.guard.state_file import RULES, read_state, state_file, update_state
from nanobot_context.host import stored_calls, stored_rules
from nanobot_context.host.config import nanobot_config_path
from nanobot_context.host.history import History, Section
from nanobot_context.types import Message

_MAX_BYTES = 2_000
"""Bytes of calls in a system prompt, the newest of them: some 500 tokens, as for rules."""

_MAX_FORGOTTEN = 100  # rules of a session, the newest taken back

_RULES_HEAD = {
    False: "## Rules and Facts from the User\n\n"
    "The user said this earlier, in messages that are no longer in the history. It still holds; of "
    "two that contradict each other, the later one does.",
    True: "## 用户的规则与信息\n\n"
    "以下是用户先前说过的话，原消息已不在历史中，但仍然有效；互相矛盾时以后者为准。",
}

_CALLS_HEAD = {
    False: "## Done Earlier\n\n"
    "These calls were made in messages that are no longer in the history; what did not fail "
    "stands.",
    True: "## 已经做过的操作\n\n以下操作在已不在历史中的消息里做过；没有失败的仍然有效。",
}
_BEFORE = {False: "({} before these)", True: "（此前还有 {} 次）"}

# Seconds that another process may take to write a small file.
_LOCK_SECONDS = 2.0


def with_rules(session: Any, history: list[Message]) -> History:
    """Return `history` with the rules and calls of `session` that it does not show."""
    if not isinstance(history, History):
        history = History(history, session)
    if rules := stored_rules.gather(session):
        rules = _forgotten(forgotten_file(nanobot_config_path())).without(session.key, rules)
        shown = [text for _, text in stored_rules.said_in(history)]
        history.stated, history.rules = list(rules), repeated(list(rules), shown)
    history.calls = stored_calls.gather(session).left_out_of(history)
    return history


def repeated(rules: list[str], shown: list[str]) -> list[str]:
    """Return the rules that no text of `shown` has, as far as a system prompt has room for them.

    What says that it holds for good ("never", "from now on", a fact) goes before newer orders.
    """
    return rules_left_out(rules, shown, _MAX_BYTES)


def rules_section(rules: list[str]) -> str:
    """Return the section for the end of a system prompt; empty without rules."""
    if not rules:
        return ""
    head = _RULES_HEAD[is_chinese(_as_said(rules))]
    return _section(head, (" ".join(rule.split()) for rule in rules))


def calls_section(calls: stored_calls.Calls, said: Sequence[Message]) -> str:
    """Return the section for the newest of `calls`, in the language of the messages `said`.

    Calls that look the same have one line, where the last of them was made.
    """
    times = Counter(call.line for call in calls.newest)
    lines: list[str] = []
    left, before = _MAX_BYTES, calls.before + len(calls.newest)
    for line in dict.fromkeys(call.line for call in reversed(calls.newest)):
        shown = line if times[line] == 1 else f"{line} ×{times[line]}"
        left -= len(shown.encode(errors="replace"))
        if left < 0:
            break
        before -= times[line]
        lines.append(shown)
    if not lines:
        return ""
    chinese = is_chinese(said)
    if before:
        lines.append(_BEFORE[chinese].format(before))
    return _section(_CALLS_HEAD[chinese], reversed(lines))


def _as_said(rules: Iterable[str]) -> list[Message]:
    return [{"role": "user", "content": rule} for rule in rules]


def _section(head: str, lines: Iterable[str]) -> str:
    return "\n\n".join(["", head, "\n".join(f"- {line}" for line in lines)])


show = Section(
    "rules_section",
    lambda history: (
        rules_section(history.rules)
        + calls_section(history.calls, _as_said(history.stated) or history)
    ),
).show
"""Puts both behind the system prompt of messages, which nanobot built of a history."""


class Forgotten:
    """The rules taken back, by session; read again when the file has changed."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._stamp: tuple[int, int] | str = "not read"
        self._known: dict[str, stored_rules.Rules] = {}

    def without(self, key: str, rules: stored_rules.Rules) -> stored_rules.Rules:
        """Return `rules` of the session `key` without those that were taken back since."""
        gone = self._read().get(key, {})
        return {text: said for text, said in rules.items() if not said < gone.get(text, "")}

    def add(self, key: str, texts: Sequence[str]) -> None:
        """Take back rules of the session `key`.

        Raises:
            OSError: The file cannot be written.
        """

        def changed() -> dict[str, stored_rules.Rules]:
            now = datetime.now().isoformat()  # local time without a zone, as nanobot stamps
            known = self._read()
            gone = {**known.get(key, {}), **dict.fromkeys(texts, now)}
            return {**known, key: dict(list(gone.items())[-_MAX_FORGOTTEN:])}

        update_state(self.file, changed, timeout_seconds=_LOCK_SECONDS)

    def _read(self) -> dict[str, stored_rules.Rules]:
        try:
            stat = self.file.stat()
            stamp: tuple[int, int] | str = stat.st_mtime_ns, stat.st_ino
        except OSError as error:
            stamp = type(error).__name__
        if stamp != self._stamp:
            self._known, self._stamp = read_state(self.file, _gone, {}), stamp
        return self._known


def _gone(given: dict[str, Any]) -> dict[str, stored_rules.Rules]:
    return {
        key: {text: when for text, when in gone.items() if isinstance(when, str)}
        for key, gone in given.items()
    }


def forgotten_file(config: Path) -> Path:
    """Return the file of the rules taken back, beside nanobot's config file."""
    return state_file(config, RULES)


@functools.cache
def _forgotten(file: Path) -> Forgotten:
    return Forgotten(file)
