"""`Archive`: what stands in its directory, whatever fails, and what marks name then."""

from __future__ import annotations

import errno
import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import nanobot_context
from nanobot_context import Archive, Compressor, InvalidArgumentError, Message, fit_messages
from nanobot_context._core import archive_name
from nanobot_context.guard.archives import Archives

PATH = re.compile(r"; all of it: (\S+?)(?: \.\.\.)?\]")


def name(number: int) -> str:
    return f"{number:016x}.txt"


def names(archive: Archive) -> list[str]:
    return sorted(file.name for file in archive.directory.glob("*.txt"))


def logs(seed: int, lines: int = 400) -> str:
    return "".join(
        f"12:{n % 60:02} worker {seed} wrote block {n * seed} ok\n" for n in range(lines)
    )


def conversation(*results: str) -> list[Message]:
    messages: list[Message] = [{"role": "user", "content": "Why does it fail?"}]
    for number, text in enumerate(results):
        function = {"name": "exec", "arguments": "{}"}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
    return [*messages, {"role": "user", "content": "And now?"}]


def named(messages: list[Message]) -> list[str]:
    return [path for message in messages for path in PATH.findall(message["content"] or "")]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "results", shown="results")


# Files -------------------------------------------------------------------------------------------


def test_nothing_is_created_before_something_is_kept(archive: Archive) -> None:
    assert archive.missing({name(1): 5}) == {name(1)}
    assert not archive.directory.exists()


def test_a_file_holds_the_text_byte_for_byte_and_is_its_owners_only(archive: Archive) -> None:
    text = "a\r\nb\u2028日本語\0\n"
    assert archive.write({name(1): text}) == {name(1)}
    file = archive.directory / name(1)
    assert file.read_bytes() == text.encode()
    assert archive.missing({name(1): len(text.encode()), name(2): None}) == {name(2)}
    if sys.platform != "win32":
        assert file.stat().st_mode & 0o777 == 0o600
        assert archive.directory.stat().st_mode & 0o777 == 0o700
    assert (archive.directory / ".gitignore").read_text() == "*\n"


def test_a_text_that_is_there_is_not_written_again(archive: Archive) -> None:
    archive.write({name(1): "text"})
    before = (archive.directory / name(1)).stat()
    assert archive.write({name(1): "text"}) == {name(1)}
    after = (archive.directory / name(1)).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_cut_short_by_a_crash_is_missing_and_mended(archive: Archive) -> None:
    archive.write({name(1): "text"})
    (archive.directory / name(1)).write_text("")
    assert archive.missing({name(1): 4}) == {name(1)}
    assert archive.write({name(1): "text"}) == {name(1)}
    assert (archive.directory / name(1)).read_text() == "text"


def test_only_names_of_its_own_are_written(archive: Archive) -> None:
    with pytest.raises(InvalidArgumentError, match="not the name of an archived result"):
        archive.write({"../secret.txt": "text"})


def test_a_file_of_that_name_and_size_is_not_the_original_before_it_was_compared(
    archive: Archive,
) -> None:
    archive.directory.mkdir()
    file = archive.directory / name(1)
    file.write_text("evil")
    assert archive.missing({name(1): 4}) == {name(1)}
    assert archive.write({name(1): "text"}) == {name(1)}
    assert file.read_text() == "text"
    assert archive.missing({name(1): 4}) == set()
    file.write_text("evil")
    assert archive.missing({name(1): 4}) == {name(1)}, "it was changed since"


def test_a_file_of_an_earlier_call_is_compared_with_its_name(archive: Archive) -> None:
    kept = archive_name("text")
    archive.write({kept: "text"})
    file = archive.directory / kept
    assert Archive(archive.directory, shown="results").missing({kept: None}) == set()
    for other in ("evil", "\udcff"):
        file.write_text(other, errors="surrogateescape")
        assert archive.missing({kept: None}) == {kept}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("link", ["results", ".nanobot-context"])
def test_a_link_of_a_workspace_is_not_followed(
    tmp_path: Path, link: str, caplog: pytest.LogCaptureFixture
) -> None:
    workspace, victim = tmp_path / "workspace", tmp_path / "victim"
    own = workspace / ".nanobot-context"
    for place in (victim, victim / "results"):
        place.mkdir()
        (place / name(7)).write_text("precious" * 50)
        (place / "download.part").write_text("half")
    own.mkdir(parents=True) if link == "results" else workspace.mkdir()
    (own / "results" if link == "results" else own).symlink_to(victim)
    before = sorted(path.name for path in victim.rglob("*"))
    archive = Archive(own / "results", shown=".nanobot-context/results", max_bytes=400)
    messages = fit_messages(
        conversation(logs(1), logs(2)), 2_000, "gpt-4o", archive=archive
    ).messages
    assert archive.write({name(1): "text"}) == set()
    assert archive.missing({name(7): None, name(1): 4}) == {name(7), name(1)}
    assert sorted(path.name for path in victim.rglob("*")) == before
    assert named(messages) == []
    assert "link" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(
    archive: Archive, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("text")
    archive.directory.mkdir()
    for link in (name(1), ".order", ".gitignore"):
        (archive.directory / link).symlink_to(outside)
    assert archive.missing({name(1): 4, name(2): None}) == {name(1), name(2)}
    assert archive.write({name(1): "text"}) == {name(1)}
    assert not (archive.directory / name(1)).is_symlink()
    assert outside.read_text() == "text"
    (archive.directory / ".lock").unlink()
    (archive.directory / ".lock").symlink_to(tmp_path / "made")
    assert archive.write({name(2): "text"}) == set()
    assert not (tmp_path / "made").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_above_the_workspace_is_its_users(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    archive = Archive(tmp_path / "home" / "a" / "results", shown="a/results")
    assert archive.write({name(1): "text"}) == {name(1)}


@pytest.mark.parametrize("max_bytes", [0, -1, True, 1.5])
def test_a_cap_is_a_positive_number(tmp_path: Path, max_bytes: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="max_bytes"):
        Archive(tmp_path, max_bytes=max_bytes)


@pytest.mark.parametrize("shown", ["", 'a"b', "a\nb", "x" * 300, "a ...] b"])
def test_a_directory_that_no_mark_could_name_is_refused(tmp_path: Path, shown: str) -> None:
    with pytest.raises(InvalidArgumentError):
        Archive(tmp_path, shown=shown)


# Cap ---------------------------------------------------------------------------------------------


def test_the_first_that_was_written_goes_first_whatever_the_clock_says(tmp_path: Path) -> None:
    archive = Archive(tmp_path, max_bytes=30)
    for number in (3, 1, 2):
        archive.write({name(number): "x" * 10})
        os.utime(tmp_path / name(number), (10**9 - number, 10**9 - number))
    archive.write({name(3): "x" * 10})
    archive.write({name(4): "x" * 10})
    assert names(archive) == [name(1), name(2), name(4)]
    Archive(tmp_path, max_bytes=30).write({name(5): "x" * 20})
    assert names(archive) == [name(4), name(5)]


def test_what_the_request_names_never_goes(tmp_path: Path) -> None:
    archive = Archive(tmp_path, max_bytes=30)
    archive.write({name(1): "x" * 10, name(2): "x" * 10, name(3): "x" * 10})
    assert archive.write({name(4): "x" * 10}, in_use=[name(1), name(2)]) == {name(4)}
    assert names(archive) == [name(1), name(2), name(4)]
    assert archive.write({name(5): "x" * 20}, in_use=[name(1), name(2), name(4)]) == set()
    assert names(archive) == [name(1), name(2), name(4)]
    assert archive.write({name(6): "x" * 31}) == set(), "larger than the cap"


def test_a_lost_order_costs_the_order_only(tmp_path: Path) -> None:
    archive = Archive(tmp_path, max_bytes=30)
    for number in (2, 1):
        archive.write({name(number): "x" * 10})
    (tmp_path / ".order").write_bytes(b"\xff\0 nonsense\n" + name(9).encode() + b"\n")
    (tmp_path / ".l3ft_4it.part").write_text("half")
    archive.write({name(3): "x" * 10, name(4): "x" * 10})
    assert names(archive) == [name(2), name(3), name(4)]
    assert not (tmp_path / ".l3ft_4it.part").exists()


# Several writers ---------------------------------------------------------------------------------

WRITER = """
import sys
from nanobot_context import Archive
import nanobot_context.archive
nanobot_context.archive._LOCK_SECONDS = 300  # the machine may be busy with something else
archive = Archive(sys.argv[1], max_bytes=20_000)
first = int(sys.argv[2])
for number in range(first, first + 60):
    text = f"{number}\\n" * 100
    assert archive.write({f"{number:016x}.txt": text}), number
"""


def test_several_processes_keep_the_cap_and_no_file_is_half_written(tmp_path: Path) -> None:
    run = [sys.executable, "-c", WRITER, str(tmp_path)]
    # Every text is written by two of them.
    writers = [subprocess.Popen([*run, str(first)]) for first in (1000, 1030, 1060, 1090)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    files = {file.name: file.read_text() for file in tmp_path.glob("*.txt")}
    assert files
    assert sum(map(len, files.values())) <= 20_000
    for file, text in files.items():
        assert text == f"{int(file[:16], 16)}\n" * 100
    assert sorted((tmp_path / ".order").read_text().split()) == sorted(files)
    assert {file.name for file in tmp_path.iterdir()} - files.keys() == {
        *(".order", ".lock", ".gitignore")
    }


def test_threads_share_an_archive(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    kept: list[set[str]] = []

    def write(first: int) -> None:
        for number in range(first, first + 20):
            kept.append(archive.write({name(number): f"{number}" * 50}))

    threads = [threading.Thread(target=write, args=(first,)) for first in (0, 10, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(kept) == 80
    assert all(kept)
    assert len(names(archive)) == 50


@pytest.mark.skipif(sys.platform == "win32", reason="locks with fcntl")
def test_a_lock_that_nobody_lets_go_is_not_waited_for(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("nanobot_context.archive._LOCK_SECONDS", 0.01)
    archive.write({name(1): "text"})
    with (archive.directory / ".lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert archive.write({name(2): "text"}) == set()
    assert archive.write({name(2): "text"}) == {name(2)}


# Failures ----------------------------------------------------------------------------------------


def test_a_directory_that_cannot_be_made_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    archive = Archive(tmp_path / "file" / "results")
    with caplog.at_level(logging.WARNING, "nanobot_context"):
        assert archive.write({name(1): "text"}) == set()
        assert archive.write({name(2): "text"}) == set()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "could not keep the original" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="modes are Unix's")
def test_a_directory_that_is_read_only_keeps_nothing(archive: Archive) -> None:
    archive.write({name(1): "text"})
    archive.directory.chmod(0o500)
    try:
        if os.access(archive.directory, os.W_OK):
            pytest.skip("root may write everywhere")
        assert archive.write({name(2): "text"}) == set()
        assert names(archive) == [name(1)]
    finally:
        archive.directory.chmod(0o700)


class FullDisk:
    """Lets `free` bytes be written to new files, then says that the disk is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, free: int) -> None:
        self.free = free
        self._open = os.fdopen
        monkeypatch.setattr(os, "fdopen", self.fdopen)

    def fdopen(self, *arguments: Any, **options: Any) -> Any:
        file = self._open(*arguments, **options)
        disk = self

        class File:
            def __enter__(self) -> File:
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

            def write(self, data: memoryview) -> int:
                if disk.free <= 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                # As a system may, a part at a time.
                written = int(file.write(data[: min(len(data), disk.free, 4096)]))
                disk.free -= written
                return written

        return File()


def test_a_full_disk_leaves_no_half_of_a_file(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.write({name(1): "x" * 5000})
    FullDisk(monkeypatch, free=7000)
    assert archive.write({name(2): "y" * 5000, name(3): "z" * 5000}) == {name(2)}
    monkeypatch.undo()
    assert names(archive) == [name(1), name(2)]
    assert not list(archive.directory.glob("*.part"))
    assert archive.write({name(3): "z" * 5000}) == {name(3)}


# Marks -------------------------------------------------------------------------------------------


def test_every_mark_names_a_file_with_the_original(archive: Archive) -> None:
    results = [logs(seed) for seed in (1, 2, 3)]
    fitted = nanobot_context.fit_messages(conversation(*results), 5_000, archive=archive)
    paths = named(fitted.messages)
    assert len(paths) == 3
    read = [(archive.directory.parent / path).read_text() for path in paths]
    assert read == results
    assert names(archive) == sorted(Path(path).name for path in paths)


def test_every_way_of_compressing_takes_an_archive(archive: Archive) -> None:
    messages = conversation(*(logs(seed) for seed in range(1, 9)))
    window = nanobot_context.count_tokens(messages)
    compressor = Compressor(window, archive=archive)
    ways = [
        nanobot_context.compress_messages(messages, window, archive=archive),
        nanobot_context.emergency_compress(messages, window, archive=archive),
        compressor.compress(messages),
        compressor.emergency(messages),
    ]
    for made in ways:
        assert named(made)
        assert all((archive.directory.parent / path).is_file() for path in named(made))
    assert ways[0] == ways[2]
    assert ways[1] == ways[3]


def test_without_an_archive_nothing_is_written_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fitted = nanobot_context.fit_messages(conversation(logs(1), logs(2)), 3_000)
    assert fitted.receipt.cuts
    assert named(fitted.messages) == []
    assert list(tmp_path.iterdir()) == []


def test_the_second_call_writes_nothing(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = conversation(logs(1), logs(2))
    once = nanobot_context.fit_messages(messages, 3_000, archive=archive).messages

    def write(*_: object) -> set[str]:
        raise AssertionError("nothing is new")

    monkeypatch.setattr(archive, "write", write)
    again = nanobot_context.fit_messages(messages, 3_000, archive=archive).messages
    assert again == once
    assert nanobot_context.fit_messages(once, 3_000, archive=archive).messages == once
    shorter = nanobot_context.fit_messages(once, 1_500, archive=archive).messages
    assert set() < set(named(shorter)) <= set(named(once))


def test_what_could_not_be_written_is_not_named(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = conversation(logs(1), logs(2))
    nanobot_context.fit_messages(conversation(logs(1)), 1_500, archive=archive)
    (kept,) = names(archive)
    FullDisk(monkeypatch, free=0)
    fitted = nanobot_context.fit_messages(messages, 3_000, archive=archive)
    assert named(fitted.messages) == [f"results/{kept}"]
    assert fitted.tokens <= 3_000


def test_a_file_that_was_removed_is_written_again(archive: Archive) -> None:
    messages = conversation(logs(1))
    once = nanobot_context.fit_messages(messages, 1_500, archive=archive).messages
    (path,) = named(once)
    (archive.directory.parent / path).unlink()
    assert nanobot_context.fit_messages(messages, 1_500, archive=archive).messages == once
    assert (archive.directory.parent / path).read_text() == logs(1)


def test_a_result_read_back_names_its_file_only_while_it_is_there(archive: Archive) -> None:
    nanobot_context.fit_messages(conversation(logs(1)), 1_500, archive=archive)
    (kept,) = names(archive)
    numbered = "".join(f"{n}| {line}\n" for n, line in enumerate(logs(1).splitlines(), 1))
    messages = conversation(numbered)
    function = messages[1]["tool_calls"][0]["function"]
    function.update(name="read_file", arguments=f'{{"path": "/home/me/w/x/results/{kept}"}}')
    before = nanobot_context.fit_messages(messages, 1_500, archive=archive)
    assert names(archive) != [kept], "another directory, so another text"
    function["arguments"] = f'{{"path": "results/{kept}"}}'
    before = nanobot_context.fit_messages(messages, 1_500, archive=archive)
    assert named(before.messages) == [f"results/{kept}"]
    (archive.directory / kept).unlink()
    after = nanobot_context.fit_messages(messages, 1_500, archive=archive)
    assert named(after.messages) == []
    assert after.tokens <= 1_500


def test_lone_surrogates_are_kept_as_they_are_counted(archive: Archive) -> None:
    text = logs(1) + "\ud83d"
    fitted = nanobot_context.fit_messages(conversation(text), 1_500, archive=archive)
    (path,) = named(fitted.messages)
    assert (archive.directory.parent / path).read_text(encoding="utf-8") == logs(1) + "\ufffd"


def test_something_that_is_no_archive_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="must be an `Archive` or None"):
        nanobot_context.fit_messages([], 10, archive="results")  # type: ignore[arg-type]


# Workspaces --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "Your workspace is at: ",
        "Your current project workspace is at: ",
        "Current project workspace: ",
        "",
    ],
)
def test_a_request_has_the_archive_of_the_workspace_in_its_prompt(
    tmp_path: Path, words: str
) -> None:
    archives = Archives(1_000, relative=True)
    prompt = f"# nanobot\n\n## Workspace\n{words}{tmp_path}\n- Memory: elsewhere\n"
    archive = archives.of([{"role": "system", "content": prompt}])
    assert archive is not None
    assert archive.directory == tmp_path.resolve() / ".nanobot-context" / "results"
    assert archive.shown == ".nanobot-context/results"
    assert archive.max_bytes == 1_000
    assert archives.of([{"role": "system", "content": prompt}]) is archive


@pytest.mark.parametrize("line", ["- Agent profile: SOUL.md and USER.md", "\nHistory log: h.jsonl"])
def test_a_prompt_that_names_no_workspace_means_the_configured_one(
    tmp_path: Path, line: str
) -> None:
    archives = Archives(1_000, relative=True, configured=str(tmp_path))
    archive = archives.of([{"role": "system", "content": f"## Workspace\n{line}\n"}])
    assert archive is not None
    assert archive.directory == tmp_path.resolve() / ".nanobot-context" / "results"
    other = "## Workspace\nNanobot's agent workspace is at: /x\n- Agent profile: /x/SOUL.md"
    assert archives.of([{"role": "system", "content": other}]) is None


def test_a_path_that_is_not_relative_begins_at_home_or_at_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    for folder, shown in (
        ("home/work", "~/work/.nanobot-context/results"),
        ("work", f"{tmp_path.resolve().as_posix()}/work/.nanobot-context/results"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        prompt = f"## Workspace\n{tmp_path / folder}"
        archive = Archives(1_000, relative=False).of([{"role": "system", "content": prompt}])
        assert archive is not None
        assert archive.shown == shown


def test_a_request_without_a_workspace_has_none(tmp_path: Path) -> None:
    archives = Archives(1_000, relative=True)
    assert archives.of([]) is None
    assert (
        archives.of([{"role": "system", "content": "You are a memory consolidation agent."}])
        is None
    )
    assert archives.of([{"role": "user", "content": f"## Workspace\n{tmp_path}"}]) is None
    for path in ("relative", str(tmp_path / "no-such-folder"), "/a\0b"):
        assert archives.of([{"role": "system", "content": f"## Workspace\n{path}"}]) is None
