"""What a process does that says one short thing: nothing that a long one needs."""

from __future__ import annotations

from importlib import import_module

from scenario import Scenario, script
from stage import Stage


def first_words(model: str = "openai/gpt-4o-mini") -> Scenario:
    """The user greets a known model, which answers; then asks for the package's status."""

    async def play(stage: Stage) -> None:
        package = import_module("nanobot_context")
        core = import_module("nanobot_context._core")
        await stage.say("Hello")
        await stage.idle()
        package.status()
        stage.notes["loaded"] = core.loaded_vocabularies()
        prompt = stage.server.requests[0].prompt_tokens
        # That the bound is one, and that the notes would say so if it were not.
        core.count_tokens([{"role": "user", "content": "Hello"}], model)
        stage.notes |= {"loaded_by_counting": core.loaded_vocabularies(), "prompt_tokens": prompt}

    return Scenario("first-words", play, lambda _: script(["Hello!"]), known=None, model=model)
