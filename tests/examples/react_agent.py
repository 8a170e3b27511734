"""The hook of examples/langchain_agent.py in `create_react_agent`, which langgraph still has."""

import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from langchain_agent import MODEL, pre_model_hook, read_log
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        agent = create_react_agent(
            ChatOpenAI(model=MODEL),
            [read_log],
            prompt="You read logs. Be brief.",
            pre_model_hook=pre_model_hook,
        )
    messages: list[Any] = []
    questions = [f"What failed on March {day}?" for day in range(1, 11)]
    for question in [*questions, "Which tickets are there?"]:
        messages.append({"role": "user", "content": question})
        messages = agent.invoke({"messages": messages})["messages"]
        print(messages[-1].content)


if __name__ == "__main__":
    main()
