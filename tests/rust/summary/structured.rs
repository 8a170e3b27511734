//! Summaries in fields: read, merged, kept small.

use nanobot_context::TokenCounter;
use nanobot_context::summary::Structured;
use nanobot_context::tokens::Tokens;
use serde_json::json;

fn list(entries: &[&str]) -> Vec<String> {
    entries.iter().map(|&entry| entry.to_owned()).collect()
}

fn decisions(entries: &[&str]) -> Structured {
    Structured { decisions: list(entries), ..Structured::default() }
}

#[test]
fn what_models_write_is_read() {
    let expected = Structured { context: "on it".to_owned(), ..decisions(&["use sqlite", "port 8080"]) };
    for raw in [
        r#"{"decisions": ["use sqlite", "port 8080"], "context": "on it"}"#,
        "Here it is:\n```json\n{\"decisions\": [\"use sqlite\", \"port 8080\",], \"context\": \"on it\",}\n```\nDone.",
        r#"{"Decisions": ["use sqlite", "port 8080"], "context": "on it", "mood": "good"}"#,
        r#"{"decisions": ["use sqlite", "port 8080"], "context": "on it", "constraints": null, "openQuestions": []}"#,
    ] {
        assert_eq!(Structured::parse(raw), Some(expected.clone()), "{raw}");
    }
}

#[test]
fn json_that_was_cut_off_is_closed() {
    let whole = r#"{"decisions": ["use sqlite", "port 8080"], "context": "on it"}"#;
    for end in 0..whole.len() {
        if let Some(read) = Structured::parse(&whole[..end]) {
            assert!(read.decisions.is_empty() || "use sqlite".starts_with(&read.decisions[0]), "{end}: {read:?}");
        }
    }
    assert_eq!(Structured::parse(&whole[..31]), Some(decisions(&["use sqlite", "p"])));
    assert_eq!(Structured::parse(&whole[..53]), Some(decisions(&["use sqlite", "port 8080"])));
}

#[test]
fn fields_of_another_form_are_taken_as_they_are_meant() {
    let read = Structured::parse(
        r#"{"decisions": "one", "file_changes": {"a.py": "new"}, "constraints": [{"rule": "no tabs"}], "context": ["x", 1.50]}"#,
    );
    let read = read.unwrap();
    assert_eq!((read.decisions, read.file_changes), (list(&["one"]), list(&["a.py: new"])));
    assert_eq!((read.constraints, read.context.as_str()), (list(&["rule: no tabs"]), "x\n1.50"));
}

#[test]
fn what_is_no_such_json_is_free_text() {
    for raw in ["", "All went well.", "{}", "{\"mood\": 1}", "[1]", "{]", "a } b { c", "{ބ :", "{中:", "{:"] {
        assert_eq!(Structured::parse(raw), None, "{raw}");
    }
}

#[test]
fn merging_keeps_both_and_the_newer_wins() {
    let older = Structured {
        file_changes: list(&["write_file src/a.py: added", "b.md: fixed"]),
        context: "old".to_owned(),
        goal: "build it".to_owned(),
        ..decisions(&["Use SQLite.", "ship on Friday"])
    };
    let newer = Structured {
        file_changes: list(&["src/a.py: removed again"]),
        context: "new".to_owned(),
        goal: "else".to_owned(),
        ..decisions(&["use sqlite", "no cache"])
    };
    let merged = older.clone().merged(newer.clone());
    assert_eq!(merged.decisions, list(&["ship on Friday", "use sqlite", "no cache"]));
    assert_eq!(merged.file_changes, list(&["b.md: fixed", "src/a.py: removed again"]));
    assert_eq!((merged.context.as_str(), merged.goal.as_str()), ("new", "build it"));
    assert_eq!(merged.requests, list(&["else"]));
    assert_eq!(merged.clone().merged(newer), merged, "merging again adds nothing");
}

#[test]
fn a_summary_does_not_grow_by_merging() {
    let counter = TokenCounter::new(None);
    let mut all = Structured::default();
    for round in 0..200 {
        let newer = Structured {
            constraints: vec![format!("Never touch file {round}.")],
            names: vec![format!("src/file_{round}.py")],
            context: "word ".repeat(round),
            ..decisions(&[&format!("decision {round} {}", "x".repeat(round))])
        };
        all = all.merged(newer).within(Tokens(400), counter);
        assert!(counter.text(&all.to_string()) <= Tokens(400));
        assert!(all.constraints.contains(&format!("Never touch file {round}.")), "rules go last, the oldest first");
    }
}

#[test]
fn json_comes_back_as_it_went() {
    let summary = Structured {
        goal: "g".to_owned(),
        constraints: list(&["Never \"x\"."]),
        commands: list(&["exec make (exit code: 2)"]),
        names: list(&["a/b.py"]),
        context: "第一行\n第二行".to_owned(),
        ..decisions(&["d"])
    };
    assert_eq!(Structured::parse(&summary.to_json().to_string()), Some(summary));
}

#[test]
fn what_a_text_does_not_say_is_named() {
    let all = Structured {
        constraints: list(&["Never push to main!", "Always test."]),
        names: list(&["src/a.py", "run_77"]),
        ..decisions(&["d"])
    };
    let missing = all.missing_in("The user said: never push, to main. They work on src/a.py.");
    assert_eq!(missing.constraints, list(&["Always test."]));
    assert_eq!(missing.names, list(&["run_77"]));
    assert_eq!(missing.to_string(), "Rules of the user:\n- Always test.\nNames: run_77");
}

#[test]
fn headings_are_in_the_language_of_the_user() {
    let of = |fields: serde_json::Value| Structured::from_json(&fields).unwrap().to_string();
    let chinese = of(json!({"goal": "迁移数据库", "constraints": ["不要推送 main"], "commands": ["exec make"]}));
    assert_eq!(chinese, "目标: 迁移数据库\n用户的规则:\n- 不要推送 main\n已执行:\n- exec make");
    assert!(of(json!({"goal": "データベースを移行する"})).starts_with("目標: "));
    assert!(of(json!({"goal": "데이터베이스를 옮겨 주세요"})).starts_with("목표: "));
    assert!(of(json!({"goal": "Move the database", "context": "迁移数据库"})).starts_with("Goal: "));
}
