"""What the package exports, how it is typed, and what importing it does."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

import nanobot_context
from nanobot_context import _core, errors
from nanobot_context.conversations import read_conversation

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parents[1]
PACKAGE = Path(nanobot_context.__file__).parent


def python(*arguments: str, cwd: Path = ROOT) -> str:
    """Run the interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# Names -------------------------------------------------------------------------------------------


def test_all_is_what_is_exported() -> None:
    names = {name for name in dir(nanobot_context) if not name.startswith("_")}
    modules = {name for name in names if inspect.ismodule(getattr(nanobot_context, name))}
    assert names - modules == set(nanobot_context.__all__) - {"__version__"}
    assert list(nanobot_context.__all__) == sorted(nanobot_context.__all__)
    for name in nanobot_context.__all__:
        assert getattr(nanobot_context, name) is not None


def test_what_is_imported_late_is_what_type_checkers_see() -> None:
    (checked,) = (
        node
        for node in ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    homes = {
        name.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom) and node.module != "collections.abc"
        for name in node.names
    }
    assert homes == nanobot_context._LAZY
    assert homes.keys() < set(nanobot_context.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        nanobot_context.no_such_name  # noqa: B018


def test_a_module_is_public_where_it_says_what_it_exports() -> None:
    """All others are the package's own, and the reference does not describe them."""
    public = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for path in PACKAGE.rglob("*.py")
        if "\n__all__ = " in path.read_text(encoding="utf-8")
    }
    of_sessions = {"sessions.chat_app", "sessions.nanobot_files"}
    hosts = ("langchain", "litellm", "pydantic_ai", "smolagents")
    of_hosts = {f"adapters.{host}" for host in hosts}
    others = of_sessions | of_hosts
    assert public - {"__init__", "installer"} == {*nanobot_context._MODULES, *others}


def imports() -> dict[str, set[str]]:
    """Return what each module of the package imports of it, late and for types, too."""
    modules = {
        ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)): path
        for path in PACKAGE.rglob("*.py")
    }
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    imported: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                within = {f"{node.module}.{one.name}" for one in node.names}
                imported[name] |= (within | {node.module}) & modules.keys()
        # Of the package itself, whose names are everybody's.
        imported[name] -= {name, PACKAGE.name}
    assert len(imported) > 50
    return imported


def test_no_imports_go_round_in_a_circle_not_even_late_or_for_types() -> None:
    tuple(TopologicalSorter(imports()).static_order())


def test_no_imports_of_folders_go_round_in_a_circle() -> None:
    def folder(module: str) -> str:
        # Histories and sessions hold a `Summary`; its record imports neither.
        return module if module.endswith(".summary.record") else ".".join(module.split(".")[:2])

    imported: dict[str, set[str]] = {}
    for module, others in imports().items():
        if module != PACKAGE.name:
            imported.setdefault(folder(module), set()).update(map(folder, others))
    for name, others in imported.items():
        others.discard(name)
    tuple(TopologicalSorter(imported).static_order())


def test_the_design_names_files_that_are_there() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+(?:/[\w./]+)?\.(?:py|rs|tsv))`", text)
    places = (ROOT, ROOT / "src", PACKAGE)
    assert len(named) > 20
    assert [one for one in named if not any((place / one).exists() for place in places)] == []


def test_the_names_of_the_design_are_there() -> None:
    assert set(nanobot_context.__all__) >= {
        *("count_tokens", "get_context_window", "get_output_limit", "trim_tool_result"),
        *("compress_messages", "emergency_compress", "fit_messages", "classify_message"),
        *("Compressor", "Session", "detect_overflow", "ContextOverflowError"),
        *("install", "uninstall", "status"),
        *("Summarizer", "Summary", "SessionService", "AsyncSessionService"),
    }


@pytest.mark.parametrize("name", sorted({*nanobot_context.__all__} - {"__version__", "Message"}))
def test_everything_exported_has_a_docstring(name: str) -> None:
    exported = getattr(nanobot_context, name)
    assert inspect.getdoc(exported)
    if inspect.isclass(exported) and exported.__module__ != "builtins":
        for member, value in vars(exported).items():
            if not member.startswith("_") and callable(value):
                assert inspect.getdoc(value), f"{name}.{member}"


@pytest.mark.parametrize("name", sorted(name for name in vars(_core) if not name.startswith("_")))
def test_everything_compiled_has_a_docstring(name: str) -> None:
    compiled = getattr(_core, name)
    assert inspect.getdoc(compiled)
    for member, value in vars(compiled).items() if inspect.isclass(compiled) else ():
        if not member.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{member}"


def test_docstrings_name_only_what_can_be_raised() -> None:
    raised = set(errors.__all__)
    for name in vars(_core):
        doc = inspect.getdoc(getattr(_core, name)) or ""
        for line in doc.partition("Raises:")[2].splitlines():
            word = line.strip().partition(":")[0]
            if word.endswith("Error"):
                assert word in raised, name


# Exceptions --------------------------------------------------------------------------------------

USER = {"role": "user", "content": "hi"}


def service(*, closed: bool = False) -> nanobot_context.SessionService:
    """Return a service with one session."""
    made = nanobot_context.SessionService()
    made.create("a", "u", "s")
    if closed:
        made.close()
    return made


def append_late(*, overwrite: bool | None = None, expected: int | None = None) -> None:
    """Append to a session that was deleted meanwhile, or created anew, or is elsewhere."""
    one = service()
    session = one.get("a", "u", "s")
    assert session is not None
    if overwrite is not None:
        one.delete("a", "u", "s")
    if overwrite:
        one.create("a", "u", "s")
    one.append(session, [nanobot_context.SessionEvent({"progress": 1})], expected=expected)


RAISING: dict[str, Callable[[], Any]] = {
    "ContextOverflowError": lambda: nanobot_context.fit_messages([USER], 1),
    "InvalidMessageError": lambda: nanobot_context.count_tokens([{}]),
    "InvalidArgumentError": lambda: nanobot_context.fit_messages([USER], -1),
    "ConversationFileError": lambda: read_conversation(__file__),
    "SettingsError": lambda: nanobot_context.Settings(emergency_ratio=2.0),
    "SessionNotFoundError": lambda: append_late(overwrite=False),
    "SessionExistsError": lambda: service().create("a", "u", "s"),
    "SessionGoneError": lambda: append_late(overwrite=True),
    "ConflictError": lambda: append_late(expected=7),
    "StoreUnavailableError": lambda: nanobot_context.SessionService("redis://127.0.0.1:1"),
    "StoreAccessError": lambda: nanobot_context.SessionService(f"sqlite:///{ROOT}"),
    "StoreFullError": lambda: nanobot_context.SessionService("sqlite:////dev/full"),
    "StoreDataError": lambda: nanobot_context.SessionService(f"sqlite:///{__file__}"),
    "StoreClosedError": lambda: service(closed=True).app_state("a"),
}


@pytest.mark.parametrize("name", errors.__all__)
def test_every_exception_is_raised(name: str) -> None:
    class_ = getattr(errors, name)
    assert getattr(nanobot_context, name) is class_
    raising = [use for other, use in RAISING.items() if issubclass(getattr(errors, other), class_)]
    assert raising
    for use in raising:
        with pytest.raises(class_) as caught:
            use()
        assert str(caught.value)
        assert not str(caught.value).endswith(".")
        assert inspect.getdoc(type(caught.value))


def test_exceptions_carry_their_fields() -> None:
    fields = {
        "ContextOverflowError": [
            "needed_tokens",
            "limit_tokens",
            "model",
            "parts",
            "largest_tools",
        ],
        "InvalidMessageError": ["index", "field"],
        "InvalidArgumentError": ["argument"],
        "ConversationFileError": ["path", "line", "column"],
        "SettingsError": ["path"],
        "SessionGoneError": ["retry"],
        "ConflictError": ["retry", "expected", "actual"],
    }
    for name, names in fields.items():
        with pytest.raises(getattr(errors, name)) as caught:
            RAISING[name]()
        assert list(vars(caught.value)) == names


# Types -------------------------------------------------------------------------------------------


# Both read the installed package, so they run where no configuration points at its sources.


def test_the_stub_is_that_of_the_compiled_module(tmp_path: Path) -> None:
    assert "Success" in python("-m", "mypy.stubtest", "nanobot_context._core", cwd=tmp_path)


def test_types_that_stubtest_does_not_compare(tmp_path: Path) -> None:
    files = sorted(str(path) for path in (TESTS / "typing").glob("*.py"))
    assert files
    assert "Success" in python("-m", "mypy", "--strict", *files, cwd=tmp_path)


# Import ------------------------------------------------------------------------------------------

IMPORT = """
import sys
before = set(sys.modules)
import nanobot_context
print(sorted(set(sys.modules) - before))
"""


ABOUT_NANOBOT = ("host", "guard", "patches", "plugins")


def test_an_import_brings_in_next_to_nothing() -> None:
    loaded = set(ast.literal_eval(python("-c", IMPORT)))
    heavy = {
        *("asyncio", "typer", "rich", "nanobot", "litellm", "pydantic"),
        *("json", "logging", "importlib.metadata", "pathlib", "sqlite3", "difflib"),
    }
    assert not heavy & loaded, heavy & loaded
    lazy = tuple(f"nanobot_context.{name}" for name in ("installer", *ABOUT_NANOBOT))
    assert not {name for name in loaded if name.startswith(lazy)}


def test_an_import_prints_nothing_and_touches_no_file(tmp_path: Path) -> None:
    script = "import sys; sys.dont_write_bytecode = True; import nanobot_context"
    # Where the package is, and where `make coverage` writes.
    names = {"PYTHONPATH", "LLVM_PROFILE_FILE"} & os.environ.keys()
    passed = {name: os.environ[name] for name in names}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        env={"HOME": str(tmp_path), "PATH": "", **passed},
        cwd=tmp_path,
        check=True,
    )
    assert done.stdout == done.stderr == b""
    assert list(tmp_path.iterdir()) == []


def test_an_import_loads_no_vocabulary() -> None:
    script = """
import nanobot_context
from nanobot_context._core import loaded_vocabularies
print(loaded_vocabularies())
nanobot_context.count_tokens([{"role": "user", "content": "hello there, how are you?"}])
print(loaded_vocabularies())
"""
    imported, counted = map(ast.literal_eval, python("-c", script).splitlines())
    assert imported == []
    assert counted == ["o200k_base"]


def test_nothing_else_imports_nanobot() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] in ABOUT_NANOBOT:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            assert not {"nanobot"} & {name.partition(".")[0] for name in names}, path


def test_lazy_names_are_those_of_their_modules() -> None:
    script = """
import nanobot_context, sys
assert "nanobot_context.settings" not in sys.modules
assert "install" in dir(nanobot_context)
from nanobot_context import Settings, install
import nanobot_context.settings, nanobot_context.installer
assert Settings is nanobot_context.settings.Settings
assert install is nanobot_context.installer.install
assert "nanobot" not in sys.modules
"""
    python("-c", script)


def test_documented_modules_are_there_after_a_plain_import() -> None:
    code = "import nanobot_context as n; print(*(getattr(n, one).__name__ for one in n._MODULES))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = {f"nanobot_context.{one}" for one in nanobot_context._MODULES}
    assert set(done.stdout.split()) == names
