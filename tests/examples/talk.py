"""The conversation that every example holds, for programs of this directory."""

FIRST, LAST = "From now on never name a customer.", "Which tickets are there?"
QUESTIONS = [FIRST, *(f"What failed on March {day}?" for day in range(1, 11)), LAST]


def read_log(day: int) -> str:
    """Return the log of one day in March."""
    lines = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(200)]
    lines[day] = f"2026-03-{day:02} ERROR disk full on node-{day % 9}, ticket OPS-{day}42"
    return "\n".join(lines)


SCHEMA = {
    "type": "function",
    "function": {
        "name": "read_log",
        "description": "Return the log of one day in March.",
        "parameters": {"type": "object", "properties": {"day": {"type": "integer"}}},
    },
}
