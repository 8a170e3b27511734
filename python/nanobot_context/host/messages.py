"""Lifts out, restores and shortens messages that only nanobot writes.

**Reflections.** 0.1.3.post7 puts a user message "Reflect on the results and decide next steps."
behind every round of tool results. Read as it stands, that line would be the "last user message"
that is kept above all, and the user's request would be an old message. So the lines are lifted
out before compressing and put back behind the tool results that are still there.

**Prompts.** From 0.1.5 on nanobot asks in the user's name for what the model left out: an answer
after an empty one, the rest of one that was cut, more work on a goal. These are lifted out in the
same way, for the same reason.

**Runtime context.** From 0.1.4.post1 on a block with time and channel stands before the newest
message of the user, in 0.2.x behind it, and to 0.2.x nanobot saves the message without. Read as it
is sent, the message would be another one a turn later, and all that was chosen for it would be
chosen anew. So the block is lifted off and put back.

**Consolidation.** nanobot's memory consolidation sends one user message that holds the whole old
conversation, to 0.1.4.post6 behind the long-term memory and a heading. A last user message is never
cut, so it would fail for ever once it is larger than the window, and with it `/new` (0.1.4.post2 to
post4 clear a session only after a successful consolidation). Here the long entries of that
conversation are shortened in their middle; the long-term memory in the same message stays whole,
because nanobot overwrites its memory file with the answer.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence

from nanobot_context._core import find_last_user_index
from nanobot_context.host.detect import find
from nanobot_context.types import Message

REFLECTION = "Reflect on the results and decide next steps."
REFLECTION_TOKENS = (
    20  # 9 to 11 in the vocabularies, framing and the factor of an estimate included
)

# What its system prompt begins with: to 0.1.4.post6, and from 0.1.5 on. From 0.1.5.post3 on nanobot
# cuts the conversation to its window itself.
_CONSOLIDATION_SYSTEMS = (
    "You are a memory consolidation agent.",
    "Extract key facts from this conversation.",
)
_CONSOLIDATION_HEADING = "\n## Conversation to Process\n"
_CONSOLIDATION_END = (
    "\n\nRespond with ONLY valid JSON, no markdown fences."  # 0.1.3.post7 and 0.1.4
)

# An entry starts with a time stamp and a role: `[2026-02-13T10:11] USER: ...`.
_ENTRY = re.compile(r"^(?=\[[^\]\n]{1,16}\] [A-Z]+(?: \[tools: [^\n]*?\])?: )", re.MULTILINE)
_SMALLEST_ENTRY_CHARS = 120

_CONTEXT_END = "[/Runtime Context]"  # from 0.1.5.post2 on
# With a closing line, else to an empty one, as in `src/text/envelope/blocks.rs`.
_CONTEXT = re.compile(
    rf"\[Runtime Context(?:.*?{re.escape(_CONTEXT_END)}|.*?(?:\n\n|\Z))", re.DOTALL
)
# What `Session.get_history` puts around a message that it hands on, and takes out of an answer.
_TIME = re.compile(r"\A\[Message Time: [^\]\n]*\]\n?")
_ATTACHED = re.compile(
    r"^\[(?:image|image_url|CLI App Attachment|MCP Preset Attachment)(?:: [^\]\n]*)?\]$",
    re.MULTILINE,
)
# What nanobot says of a subagent's report.
_ANNOUNCED = (
    "Summarize this naturally for the user. Keep it brief (1-2 sentences). "
    'Do not mention technical details like "subagent" or task IDs.'
)

# Takes out of a message what nanobot 0.3.0 and later add to it for one turn.
PUBLIC = ("nanobot.runtime_context", "public_history_message")


def lift_reflections(messages: list[Message]) -> tuple[list[Message], Message | None]:
    """Return `messages` without nanobot's reflection lines, and one of them if there was any.

    Without any the very same list comes back.
    """
    lifted = [
        message
        for index, message in enumerate(messages)
        if not (index and _is_reflection(message) and _role(messages[index - 1]) == "tool")
    ]
    if len(lifted) == len(messages):
        return messages, None
    return lifted, next(message for message in messages if _is_reflection(message))


def restore_reflections(messages: list[Message], reflection: Message) -> list[Message]:
    """Return `messages` with `reflection` behind every run of tool results."""
    restored: list[Message] = []
    for index, message in enumerate(messages):
        restored.append(message)
        following = messages[index + 1] if index + 1 < len(messages) else None
        if _role(message) == "tool" and _role(following) != "tool":
            restored.append(reflection)
    return restored


def own_prompts() -> tuple[str, ...]:
    """Return how this nanobot's prompts in the user's name begin; none before 0.1.5."""
    try:
        runtime = vars(importlib.import_module("nanobot.utils.runtime"))
    except ImportError:
        return ()
    texts = (text for name, text in runtime.items() if name.endswith("_PROMPT"))
    return tuple(text for text in texts if isinstance(text, str) and text)


def lift_prompts(
    messages: list[Message], prompts: tuple[str, ...]
) -> tuple[list[Message], list[tuple[Message, Message]]]:
    """Return `messages` without nanobot's `prompts`, and each prompt with the message before it.

    Without any the very same list comes back.
    """
    lifted: list[Message] = []
    asked: list[tuple[Message, Message]] = []
    if not prompts:
        return messages, asked
    for message in messages:
        if lifted and _is_prompt(message, prompts):
            asked.append((lifted[-1], message))
        else:
            lifted.append(message)
    return (lifted, asked) if asked else (messages, asked)


def restore_prompts(
    messages: list[Message], asked: list[tuple[Message, Message]], last: Message
) -> list[Message]:
    """Return `messages` with each prompt behind its former predecessor, if that is still there.

    Those behind `last` are what nanobot asks for now: they are put at the end in any case.
    """
    restored: list[Message] = []
    for message in messages:
        restored.append(message)
        if message is not last:
            restored += [prompt for before, prompt in asked if before is message]
    return restored + [prompt for before, prompt in asked if before is last]


def runtime_context_tag() -> str:
    """Return how the block begins that this nanobot sends and does not save, or ""."""
    if find(*PUBLIC) is not None:
        return ""
    tag = getattr(find("nanobot.agent.context", "ContextBuilder"), "_RUNTIME_CONTEXT_TAG", "")
    return tag if isinstance(tag, str) else ""


def lift_runtime_context(
    messages: list[Message], tag: str
) -> tuple[list[Message], tuple[Message, Message] | None]:
    """Return `messages` with the user's newest in its saved form, and that message in both forms.

    Without a block in it the very same list comes back, and `None`.
    """
    at = find_last_user_index(messages) if tag else len(messages)
    if at == len(messages):
        return messages, None
    sent, content = messages[at], messages[at].get("content")
    saved: object = None
    if isinstance(content, str) and tag in content:
        before, _, block = content.partition(tag)
        _, is_closed, behind = block.partition(_CONTEXT_END)
        saved = before.rstrip("\n ") or (
            behind.lstrip("\n") if is_closed else block.partition("\n\n")[2]
        )
    elif isinstance(content, list):
        parts = [part for part in content if not _is_text(part, tag)]
        saved = parts if len(parts) < len(content) else None
    if not saved:
        return messages, None
    as_saved = {**sent, "content": saved}
    return [*messages[:at], as_saved, *messages[at + 1 :]], (as_saved, sent)


def users_own(text: str) -> str:
    """Return the text of a message without the English that nanobot puts into it itself."""
    own = _ATTACHED.sub("", _TIME.sub("", _CONTEXT.sub("", text).lstrip()))
    return own.replace(REFLECTION, "").replace(_ANNOUNCED, "")


def _is_text(part: object, tag: str) -> bool:
    text = part.get("text") if isinstance(part, dict) else None
    return isinstance(text, str) and text.startswith(tag)


def is_consolidation(messages: Sequence[Message]) -> bool:
    """Return whether this is a memory consolidation of nanobot's."""
    if len(messages) != 2 or [_role(message) for message in messages] != ["system", "user"]:
        return False
    system, user = messages[0].get("content"), messages[1].get("content")
    return (
        isinstance(system, str)
        and system.startswith(_CONSOLIDATION_SYSTEMS)
        and isinstance(user, str)
        and (_CONSOLIDATION_HEADING in user or _ENTRY.match(user) is not None)
    )


def shorten_consolidation(
    messages: Sequence[Message], fits: Callable[[list[Message]], bool]
) -> list[Message] | None:
    """Return the consolidation with its longest entries shortened until it `fits`.

    Every entry keeps its head and its tail with a note between them of what is gone. `None` when
    even entries of 120 characters do not fit. Costs about 16 calls of `fits`.
    """
    system, user = messages
    # The last heading: a memory file that quotes the heading stays on the protected side.
    before, heading, conversation = user["content"].rpartition(_CONSOLIDATION_HEADING)
    end = _CONSOLIDATION_END if conversation.endswith(_CONSOLIDATION_END) else ""
    entries = _ENTRY.split(conversation.removesuffix(end))

    def with_limit(limit_chars: int) -> list[Message]:
        text = "".join(_shorten(entry, limit_chars) for entry in entries)
        return [system, {**user, "content": before + heading + text + end}]

    low, high = _SMALLEST_ENTRY_CHARS, max(len(entry) for entry in entries)
    if high <= low or not fits(with_limit(low)):
        return None
    while high - low > max(16, low // 64):
        middle = (low + high) // 2
        if fits(with_limit(middle)):
            low = middle
        else:
            high = middle
    return with_limit(low)


def _shorten(entry: str, limit_chars: int) -> str:
    if len(entry) <= limit_chars:
        return entry
    head = limit_chars * 2 // 3
    tail = limit_chars - head
    return f"{entry[:head]}\n...[{len(entry) - limit_chars} characters omitted]...\n{entry[-tail:]}"


def _is_reflection(message: Message) -> bool:
    return _role(message) == "user" and message.get("content") == REFLECTION


def _is_prompt(message: Message, prompts: tuple[str, ...]) -> bool:
    content = message.get("content")
    return _role(message) == "user" and isinstance(content, str) and content.startswith(prompts)


def _role(message: Message | None) -> object:
    return message.get("role") if isinstance(message, dict) else None
