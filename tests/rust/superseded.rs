//! What a later message has replaced makes room for the others.

use nanobot_context::Role;

use crate::fitted::{conversation, fit, fit_without, lines, text};
use crate::owned::Owned;
use crate::texts::Kind;

const A: &str = r#"{"path": "src/a.log"}"#;
const B: &str = r#"{"path": "src/b.log"}"#;

/// Lines that only this file has.
fn file(name: &str) -> String {
    lines(120, |i| format!("{name} step {i}: wrote item_{name}{:03} to the table", i * 7 % 1_000))
}

/// Returns how many lines of [`file`] are left.
fn left(messages: &[Owned], name: &str) -> usize {
    text(messages).matches(&format!("{name} step ")).count()
}

/// Two files of the same size that were read, and then a call that may replace the newer.
fn read_twice(last: (&str, &str, &str)) -> Vec<Owned> {
    conversation(&[("read_file", B, &file("live")), ("read_file", A, &file("old")), last], "And now?")
}

#[test]
fn an_expired_result_leaves_its_room_to_a_live_one() {
    for (why, last) in [
        ("read again", ("read_file", r#"{ "path": "src/a.log" }"#, "It is empty by now.")),
        ("written", ("write_file", r#"{"path": "src/a.log", "content": ""}"#, "ok")),
    ] {
        let messages = read_twice(last);
        let short = fit(&messages, 40);
        assert!(left(&short, "live") > 60 && left(&short, "old") < 10, "{why}: {}", text(&short));
        let by_age = fit_without("superseded", &messages, 40);
        assert!(left(&by_age, "old") > 60 && left(&by_age, "live") < 10, "{why}: {}", text(&by_age));
    }
}

#[test]
fn a_result_that_nothing_has_replaced_keeps_its_share() {
    for (why, last) in [
        ("another file", ("read_file", r#"{"path": "src/c.log"}"#, "It is empty by now.")),
        ("it failed", ("read_file", A, "Error: src/a.log is locked")),
        ("another tool", ("write_note", A, "ok")),
        ("an edit", ("edit_file", A, "ok")),
    ] {
        let messages = read_twice(last);
        assert_eq!(fit(&messages, 40), fit_without("superseded", &messages, 40), "{why}");
    }
}

#[test]
fn what_stands_for_an_expired_result_says_why() {
    // Both in one group, so that the one result stays while the other goes.
    let both = |last: (&str, &str, &str), second: &str| {
        let mut messages = conversation(&[("read_file", A, &file("old")), last], "And now?");
        messages[1].calls.extend(Owned::calling(&["call_x"], "read_file", B).calls);
        messages.insert(3, Owned::result("call_x", "read_file", second));
        messages
    };
    for (last, word) in [
        (("read_file", A, "It is empty by now."), "superseded below"),
        (("write_file", A, "ok"), "changed since"),
        (("exec", "{}", file("old").as_str()), "same as below"),
    ] {
        let messages = both(last, &file("live"));
        let mark = format!("[read_file src/a.log result ({word}) left out: ");
        let short = (16..28).rev().map(|percent| fit(&messages, percent)).find(|short| text(short).contains(&mark));
        let short = short.expect(&mark);
        assert_eq!(short.iter().filter(|message| message.role == Role::Tool).count(), 3);
    }
}

#[test]
fn of_identical_results_the_last_stays() {
    let messages = conversation(
        &[("exec", r#"{"command": "a"}"#, &file("same")), ("exec", r#"{"command": "b"}"#, &file("same"))],
        "And now?",
    );
    let short = fit(&messages, 60);
    let results: Vec<_> = short.iter().filter(|message| message.role == Role::Tool).collect();
    assert_eq!(results.last().unwrap().texts(), [file("same")]);
    assert!(left(&short, "same") < 150, "{}", text(&short));
}

#[test]
fn what_differs_in_the_same_result_stays_of_both() {
    let prices = |tea: &str| {
        lines(90, |i| format!("tea no. {i}, leaf {}, {} EUR", i * 31 % 89, if i == 40 { tea } else { "7.50" }))
    };
    let messages = conversation(
        &[("read_file", A, &prices("6.40")), ("exec", "{}", &file("live")), ("read_file", A, &prices("9.10"))],
        "What has changed?",
    );
    for percent in [10, 30, 60] {
        let short = text(&fit(&messages, percent));
        assert!(
            short.contains("tea no. 40, leaf 83, 6.40 EUR") && short.contains("83, 9.10 EUR"),
            "{percent}: {short}"
        );
    }
    // Of two that have little in common nothing says what changed.
    let messages = conversation(
        &[("read_file", A, &file("old")), ("exec", "{}", &file("live")), ("read_file", A, &file("new"))],
        "Go on.",
    );
    assert!(left(&fit(&messages, 30), "old") < 5);
}

/// A function that the model wrote, in versions that change a line each.
fn version(nth: usize) -> String {
    let mut body = vec!["def price(n, rate):".to_owned(), "    base = n * 4.5".to_owned()];
    body.extend((0..4).map(|line| format!("    total_{line} = base * rate + {}", line * 7 + usize::from(line < nth))));
    body.push("    return round(total_3, 2)".to_owned());
    format!("```python\n{}\n```", body.join("\n"))
}

#[test]
fn of_the_versions_that_the_model_wrote_the_newest_stays() {
    let mut messages = vec![Owned::new(Role::System, "You are nanobot.")];
    for i in 0..30 {
        messages.push(Owned::new(Role::User, format!("Tell me about part {i}.")));
        messages.push(Owned::new(Role::Assistant, Kind::Prose.text(2_500, i as u64)));
        if i % 6 == 0 {
            messages.push(Owned::new(Role::User, "not quite, adapt it"));
            messages.push(Owned::new(Role::Assistant, version(i / 6)));
        }
    }
    messages.push(Owned::new(Role::User, "Now round to three digits."));
    for percent in [6, 12, 25] {
        assert!(text(&fit(&messages, percent)).contains(&version(4)), "{percent} %");
    }
    assert!(!text(&fit_without("superseded", &messages, 12)).contains(&version(4)));
}

#[test]
fn a_failure_does_not_stay_without_the_run_that_passed_since() {
    let run = |failed: Option<usize>| {
        let line =
            |i: usize| format!("tests/test_core.py::test_{i} {}", if Some(i) == failed { "FAILED" } else { "PASSED" });
        let end = if failed.is_some() { "E   assert 40 == 41\n1 failed, 29 passed in 3 s" } else { "30 passed in 3 s" };
        format!("{}\n{end}", lines(30, line))
    };
    let (failed, passed) = (run(Some(11)), run(None));
    let others: Vec<String> = (0..8).map(|i| Kind::Code.text(2_000, i)).collect();
    let mut calls = vec![("exec", r#"{"command": "cd /w && pytest tests/test_core.py"}"#, &*failed)];
    calls.extend(others[..3].iter().map(|text| ("read_file", "{}", &**text)));
    calls.push(("exec", r#"{"command": "pytest -q tests 2>&1 | tail -40"}"#, &*passed));
    calls.extend(others[3..].iter().map(|text| ("read_file", "{}", &**text)));
    calls.push(("exec", r#"{"command": "pytest -q docs"}"#, "4 passed in 1 s"));
    let messages = conversation(&calls, "And now?");
    for percent in [8, 12, 20, 30] {
        let short = text(&fit(&messages, percent));
        assert!(short.contains("30 passed in 3 s") || !short.contains("40 == 41"), "{percent} %: {short}");
    }
}
