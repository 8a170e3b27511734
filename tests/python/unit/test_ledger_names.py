"""The names that a ledger lists of what is left out."""

import json
import random

from nanobot_context import count_tokens, fit_messages

Message = dict[str, object]


def test_codes_of_errors_come_before_ids_of_ordinary_lines() -> None:
    there = 0
    for seed in range(6):
        draw = random.Random(seed)
        messages: list[Message] = [{"role": "user", "content": "Watch the services, please."}]
        codes = [f"ERR-{draw.randint(10_000, 99_999)}" for _ in range(60)]
        for number, code in enumerate(codes):
            lines = [
                f"2026-03-{1 + number % 28:02} INFO GET /{draw.randint(1, 999)} "
                f"req={draw.randrange(16**10):010x} took {draw.randint(3, 900)} ms"
                for _ in range(40)
            ]
            lines[draw.randint(5, 35)] = f"2026-03-{1 + number % 28:02} ERROR {code} pool exhausted"
            call = {"name": "read_log", "arguments": json.dumps({"page": number})}
            calls = [{"id": f"c{number}", "type": "function", "function": call}]
            messages += [
                {"role": "assistant", "content": "Next page.", "tool_calls": calls},
                {"role": "tool", "tool_call_id": f"c{number}", "content": "\n".join(lines)},
            ]
        messages.append({"role": "user", "content": "Go on."})
        fitted = fit_messages(messages, count_tokens(messages) // 20)
        there += sum(code in str(fitted.messages) for code in codes)
    assert there >= 0.9 * 6 * 60
