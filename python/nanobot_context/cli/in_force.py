"""Finds the settings, model and window that a conversation is shown with.

Imported late, by the commands that need it: it takes as long as all other imports together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nanobot_context import get_context_window
from nanobot_context.cli.output import note
from nanobot_context.conversations import Conversation, configured, read_objects
from nanobot_context.guard.limits import ProviderLimits, learned_file
from nanobot_context.guard.line_file import LineFile
from nanobot_context.guard.record import RequestRecord
from nanobot_context.guard.record_file import is_record, read_records, record_file, records_in
from nanobot_context.guard.shared import WAYS
from nanobot_context.guard.state_file import OWN_REQUESTS
from nanobot_context.guard.telemetry import events_file
from nanobot_context.guard.windows import Window, WindowResolver
from nanobot_context.host.config import configured_addresses, nanobot_config_path
from nanobot_context.settings import LoadedSettings, Settings


@dataclass(frozen=True, slots=True)
class InForce:
    """The settings, model and window that a conversation is shown with.

    Attributes:
        model: The model: that of the options, else of the request body, else of nanobot's config.
        window_tokens: The window: that of the options, else what nanobot's requests have.
        window_source: Where that number comes from.
        learned: What providers taught of the model where its requests go, as JSON values.
        lessons: What they taught of every model.
    """

    model: str | None
    window_tokens: int
    window_source: str
    settings: Settings
    learned: dict[str, dict[str, Any]]
    lessons: dict[str, dict[str, Any]]
    _loaded: LoadedSettings

    def records(self, conversation: Conversation) -> list[RequestRecord]:
        """Return the recorded requests of `conversation`, oldest first."""
        records = read_records(self._loaded.nanobot_config, conversation.key)
        asked = {record.workspace for record in records}
        of = {one for one in asked if conversation.is_kept_by(None if one is None else Path(one))}
        return [record for record in records if record.workspace in of]

    def events(self) -> list[dict[str, Any]]:
        """Return the events of the setting `events`, of its file and older ones, oldest first.

        Raises:
            ConversationFileError: A line of them is not an event.
            OSError: One cannot be read.
        """
        if self.settings.events is None:
            return []
        path = events_file(self.settings.events, self._loaded.nanobot_config.parent)
        files = LineFile(path, self.settings.events_max_bytes).files()
        return [event for file in files for event in read_objects(file)]


def note_left_out(loaded: LoadedSettings) -> None:
    """Say which settings cannot be used: the answer is without them."""
    for problem in loaded.problems:
        note(f"a setting is left out: {problem}")


def own_records(name: str) -> tuple[Conversation, list[RequestRecord]]:
    """Return the recorded requests of `wrap`, `serve` or `call_with_recovery`; none of others.

    `name` is one of these, or the file that `serve --record` writes.
    """
    file, records = record_file(nanobot_config_path(), OWN_REQUESTS), []
    if name in WAYS:
        records = records_in(file, name)
    elif is_record(Path(name)):
        file = LineFile(Path(name), 0)
        records = records_in(file)
    return Conversation(name, [], {}, str(file.path)), records


def in_force(conversation: Conversation, model: str | None, window: int | None) -> InForce:
    """Return the settings, model and window for `conversation`.

    `model` and `window` are the options of the command, and come first.

    Raises:
        SettingsError: No setting can be used.
    """
    loaded = configured()
    note_left_out(loaded)
    config = nanobot_config_path()
    learned = ProviderLimits.load(learned_file(config))
    windows = WindowResolver(loaded, learned=learned)
    model = model or conversation.model or windows.configured.file.model
    # nanobot is only asked where that can make a difference: to import it takes seconds.
    addresses = configured_addresses(config, model) if learned.names_of(model) else ()
    names = learned.names_of(model, addresses)
    if window is not None:
        known = Window(window, "`--window`")
    else:
        known = windows.of_addresses(model, addresses)
        if not known.tokens:
            known = Window(get_context_window(model), f"not used by nanobot: {known.source} is 0")
    lessons = learned.to_dict()
    return InForce(
        model=model,
        window_tokens=known.tokens,
        window_source=known.source,
        settings=loaded.settings,
        learned={name: one for name, one in lessons.items() if name in names},
        lessons=lessons,
        _loaded=loaded,
    )
