"""What is sent first, and what of it is never cut."""

from __future__ import annotations

from nanobot_context import find_last_user_index
from nanobot_context.first_attempt import never_cut


def test_a_note_in_the_users_name_is_not_the_message_that_is_never_cut() -> None:
    """Loops that keep what was compressed send the core's notes back to it."""
    system = {"role": "system", "content": "Be brief."}
    said = {"role": "user", "content": "Write src/importer.py."}
    answer = {"role": "assistant", "content": "It is written."}
    note = {"role": "user", "content": "[3 messages left out]"}
    messages = [system, said, answer, note]
    assert find_last_user_index(messages) == 1
    assert never_cut(messages) == [system, said]
    assert never_cut([answer]) == []
