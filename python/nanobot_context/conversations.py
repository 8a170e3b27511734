"""Reads conversations from files, from nanobot's own sessions, and from session stores."""

from __future__ import annotations

import difflib
import json
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanobot_context._core import find_last_user_index, mask_credentials, without_credentials
from nanobot_context.arguments import check_instance, check_path, text_of
from nanobot_context.errors import (
    InvalidMessageError,
    SessionNotFoundError,
    SettingsError,
    StoreUnavailableError,
)
from nanobot_context.json_file import JsonFile, kind_of, load_or_none
from nanobot_context.json_text import parsed, position_of, skip_blank
from nanobot_context.own_form import own_form
from nanobot_context.settings import LoadedSettings, load_usable_settings
from nanobot_context.types import Message

if TYPE_CHECKING:
    from nanobot_context.sessions.records import SessionSummary, StoredSession
    from nanobot_context.sessions.service import SessionService
    from nanobot_context.wire.forms.form import Form

__all__ = [
    "Conversation",
    "configured",
    "find_conversation",
    "nanobot_session_files",
    "open_store",
    "read_conversation",
    "read_objects",
    "store_url",
    "stored_conversation",
]

STDIN = "-"
_SQLITE = "sqlite:///"
# The `_type` of nanobot's metadata line.
RECORD = "metadata"

_EXPECTED = (
    "expected a JSON list of messages, an object with `messages`, or one message a line (JSONL)"
)
# What a session's id in 0.3.5 looks like. Source: nanobot 0.3.5, `_WORKSPACE_ID_RE`.
_WORKSPACE_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that was read.

    Attributes:
        name: What titles show: the file's name, or the session's key.
        messages: All its messages in OpenAI's form. Keys that nanobot adds are kept.
        metadata: The metadata line of a session of nanobot's; empty for any other conversation.
        source: Where it was read from; of a store without user name and password.
        tools: The tool schemas that stand beside the messages, as in a request body.
        model: The model that stands there.
        summaries: The summaries of all its contents that its store has, the oldest first, each with
            the number of messages that it covers.
        form: What it was read from, where that is Anthropic's form or that of Responses.
    """

    name: str
    messages: list[Message]
    metadata: dict[str, Any]
    source: str
    tools: list[Any] | None = field(default=None, kw_only=True)
    model: str | None = field(default=None, kw_only=True)
    summaries: list[tuple[SessionSummary, int]] = field(default_factory=list, kw_only=True)
    form: Form | None = field(default=None, kw_only=True)

    @property
    def key(self) -> str:
        """nanobot's key of the session; the name for any other conversation."""
        from nanobot_context.sessions.nanobot_files import key_of_name

        is_file = self.metadata and self.name.endswith(".jsonl")
        return _key_of(self.metadata) or (key_of_name(self.name) if is_file else self.name)

    def is_kept_by(self, workspace: Path | None) -> bool:
        """Return whether it is a session of the nanobot with this workspace.

        In nanobot's store there is one session of a key, in the files of each workspace another
        one. A session of another store is nobody's here.

        Args:
            workspace: The workspace; `None` is the configured one.
        """
        from nanobot_context.host.config import nanobot_config_path

        if not self.metadata:
            return False
        if "://" in self.source:
            own = configured().settings.session_store
            return own is not None and without_credentials(own) == self.source
        # The first releases keep the sessions of all workspaces in one folder.
        folders = [*_session_folders(workspace), nanobot_config_path().parent / "sessions"]
        return Path(self.source).resolve().parent in [folder.resolve() for folder in folders]

    def place(self, index: int) -> int:
        """Return the index of a message in the list that was read."""
        return index if self.form is None else self.form.place(index)


def read_conversation(path: Path | str) -> Conversation:
    """Return the conversation in the file `path`; `-` is standard input.

    A JSON list of messages, an object with `messages` (a request body), one message a line, or a
    session file of nanobot's. Messages of Anthropic's, with the `system` of the body, and items of
    Responses are read as OpenAI's. The whole file is in memory while it is read.

    Raises:
        ConversationFileError: It holds something else; says what was expected, and where.
        OSError: The file cannot be read.
    """
    check_path(path)
    if path == STDIN:
        return _File("standard input", sys.stdin.buffer.read()).conversation("standard input")
    path = Path(path)
    return _File(str(path), path.read_bytes()).conversation(path.name)


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects in a file of one a line, such as a file of events.

    Raises:
        ConversationFileError: A line is not a JSON object.
        OSError: The file cannot be read.
    """
    check_path(path)
    return [value for value, _ in JsonFile(str(path), Path(path).read_bytes()).objects("an object")]


def find_conversation(
    session: str, *, workspace: Path | None = None, store: str | None = None
) -> Conversation:
    """Return the conversation that `session` names.

    Args:
        session: A file, `-`, or nanobot's key of a session (`cli:direct`). Of a store that other
            programs write, too: `app/user/id`.
        workspace: nanobot's workspace whose sessions are looked through; `None` is the configured
            one.
        store: The URL of a session store, where nothing else is looked through; without it and
            without `workspace` the configured one comes before nanobot's files.

    Raises:
        SessionNotFoundError: There is no such file or session.
        ConversationFileError: The file holds something else.
        OSError: The file cannot be read.
        SessionStoreError: The store cannot be read.
        InvalidArgumentError: `store` is not the URL of a store.
    """
    text_of("session", session)
    check_instance("workspace", workspace, Path, optional=True)
    check_instance("store", store, str, optional=True)
    if store is None and (session == STDIN or _is_file(session)):
        return read_conversation(session)
    looked: list[str] = []
    url = store_url(store, workspace)
    if url is not None:
        found = _from_store(url, session, looked)
        if found is not None:
            return found
    if store is None:
        files = nanobot_session_files(workspace)
        if session in files:
            return read_conversation(files[session][0])
        looked.append(f"nanobot's sessions ({len(files):,})")
        close = difflib.get_close_matches(session, files, n=1)
        if close:
            looked[-1] += f"\nhint: did you mean `{close[0]}`?"
    shown = mask_credentials(session)
    raise SessionNotFoundError(
        f"there is no file and no session `{shown}` among {' and '.join(looked)}"
    )


def nanobot_session_files(workspace: Path | None = None) -> dict[str, list[Path]]:
    """Return the session files of nanobot's by key, of each the one in use first.

    Every release's folders are looked through. Reads the first line of each file.

    Args:
        workspace: nanobot's workspace; `None` is the configured one.
    """
    check_instance("workspace", workspace, Path, optional=True)
    # Only here: it brings in the session stores.
    from nanobot_context.sessions.nanobot_files import key_of_name

    found: dict[str, list[Path]] = {}
    for folder in _session_folders(workspace):
        for path in sorted(folder.glob("*.jsonl")):
            key = _key_of(_record_of(path)) or key_of_name(path.name)
            found.setdefault(key, []).append(path)
    return found


def stored_conversation(session: StoredSession, source: str) -> Conversation:
    """Convert a session of a store to a conversation.

    Args:
        session: The session with all its events.
        source: What is shown of the store's URL.
    """
    from nanobot_context.sessions.nanobot_files import META, SessionFile
    from nanobot_context.sessions.records import StoredSession

    check_instance("session", session, StoredSession)
    if META not in session.meta:
        return Conversation(session.id, session.messages, {}, source)
    file = SessionFile.of(session)
    # `None` for one that was damaged in the store.
    lines = [parsed(line) for line in file.messages]
    others = [json.loads(line) for _, line in file.others if line.strip()]
    record: dict[str, Any] = next((one for one in others if one.get("_type") == RECORD), {})
    messages = [line for line in lines if isinstance(line, dict) and "role" in line]
    return Conversation(session.id, messages, record, source)


def open_store(url: str, *, create: bool = False) -> SessionService:
    """Return the service of a store that keeps all events, as nanobot's files do.

    Args:
        url: The store.
        create: Whether a SQLite file that is not there is made.

    Raises:
        StoreUnavailableError: The file does not exist and `create` is off, or no store answers.
        SessionStoreError: It cannot be opened.
        InvalidArgumentError: `url` is not the URL of a store.
    """
    from nanobot_context.sessions.service import SessionService

    text_of("url", url)
    path = store_file(url)
    if path is not None and not create and not path.expanduser().exists():
        raise StoreUnavailableError(f"there is no store `{path}`")
    return SessionService(url, event_limit=0, cleanup_interval_seconds=0)


def store_file(url: str) -> Path | None:
    """Return the file that the URL of a SQLite store names, `~` as written; `None` for others."""
    path = url.removeprefix(_SQLITE).partition("?")[0]
    return Path(path) if url.startswith(_SQLITE) and path else None


def store_url(store: str | None, workspace: Path | None) -> str | None:
    """Return the URL of the named or else the configured store; `None` for files."""
    if store or workspace:
        return store
    loaded = configured()
    for problem in loaded.problems:
        # Without that one, sessions would be looked for in another place than nanobot's.
        if problem.startswith(_STORE_SETTING):
            raise SettingsError(problem, path="session_store")
    return loaded.settings.session_store


_STORE_SETTING = ("`sessionStore`", "`session_store`", "`NANOBOT_CONTEXT_SESSION_STORE`")


def configured() -> LoadedSettings:
    """Return the settings in force for the nanobot of this user, as nanobot takes them.

    Raises:
        SettingsError: None of them can be used: see `load_usable_settings`.
    """
    from nanobot_context.host.config import nanobot_config_path

    return load_usable_settings(nanobot_config_path())


def model_of(conversation: Conversation, model: str | None = None) -> str | None:
    """Return the model to count a conversation for: `model`, else its own.

    A session of nanobot's that says none is that of nanobot's configured model.
    """
    if model or conversation.model or not conversation.metadata:
        return model or conversation.model
    from nanobot_context.host import config

    try:
        return config.configured(configured()).model
    except SettingsError:
        return None  # what is wrong with them has nothing to do with counting


def _is_file(name: str) -> bool:
    try:
        return name != "" and Path(name).exists()
    except OSError:  # too long for a file's name
        return False


def _from_store(url: str, session: str, looked: list[str]) -> Conversation | None:
    from nanobot_context.sessions.nanobot_files import APP, USER

    keys = [(APP, USER, session)]
    if session.count("/") >= 2:
        app, user, id_ = session.split("/", 2)
        keys.append((app, user, id_))
    shown = without_credentials(url)
    with open_store(url) as service:
        for key in keys:
            stored = service.get(*key, user_first="off")
            if stored is not None:
                seqs = [event.seq or 0 for event in stored.events if event.is_message]
                newest_first = service.summaries(stored, "")
                summaries = [(one, bisect_right(seqs, one.last_seq)) for one in newest_first[::-1]]
                return replace(stored_conversation(stored, shown), summaries=summaries)
    looked.append(f"those in `{shown}`")
    return None


def _session_folders(workspace: Path | None) -> Iterator[Path]:
    """Yield where releases keep sessions, the newest first.

    Source: nanobot 0.3.5, `JsonlSessionStore.__init__`; 0.1.4 to 0.3.0, `SessionManager.__init__`;
    0.1.3.post7, the same, which later releases call the legacy folder.
    """
    from nanobot_context.host.config import nanobot_config_path

    home = nanobot_config_path().parent
    is_configured = workspace is None
    if workspace is None:
        workspace = _configured_workspace()
    try:
        name = (workspace / ".nanobot" / "workspace-id").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        name = ""
    if _WORKSPACE_ID.fullmatch(name):
        yield home / "sessions" / name
    yield workspace / "sessions"
    if is_configured:
        yield home / "sessions"


def _configured_workspace() -> Path:
    from nanobot_context.host.config import DEFAULT_WORKSPACE, workspace_of

    try:
        named = workspace_of(configured())
    except SettingsError:
        named = DEFAULT_WORKSPACE  # what is wrong with them has nothing to do with files
    return Path(named).expanduser()


def _record_of(path: Path) -> dict[str, Any]:
    """Return the metadata line of a session file; empty where there is none."""
    try:
        with path.open("rb") as file:
            record = json.loads(file.readline())
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) and record.get("_type") == RECORD else {}


def _key_of(record: dict[str, Any]) -> str | None:
    """Return the key that a metadata line says; those of the first releases say none."""
    key = record.get("key")
    return key if isinstance(key, str) and key else None


class _File(JsonFile):
    """A file that holds a conversation."""

    def conversation(self, name: str) -> Conversation:
        """Parse the text as a conversation; `name` is used where it names no key."""
        text = self.text
        start = skip_blank(text, 0)
        if start == len(text):
            self.refuse(start, f"there is nothing in it; {_EXPECTED}")
        end = text.find("\n", start)
        has_more = end != -1 and skip_blank(text, end) < len(text)
        if has_more and isinstance(load_or_none(text[start:end]), dict):
            return self._of_messages(self.objects("a message"), name)
        value = self.load(text)
        if isinstance(value, dict) and ("_type" in value or "role" in value):
            return self._of_messages([(value, start)], name)
        path: tuple[str, ...] = ()
        request: dict[str, Any] = {}
        for known in ("messages", "input"):
            if isinstance(value, dict) and known in value:
                path, request, value = (known,), value, value[known]
                break
        if isinstance(value, str) and path == ("input",):
            value = [{"role": "user", "content": value}]
        if not isinstance(value, list):
            self.refuse(position_of(text, 0, *path), f"{_EXPECTED}; found {kind_of(value)}")
        form = self._check(value, lambda index: position_of(text, 0, *path, index), request)
        tools, model = request.get("tools"), request.get("model")
        # Where the request was made of a session: see `nanobot-context sessions show --json`.
        record = request.get("metadata")
        metadata = record if isinstance(record, dict) and record.get("_type") == RECORD else {}
        return Conversation(
            _key_of(metadata) or name,
            _read_as(form, value),
            metadata,
            self.shown,
            tools=form.tools if form else tools if isinstance(tools, list) else None,
            model=model if isinstance(model, str) else None,
            form=form,
        )

    def _of_messages(
        self, objects: Iterable[tuple[dict[str, Any], int]], name: str
    ) -> Conversation:
        metadata: dict[str, Any] = {}
        messages: list[Message] = []
        places: list[int] = []
        for value, place in objects:
            if value.get("_type") == RECORD:
                metadata = value
            elif "_type" not in value:
                messages.append(value)
                places.append(place)
        form = self._check(messages, places.__getitem__)
        said = _read_as(form, messages)
        return Conversation(_key_of(metadata) or name, said, metadata, self.shown, form=form)

    def _check(
        self,
        messages: list[Any],
        place_of: Callable[[int], int],
        body: dict[str, Any] | None = None,
    ) -> Form | None:
        """Refuse messages that no provider would take; return their form if it is not OpenAI's."""
        try:
            form = own_form(messages, body)
            if form is None:
                find_last_user_index(messages)
            return form
        except InvalidMessageError as error:
            self.refuse(place_of(error.index), str(error))


def _read_as(form: Form | None, messages: list[Message]) -> list[Message]:
    """Return messages in OpenAI's form."""
    if form is None:
        return messages
    from nanobot_context.wire.forms.form import without_places

    return without_places(form.messages)
