"""Messages for the user, in their language, when even a compressed conversation does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from nanobot_context._core import spoken_language
from nanobot_context.host.messages import users_own
from nanobot_context.message_texts import texts_of

Problem = Literal["conversation", "window", "message", "subagent"]
"""What is too long, or too small."""

# None of these texts contains a digit: nanobot 0.1.4.post5 retries an error whose text has "429"
# or "503" in it. `/new` clears a session in every release.
_TEXTS: dict[Problem, dict[bool, str]] = {
    "conversation": {
        True: "对话历史过长，自动压缩后仍然超出模型限制。请发送 /new 清空会话后重试。",
        False: "The conversation is too long for the model, even after automatic compression. "
        "Send /new to clear the session, then try again.",
    },
    "window": {
        True: "模型的上下文窗口太小：系统提示和工具定义就已占满，清空会话也无济于事。"
        "请换用窗口更大的模型，或调大本地服务器的上下文长度。",
        False: "The model's context window is too small: system prompt and tools alone fill it, "
        "and a new session does not help. Use a model with a larger window, or start the local "
        "server with a larger context.",
    },
    "message": {
        True: "这条消息过长，超出模型限制。请缩短或拆分后重新发送。",
        False: "This message is too long for the model. Shorten it or split it, then send it "
        "again.",
    },
    "subagent": {
        True: "子代理上下文溢出，紧急压缩后仍超限，任务中止。",
        False: "The subagent's context overflowed and was still too long after emergency "
        "compression; the task was stopped.",
    },
}


def friendly_text(problem: Problem, messages: Sequence[Any]) -> str:
    """Return what the user reads of `problem`, in the language of `messages`.

    Of a conversation that cannot be sent, of what nanobot sends with every request, of a message
    that is too long by itself, or as the result of a subagent whose task cannot be continued.
    """
    return _TEXTS[problem][is_chinese(messages)]


def is_chinese(messages: Sequence[Any]) -> bool:
    """Return whether most of the last user messages are Chinese."""
    return spoken_language(list(_user_texts(messages))) == "zh"


def _user_texts(messages: Sequence[Any]) -> Iterator[str]:
    """Yield what the user wrote, the newest first, without what nanobot put into it."""
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            yield users_own(texts_of(message.get("content")))
