"""The parts of `make train` that need neither recordings nor scikit-learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from training import salience

WEIGHTS = {kind: [float(kind)] * len(salience.FEATURES) for kind in salience.KINDS}


def assistant(content: Any, *arguments: str) -> dict[str, Any]:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "find_it", "arguments": text}}
        for n, text in enumerate(arguments)
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def test_parts_of_a_session_are_in_the_same_half() -> None:
    sessions = {salience.session_of(f"tau/task1#trial{n}") for n in range(5)}
    assert sessions == {"tau/task1"}


def test_halves_do_not_depend_on_the_process() -> None:
    halves = [salience.half_of("tau", f"tau/task{n}") for n in range(12)]
    assert halves == [0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0]


def test_steps_are_spread_over_the_recording() -> None:
    assert salience.spread(range(5), 12) == [0, 1, 2, 3, 4]
    assert salience.spread(range(100, 130), 3) == [105, 115, 125]


def test_steps_with_little_before_them_are_left_out() -> None:
    short = [{"role": "user", "content": "Go on."}, assistant("ok")] * 8
    assert salience.chosen(short) == []
    long = [{"role": "user", "content": "word " * 2000}, assistant("ok")] * 3
    assert salience.chosen(long) == [5]


def test_a_step_names_its_text_and_its_arguments_but_not_the_tool() -> None:
    message = assistant("read it", json.dumps({"path": "src/a.py", "lines": [1200, 31.1, True]}))
    assert salience.named(message).split("\n") == ["read it", "src/a.py", "1200", "31.1"]


def test_numbers_in_arguments_are_named_as_they_are_written() -> None:
    assert salience.values('{"a": 31.10, "b": 123456789012345678901234}') == [
        "31.10",
        "123456789012345678901234",
    ]


def test_arguments_that_are_no_json_are_named_as_they_are() -> None:
    assert salience.values("src/a.py {") == ["src/a.py {"]


def test_content_in_parts_is_named() -> None:
    assert salience.named(assistant([{"type": "text", "text": "one"}, {"type": "image_url"}])) == (
        "one\n"
    )


@pytest.mark.parametrize(
    ("weight", "text"),
    [(1.23456, "1.2346"), (-0.00001, "0.0000"), (0.0, "0.0000"), (-2.5, "-2.5000")],
)
def test_weights_have_four_decimals(weight: float, text: str) -> None:
    assert salience.rounded(weight) == text


def test_the_file_has_comments_a_header_and_a_row_for_each_kind() -> None:
    lines = salience.weights_text(WEIGHTS, ["what it is"]).split("\n")
    assert lines[0] == "# what it is"
    assert lines[1].split("\t") == ["kind", *salience.FEATURES]
    assert [line.split("\t")[0] for line in lines[2:-1]] == list(salience.KINDS.values())
    assert lines[2].split("\t")[1:] == ["2.0000"] * 14
    assert lines[-1] == ""


def test_a_kind_with_too_few_weights_is_refused() -> None:
    with pytest.raises(ValueError, match="`path`: 1 weights, 14 features"):
        salience.weights_text({**WEIGHTS, 5: [1.0]}, [])


def test_the_file_in_the_repository_has_the_form_that_is_written() -> None:
    lines = salience.WEIGHTS.read_text("utf-8").splitlines()
    comments = [line[2:] for line in lines if line.startswith("# ")]
    rows = [line.split("\t") for line in lines[len(comments) + 1 :]]
    number = {name: kind for kind, name in salience.KINDS.items()}
    weights = {number[name]: [float(cell) for cell in cells] for name, *cells in rows}
    assert salience.weights_text(weights, comments).splitlines() == lines


def test_tables_replace_those_that_stand_in_the_page() -> None:
    page = f"a\n{salience.BEGIN}\nold\n{salience.END}\nz\n"
    once = salience.inserted(page, "new")
    assert once == f"a\n{salience.BEGIN}\n\nnew\n\n{salience.END}\nz\n"
    assert salience.inserted(once, "new") == once
    with pytest.raises(ValueError, match="the page has no"):
        salience.inserted("a", "new")


def test_the_page_in_the_repository_has_a_place_for_tables() -> None:
    assert "new" in salience.inserted(salience.README.read_text("utf-8"), "new")


def test_a_folder_without_recordings_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert salience.main([str(tmp_path)]) == 2
    assert "make train EVAL_DATA=<folder>" in capsys.readouterr().err
