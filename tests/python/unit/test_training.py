"""The parts of `make train` that need neither recordings nor scikit-learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from training import usage

AGE, USES = usage.FEATURES.index("age"), usage.FEATURES.index("uses")
SPLIT = {"split_feature": USES, "decision_type": "<=", "threshold": 0.5}
TREE = {
    "split_feature": AGE,
    "decision_type": "<=",
    "threshold": 3.0000000000000004,
    "left_child": {
        **SPLIT,
        "left_child": {"leaf_value": -1.2346},
        "right_child": {"leaf_value": 0},
    },
    "right_child": {"leaf_value": 0.0571},
}


class Model:
    """A model of LightGBM's, as far as it is read."""

    def dump_model(self) -> dict[str, Any]:
        return {"tree_info": [{"tree_structure": TREE}, {"tree_structure": {"leaf_value": -0.25}}]}


def assistant(content: Any, *arguments: str) -> dict[str, Any]:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "find_it", "arguments": text}}
        for n, text in enumerate(arguments)
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def test_parts_of_a_session_are_one_session() -> None:
    sessions = {usage.session_of(f"tau/task1#trial{n}") for n in range(5)}
    assert sessions == {"tau/task1"}


def test_a_source_lies_in_one_fold_and_folds_are_of_a_size() -> None:
    sizes = {"a": 90, "b": 40, "c": 40, "d": 30, "e": 30, "f": 10, "g": 5}
    folds = usage.folds_of(sizes)
    assert folds == {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 3, "g": 4}
    assert usage.folds_of(dict(reversed(sizes.items()))) == folds


def test_steps_are_spread_over_the_recording() -> None:
    assert usage.spread(range(5), 12) == [0, 1, 2, 3, 4]
    assert usage.spread(range(100, 130), 3) == [105, 115, 125]


def test_steps_with_little_before_them_are_left_out() -> None:
    short = [{"role": "user", "content": "Go on."}, assistant("ok")] * 8
    assert usage.chosen(short) == []
    long = [{"role": "user", "content": "word " * 2000}, assistant("ok")] * 3
    assert usage.chosen(long) == [5]


def test_a_step_names_its_text_and_its_arguments_but_not_the_tool() -> None:
    message = assistant("read it", json.dumps({"path": "src/a.py", "lines": [1200, 31.1, True]}))
    assert usage.named(message).split("\n") == ["read it", "src/a.py", "1200", "31.1"]


def test_numbers_in_arguments_are_named_as_they_are_written() -> None:
    assert usage.values('{"a": 31.10, "b": 123456789012345678901234}') == [
        "31.10",
        "123456789012345678901234",
    ]


def test_arguments_that_are_no_json_are_named_as_they_are() -> None:
    assert usage.values("src/a.py {") == ["src/a.py {"]


def test_content_in_parts_is_named() -> None:
    assert usage.named(assistant([{"type": "text", "text": "one"}, {"type": "image_url"}])) == (
        "one\n"
    )


def test_the_file_has_comments_and_a_node_a_line() -> None:
    lines = usage.trees_text(Model(), ["what it is"]).split("\n")
    tree = ["age < 4", "\tuses < 1", "\t\t-1235", "\t\t0", "\t57"]
    assert lines == ["# what it is", *tree, "-250", ""]


def test_a_split_that_the_core_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="a split by `==`, not by `<=`"):
        list(usage.nodes({**TREE, "decision_type": "=="}))


def test_the_features_are_those_of_the_core_in_its_order() -> None:
    source = (usage.ROOT / "src" / "select" / "usage_model.rs").read_text("utf-8")
    names = source.split("pub const NAMES: [&str; FEATURES] = [")[1].split("];")[0]
    assert tuple(json.loads(f"[{names.strip().removesuffix(',')}]")) == usage.FEATURES


def test_tables_replace_those_that_stand_in_the_page() -> None:
    page = f"a\n{usage.BEGIN}\nold\n{usage.END}\nz\n"
    once = usage.inserted(page, "new")
    assert once == f"a\n{usage.BEGIN}\n\nnew\n\n{usage.END}\nz\n"
    assert usage.inserted(once, "new") == once
    with pytest.raises(ValueError, match="the page has no"):
        usage.inserted("a", "new")


def test_the_page_in_the_repository_has_a_place_for_tables() -> None:
    assert "new" in usage.inserted(usage.README.read_text("utf-8"), "new")


def test_a_folder_without_recordings_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert usage.main([str(tmp_path)]) == 2
    assert "make train EVAL_DATA=<folder>" in capsys.readouterr().err
