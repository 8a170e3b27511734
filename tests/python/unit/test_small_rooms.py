"""Windows that the system prompt nearly fills."""

import json
import random

import pytest

from nanobot_context import Compressor, count_tokens

Message = dict[str, object]


def log(draw: random.Random) -> tuple[str, str]:
    lines = [
        f"2026-01-{draw.randint(10, 28)} INFO svc-{draw.randint(1, 9)} handled request "
        f"{draw.randint(10**5, 10**6)} in {draw.randint(3, 900)} ms"
        for _ in range(90)
    ]
    code = f"ERR-{draw.randint(10_000, 99_999)}"
    lines[draw.randint(10, 80)] = f"2026-01-15 ERROR svc-4 {code} cannot write: quota exceeded"
    return "\n".join(lines), code


@pytest.mark.parametrize(("room", "results"), [(700, 1), (2_200, 3)])
def test_what_stands_out_of_what_was_just_read_is_there(room: int, results: int) -> None:
    draw = random.Random(1)
    skills = (f"Skill {at}: use tool t{at} for {draw.randint(1_000, 9_999)}." for at in range(410))
    messages: list[Message] = [{"role": "system", "content": " ".join(skills)}]
    compressor = Compressor(int((count_tokens(messages) + room) / 0.85), "gpt-4o")
    gone = 0
    for turn in range(14):
        said = f"Turn {turn}: read the logs of svc-{turn} and tell me what broke."
        messages.append({"role": "user", "content": said})
        codes = []
        for at in range(results):
            text, code = log(draw)
            codes.append(code)
            arguments = json.dumps({"path": f"logs/{turn}-{at}.log"})
            call = {"id": f"c{turn}-{at}", "type": "function"}
            call["function"] = {"name": "read_file", "arguments": arguments}  # type: ignore[assignment]
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
            sent = str(compressor.compress(messages))
        gone += sum(code not in sent for code in codes)
        messages.append({"role": "assistant", "content": f"Found {', '.join(codes)}."})
    assert gone <= 1
