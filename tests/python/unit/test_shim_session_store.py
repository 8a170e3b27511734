"""nanobot's sessions in a shared store: what needs no nanobot. The rest is in tests/nanobot."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanobot_context import SessionService, doctor, installer, log, setting_checks
from nanobot_context._core import without_credentials
from nanobot_context.errors import InvalidArgumentError, SettingsError
from nanobot_context.guard.counters import Counters
from nanobot_context.host.detect import NanobotClasses
from nanobot_context.plugins import meanwhile, opened_store
from nanobot_context.plugins.shared_session import merged
from nanobot_context.settings import Settings, load_settings

SECRET = "redis://me:s3cr/et@cache.example:6379/2?durability=aof"


def merge(base: str, ours: str, theirs: str) -> str:
    order, _ = merged(base, ours, theirs)
    return "".join(theirs[at] if at >= 0 else ours[-1 - at] for at in order)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [
        ("abc", "abcX", "abc", "abcX"),
        ("abc", "abc", "abcY", "abcY"),
        ("abc", "abcX", "abcY", "abcYX"),
        ("abc", "abcX", "abcX", "abcX"),  # the answer to our write was lost
        ("abc", "abcXZ", "abcXY", "abcXYZ"),
        ("", "X", "Y", "YX"),
        ("abc", "aMbc", "abcY", "aMbcY"),  # a mark was put in between
        ("abc", "aMbc", "aMbc", "aMbc"),
        ("abc", "aMbc", "aMbcY", "aMbcY"),
        ("abc", "", "abcY", "Y"),  # cleared here
        ("abc", "abcX", "", "X"),  # cleared there
        ("abc", "abcX", "aMbc", "aMbcX"),
        ("abc", "aMbcX", "aNbc", "aNbcMX"),
        ("aa", "aaa", "aaa", "aaa"),
        ("aa", "aaab", "aab", "aaba"),
    ],
)
def test_two_writers_lists_become_one(base: str, ours: str, theirs: str, result: str) -> None:
    assert merge(base, ours, theirs) == result


@given(
    base=st.text("abc", max_size=6),
    cut=st.integers(0, 6),
    mine=st.text("XYZ", max_size=5),
    other=st.text("UVW", max_size=5),
    is_mine=st.booleans(),
)
def test_what_either_writer_added_is_there_once_and_in_its_order(
    base: str, cut: int, mine: str, other: str, is_mine: bool
) -> None:
    # One of the two has cut what was there before.
    ours = (base[:cut] if is_mine else base) + mine
    theirs = (base if is_mine else base[:cut]) + other
    found = merge(base, ours, theirs)
    assert [one for one in found if one in "XYZ"] == list(mine)
    assert [one for one in found if one in "UVW"] == list(other)
    assert not Counter(found) - Counter(base) - Counter(mine) - Counter(other)
    assert merge(theirs, found, theirs) == found, "written, it stays as it is"
    assert merge(base, ours, found) == found, "written although no answer came, it stays"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (SECRET, "redis://cache.example:6379/2"),
        ("rediss://:pw@h/0", "rediss://h/0"),
        ("redis://h:1/0", "redis://h:1/0"),
        ("redis://:p?a#s@h/0?x=1", "redis://h/0"),
        ("sqlite:////srv/a@b/s.db?durability=full", "sqlite:////srv/a@b/s.db"),
        ("redis:/me:s3cr@cache.example:6379/0", "redis:***"),
        ("redis://me:s3cr\ud800@h", "redis://h"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


def test_the_setting_is_read_from_its_file_and_the_environment(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    assert load_settings(config, {}).settings.session_store is None
    (tmp_path / "nanobot-context.json").write_text(json.dumps({"sessionStore": SECRET}))
    assert load_settings(config, {}).settings.session_store == SECRET
    environ = {"NANOBOT_CONTEXT_SESSION_STORE": "sqlite:///a.db"}
    assert load_settings(config, environ).settings.session_store == "sqlite:///a.db"
    environ = {"NANOBOT_CONTEXT_SESSION_STORE": "none"}
    assert load_settings(config, environ).settings.session_store is None


@pytest.mark.parametrize(
    "wrong",
    [
        "mysql://me:s3cr@et@h/0",
        "redis:/me:s3cr@h/0",
        "redis//me:s3cr@h/0",
        " redis://me:s3cr @h/0",
        "me:s3cr@h",
        "memory:s3cr",
        "memory:",
        "sqlite:///:memory:",
        5,
        True,
        ["redis://h"],
        {"host": "h", "password": "s3cr"},
    ],
)
def test_a_url_of_another_form_is_refused_without_its_password(wrong: Any, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    (tmp_path / "nanobot-context.json").write_text(json.dumps({"sessionStore": wrong}))
    with pytest.raises(SettingsError, match="`sessionStore` must be null or a URL") as caught:
        load_settings(config, {})
    assert "s3cr" not in str(caught.value)
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path / "none.json", {"NANOBOT_CONTEXT_SESSION_STORE": str(wrong)})
    assert "s3cr" not in str(caught.value)


def test_a_wrong_argument_is_shown_without_its_password() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        SessionService(["redis:/me:s3cr@h/0"])  # type: ignore[arg-type]
    assert "s3cr" not in str(caught.value)


def test_the_settings_do_not_show_the_url() -> None:
    assert "s3cr" not in repr(Settings(session_store=SECRET))


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(log, "warning", lambda text, *args: lines.append(text.format(*args)))
    return lines


def test_a_nanobot_without_stores_stays_as_it_is_and_status_says_so(
    classes: NanobotClasses, install: Any, warnings: list[str]
) -> None:
    status = install(classes, session_store=SECRET)
    assert status.installed
    missing = {point.name: point.state for point in status.points if "session" in point.name}
    assert missing["nanobot.session.manager.SessionStore"] == "missing"
    assert warnings == [opened_store.NO_EFFECT]
    assert status.settings.session_store == "redis://cache.example:6379/2"
    assert "s3cr" not in json.dumps(status.to_dict()) + repr(status)


def test_without_the_setting_nothing_is_said_of_stores(
    classes: NanobotClasses, install: Any, warnings: list[str]
) -> None:
    status = install(classes)
    assert [point for point in status.points if "Store" in point.name] == []
    assert warnings == []


def test_doctor_says_what_keeps_the_store_from_being_used(
    classes: NanobotClasses, install: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.json"
    status = install(classes)
    assert list(doctor._check_store(config, status)) == []
    (tmp_path / "nanobot-context.json").write_text(json.dumps({"sessionStore": SECRET}))
    (finding,) = doctor._check_store(config, status)
    assert finding.problem == opened_store.NO_EFFECT
    (finding,) = doctor._check_store(config, installer.Status(False, "switched off"))
    assert finding.problem.endswith("nanobot is not patched")
    monkeypatch.setattr(opened_store, "is_supported", lambda: True)
    url = f"sqlite:///{tmp_path}"
    (tmp_path / "nanobot-context.json").write_text(json.dumps({"sessionStore": url}))
    (finding,) = doctor._check_store(config, status)
    assert finding.problem.startswith(f"the session store `{url}` cannot be opened")
    url = f"sqlite:///{tmp_path}/s.db"
    (tmp_path / "nanobot-context.json").write_text(json.dumps({"sessionStore": url}))
    assert list(doctor._check_store(config, status)) == []


def test_a_url_that_is_wrong_leaves_all_other_settings_in_force_and_is_said_once(
    classes: NanobotClasses,
    warnings: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    settings = {"sessionStore": "mysql://me:s3cr@et@h/0", "contextWindowOverride": 9_000}
    (tmp_path / "nanobot-context.json").write_text(json.dumps(settings))
    monkeypatch.setattr(installer, "load_classes", lambda: classes)
    monkeypatch.setattr(installer, "nanobot_config_path", lambda: tmp_path / "config.json")
    request.addfinalizer(installer.uninstall)
    state = installer.install()
    assert state.installed
    assert state.settings is not None
    assert (state.settings.session_store, state.settings.context_window_override) == (None, 9_000)
    (said,) = warnings
    assert "`sessionStore` must be null or a URL" in said
    assert "s3cr" not in said + json.dumps(state.to_dict())
    (finding,) = setting_checks.left_out(state)
    assert "`sessionStore`" in finding.problem


def test_a_store_that_cannot_be_opened_is_told_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "no").write_text("")
    now = [0.0]
    file = f"sqlite:///{tmp_path}/no/s.db"
    opened = opened_store.Opened(file, Counters(), now=lambda: now[0])
    assert opened.service() is None
    assert caplog.text.count("sessions stay files") == 1
    (tmp_path / "no").unlink()
    assert opened.service() is None, "not at once"
    now[0] += 3_600
    service = opened.service()
    assert service is not None
    service.close()
    assert caplog.text.count("sessions stay files") == 1


def test_a_store_whose_url_is_none_is_never_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    opened = opened_store.Opened("sqlite:///", Counters(), now=lambda: now[0])
    for _ in range(3):
        assert opened.service() is None
        now[0] += 3_600
    assert caplog.text.count("sessions stay files") == 1


def test_a_copy_that_is_damaged_is_told_and_left_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = SimpleNamespace(
        sessions_dir=tmp_path, get_session_path=lambda key: tmp_path / f"{key}.jsonl"
    )
    (tmp_path / "a.jsonl").write_text("said")
    meanwhile.put_aside(files, SimpleNamespace(key="a", metadata={}))
    meanwhile.note_deleted(files, "b", 5.0)
    (tmp_path / ".not-stored" / "c.json").write_text("{")
    found = {copy.key: copy for _, copy in meanwhile.copies(files)}
    assert (found["a"].text, found["b"].deleted_at) == ("said", 5.0)
    assert len(found) == 2
    assert "c.json` is damaged" in caplog.text
    meanwhile.forget_deleted(files, "b")
    meanwhile.forget_deleted(files, "a")
    assert [copy.key for _, copy in meanwhile.copies(files)] == ["a"]
