"""`enable`, `disable`, `status`, `doctor`, `forget`: protect nanobot in this environment."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanobot_context import activation
from nanobot_context.caches import cache_limit_bytes
from nanobot_context.cli import output
from nanobot_context.cli.options import Json
from nanobot_context.cli.output import about, labelled, line, number_of
from nanobot_context.installer import kept_settings, settings_file
from nanobot_context.words import listed, shown

if TYPE_CHECKING:
    from nanobot_context.doctor import Report
    from nanobot_context.guard.counters import Counts
    from nanobot_context.guard.record import RequestRecord
    from nanobot_context.guard.status import Status

# What most of a prompt is in, by the core's name for it.
_SCRIPTS = {
    "western": "of Western text",
    "east_asian": "of East Asian text",
    "mixed": "of mixed text",
}
_STYLES = {"patched": "green", "patchable": "dim", "changed": "yellow", "missing": "red"}


def enable(as_json: Json = False) -> None:
    """Protect every nanobot of this environment.

    Each that is started there from now on, until `disable`.

    \b
    Example:
      nanobot-context enable
    """
    path = activation.enable()
    settings = kept_settings()
    if as_json:
        output.print_json({"hook_file": str(path), "settings_file": str(settings_file())})
        return
    line(f"enabled: {path}")
    line(settings)
    if missing := activation.without_nanobot():
        output.note(missing)


def disable(as_json: Json = False) -> None:
    """Undo `enable` completely.

    \b
    Example:
      nanobot-context disable
    """
    kept_settings()  # nanobot's next save drops what stands in its own file
    removed = activation.disable()
    if as_json:
        output.print_json({"removed": list(map(str, removed))})
        return
    for path in removed:
        line(f"removed: {path}")
    if not removed:
        line("nothing to remove: not enabled in this environment")
    if settings_file().is_file():
        line(f"settings stay: {settings_file()}")


def status(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Settings, lessons and patches, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what is protected, and what was done.

    The window, the room that it leaves for the conversation, and what to do next.

    Imports nanobot. Ends with 1 where it is not protected.

    \b
    Examples:
      nanobot-context status
      nanobot-context status -v
      nanobot-context status --json | jq .status.counters
    """
    from nanobot_context.doctor import examine

    report = examine()
    if as_json:
        output.print_json(report.to_dict())
    else:
        _print_status(report, verbose=verbose)
    raise typer.Exit(0 if report.protected else output.NEGATIVE)


def doctor(
    ask_server: Annotated[
        bool,
        typer.Option("--ask-server", help="Ask a model server of this network for its window."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Look for common problems, and name the fix for each.

    Imports nanobot. Ends with 1 where there is a problem.

    \b
    Examples:
      nanobot-context doctor
      nanobot-context doctor --ask-server
      nanobot-context doctor --json
    """
    from nanobot_context.doctor import examine

    report = examine(ask_server=ask_server)
    if as_json:
        output.print_json(report.to_dict())
    else:
        for name, version in report.versions.items():
            labelled(name, version or "not installed")
        _print_status(report, verbose=True)
        line()
        for finding in report.findings:
            labelled("problem", finding.problem, "bold red")
            labelled("  fix", finding.fix, "green")
        if not report.findings:
            line("no problems found", "green")
    raise typer.Exit(output.NEGATIVE if report.findings else 0)


def forget(as_json: Json = False) -> None:
    """Forget what was learned, counted, recorded.

    Windows, limits of answers and ratios of tokens; how often what happened; and what was sent.

    \b
    Example:
      nanobot-context forget
    """
    from nanobot_context.guard.counters import counters_file
    from nanobot_context.guard.limits import learned_file
    from nanobot_context.guard.record_file import record_file
    from nanobot_context.guard.state_file import LEARNED, OWN_REQUESTS, REQUESTS, user_folder
    from nanobot_context.host.config import nanobot_config_path

    config = nanobot_config_path()
    of_server = user_folder() / LEARNED
    removed = []
    recorded = (record_file(config, name) for name in (REQUESTS, OWN_REQUESTS))
    requests = [file for ring in recorded for file in ring.files()]
    for file in (learned_file(config), of_server, counters_file(config), *requests):
        if file.exists():
            file.unlink(missing_ok=True)
            removed.append(str(file))
    if as_json:
        output.print_json({"removed": removed})
        return
    for name in removed:
        line(f"removed: {name}")
    if not removed:
        line("nothing to forget")


def _print_status(report: Report, *, verbose: bool = False) -> None:
    """Print five lines, and one for each thing that is wrong; with `verbose` all that is known."""
    state, last = report.status, report.last
    if report.protected:
        labelled("protected", f"yes, nanobot {state.nanobot_version or 'of an unknown release'}")
    elif report.hook_files and state.installed:
        labelled("protected", "in part", "bold red")
    elif state.installed:
        labelled("protected", "no: run `nanobot-context enable`, then restart nanobot", "bold red")
    else:
        labelled("protected", f"no: {_why_not(report)}", "bold red")
    for calls in state.unguarded:
        labelled("not protected", calls, "bold red")
    labelled("window", f"{_window(state.window_tokens)} ({state.window_source})")
    if last is None or state.window_tokens == 0:
        labelled("room", _unknown_room(report))
    else:
        labelled("room", _room(state, last))
    for label, text in _counted(state.counters, verbose=verbose):
        labelled(label, text)
    if verbose:
        _print_all(report)
    for problem in state.problems:
        labelled("left out", problem, "bold red")
    for fuse in state.fuses:
        labelled("failed", f"could not {fuse.what}: {fuse.error}, {fuse.times} times", "bold red")
    if report.session_store:
        labelled("session store", report.session_store, "bold red")
    if not verbose:
        labelled("next", _next(report))


def _why_not(report: Report) -> str:
    if report.status.nanobot_version is None:
        return "nanobot is not installed in this environment"
    return report.status.reason or "nanobot is not patched"


def _next(report: Report) -> str:
    """Return the command that helps most now."""
    state, last = report.status, report.last
    if state.installed and not report.hook_files:
        return "nanobot-context enable"
    if not report.protected or state.problems or state.fuses or report.session_store:
        return "nanobot-context doctor"
    last = last or report.newest
    if last is None:
        return "talk to nanobot, then look here again"
    session = "SESSION" if last.session is None else shlex.quote(last.session)
    return f"nanobot-context inspect {session} shows each request; all of this: status -v"


def _unknown_room(report: Report) -> str:
    if report.status.window_tokens == 0:
        return "known when a refusal tells the window"
    # Settings that cannot be read name no model.
    if report.newest is None or report.status.model is None:
        return "known after the first request"
    return f"known after the first request to `{report.status.model}`"


def _room(state: Status, last: RequestRecord) -> str:
    """Return how much of the window is left for the conversation, written as a sum.

    The window is the one in force now; the last request may have been made in another one, and in
    a short conversation it left more to the answer than a longer one does.
    """
    from nanobot_context.doctor import kept_free
    from nanobot_context.host.config import max_answer, nanobot_config_path

    window, answer = state.window_tokens or last.window_tokens, last.answer_tokens
    left = max(window - last.fixed_tokens, 0)
    if window == last.window_tokens:
        answer = min(answer, kept_free(state, window, left, answer))
    else:
        answer = kept_free(state, window, left, max_answer(nanobot_config_path()))
    fixed = f"{about(last.fixed_tokens, last.is_fixed_known)} system and tools"
    prompt = window - answer
    parts = f"{window:,} - {fixed} - {answer:,} answer"
    asked = last.attempts[-1].max_tokens if last.attempts else None
    if asked and asked < answer:
        why = f"{answer / window:.0%} of the window; {asked:,} are asked for"
        parts += f" ({why})"
    if state.prompt_tokens is not None and state.prompt_tokens < prompt:
        prompt, parts = (
            state.prompt_tokens,
            f"{state.prompt_tokens:,} of a prompt at most - {fixed}",
        )
    free = about(max(prompt - last.fixed_tokens, 0), last.is_fixed_known)
    return f"{free} tokens for the conversation = {parts}"


def _print_all(report: Report) -> None:
    """Print the details that `status` leaves out."""
    state = report.status
    untested = "a release that this version was not tested with"
    tested = "" if state.is_tested else f" ({untested})"
    if state.model:
        labelled("model", state.model)
    labelled("start-up hook", ", ".join(report.hook_files) or "not enabled")
    labelled("nanobot", f"{state.nanobot_version or 'not found'}{tested}")
    labelled("config", ", ".join(report.config_files) or f"no files; `{settings_file()}` would be")
    if report.last is not None and report.last.tools:
        sizes = listed(f"{name} {tokens:,}" for name, tokens in report.last.tools)
        labelled("largest tools", f"{sizes} (about, of {report.last.fixed_tokens:,} tokens)")
    for name, source in (state.sources or {}).items():
        labelled("set", f"{name}: {source}")
    for name, lesson in (state.learned or {}).items():
        if said := listed(_known(lesson)):
            labelled("learned", f"{name}: {said}")
    # Which module they are in is in the JSON.
    names = [".".join(point.name.rsplit(".", 2)[-2:]) for point in state.points]
    room = max(map(len, names), default=0)
    for name, point in zip(names, state.points, strict=True):
        text = f"{name:<{room}}  {shown(point.why)}"
        # What is missing is said in full.
        if point.state == "patched":
            text = output.fitting(text)
        # Patched in this process; without a start-up hook a `nanobot` is not.
        is_patchable = point.state == "patched" and not report.hook_files
        state_shown = "patchable" if is_patchable else point.state
        labelled(state_shown, text, _STYLES[state_shown])
    if state.caches is not None:
        taken, limit = sum(state.caches.values()), cache_limit_bytes()
        labelled("caches", f"{taken >> 20:,} of {limit >> 20:,} MB in this process")


def _window(tokens: int | None) -> str:
    if tokens is None:
        return "depends"
    return f"{tokens:,} tokens" if tokens else "unknown"


def _known(lesson: dict[str, Any]) -> Iterator[str]:
    if (tokens := lesson["window_tokens"]) is not None:
        yield f"window {tokens:,} tokens"
    if (tokens := lesson["output_tokens"]) is not None:
        yield f"answers of at most {tokens:,} tokens"
    if tokens := lesson.get("framing_tokens"):
        yield f"{tokens} tokens more for each message"
    if tokens := lesson.get("fixed_tokens"):
        yield f"{tokens:,} tokens more for each request"
    for script, ratio in lesson["ratios"].items():
        if f"{ratio:.2f}" != "1.00":
            text = _SCRIPTS.get(script, script)
            yield f"{ratio:.2f} tokens for one that is counted here ({text})"


def _counted(counts: Counts | None, *, verbose: bool) -> Iterator[tuple[str, str]]:
    """Yield the counts as sentences, each with its label."""
    if counts is None or counts.since is None:
        yield "so far", "nothing"
        return
    since = counts.since.replace("T", " ").replace("+00:00", " UTC")
    told = f", {counts.friendly_errors:,} told to the user" if counts.friendly_errors else ""
    by = ""
    if counts.compressions and counts.tokens_saved:
        # A sum would count what is old once for each request, and be far more than any could hold.
        each = counts.tokens_saved // counts.compressions
        by = f", on average by {about(each, is_reported=False)} tokens"
    done = (
        f"{number_of(counts.requests, 'request')} since {since}; {counts.compressions:,} made "
        f"smaller{by}; {counts.overflows:,} too large for the provider, "
        f"{counts.retries_succeeded:,} of these answered after a retry{told}"
    )
    yield "so far", done
    if counts.failures:
        yield "failed", f"{counts.failures:,} times; nanobot went on, its log has the errors"
    if counts.messages_held:
        yield (
            "session store",
            f"{counts.messages_held:,} messages were in memory alone while it did not answer, "
            f"{counts.messages_stored_late:,} of them are stored since",
        )
    if not verbose:
        return
    yield "summaries", f"{counts.summaries:,}; {counts.summaries_failed:,} failed"
    if counts.prompt_tokens:
        share = counts.cached_tokens / counts.prompt_tokens
        yield (
            "reported",
            f"{counts.prompt_tokens:,} prompt tokens in {counts.answers:,} answers, "
            f"{share:.0%} of them from the provider's cache",
        )
