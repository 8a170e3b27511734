//! Summaries without a model.

use nanobot_context::summary::{Structured, local};
use nanobot_context::{Message, Role};

use crate::views::{call, result};

#[test]
fn every_section_is_told_from_the_messages() {
    let view = [
        Message::new(Role::User, "Build the importer in src/importer.py. Never push to main. 禁止删除数据。"),
        call("1", "write_file", r#"{"path": "src/importer.py", "content": "x"}"#),
        result("1", "ok"),
        call("2", "exec", r#"{"command": "pytest -q"}"#),
        result("2", "collected 3\nERROR: no module named csvkit\nexit code: 1"),
        Message::new(Role::Assistant, "We decided on csvkit 1.2. Still missing: the tests. Which port is it?"),
    ];
    let found = local(&view);
    assert_eq!(found.goal, "Build the importer in src/importer.py. Never push to main. 禁止删除数据。");
    assert_eq!(found.constraints, ["Never push to main.", "禁止删除数据。"]);
    assert_eq!(found.file_changes, ["write_file src/importer.py"]);
    assert_eq!(found.commands, ["exec pytest -q (exit code: 1)"]);
    assert_eq!(found.errors, ["ERROR: no module named csvkit"]);
    assert_eq!(found.decisions, ["We decided on csvkit 1.2."]);
    assert_eq!(found.open_questions, ["Still missing: the tests.", "Which port is it?"]);
    assert!(found.names.contains(&"src/importer.py".to_owned()), "{:?}", found.names);
    assert_eq!(local(&view), found);
}

#[test]
fn a_decision_is_told_in_many_words() {
    for said in [
        "Decision: grow vol-3.",
        "**Decision**: grow vol-3.",
        "The decision is to grow vol-3.",
        "Entscheidung: vol-3 wächst.",
        "On a décidé de garder vol-3.",
        "Решение: расширить vol-3.",
        "决定扩容 vol-3。",
    ] {
        let found = local(&[Message::new(Role::Assistant, &format!("Day 3: full. {said}"))]);
        assert_eq!(found.decisions, [said]);
    }
    assert_eq!(local(&[Message::new(Role::Assistant, "That is a decision of yours.")]).decisions, [""; 0]);
}

#[test]
fn a_path_keeps_its_root() {
    let view = [Message::new(Role::User, "Read /etc/app/main.toml, ~/notes/a.md and http://x.org/a_1 or `./b/c.py`.")];
    let names = local(&view).names;
    for name in ["/etc/app/main.toml", "~/notes/a.md", "./b/c.py"] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
}

#[test]
fn nothing_comes_of_nothing() {
    assert_eq!(local(&[]), Structured::default());
    assert_eq!(local(&[Message::empty(Role::Assistant)]), Structured::default());
}

#[test]
fn what_only_one_result_says_is_no_name() {
    let view = [
        Message::new(Role::User, "look at order_4711"),
        result("1", "order_4711 row_1 row_2 row_3"),
        Message::new(Role::Assistant, "It has row_2."),
    ];
    assert_eq!(local(&view).names, ["order_4711", "row_2"]);
}
