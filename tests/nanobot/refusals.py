"""How providers refuse a prompt: too long in each one's own words, malformed in OpenAI's.

The texts come from public threads. openai: crewAI-examples#121; anthropic: continue#6080;
deepseek: fast-agent#621; gemini: gemini-cli#4231; moonshot: kimi-cli#2011; llama.cpp: PR#15780;
openrouter: claude-code-router#252; minimax: nanobot#3726; xai: cline#3120;
dashscope: qwen-code#98; azure: litellm#15968; responses: dyad#1672; capped: dify#14376.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Refusal(NamedTuple):
    """An error answer: HTTP status, JSON body, and what it is about (`overflow`, `shape`, …)."""

    status: int
    body: dict[str, Any]
    about: str


class Size(NamedTuple):
    """What an overflow text speaks of, all in tokens."""

    window: int
    messages: int
    tools: int
    output: int

    @property
    def prompt(self) -> int:
        """Messages and tools."""
        return self.messages + self.tools


def error(message: str, **fields: Any) -> dict[str, Any]:
    """Return OpenAI's error body."""
    base = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return {"error": {**base, **fields}}


def openai(size: Size) -> Refusal:
    text = (
        f"This model's maximum context length is {size.window} tokens. However, your messages "
        f"resulted in {size.prompt} tokens ({size.messages} in the messages, {size.tools} in the "
        "functions). Please reduce the length of the messages or functions."
    )
    body = error(text, param="messages", code="context_length_exceeded")
    return Refusal(400, body, "overflow")


def anthropic(size: Size) -> Refusal:
    text = f"prompt is too long: {size.prompt} tokens > {size.window} maximum"
    detail = {"type": "invalid_request_error", "message": text}
    return Refusal(400, {"type": "error", "error": detail}, "overflow")


def deepseek(size: Size) -> Refusal:
    text = (
        f"This model's maximum context length is {size.window} tokens. However, you requested "
        f"{size.prompt + size.output} tokens ({size.prompt} in the messages, {size.output} in the "
        "completion). Please reduce the length of the messages or completion."
    )
    return Refusal(400, error(text, code="invalid_request_error"), "overflow")


def gemini(size: Size) -> Refusal:
    text = (
        f"The input token count ({size.prompt}) exceeds the maximum number of tokens allowed "
        f"({size.window})."
    )
    detail = {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}
    return Refusal(400, {"error": detail}, "overflow")


def moonshot(size: Size) -> Refusal:
    text = (
        f"Invalid request: Your request exceeded model token limit: {size.window} "
        f"(requested: {size.prompt})"
    )
    return Refusal(400, {"error": {"message": text, "type": "invalid_request_error"}}, "overflow")


def llamacpp(size: Size) -> Refusal:
    text = (
        f"request ({size.prompt} tokens) exceeds the available context size "
        f"({size.window} tokens), try increasing it"
    )
    detail = {"code": 400, "message": text, "type": "exceed_context_size_error"}
    detail |= {"n_prompt_tokens": size.prompt, "n_ctx": size.window}
    return Refusal(400, {"error": detail}, "overflow")


def llamacpp_500(size: Size) -> Refusal:
    # Older builds answer 500 and name no number.
    detail = {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}
    return Refusal(500, {"error": detail}, "overflow")


def openrouter(size: Size) -> Refusal:
    text = (
        f"This endpoint's maximum context length is {size.window} tokens. However, you requested "
        f"about {size.prompt + size.output} tokens ({size.messages} of text input, {size.tools} of "
        f"tool input, {size.output} in the output). Please reduce the length of either one, or use "
        'the "middle-out" transform to compress your prompt automatically.'
    )
    detail = {"message": text, "code": 400, "metadata": {"provider_name": None}}
    return Refusal(400, {"error": detail}, "overflow")


def minimax(size: Size) -> Refusal:
    text = "invalid params, context window exceeds limit (2013)"
    return Refusal(
        400, {"type": "error", "error": {"type": "bad_request_error", "message": text}}, "overflow"
    )


def xai(size: Size) -> Refusal:
    text = (
        f"This model's maximum prompt length is {size.window} but the request contains "
        f"{size.prompt} tokens."
    )
    detail = {"code": "Client specified an invalid argument", "error": text}
    return Refusal(400, detail, "overflow")


def dashscope(size: Size) -> Refusal:
    text = (
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be "
        f"[1, {size.window}]"
    )
    return Refusal(400, error(text, code="invalid_parameter_error"), "overflow")


def azure(size: Size) -> Refusal:
    text = (
        f"Input tokens exceed the configured limit of {size.window} tokens. Your messages resulted "
        f"in {size.prompt} tokens. Please reduce the length of the messages."
    )
    body = error(text, param="messages", code="context_length_exceeded")
    return Refusal(400, body, "overflow")


def responses(size: Size) -> Refusal:
    # Names no number.
    text = (
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again."
    )
    return Refusal(400, error(text, param="input", code="context_length_exceeded"), "overflow")


def capped(cap: int, output: int) -> Refusal:
    """Return Volcengine's refusal of an answer of `output` tokens where `cap` are the most."""
    text = (
        "The parameter `max_tokens` specified in the request are not valid: integer above maximum "
        f"value, expected a value <= {cap}, but got {output} instead."
    )
    detail = {"code": "InvalidParameter", "message": text, "param": "max_tokens"}
    return Refusal(400, {"error": {**detail, "type": "BadRequest"}}, "cap")


OVERFLOW: dict[str, Callable[[Size], Refusal]] = {
    form.__name__: form
    for form in (
        openai,
        anthropic,
        deepseek,
        gemini,
        moonshot,
        llamacpp,
        llamacpp_500,
        openrouter,
        minimax,
        xai,
        dashscope,
        azure,
        responses,
    )
}
TOLD_IN_STREAM = frozenset({"responses"})
"""Forms whose provider begins a stream of Responses before it counts, and refuses in that."""
COUNTS_OUTPUT = frozenset({"deepseek", "openrouter"})
"""Forms whose provider enforces prompt + max_tokens, not the prompt alone."""

WRONG = (
    *("openai", "anthropic", "deepseek", "gemini", "moonshot", "llamacpp", "llamacpp_500"),
    *("openrouter", "minimax", "xai", "dashscope"),
)
"""Providers whose window is smaller than it is thought to be, each refusing in its own words."""
MISCOUNTED = ("openai", "minimax")
"""The words of a server that counts 1.5 times ours and has a smaller window; one has no number."""

NOT_OVERFLOW: dict[str, Refusal] = {
    "server_error": Refusal(
        500,
        error(
            "The server had an error while processing your request. Sorry about that!",
            type="server_error",
        ),
        "server_error",
    ),
    "bad_key": Refusal(
        401,
        error(
            "Incorrect API key provided: sk-x. You can find your API key at "
            "https://platform.openai.com/account/api-keys.",
            code="invalid_api_key",
        ),
        "bad_key",
    ),
    "rate_limit": Refusal(
        429,
        error(
            "Rate limit reached for gpt-4o-mini in organization org-x on tokens per min (TPM): "
            "Limit 200000, Used 199000, Requested 9000. Please try again in 2.4s.",
            type="tokens",
            code="rate_limit_exceeded",
        ),
        "rate_limit",
    ),
    "content_filter": Refusal(
        400,
        error(
            "The response was filtered due to the prompt triggering Azure OpenAI's content "
            "management policy. Please modify your prompt and retry.",
            param="prompt",
            code="content_filter",
        ),
        "content_filter",
    ),
}

ROLES = ("system", "assistant", "user", "function", "tool", "developer")


def malformed(messages: Any) -> Refusal | None:
    """Return OpenAI's refusal of a message list that breaks its rules, or None."""
    if not isinstance(messages, list) or not messages:
        return shape(
            "Invalid 'messages': empty array. Expected an array with minimum length 1.", "messages"
        )
    waiting: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        here = f"messages.[{index}].role"
        if role not in ROLES:
            return shape(
                f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', "
                "'function', 'tool', and 'developer'.",
                here,
                "invalid_value",
            )
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                return shape(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'.",
                    here,
                )
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return unanswered(waiting, here)
        calls = message.get("tool_calls")
        if calls is not None:
            bad = malformed_calls(calls, role, index)
            if bad:
                return bad
            waiting = [call["id"] for call in calls]
        elif message.get("content") is None:
            return shape(
                f"Invalid value for 'content': expected a string, got null. ({here})",
                f"messages.[{index}].content",
            )
    return unanswered(waiting, f"messages.[{len(messages)}].role") if waiting else None


def malformed_calls(calls: Any, role: str, index: int) -> Refusal | None:
    """Return the refusal of one message's tool calls, or None."""
    here = f"messages.[{index}].tool_calls"
    if role != "assistant" or not isinstance(calls, list) or not calls:
        return shape(f"Invalid '{here}': empty array or not allowed here.", here)
    seen: set[str] = set()
    for call in calls:
        if not call.get("id") or call["id"] in seen:
            return shape(f"Duplicate or missing tool call id in '{here}'.", here)
        seen.add(call["id"])
        try:
            parsed = json.loads(call["function"]["arguments"])
        except (ValueError, TypeError, KeyError):
            parsed = None
        if not isinstance(parsed, dict):
            return shape(f"Invalid '{here}': 'arguments' must be a JSON object.", here)
    return None


def unanswered(ids: list[str], here: str) -> Refusal:
    """Return the refusal of calls without results."""
    return shape(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        + ", ".join(ids),
        here,
    )


def shape(text: str, param: str, code: str | None = None) -> Refusal:
    """Return a refusal about the form of the request."""
    return Refusal(400, error(text, param=param, code=code), "shape")
