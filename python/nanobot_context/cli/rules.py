"""`rules`: lists the rules that the user stated in a session, and takes them back."""

from __future__ import annotations

from typing import Annotated

import typer

from nanobot_context import log
from nanobot_context.cli import output
from nanobot_context.cli.options import Json, SessionName, Store, Workspace
from nanobot_context.cli.output import note, prose
from nanobot_context.conversations import configured, find_conversation
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.guard.state_file import unreadable
from nanobot_context.host import stored_rules
from nanobot_context.host.config import nanobot_config_path
from nanobot_context.plugins.rules import Forgotten, forgotten_file, repeated


def rules(
    session: SessionName,
    forget: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="Take back rule N; may be given several times."),
    ] = None,
    workspace: Workspace = None,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """List a session's rules, or take some back.

    Rules are what the user stated to hold, facts included. They are repeated in the system prompt
    when nanobot no longer sends the messages that they were said in. Who says one again has it
    again.

    \b
    Examples:
      nanobot-context rules cli:direct
      nanobot-context rules cli:direct --forget 2
    """
    found = find_conversation(session, workspace=workspace, store=store)
    metadata = found.metadata.get("metadata")
    key = found.key
    known = stored_rules.read(
        found.messages, dict(metadata) if isinstance(metadata, dict) else {}, {}
    )
    forgotten = Forgotten(forgotten_file(nanobot_config_path()))
    log.mute()  # it is said below
    in_force = forgotten.without(key, known)
    if why := unreadable(forgotten.file):
        note(why)
    texts = list(in_force)
    if forget and not found.metadata:
        problem = f"`{key}` is not a session of nanobot's: there is nothing to take back"
        raise InvalidArgumentError(problem, argument="session")
    if forget:
        for number in forget:
            if not 1 <= number <= len(texts):
                problem = f"there is no rule {number}: `{key}` has {len(texts)}"
                raise InvalidArgumentError(problem, argument="forget")
        gone = [texts[number - 1] for number in dict.fromkeys(forget)]
        forgotten.add(key, gone)
        texts = [text for text in texts if text not in gone]
        for text in gone:
            note(f"taken back: {' '.join(text.split())}")
    sent = repeated(texts, [])
    if as_json:
        rows = [
            {"rule": text, "said_at": in_force[text] or None, "has_room": text in sent}
            for text in texts
        ]
        output.print_json(rows)
        return
    for number, text in enumerate(texts, 1):
        prose(f"{number:3}  {' '.join(text.split())}")
    if without_room := [str(number) for number, text in enumerate(texts, 1) if text not in sent]:
        note(
            f"no room in the system prompt, once their messages are gone: {', '.join(without_room)}"
        )
    if texts and not configured().settings.keep_rules:
        note("`keepRules` is `false`: a rule holds only as long as its message is sent")
    if not texts and not forget:
        note(f"no rules are known of `{key}`")
