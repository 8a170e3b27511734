"""The parts of `make eval` that are ours; its recordings and measures are not in the repository."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation import adapters, cases, numbers, recorded, run, tools, user_cases, work
from evaluation.page import Page, aligned, markdown
from evaluation.recall import OUR_TOKENS, OURS, PROTECTED, Evidence, Future, Measured, Source
from evaluation.recall_tables import below_baseline, write_evidence, write_future
from nanobot_context import count_tokens

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You help."},
    *({"role": "user", "content": f"Line {n}. " * 300} for n in range(20)),
    {"role": "user", "content": "Which line was first?"},
]


def recordings(folder: Path) -> Path:
    """Write one recording as the data has them, and return its folder."""
    item = {"source": "tiny", "id": "1", "license": "MIT", "lang": "en", "origin": "here x"}
    folder.mkdir()
    with gzip.open(folder / "tiny.jsonl.gz", "wt", encoding="utf8") as file:
        file.write(json.dumps({**item, "messages": MESSAGES}) + "\n")
    return folder


def scripts(folder: Path) -> Path:
    folder.mkdir()
    for name in tools.SCRIPTS:
        (folder / name).write_text("", encoding="utf-8")
    return folder


def future(recall: float, steps: int = 50) -> Future:
    return Future(steps, recall, 0.01, violated=0, bad_pairs=0, cut=0, infeasible=0, errors=0)


def evidence(verbatim: float) -> Evidence:
    return Evidence(9, verbatim, terms=0.5, answer=0.5, violated=0, errors=0)


def measured(ours: list[float], baseline: list[float], *, steps: int = 50) -> Measured:
    """Return the results of one source as if ours and all baselines had been measured."""
    result = Measured({}, Path("nowhere"), ["future", "evidence"])
    for spec in result.by_spec:
        values = ours if spec == OURS else baseline
        result.by_spec[spec] = {
            "tiny": Source(
                "tiny", 1, [future(value, steps) for value in values], [evidence(v) for v in values]
            )
        }
    return result


@pytest.mark.parametrize(
    ("data", "there", "variable"),
    [
        (None, True, "EVAL_DATA"),
        ("empty", True, "EVAL_DATA"),
        ("data", False, "EVAL_TOOLS"),
    ],
)
def test_a_missing_folder_stops_the_run_and_names_its_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: str | None, there: bool, variable: str
) -> None:
    recordings(tmp_path / "data")
    (tmp_path / "empty").mkdir()
    if there:
        scripts(tmp_path / "tools")
    given = ["--data", str(tmp_path / (data or "none")), "--tools", str(tmp_path / "tools")]
    assert run.main(given) == 2
    assert f"error: {variable}: " in capsys.readouterr().err


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    folder = scripts(tmp_path / "tools")
    (folder / "replay.py").unlink()
    with pytest.raises(tools.MissingError, match=r"EVAL_TOOLS: no `replay\.py`"):
        tools.check(recordings(tmp_path / "data"), folder)


def test_an_unknown_part_is_refused_with_those_that_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        run.parse(["--only", "future,beauty"])
    assert "no part `beauty`; there are future, evidence," in capsys.readouterr().err


def test_parts_run_in_their_own_order() -> None:
    assert run.parse(["--only", "replay,future"]).only == ("future", "replay")


def test_a_run_describes_the_recordings_and_writes_the_page(tmp_path: Path) -> None:
    data, folder = recordings(tmp_path / "data"), scripts(tmp_path / "tools")
    output = tmp_path / "docs" / "page.md"
    given = ["--data", str(data), "--tools", str(folder), "--only", "numbers"]
    assert run.main([*given, "--processes", "1", "--output", str(output)]) == 0
    page = output.read_text(encoding="utf-8")
    assert page.startswith("# Evaluation\n")
    assert f"| tiny | here | MIT | en | 1 | {len(MESSAGES)} | 0 | 0 |" in page
    assert "## Numbers" in page
    assert "| numbers that are not as they went in: 0 |" in page


def test_a_partial_run_leaves_the_page_of_the_repository_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PAGE", tmp_path / "evaluation.md")
    data, folder = recordings(tmp_path / "data"), scripts(tmp_path / "tools")
    given = ["--data", str(data), "--tools", str(folder), "--only", "numbers"]
    assert run.main([*given, "--processes", "1"]) == 0
    assert not (tmp_path / "evaluation.md").exists()


def test_the_adapter_counts_a_prompt_as_the_sum_of_its_messages() -> None:
    total = sum(adapters.ours.count_tokens(message) for message in MESSAGES)
    assert total + adapters.REPLY == count_tokens(MESSAGES, adapters.MODEL)


def test_the_adapter_fits_the_budget_that_the_measures_count() -> None:
    budget = adapters.count(MESSAGES) // 2
    out = adapters.ours(MESSAGES, budget)
    assert sum(map(adapters.ours.count_tokens, out)) <= budget
    assert out[0] is MESSAGES[0]
    assert out[-1] is MESSAGES[-1]


def test_every_mechanism_has_an_adapter_without_it() -> None:
    for name in adapters.MECHANISMS:
        assert getattr(adapters, f"without_{name}").without == (name,)


def test_the_baseline_is_counted_in_our_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "def est_tokens(m): return 10**9\n"
        "def sliding_window(ms, budget): return [m for m in ms if est_tokens(m) <= budget]\n"
        "BASELINES = {'sliding_window': sliding_window}\n"
    )
    (tmp_path / "future_reference.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv(tools.VARIABLE, str(tmp_path))
    assert adapters.sliding_window(MESSAGES, 50) == [MESSAGES[0], MESSAGES[-1]]


def test_a_source_below_the_better_baseline_is_found() -> None:
    results = measured([0.5, 0.8, 0.9], [0.6, 0.8, 0.7])
    assert [(name, i) for name, i, *_ in below_baseline(results, PROTECTED)] == [("tiny", 0)]
    assert below_baseline(measured([0.5] * 3, [0.6] * 3, steps=39), OUR_TOKENS) == []


def test_the_tables_of_recall_say_what_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    page = Page()
    results = measured([0.7, 0.8, 0.9], [0.6, 0.9, 0.7])
    write_future(page, results)
    write_evidence(page, results)
    text = page.markdown()
    assert "| tiny | 1 | 50 | 0.700 | 0.800 | 0.900 | 0.600 | 0.900 | 0.700 |" in text
    assert "tiny at 50 %: 0.800 against 0.900" in text
    outcome = {wanted: met for wanted, _, met in page.targets}
    assert outcome["future-reference recall at 25 % at least 0.62"]
    assert not outcome["future-reference recall at 50 % at least 0.82"]
    assert not outcome["evidence recall never below the sliding window"]


CELLS = {"0.0625": {"kept": 0.5, "users_first": 0.6}, "0.5": {"kept": 0.9, "users_first": 0.8}}
SCRIPT = f"""
RULES = {{0.5: 1.0, 0.1: 0.7}}

def measure(compress, cases, count):
    assert cases == ["a case"] and callable(compress) and callable(count)
    return {{
        "odd_line": {{"share": 0.96, "by_numbering": {{"plain": 1.0, "N:": 0.8}}}},
        "rules": {{"share": 1.0, "short": RULES, "long": RULES, "many": RULES}},
        "identifiers": {{"unasked": 0.9, "asked": 1.0}},
        "own_words": {{shape: {{"no_question": {CELLS}}} for shape in ("brief", "wordy")}},
        "marks": {{"en": {{"marks": 0.04}}, "zh": {{"marks": 0.02}}}},
        "over_budget": 1,
        "raised": ["ValueError"],
    }}
"""


@pytest.mark.parametrize("family", cases.FAMILIES)
def test_a_case_says_what_it_needs(family: str) -> None:
    [talk, *_] = cases.talks(family)
    said = cases.text_of(talk.messages, talk.messages[-1])
    assert talk.needed
    for text in [*talk.needed, *talk.outdated]:
        assert text in said or all(line in said for line in text.split("\n"))


def test_a_case_is_measured_at_each_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "SEEDS", range(1))
    found = cases.measure(OURS, "newest value")
    assert set(found) == set(cases.BUDGETS)
    assert all(of.kept == 1 and of.misleads == 0 for of in found.values())


def test_user_cases_are_read_as_the_script_measures_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = scripts(tmp_path / "tools")
    (folder / "user_cases.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "user_cases.json").write_text('["a case"]', encoding="utf-8")
    kept = user_cases.measure(OURS, folder)
    assert kept.row() == (0.96, 1.0, 0.9, 1.0, 0.7, 0.04)
    page = Page()
    user_cases.write(page, {("users", OURS): kept, ("users", user_cases.ONCE): kept})
    assert [wanted for wanted, _, met in page.targets if not met] == [
        "user cases, odd line in each numbering: at least 0.85",
        "user cases, rules at 10 %: at least 0.9",
        "user cases, own words: at most 0.02 below",
        "user cases over the budget or raised: 0",
    ]
    assert "User cases" in capsys.readouterr().out


def test_a_table_is_markdown_and_aligned_text() -> None:
    header, rows = ["source", "recall"], [["vcsum 中文", "0.5"], ["a|b", "10"]]
    assert markdown(header, rows).splitlines() == [
        "| source | recall |",
        "|---|--:|",
        "| vcsum 中文 | 0.5 |",
        "| a\\|b | 10 |",
    ]
    assert aligned(header, rows).splitlines() == [
        "source      recall",
        "vcsum 中文     0.5",
        "a|b             10",
    ]
    with pytest.raises(ValueError, match="a row has 1 cells but the header 2"):
        Page().table(header, [["alone"]])


def test_targets_are_repeated_at_the_end() -> None:
    page = Page()
    page.target("recall at least 0.5", "0.6", True)
    page.target("cost at most 1", "2", False)
    page.summary()
    assert "1 met, 1 missed." in page.markdown()
    assert "| cost at most 1 | 2 | MISSED |" in page.markdown()


def test_jobs_give_the_same_results_in_one_process_and_in_two() -> None:
    jobs = [work.Job(("add", n), divmod, (n, 7), n) for n in range(20)]
    assert work.run(jobs, 1) == work.run(jobs, 2) == {("add", n): divmod(n, 7) for n in range(20)}


def test_recorded_fits_are_the_same_again_and_a_changed_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fits.tsv"
    data = ["--data", str(recordings(tmp_path / "data")), "--processes", "1"]
    assert recorded.main(["write", str(file), *data]) == 0
    assert recorded.main(["check", str(file), *data]) == 0
    name, digest = file.read_text(encoding="utf-8").splitlines()[0].rsplit("\t", 1)
    changed = file.read_text(encoding="utf-8").replace(f"{name}\t{digest}", f"{name}\tother")
    file.write_text(changed, encoding="utf-8")
    assert recorded.main(["check", str(file), *data]) == 1
    assert capsys.readouterr().out.endswith(f"\n1 of 12 fits differ\n{name}\n")


@pytest.mark.parametrize("action", ["write", "check"])
def test_no_recordings_are_no_record_of_nothing(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fits.tsv"
    assert recorded.main([action, str(file), "--data", str(tmp_path / "none")]) == 2
    assert not file.exists()
    assert capsys.readouterr().err.startswith("error: no `*.jsonl.gz` in")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"price": 31.10, "delta": -0.0}', []),
        ("[40 rows left out]", []),
        ('{"price": 31.1}', ["31.1"]),
        ('{"delta": 0}', ["0"]),
        ("1.5e-07", ["1.5e-07"]),
        ("123456789012", ["123456789012"]),
        ("345678", ["345678"]),
    ],
)
def test_a_number_that_is_not_as_it_went_in_is_found(text: str, wrong: list[str]) -> None:
    source = numbers.written('{"account": 123456789012345678, "price": 31.10, "delta": -0.0}')
    assert set(numbers.changed(source, text)) == set(wrong)
