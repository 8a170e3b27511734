"""Keeps the user's standing rules in the metadata of nanobot's session file.

    metadata["rules"]        each sentence, and when it was said, the oldest first
    metadata["rules_state"]  how far the messages were looked through: as a summary knows its last

nanobot drops messages at the front of a session; what they said stays here until the session is
cleared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nanobot_context._core import rules_left_out, standing_rules
from nanobot_context.host.detect import find
from nanobot_context.host.messages import PUBLIC
from nanobot_context.host.stored_summary import mark_of, position, said_at, take_out
from nanobot_context.message_texts import message_text
from nanobot_context.types import Message

RULES, STATE = "rules", "rules_state"

# Some kilobytes of the session's file.
MAX_BYTES = 20_000

# Characters of a message that may mention what a rule is about; a longer one is material.
MAX_SHORT = 400

# What nanobot notes of messages in the user's name that no user wrote: commands, reports of
# subagents, and where a summary of its own continues (0.3.5).
_NOT_SAID = ("_command", "injected_event", "_hidden_history")

Rules = dict[str, str]
"""Sentences, and when each was said last: as nanobot stamps messages, or empty."""


def gather(session: Any) -> Rules:
    """Update the kept rules of `session` to its last message and return them. Saves nothing."""
    metadata = getattr(session, "metadata", None)
    return read(session.messages, metadata, vars(session)) if isinstance(metadata, dict) else {}


def read(messages: Sequence[Message], metadata: dict[str, Any], notes: dict[str, Any]) -> Rules:
    """Return the rules of a session, and update its metadata by its messages.

    How far the messages of a session without rules were looked through is in `notes`, which are not
    saved: the metadata of most sessions stays as it is.
    """
    kept = metadata.get(RULES)
    state = metadata.get(STATE, notes.get(STATE))
    rules: Rules = {}
    if isinstance(kept, dict):
        rules = {str(text): said for text, said in kept.items() if isinstance(said, str)}
    if not messages:
        return rules
    start = 0
    if isinstance(state, dict) and isinstance(covers := state.get("covers"), int):
        found = position(messages, state, covers)
        if found is None:
            # The talk ends earlier than it did: nanobot copies sessions up to some message.
            end = said_at(messages[-1])
            rules = {text: said for text, said in rules.items() if said <= end}
        start = found or 0
    if start == len(messages):
        return rules
    for message, standing in standing_in(messages, start, rules):
        for text in standing:
            rules.pop(text, None)
            rules[text] = said_at(message)
    rules = {text: rules[text] for text in rules_left_out(list(rules), [], MAX_BYTES)}
    state = {**mark_of(messages[-1]), "covers": len(messages)}
    if rules or kept:
        metadata |= {RULES: rules, STATE: state}
    else:
        notes[STATE] = state
    return rules


def forget(session: Any) -> None:
    """Take the rules out of the metadata of `session`."""
    take_out(session, RULES, STATE)
    vars(session).pop(STATE, None)


def standing_in(
    messages: Sequence[Message], start: int, rules: Rules
) -> list[tuple[Message, list[str]]]:
    """Return the messages from `start` on in which the user says something, and what of it holds.

    A correction names what the rule is about, as little else of the talk does, so all of it counts
    where there is a rule.
    """
    before = messages[:start] if rules else []
    older = [said for _, said in said_in(before) if len(said) <= MAX_SHORT]
    newer = list(said_in(messages[start:]))
    known = "\n".join(older)
    texts = [text for text in rules if text not in known] + older + [said for _, said in newer]
    standing = standing_rules(texts)[len(texts) - len(newer) :]
    return [(message, found) for (message, _), found in zip(newer, standing, strict=True)]


def said_in(messages: Sequence[Message]) -> Iterator[tuple[Message, str]]:
    """Yield the messages of a session in which the user says something, and what that is."""
    public = find(*PUBLIC) or dict
    for message in messages:
        if message.get("role") == "user" and not any(message.get(name) for name in _NOT_SAID):
            text = message_text(public(message))
            if text:
                yield message, text
