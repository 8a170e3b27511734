"""What the user reads when even a compressed conversation does not fit, in the right language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# None of these texts contains a digit: nanobot 0.1.4.post5 retries an error whose text has "429"
# or "503" in it.
_CONVERSATION = {
    True: "对话历史过长，自动压缩后仍然超出模型限制。请发送 {command} 清空会话后重试。",
    False: "The conversation is too long for the model, even after automatic compression. "
    "Send {command} to clear the session, then try again.",
}
_MESSAGE = {
    True: "这条消息过长，超出模型限制。请缩短或拆分后重新发送。",
    False: "This message is too long for the model. Shorten it or split it, then send it again.",
}
_SUBAGENT = {
    True: "子代理上下文溢出，紧急压缩后仍超限，任务中止。",
    False: "The subagent's context overflowed and was still too long after emergency compression; "
    "the task was stopped.",
}

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_WORD = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]{2,}")

_LAST_MESSAGES = 5
# From each end of a message: enough to see the language around a pasted log.
_SAMPLE_CHARS = 2_000

# English that nanobot puts into user messages itself.
_RUNTIME_CONTEXT = re.compile(
    r"\[Runtime Context[^\]]*\](?:\n(?:Current Time|Channel|Chat ID):.*)*"
)
_NANOBOT_TEXTS = (
    "Reflect on the results and decide next steps.",
    "Summarize this naturally for the user. Keep it brief (1-2 sentences). "
    'Do not mention technical details like "subagent" or task IDs.',
)


def conversation_too_long(messages: Sequence[Any], command: str) -> str:
    """Return the answer for a conversation that cannot be sent; `command` clears the session."""
    return _CONVERSATION[is_chinese(messages)].format(command=command)


def message_too_long(messages: Sequence[Any]) -> str:
    """Return the answer for a message of the user's that is too long by itself."""
    return _MESSAGE[is_chinese(messages)]


def subagent_too_long(messages: Sequence[Any]) -> str:
    """Return the result of a subagent whose task cannot be continued."""
    return _SUBAGENT[is_chinese(messages)]


def is_chinese(messages: Sequence[Any]) -> bool:
    """Return whether most of the last user messages are Chinese.

    Each message has one vote, so that one pasted English log does not outvote the conversation.
    """
    votes = [_is_chinese(text) for text in _last_user_texts(messages)]
    return bool(votes) and 2 * sum(votes) >= len(votes)


def _is_chinese(text: str) -> bool:
    han, words = len(_HAN.findall(text)), len(_WORD.findall(text))
    # A Japanese text has more kana than a Chinese one that quotes a name.
    return han > 0 and han >= words and 4 * len(_KANA.findall(text)) < han


def _last_user_texts(messages: Sequence[Any]) -> list[str]:
    texts: list[str] = []
    for message in reversed(messages):
        if not isinstance(message, dict) or message.get("role") != "user":
            continue
        text = _RUNTIME_CONTEXT.sub("", _text(message.get("content")))
        for own in _NANOBOT_TEXTS:
            text = text.replace(own, "")
        if _HAN.search(text) or _WORD.search(text):
            texts.append(text)
        if len(texts) == _LAST_MESSAGES:
            break
    return texts


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        return ""
    if len(content) <= 2 * _SAMPLE_CHARS:
        return content
    return content[:_SAMPLE_CHARS] + "\n" + content[-_SAMPLE_CHARS:]
