"""The hook for `create_react_agent`, which langgraph still has; it is told the window."""

import warnings
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from talk import QUESTIONS, read_log

from nanobot_context.adapters.langchain import fit_messages_hook

MODEL, WINDOW = "gpt-4o-mini", 16_000


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        agent = create_react_agent(
            ChatOpenAI(model=MODEL),
            [read_log],
            prompt="You read logs. Be brief.",
            pre_model_hook=fit_messages_hook(WINDOW, MODEL),
        )
    messages: list[Any] = []
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        messages = agent.invoke({"messages": messages})["messages"]
        print(messages[-1].content)


if __name__ == "__main__":
    main()
