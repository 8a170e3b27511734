"""The start-up hook: one file, silent and cheap, that protects a nanobot imported later."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

import nanobot_context
from nanobot_context import activation

PACKAGE_ROOT = str(Path(nanobot_context.__file__).parent.parent)


@pytest.fixture
def site_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(activation, "_site_folders", lambda: [folder])
    return folder


def start_python(
    site_folder: Path, code: str, *, path: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `code` in a Python whose start-up has read the `.pth` files of `site_folder`."""
    search = [PACKAGE_ROOT] if path is None else path
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(search), "HOME": str(site_folder)}
    return subprocess.run(
        [sys.executable, "-c", f"import site; site.addsitedir({str(site_folder)!r})\n{code}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environ,
    )


def write_nanobot(folder: Path, loop: str = "LOADED = True\n") -> str:
    """Write a nanobot that has an agent loop and nothing else, and return its search path."""
    (folder / "nanobot" / "agent").mkdir(parents=True)
    (folder / "nanobot" / "__init__.py").touch()
    (folder / "nanobot" / "agent" / "__init__.py").touch()
    (folder / "nanobot" / "agent" / "loop.py").write_text(loop, encoding="utf-8")
    return str(folder)


def test_enable_writes_one_file_and_disable_removes_it(site_folder: Path) -> None:
    path = activation.enable()
    assert path == site_folder / "nanobot_context_autoload.pth"
    assert list(site_folder.iterdir()) == [path]
    assert activation.hook_files() == [path]
    assert activation.disable() == [path]
    assert list(site_folder.iterdir()) == []


def test_enable_and_disable_twice_are_the_same_as_once(site_folder: Path) -> None:
    first = activation.enable().read_bytes()
    assert activation.enable().read_bytes() == first
    activation.disable()
    assert activation.disable() == []


def test_enable_renews_the_file_of_another_version(site_folder: Path) -> None:
    path = site_folder / activation.HOOK_FILE
    path.write_text("import something_old\n", encoding="utf-8")
    activation.enable()
    assert path.read_text(encoding="utf-8") == activation.hook_line() + "\n"


def test_the_hook_is_one_import_line() -> None:
    assert "\n" not in activation.hook_line()
    assert activation.hook_line().startswith("import ")


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a-file"
    blocked.touch()
    monkeypatch.setattr(activation, "_site_folders", lambda: [blocked])
    with pytest.raises(OSError, match=r"could not write .*a-file.*\nhint: ") as caught:
        activation.enable()
    assert caught.value.errno is not None


def test_start_up_prints_nothing_and_does_not_import_the_package(site_folder: Path) -> None:
    activation.enable()
    code = "import sys; print(sorted(m for m in sys.modules if m.startswith('nanobot')))"
    result = start_python(site_folder, code)
    assert result.stdout == "[]\n"
    assert result.stderr == ""


def test_start_up_is_cheap(site_folder: Path) -> None:
    activation.enable()
    before = start_python(site_folder, "", path=[]).stderr  # warms the byte code
    code = (
        "import time, sys; sys.meta_path[:] = [f for f in sys.meta_path "
        "if not getattr(f, 'nanobot_context_hook', False)]\n"
        f"line = {activation.hook_line()!r}\n"
        "start = time.process_time(); exec(line); print(time.process_time() - start)"
    )
    seconds = min(float(start_python(site_folder, code).stdout) for _ in range(3))
    assert before == ""
    assert seconds < 0.005


def test_start_up_survives_an_uninstalled_package(site_folder: Path, tmp_path: Path) -> None:
    activation.enable()
    nanobot = write_nanobot(tmp_path / "nb")
    # -S in effect: nothing but nanobot can be found.
    code = (
        "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
        "import nanobot.agent.loop as loop; print(loop.LOADED)"
    )
    result = start_python(site_folder, code, path=[nanobot])
    assert result.stdout == "True\n"


def test_start_up_takes_no_code_from_the_current_folder(site_folder: Path, tmp_path: Path) -> None:
    activation.enable()
    planted = tmp_path / "here" / "nanobot_context"
    planted.mkdir(parents=True)
    for name in ("__init__.py", "activation.py"):
        (planted / name).write_text("print('planted')\n")
    environ = {**os.environ, "PYTHONPATH": f".{os.pathsep}{site_folder}", "HOME": str(site_folder)}
    code = f"import site; site.addsitedir({str(site_folder)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=planted.parent,
        env=environ,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_importing_the_agent_loop_installs_the_shim(site_folder: Path, tmp_path: Path) -> None:
    activation.enable()
    nanobot = write_nanobot(tmp_path / "nb")
    code = (
        "import sys, nanobot.agent.loop\n"
        "import nanobot_context.installer as installer\n"
        "print(installer.status().reason)\n"
        "print([f for f in sys.meta_path if hasattr(f, 'nanobot_context_hook')])"
    )
    result = start_python(site_folder, code, path=[PACKAGE_ROOT, nanobot])
    # This nanobot has no providers, so that the shim says why it left it alone.
    assert result.stdout.startswith("nanobot cannot be imported here: No module named")
    assert result.stdout.endswith("[]\n")


def test_asking_for_the_spec_does_not_use_the_hook_up(site_folder: Path, tmp_path: Path) -> None:
    activation.enable()
    nanobot = write_nanobot(tmp_path / "nb")
    code = (
        "import importlib.util, sys\n"
        "importlib.util.find_spec('nanobot.agent.loop')\n"
        "import nanobot.agent.loop\n"
        "print('nanobot_context.installer' in sys.modules)"
    )
    result = start_python(site_folder, code, path=[PACKAGE_ROOT, nanobot])
    assert result.stdout == "True\n"


def test_an_agent_loop_that_fails_to_import_fails_as_before(
    site_folder: Path, tmp_path: Path
) -> None:
    activation.enable()
    nanobot = write_nanobot(tmp_path / "nb", "raise RuntimeError('broken loop')\n")
    code = "try:\n    import nanobot.agent.loop\nexcept RuntimeError as error:\n    print(error)"
    result = start_python(site_folder, code, path=[PACKAGE_ROOT, nanobot])
    assert result.stdout == "broken loop\n"


def test_arming_twice_leaves_one_hook_and_disarming_none() -> None:
    def hooks() -> list[object]:
        return [found for found in sys.meta_path if hasattr(found, "nanobot_context_hook")]

    assert hooks() == []
    try:
        activation.arm()
        activation.arm()
        assert len(hooks()) == 1
    finally:
        activation.disarm()
    assert hooks() == []


class Slotted:
    """A loader that takes no other method."""

    __slots__ = ()

    def exec_module(self, module: object) -> None:
        """Execute nothing."""


def test_a_loader_that_cannot_be_hooked_is_told_and_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loader = Slotted()
    activation._run_after(ModuleSpec("nanobot.agent.loop", loader))  # type: ignore[arg-type]
    assert "nanobot runs without protection" in caplog.text
    loader.exec_module(sys)


@pytest.mark.parametrize(
    ("broken", "told"), [("import", "cannot be imported"), ("install", "could not install")]
)
def test_a_package_that_fails_at_start_up_is_told_and_stops_nothing(
    broken: str, told: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(ModuleType):
        def __getattr__(self, name: str) -> object:
            if broken == "import":
                raise RuntimeError("of another version")
            return self.fail

        def fail(self) -> None:
            raise RuntimeError("of another version")

    name = "nanobot_context.installer"
    monkeypatch.setitem(sys.modules, name, Broken(name))
    activation._install()
    assert told in caplog.text
    assert "of another version" in caplog.text


def test_a_package_that_was_uninstalled_says_nothing_at_start_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "nanobot_context.installer", None)
    activation._install()
    assert caplog.text == ""
