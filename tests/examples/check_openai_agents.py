"""`OpenAIAgentsSession` as the Agents SDK itself uses one; run where that is."""

import asyncio
from typing import Any

from agents import Agent, SessionSettings
from agents.mcp import MCPServerStdio
from agents.memory import Session
from agents.run import CallModelData, ModelInputData
from agents.run_internal.session_persistence import (
    prepare_input_with_session,
    rewind_session_items,
)
from mcp import Tool

from nanobot_context.openai_agents import InputFilter, OpenAIAgentsSession

ITEMS: list[Any] = [
    {"role": "user", "content": "Go."},
    {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}", "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c", "output": "a log"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
]


async def filled(**options: Any) -> OpenAIAgentsSession:
    session = OpenAIAgentsSession("memory:", "s", **options)
    await session.add_items(ITEMS)
    return session


def test_it_is_a_session_by_the_protocol_of_the_sdk() -> None:
    async def test() -> None:
        session = await filled()
        assert isinstance(session, Session)
        await session.close()

    asyncio.run(test())


def test_the_sdk_takes_back_what_it_wrote() -> None:
    async def test() -> None:
        session = await filled(max_tokens=1_000)
        await rewind_session_items(session, ITEMS[2:])
        assert await session.get_items() == ITEMS[:2]
        await session.close()

    asyncio.run(test())


def test_with_a_limit_the_sdk_leaves_a_result_without_its_call_out() -> None:
    async def test() -> None:
        session = await filled()
        session.session_settings = SessionSettings(limit=2)
        prepared, new = await prepare_input_with_session("And?", session, None)
        assert [dict(item).get("role") for item in list[Any](prepared)] == ["assistant", "user"]
        assert len(new) == 1
        await session.close()

    asyncio.run(test())


class Listed(MCPServerStdio):
    """A server whose tools the SDK has listed."""

    @property
    def cached_tools(self) -> list[Tool]:
        schema = {"type": "object", "properties": {"repo": {"type": "string"}}}
        tool = {"description": "Says what it is called. " * 9, "inputSchema": schema}
        return [Tool.model_validate({**tool, "name": f"get_{at}"}) for at in range(60)]


def test_the_tools_of_mcp_servers_count() -> None:
    items: list[Any] = [{"role": "user", "content": f"line {at} of a log"} for at in range(1_500)]

    def sent(agent: Agent[Any]) -> int:
        data = CallModelData(ModelInputData(items, None), agent, None)
        return len(InputFilter(16_000)(data).input)

    with_tools = Agent[Any]("a", mcp_servers=[Listed({"command": "none"})])
    assert sent(with_tools) < sent(Agent[Any]("a")) - 100
